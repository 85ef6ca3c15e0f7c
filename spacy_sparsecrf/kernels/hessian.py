"""Hessian-vector products of the loss: expected minus observed counts, along a direction.

The gradient is a sum of residuals of tokens and of pairs. The Hessian times a direction is the same
sum of their derivatives (see `tangents`).
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
from .pair_counts import (
    add_entry_products,
    add_products,
    entries_of,
    settle_context_changes,
    settle_matrix_change,
)
from .pairs import slope_visited
from .scores import score_token
from .tangents import differentiate, recover_betas


class Turn(NamedTuple):
    """Workspaces of products along a direction, one example at a time; see `SequenceWorkspace`.

    slopes: of the contexts that were evaluated last; tangents, copy: of the example and of its
    clamped lattice; table: [H, Yp], zeros, the direction's weights of frequent features; counts:
    [Y + 1, Yp], entry_counts: [largest number of corrections of a context] float64, sums of
    products of vectors.
    """

    slopes: Slopes
    tangents: Tangents
    copy: Tangents
    table: Floats
    counts: Floats
    entry_counts: Floats


@inner
def _tangents_of(begin: int, end: int, tangents: Tangents) -> Tangents:
    """Return views of the tangents of tokens begin:end."""
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

    pairs: of the weights; vectors: [N, Yp], in, with a scratch that no other chunk uses; beta:
    [N, Yp], out.
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
    """Process sequences first:last along a direction: scores, tangents, frequent features.

    tables: with the direction's table of frequent features; pairs: of the weights; direction: [K]
    float64; slopes: of the direction; vectors: [N, Yp], as `infer_chunk` wrote them, with a scratch
    that no other chunk uses; tangents: [N, Yp], `beta` in, others out; scored: whether
    `marginal_change` contains scores of the tokens already; head_sums: [H, Yp] float64, added to.
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
    """Return the same index of weights with another table of frequent features."""
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
    """Run the tangent on example s, or on its clamped lattice, whose weight is -1."""
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


@inner
def _add_pair_changes(
    first: int,
    last: int,
    n_labels: int,
    visit: SequenceWorkspace,
    vectors: Vectors,
    tangents: Tangents,
    counts: Floats,
) -> None:
    """Add products of tokens first:last of an example, and of their changes along a direction.

    Products of the vectors to counts [Y + 1, Yp], of their changes to `visit.pair_sums`.
    """
    total, middle = visit.pair_sums, max(first, 1)
    tokens, starts = visit.tokens[middle:last], visit.tokens[first:middle]
    alpha, backward = vectors.alpha, vectors.backward
    add_products(tokens, starts, n_labels, alpha, backward, counts)
    # Before the first token nothing changes.
    add_products(tokens, starts[:0], n_labels, tangents.forward_change, backward, total)
    add_products(tokens, starts, n_labels, alpha, tangents.backward_change, total)


@inner
def _add_entry_changes(
    first: int,
    last: int,
    c: int,
    visit: SequenceWorkspace,
    vectors: Vectors,
    tangents: Tangents,
    counts: Floats,
) -> None:
    """Do for the corrections of context c what `_add_pair_changes` does: to `visit.entry_sums`.

    All of tokens first:last begin the example, or none does.
    """
    contexts, tokens, begins = visit.pairs.contexts, visit.tokens[first:last], first == 0
    e, end = entries_of(first, c, contexts)
    given, alpha, backward = (tokens, begins, e, end, contexts), vectors.alpha, vectors.backward
    add_entry_products(*given, alpha, backward, counts)
    add_entry_products(*given, alpha, tangents.backward_change, visit.entry_sums)
    if not begins:
        add_entry_products(*given, tangents.forward_change, backward, visit.entry_sums)


@inner
def _change_matrix(
    first: int, last: int, m: int, has_copy: bool, visit: SequenceWorkspace, turn: Turn
) -> None:
    """Write the derivatives of the expected pairs of tokens first:last to `visit.pair_sums`.

    The tokens share matrix m; sparse corrections are not included.
    """
    total, counts, n_labels = visit.pair_sums, turn.counts, visit.pairs.n_labels
    fill(total.reshape(-1), 0, total.size, 0.0)
    fill(counts.reshape(-1), 0, counts.size, 0.0)
    given = first, last, n_labels, visit
    _add_pair_changes(*given, visit.vectors, turn.tangents, counts)
    if has_copy:
        _add_pair_changes(*given, visit.copy, turn.copy, counts)
    settle_matrix_change(visit.pairs.potentials.psi[m], turn.slopes.psi[m], counts, total)


@inner
def _change_entries(t: int, c: int, has_copy: bool, visit: SequenceWorkspace, turn: Turn) -> None:
    """Write the derivatives of the corrections of context c at token t to `visit.entry_sums`.

    The derivatives of their matrix, in `visit.pair_sums`, are corrected.
    """
    contexts, sums, counts = visit.pairs.contexts, visit.entry_sums, turn.entry_counts
    e, end = entries_of(t, c, contexts)
    fill(sums, 0, end - e, 0.0)
    fill(counts, 0, end - e, 0.0)
    _add_entry_changes(t, t + 1, c, visit, visit.vectors, turn.tangents, counts)
    if has_copy:
        _add_entry_changes(t, t + 1, c, visit, visit.copy, turn.copy, counts)
    of_entries = counts, visit.pair_sums, sums
    settle_context_changes(e, end, contexts.matrix_of[c], visit.pairs, turn.slopes, *of_entries)


@inner
def _scatter(
    rows: Ints, row_ptr: Ints, places: Ints, values: Floats, weight: float, product: Floats
) -> None:
    """product[k] += weight * values[position of k] for the weights k of feature blocks."""
    for row in rows:
        for k in range(row_ptr[row], row_ptr[row + 1]):
            product[k] += weight * values[places[k]]


@inner
def _scatter_entries(
    begin: int, end: int, bigrams: Bigrams, values: Floats, weight: float, product: Floats
) -> None:
    """product[k] += weight * values[e - begin] for the weights k of corrections begin:end."""
    for e in range(begin, end):
        for j in range(bigrams.ent_weight_ptr[e], bigrams.ent_weight_ptr[e + 1]):
            product[bigrams.ent_weights[j]] += weight * values[e - begin]


@inner
def _add_pairs(
    s: int, tables: Tables, visit: SequenceWorkspace, turn: Turn, product: Floats
) -> None:
    """Add derivatives of the pairs of example s, a run of tokens that share a matrix at a time.

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
    """Add the weight of example s times the Hessian of its loss times a direction to a product.

    The example was inferred last, in the step of this number (see `infer_example`). direction,
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
