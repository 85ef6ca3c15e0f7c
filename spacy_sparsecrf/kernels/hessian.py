"""Hessian-vector products of the loss: expected minus observed counts, along a direction.

The gradient is made of residuals of tokens and of pairs, the Hessian times a direction of their
derivatives (see `tangents`), which are gathered or scattered as residuals are.
"""

from typing import NamedTuple

from .chain import vectors_of
from .compiled import fill, inner, kernel
from .expectations import add_to_heads
from .layout import (
    Bigrams,
    Floats,
    Ints,
    Pairs,
    Sequences,
    SequenceWorkspace,
    Slopes,
    Tables,
    Tangents,
    Unigrams,
    Vectors,
)
from .pair_counts import entries_of
from .pairs import slope_visited
from .scores import score_token
from .tangents import differentiate, recover_betas


class Turn(NamedTuple):
    """Workspaces of products along a direction, one example at a time; see `SequenceWorkspace`.

    slopes: of the contexts that were visited last; tangents, copy: of the example and of its
    constrained copy; table: [H, Yp], zeros, what heads have of a direction.
    """

    slopes: Slopes
    tangents: Tangents
    copy: Tangents
    table: Floats


@inner
def _tangents_of(begin: int, end: int, tangents: Tangents) -> Tangents:
    """The tangents of tokens begin:end."""
    return Tangents(
        tangents.beta[begin:end],
        tangents.forward_change[begin:end],
        tangents.backward_change[begin:end],
        tangents.marginal_change[begin:end],
    )


@kernel
def recover_chunk(
    first: int, last: int, sequences: Sequences, pairs: Pairs, vectors: Vectors, beta: Floats
) -> None:
    """Recover weight * beta_t of sequences first:last from what `infer_chunk` has left.

    pairs: of the weights; vectors: [N, Yp], in, with a scratch of the chunk's own; beta: [N,
    Yp], out.
    """
    for s in range(first, last):
        begin, end = sequences.offsets[s], sequences.offsets[s + 1]
        weight, context = sequences.weights[s], sequences.context[begin:end]
        own = vectors_of(begin, end, vectors)
        recover_betas(weight, context, pairs, own, beta[begin:end])


@kernel
def differentiate_chunk(
    first: int,
    last: int,
    tables: Tables,
    pairs: Pairs,
    direction: Floats,
    slopes: Slopes,
    vectors: Vectors,
    tangents: Tangents,
    scored: bool,
    head_sums: Floats,
) -> None:
    """Go through sequences first:last once, along a direction: scores, tangents, sums of heads.

    tables: with the direction's table of heads; pairs: of the weights; direction: [K] float64;
    slopes: of the direction; vectors: [N, Yp], as `infer_chunk` left them, with a scratch
    of the chunk's own; tangents: [N, Yp], with `beta`, else out; scored: whether `marginal_change`
    has scores of the tokens before; head_sums: [H, Yp] float64, added to.
    """
    sequences, unigrams = tables.sequences, tables.unigrams
    for s in range(first, last):
        begin, end = sequences.offsets[s], sequences.offsets[s + 1]
        for t in range(begin, end):
            scores = tangents.marginal_change[t]
            if not scored:
                fill(scores, 0, len(scores), 0.0)
            score_token(t, sequences.n_labels, unigrams, direction, scores)
        weight, context = sequences.weights[s], sequences.context[begin:end]
        own, changes = vectors_of(begin, end, vectors), _tangents_of(begin, end, tangents)
        differentiate(weight, context, pairs, slopes, own, changes)
        for t in range(begin, end):
            add_to_heads(t, tangents.marginal_change[t], unigrams, head_sums)


@inner
def _with_table(unigrams: Unigrams, table: Floats) -> Unigrams:
    """The same weights, with another table of heads."""
    return Unigrams(
        unigrams.split,
        unigrams.head_ptr,
        unigrams.heads,
        table,
        unigrams.tok_ptr,
        unigrams.tok_rows,
        unigrams.row_ptr,
        unigrams.row_labels,
    )


@inner
def _differentiate_part(
    s: int, is_copy: bool, tables: Tables, direction: Floats, visit: SequenceWorkspace, turn: Turn
) -> None:
    """Run the tangent on example s, or on its constrained copy, whose weight is -1."""
    sequences, weight = tables.sequences, -1.0 if is_copy else 1.0
    begin, end = sequences.offsets[s], sequences.offsets[s + 1]
    own = vectors_of(0, end - begin, visit.copy if is_copy else visit.vectors)
    part = _tangents_of(0, end - begin, turn.copy if is_copy else turn.tangents)
    unigrams = _with_table(tables.unigrams, turn.table)
    for t in range(begin, end):
        scores = part.marginal_change[t - begin]
        fill(scores, 0, len(scores), 0.0)
        score_token(t, sequences.n_labels, unigrams, direction, scores)
    context = sequences.context[begin:end]
    recover_betas(weight, context, visit.pairs, own, part.beta)
    differentiate(weight, context, visit.pairs, turn.slopes, own, part)


@inner(fastmath={"contract"})
def _add_pair_changes(
    first: int,
    last: int,
    n_labels: int,
    slope: Floats,
    vectors: Vectors,
    tangents: Tangents,
    total: Floats,
) -> None:
    """Add to total[y', y] the derivatives of p(y', y) of tokens first:last, over Psi[y', y].

    slope: [Y + 1, Yp], of the matrix that they share.
    """
    for t in range(first, last):
        backward, change = vectors.backward[t], tangents.backward_change[t]
        if t == 0:
            # Before the first token nothing changes.
            for y in range(total.shape[1]):
                total[n_labels, y] += change[y] + slope[n_labels, y] * backward[y]
            continue
        for i in range(n_labels):
            a, b = vectors.alpha[t - 1, i], tangents.forward_change[t - 1, i]
            for y in range(total.shape[1]):
                own = change[y] + slope[i, y] * backward[y]
                total[i, y] += b * backward[y] + a * own


@inner
def _add_entry_changes(
    t: int, c: int, vectors: Vectors, tangents: Tangents, visit: SequenceWorkspace, slopes: Slopes
) -> None:
    """Add the derivatives of the entries of context c at token t to `visit.entry_sums`.

    Those that were taken of the pairs in its matrix are mended, in `visit.pair_sums`.
    """
    contexts, value = visit.pairs.contexts, visit.pairs.potentials.value
    m, (begin, end) = contexts.matrix_of[c], entries_of(t, c, contexts)
    psi, slope = visit.pairs.potentials.psi[m], slopes.psi[m]
    backward, change = vectors.backward[t], tangents.backward_change[t]
    for e in range(begin, end):
        i, y = contexts.ent_previous[e], contexts.ent_label[e]
        count, own = backward[y], change[y]
        if t > 0:
            a = vectors.alpha[t - 1, i]
            own = tangents.forward_change[t - 1, i] * count + a * own
            count *= a
        changed = value[e] * (own + slopes.score[e] * count)
        visit.entry_sums[e - begin] += changed
        # Of a matrix of ones, which no weight is in, this is not used.
        visit.pair_sums[i, y] += changed - psi[i, y] * (own + slope[i, y] * count)


@inner
def _change_matrix(
    first: int, last: int, m: int, has_copy: bool, visit: SequenceWorkspace, turn: Turn
) -> None:
    """Derivatives of pair counts of tokens first:last of an example, as if there were no entries.

    They share matrix m. visit: its `pair_sums` are the result.
    """
    total, psi, slope = visit.pair_sums, visit.pairs.potentials.psi[m], turn.slopes.psi[m]
    n_labels = visit.pairs.n_labels
    fill(total.reshape(-1), 0, total.size, 0.0)
    _add_pair_changes(first, last, n_labels, slope, visit.vectors, turn.tangents, total)
    if has_copy:
        _add_pair_changes(first, last, n_labels, slope, visit.copy, turn.copy, total)
    for i in range(total.shape[0]):
        for y in range(total.shape[1]):
            total[i, y] *= psi[i, y]


@inner
def _change_entries(t: int, c: int, has_copy: bool, visit: SequenceWorkspace, turn: Turn) -> None:
    """Derivatives of counts of the entries of context c at an example's token t: `entry_sums`."""
    begin, end = entries_of(t, c, visit.pairs.contexts)
    fill(visit.entry_sums, 0, end - begin, 0.0)
    _add_entry_changes(t, c, visit.vectors, turn.tangents, visit, turn.slopes)
    if has_copy:
        _add_entry_changes(t, c, visit.copy, turn.copy, visit, turn.slopes)


@inner
def _scatter(
    rows: Ints, row_ptr: Ints, places: Ints, values: Floats, weight: float, product: Floats
) -> None:
    """product[k] += weight * values[place of k] for the weights k of rows."""
    for row in rows:
        for k in range(row_ptr[row], row_ptr[row + 1]):
            product[k] += weight * values[places[k]]


@inner
def _scatter_entries(
    begin: int, end: int, bigrams: Bigrams, values: Floats, weight: float, product: Floats
) -> None:
    """product[k] += weight * values[e - begin] for the weights k of entries begin:end."""
    for e in range(begin, end):
        for j in range(bigrams.ent_weight_ptr[e], bigrams.ent_weight_ptr[e + 1]):
            product[bigrams.ent_weights[j]] += weight * values[e - begin]


@inner
def _add_pairs(
    s: int, tables: Tables, visit: SequenceWorkspace, turn: Turn, product: Floats
) -> None:
    """Add derivatives of example s's pairs, a run of tokens that share a matrix at a time.

    product: of bigram weights.
    """
    sequences, contexts, bigrams = tables.sequences, tables.contexts, tables.bigrams
    context = sequences.context[sequences.offsets[s] : sequences.offsets[s + 1]]
    has_copy, weight, first = sequences.copies[s] >= 0, sequences.weights[s], 0
    for t in range(len(context)):
        m = contexts.matrix_of[context[t]]
        if t + 1 < len(context) and contexts.matrix_of[context[t + 1]] == m:
            continue
        if not contexts.constant[m]:
            _change_matrix(first, t + 1, m, has_copy, visit, turn)
        for i in range(first, t + 1):
            begin, end = entries_of(i, context[i], contexts)
            if begin < end:
                _change_entries(i, context[i], has_copy, visit, turn)
                _scatter_entries(begin, end, bigrams, visit.entry_sums, weight, product)
        if not contexts.constant[m]:
            rows = bigrams.mat_rows[bigrams.mat_ptr[m] : bigrams.mat_ptr[m + 1]]
            values = visit.pair_sums.reshape(-1)
            _scatter(rows, bigrams.row_ptr, bigrams.row_places, values, weight, product)
        first = t + 1


@inner
def add_product(
    s: int,
    number: int,
    tables: Tables,
    direction: Floats,
    product: Floats,
    visit: SequenceWorkspace,
    turn: Turn,
) -> None:
    """Add example s's weight times the Hessian of its loss times a direction to a product.

    The example was inferred last, on the visit of this number (see `infer_example`). direction,
    product: [K] float64.
    """
    sequences, unigrams = tables.sequences, tables.unigrams
    begin, end, split = sequences.offsets[s], sequences.offsets[s + 1], unigrams.split
    context, tangents, copy = sequences.context[begin:end], turn.tangents, turn.copy
    slope_visited(number, context, visit.pairs, tables.bigrams, direction[split:], turn.slopes)
    _differentiate_part(s, False, tables, direction, visit, turn)
    if sequences.copies[s] >= 0:
        _differentiate_part(s, True, tables, direction, visit, turn)
        for t in range(end - begin):
            for y in range(sequences.n_labels):
                tangents.marginal_change[t, y] += copy.marginal_change[t, y]
    for t in range(begin, end):
        rows = unigrams.tok_rows[unigrams.tok_ptr[t] : unigrams.tok_ptr[t + 1]]
        own = tangents.marginal_change[t - begin]
        weight = sequences.weights[s]
        _scatter(rows, unigrams.row_ptr, unigrams.row_labels, own, weight, product)
    _add_pairs(s, tables, visit, turn, product[split:])
