"""The gradient of an example, and the feature blocks that it has."""

from typing import Any

import numpy as np

from .layout import Bigrams, Floats, Ints, SequenceWorkspace, Tables, Unigrams
from .numba_support import inlined, kernel
from .pair_counts import corrections_of, subtract_gold
from .sequence import expect_example_pairs, infer_example, settle_example_corrections
from .simd import prefetch

# Number of feature blocks ahead at which their gradient is prefetched.
_AHEAD = 12


@inlined
def add_blocks(
    t: int, n_labels: int, unigrams: Unigrams, residual: Floats, weight: float, gradient: Floats
) -> None:
    """Add a weight times the residual [Yp] of token t to the gradient of its unigram weights."""
    rows, block_ptr, block_labels = unigrams.site_blocks, unigrams.block_ptr, unigrams.block_labels
    for j in range(unigrams.site_ptr[t], unigrams.site_ptr[t + 1]):
        if j + _AHEAD < len(rows):
            prefetch(gradient, block_ptr[rows[j + _AHEAD]])
        begin, end = block_ptr[rows[j]], block_ptr[rows[j] + 1]
        if end - begin == n_labels:
            block = gradient[begin:end]
            for y in range(n_labels):
                block[y] += weight * residual[y]
        else:
            for k in range(begin, end):
                gradient[k] += weight * residual[block_labels[k]]


@inlined
def add_matrix(
    m: int, n_labels: int, bigrams: Bigrams, residual: Floats, weight: float, gradient: Floats
) -> None:
    """Add a weight times the residual [Y + 1, Yp] of matrix m to the gradient of its weights."""
    flat, places = residual.reshape(-1), bigrams.block_places
    for row in bigrams.mat_blocks[bigrams.mat_ptr[m] : bigrams.mat_ptr[m + 1]]:
        begin, end = bigrams.block_ptr[row], bigrams.block_ptr[row + 1]
        if end - begin == bigrams.n_previous * n_labels:
            full = gradient[begin:end].reshape(-1, n_labels)
            for i in range(len(full)):
                for y in range(n_labels):
                    full[i, y] += weight * residual[i, y]
        else:
            for k in range(begin, end):
                gradient[k] += weight * flat[places[k]]


@inlined
def add_corrections(
    begin: int, end: int, bigrams: Bigrams, residual: Floats, weight: float, gradient: Floats
) -> None:
    """Add a weight times the residual [end - begin] of corrections begin:end to the gradient."""
    ptr, weights = bigrams.corr_weight_ptr, bigrams.corr_weights
    for e in range(begin, end):
        for j in range(ptr[e], ptr[e + 1]):
            k: Any = np.int64(weights[j])
            gradient[k] += weight * residual[e - begin]


@inlined
def _add_pairs(s: int, tables: Tables, work: SequenceWorkspace, gradient: Floats) -> None:
    """Add the weighted gradient of the bigram weights of example s, by runs of tokens.

    The tokens of a run share a context, or a matrix. gradient: of bigram weights only.
    """
    sequences, bigrams = tables.sequences, tables.bigrams
    begin, end, weight = sequences.offsets[s], sequences.offsets[s + 1], sequences.weights[s]
    labels, context = sequences.labels[begin:end], sequences.context[begin:end]
    has_clamped, n = sequences.clamped[s] >= 0, end - begin
    contexts, residual = work.pairs.contexts, work.pair_sums
    same_context = same_matrix = end_of_matrix = 0
    for i in range(n):
        c = context[i]
        m = contexts.matrix_of[c]
        if i == end_of_matrix:
            same_matrix, end_of_matrix = i, i + 1
            while end_of_matrix < n and contexts.matrix_of[context[end_of_matrix]] == m:
                end_of_matrix += 1
            if not contexts.constant[m]:
                expect_example_pairs(i, end_of_matrix, m, has_clamped, work)
        # The corrections of the first token differ: they are in the start row.
        if i == 0 or i + 1 == n or context[i + 1] != c:
            corr_begin, corr_end = corrections_of(same_context, c, contexts)
            if corr_begin < corr_end:
                settle_example_corrections(same_context, i + 1, c, has_clamped, labels, work)
                add_corrections(
                    corr_begin, corr_end, bigrams, work.correction_sums, weight, gradient
                )
            same_context = i + 1
        if i + 1 == end_of_matrix and not contexts.constant[m]:
            for t in range(same_matrix, end_of_matrix):
                subtract_gold(t, t == 0, labels, 1.0, residual)
            add_matrix(m, sequences.n_labels, bigrams, residual, weight, gradient)


@inlined
def forget(work: SequenceWorkspace) -> None:
    """Mark all potentials as out of date, since weights have changed."""
    stamp = work.pairs.potentials.stamp
    for i in range(len(stamp)):
        stamp[i] = -1


@inlined
def add_gradient(
    s: int, number: int, tables: Tables, theta: Floats, gradient: Floats, work: SequenceWorkspace
) -> float:
    """Add the weighted gradient of example s at theta [K] to `gradient` [K].

    number: see `infer_example`. RETURNS: the weighted loss.
    """
    sequences, split = tables.sequences, tables.unigrams.split
    weight, begin = sequences.weights[s], sequences.offsets[s]
    loss = infer_example(s, number, tables, theta[:split], theta[split:], work)
    for t in range(begin, sequences.offsets[s + 1]):
        residual = work.vectors.marginals[t - begin]
        add_blocks(t, sequences.n_labels, tables.unigrams, residual, weight, gradient)
    _add_pairs(s, tables, work, gradient[split:])
    return float(weight * loss)


@kernel
def add_gradients(
    members: Ints,
    number: int,
    tables: Tables,
    theta: Floats,
    gradient: Floats,
    work: SequenceWorkspace,
) -> float:
    """Add the weighted gradients of examples `members`, at the same weights, to `gradient`.

    number: distinct for each theta; other arguments: see `add_gradient`.
    RETURNS: the weighted sum of the losses.
    """
    loss = 0.0
    for s in members:
        loss += add_gradient(s, number, tables, theta, gradient, work)
    return loss
