"""Hessian-vector products of the loss: expected minus observed counts, along a direction.

The gradient is a sum of residuals of tokens and of pairs. The Hessian times a direction is the same
sum of their derivatives (see `tangents`).
"""

from typing import NamedTuple

from .chain import vectors_of
from .example_gradients import add_blocks, add_corrections, add_matrix
from .expectations import with_scratch
from .layout import (
    Floats,
    Pairs,
    Sequences,
    SequenceWorkspace,
    Slopes,
    Tables,
    Tangents,
    Unigrams,
    Vectors,
)
from .numba_support import inlined, kernel
from .pair_counts import (
    add_correction_products,
    add_products,
    corrections_of,
    settle_context_changes,
    settle_matrix_change,
)
from .pairs import slope_for_tokens
from .scores import score_token
from .small import fill
from .tangents import differentiate, recover_betas


class TangentWorkspace(NamedTuple):
    """Workspaces of products along a direction, one example at a time; see `SequenceWorkspace`.

    slopes: of the contexts evaluated last; tangents, clamped: of the example and of its
    clamped lattice; table: zeros, the direction's origin, as the table of `Unigrams`; counts:
    [Y + 1, Yp], correction_counts: [largest number of corrections of a context] float64, sums of
    products of vectors.
    """

    slopes: Slopes
    tangents: Tangents
    clamped: Tangents
    table: Floats
    counts: Floats
    correction_counts: Floats


@inlined
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
    first: int,
    last: int,
    scratch: Floats,
    sequences: Sequences,
    pairs: Pairs,
    vectors: Vectors,
    beta: Floats,
) -> None:
    """Recover weight * beta_t of sequences first:last from the output of `infer_chunk`.

    scratch: [Y + 1, Yp], a workspace of this chunk; pairs: of the weights; vectors: [N, Yp], in;
    beta: [N, Yp], out.
    """
    vectors = with_scratch(vectors, scratch)
    for s in range(first, last):
        begin, end = sequences.offsets[s], sequences.offsets[s + 1]
        weight, context = sequences.weights[s], sequences.context[begin:end]
        sequence_vectors = vectors_of(begin, end, vectors)
        recover_betas(weight, context, pairs, sequence_vectors, beta[begin:end])


@kernel
def differentiate_chunk(
    first: int,
    last: int,
    scratch: Floats,
    tables: Tables,
    pairs: Pairs,
    direction: Floats,
    slopes: Slopes,
    vectors: Vectors,
    tangents: Tangents,
    scored: bool,
) -> None:
    """Process sequences first:last along a direction: scores and tangents.

    scratch: [Y + 1, Yp], a workspace of this chunk; tables: with the direction's scores of bundles;
    pairs: of the weights; direction: [K] float64; slopes: of the direction; vectors: [N, Yp], as
    `infer_chunk` wrote them; tangents: [N, Yp], `beta` in, others out; scored: whether
    `marginal_change` contains scores of the tokens already.
    """
    sequences, unigrams = tables.sequences, tables.unigrams
    vectors = with_scratch(vectors, scratch)
    for s in range(first, last):
        begin, end = sequences.offsets[s], sequences.offsets[s + 1]
        for t in range(begin, end):
            scores = tangents.marginal_change[t]
            if not scored:
                fill(scores, 0, len(scores), 0.0)
            score_token(t, sequences.n_labels, unigrams, direction, scores)
        weight, context = sequences.weights[s], sequences.context[begin:end]
        sequence_vectors = vectors_of(begin, end, vectors)
        changes = _tangents_of(begin, end, tangents)
        differentiate(weight, context, pairs, slopes, sequence_vectors, changes)


@inlined
def _with_table(unigrams: Unigrams, table: Floats) -> Unigrams:
    """Return the same index of weights with another table."""
    return Unigrams(
        unigrams.split,
        unigrams.bundle_ptr,
        unigrams.bundles,
        table,
        unigrams.site_ptr,
        unigrams.site_blocks,
        unigrams.block_ptr,
        unigrams.block_labels,
    )


@inlined
def _differentiate_part(
    s: int,
    is_clamped: bool,
    tables: Tables,
    direction: Floats,
    work: SequenceWorkspace,
    changes: TangentWorkspace,
) -> None:
    """Compute the tangents of example s, or of its clamped lattice, whose weight is -1."""
    sequences, weight = tables.sequences, -1.0 if is_clamped else 1.0
    begin, end = sequences.offsets[s], sequences.offsets[s + 1]
    part_vectors = vectors_of(0, end - begin, work.clamped if is_clamped else work.vectors)
    part = _tangents_of(0, end - begin, changes.clamped if is_clamped else changes.tangents)
    unigrams = _with_table(tables.unigrams, changes.table)
    for t in range(begin, end):
        scores = part.marginal_change[t - begin]
        fill(scores, 0, len(scores), 0.0)
        score_token(t, sequences.n_labels, unigrams, direction, scores)
    context = sequences.context[begin:end]
    recover_betas(weight, context, work.pairs, part_vectors, part.beta)
    differentiate(weight, context, work.pairs, changes.slopes, part_vectors, part)


@inlined
def _change_matrix(
    first: int, last: int, m: int, n_parts: int, work: SequenceWorkspace, changes: TangentWorkspace
) -> None:
    """Write the derivatives of the expected pairs of tokens first:last to `pair_sums`.

    The tokens share matrix m; sparse corrections are not included. n_parts: 2 with a clamped
    lattice, else 1.
    """
    total, counts, middle = work.pair_sums, changes.counts, max(first, 1)
    tokens, starts = work.tokens[middle:last], work.tokens[first:middle]
    n_labels, psi, slope = work.pairs.n_labels, work.pairs.potentials.psi, changes.slopes.psi
    fill(total.reshape(-1), 0, total.size, 0.0)
    fill(counts.reshape(-1), 0, counts.size, 0.0)
    for part in range(n_parts):
        alpha, backward, forward_change, backward_change = _vectors_of_part(part, work, changes)
        add_products(tokens, starts, n_labels, alpha, backward, counts)
        # Nothing changes before the first token.
        add_products(tokens, starts[:0], n_labels, forward_change, backward, total)
        add_products(tokens, starts, n_labels, alpha, backward_change, total)
    settle_matrix_change(psi[m], slope[m], counts, total)


@inlined
def _change_corrections(
    t: int, c: int, n_parts: int, work: SequenceWorkspace, changes: TangentWorkspace
) -> None:
    """Write derivatives of the corrections of context c at token t to `correction_sums`.

    The derivatives of their matrix, in `pair_sums` of the workspace, are corrected.
    """
    contexts, sums, counts = work.pairs.contexts, work.correction_sums, changes.correction_counts
    e, end = corrections_of(t, c, contexts)
    token, begins = work.tokens[t : t + 1], t == 0
    fill(sums, 0, end - e, 0.0)
    fill(counts, 0, end - e, 0.0)
    for part in range(n_parts):
        alpha, backward, forward_change, backward_change = _vectors_of_part(part, work, changes)
        add_correction_products(token, begins, e, end, contexts, alpha, backward, counts)
        add_correction_products(token, begins, e, end, contexts, alpha, backward_change, sums)
        if t > 0:
            add_correction_products(token, begins, e, end, contexts, forward_change, backward, sums)
    settle_context_changes(
        e, end, contexts.matrix_of[c], work.pairs, changes.slopes, counts, work.pair_sums, sums
    )


@inlined
def _vectors_of_part(
    part: int, work: SequenceWorkspace, changes: TangentWorkspace
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return alpha, backward and their changes, of an example or of its clamped lattice."""
    vectors = work.vectors if part == 0 else work.clamped
    tangents = changes.tangents if part == 0 else changes.clamped
    return vectors.alpha, vectors.backward, tangents.forward_change, tangents.backward_change


@inlined
def _add_pairs(
    s: int, tables: Tables, work: SequenceWorkspace, changes: TangentWorkspace, product: Floats
) -> None:
    """Add the derivatives of the pairs of example s, by runs of tokens that share a matrix.

    product: of bigram weights.
    """
    sequences, contexts, bigrams = tables.sequences, tables.contexts, tables.bigrams
    context = sequences.context[sequences.offsets[s] : sequences.offsets[s + 1]]
    n_parts, weight, run_start = 1 + (sequences.clamped[s] >= 0), sequences.weights[s], 0
    for t in range(len(context)):
        m = contexts.matrix_of[context[t]]
        if t + 1 < len(context) and contexts.matrix_of[context[t + 1]] == m:
            continue
        if not contexts.constant[m]:
            _change_matrix(run_start, t + 1, m, n_parts, work, changes)
        for i in range(run_start, t + 1):
            begin, end = corrections_of(i, context[i], contexts)
            if begin < end:
                _change_corrections(i, context[i], n_parts, work, changes)
                add_corrections(begin, end, bigrams, work.correction_sums, weight, product)
        if not contexts.constant[m]:
            add_matrix(m, sequences.n_labels, bigrams, work.pair_sums, weight, product)
        run_start = t + 1


@inlined
def add_product(
    s: int,
    number: int,
    tables: Tables,
    direction: Floats,
    product: Floats,
    work: SequenceWorkspace,
    changes: TangentWorkspace,
) -> None:
    """Add the Hessian of example s's weighted loss, times a direction, to a product.

    The example must have been inferred last, with this step number (see `infer_example`).
    direction, product: [K] float64.
    """
    sequences, unigrams = tables.sequences, tables.unigrams
    begin, end, split = sequences.offsets[s], sequences.offsets[s + 1], unigrams.split
    context, tangents, clamped = sequences.context[begin:end], changes.tangents, changes.clamped
    slope_for_tokens(number, context, work.pairs, tables.bigrams, direction[split:], changes.slopes)
    _differentiate_part(s, False, tables, direction, work, changes)
    if sequences.clamped[s] >= 0:
        _differentiate_part(s, True, tables, direction, work, changes)
        for t in range(end - begin):
            for y in range(sequences.n_labels):
                tangents.marginal_change[t, y] += clamped.marginal_change[t, y]
    for t in range(begin, end):
        marginal_change, weight = tangents.marginal_change[t - begin], sequences.weights[s]
        add_blocks(t, sequences.n_labels, unigrams, marginal_change, weight, product)
    _add_pairs(s, tables, work, changes, product[split:])
