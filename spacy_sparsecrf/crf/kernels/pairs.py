"""Pair potentials by context: a matrix that contexts share, and sparse corrections.

    psi_c(y', y) = exp(sum_{o in c} lam[o, y', y])                      (Lavergne 2010, section 4.1)

The *slopes* are the derivatives of log psi along a direction: the same sums over its weights.
In section 4.1 the matrix has only ones, and all weights are corrections; here matrices can contain
weights too. If some transitions are invalid, a *mask* follows the last matrix: 1 for valid
transitions, 0 for others; its start row is 1.
"""

from typing import Any

import numpy as np

from .exp import exp_shifted, exponentiate, largest
from .layout import Bigrams, Floats, Ints, Pairs, Slopes
from .numba_support import inlined, kernel
from .simd import prefetch
from .small import fill, position

# Below this factor, the difference from the matrix loses more than three of sixteen digits.
_LEAST_FACTOR = 1e-3


@inlined
def score_pairs(matrix: Floats, rows: Ints, n_labels: int, bigrams: Bigrams, theta: Floats) -> None:
    """Add the weights of feature blocks to a matrix [Y + 1, Yp] of log-potentials."""
    flat, block_ptr = matrix.reshape(-1), bigrams.block_ptr
    for row in rows:
        begin, end = block_ptr[row], block_ptr[row + 1]
        if end - begin == bigrams.n_previous * n_labels:
            full = theta[begin:end].reshape(-1, n_labels)
            for i in range(len(full)):
                for y in range(n_labels):
                    matrix[i, y] += full[i, y]
        else:
            for k in range(begin, end):
                flat[bigrams.block_places[k]] += theta[k]


@inlined
def _pad(matrix: Floats, n_previous: int, n_labels: int, value: float) -> None:
    """Set the padding of a matrix to a value."""
    for i in range(n_previous):
        fill(matrix[i], n_labels, matrix.shape[1], value)


@kernel
def build_matrices(first: int, last: int, pairs: Pairs, bigrams: Bigrams, theta: Floats) -> None:
    """Evaluate matrices first:last, relative to their largest log-potential.

    theta: [K] float64, bigram weights; pairs: psi and shift are written. Without a start label the
    start row is 1.
    """
    n_previous, n_labels = bigrams.n_previous, pairs.n_labels
    psi, shift = pairs.potentials.psi, pairs.potentials.shift
    for m in range(first, last):
        matrix = psi[m]
        fill(matrix.reshape(-1), 0, matrix.size, 0.0)
        rows = bigrams.mat_blocks[bigrams.mat_ptr[m] : bigrams.mat_ptr[m + 1]]
        score_pairs(matrix, rows, n_labels, bigrams, theta)
        if len(bigrams.origin) > 0:
            score_pairs(matrix, rows, n_labels, bigrams, bigrams.origin)
        used = matrix[:n_previous].reshape(-1)
        # The padding must not be the maximum.
        _pad(matrix, n_previous, n_labels, matrix[0, 0])
        shift[m] = largest(used)
        exp_shifted(used, len(used), shift[m])
        _pad(matrix, n_previous, n_labels, 0.0)
        if n_previous == n_labels:
            fill(matrix[n_labels], 0, n_labels, 1.0)
        if len(psi) > len(shift):
            mask = psi[len(shift)]
            for i in range(n_labels):
                for y in range(n_labels):
                    matrix[i, y] *= mask[i, y]


@kernel
def build_corrections(first: int, last: int, pairs: Pairs, bigrams: Bigrams, theta: Floats) -> None:
    """Evaluate the sparse corrections of contexts first:last.

    value[e] = psi[m, y', y] exp(sum of theta over the weights of e), m the matrix of the context.
    Products with the matrix are corrected by change[e] = value[e] - psi[m, y', y]. The difference
    cancels where value is much smaller: such a context is *rewritten*, with change[e] = value[e].
    In the start row, change[e] is always value[e].
    """
    weight_ptr, weights, origin = bigrams.corr_weight_ptr, bigrams.corr_weights, bigrams.origin
    contexts, potentials = pairs.contexts, pairs.potentials
    value, change, rewritten = potentials.value, potentials.change, potentials.rewritten
    for c in range(first, last):
        matrix = potentials.psi[contexts.matrix_of[c]]
        begin, start, end = contexts.corr_ptr[c], contexts.corr_start[c], contexts.corr_ptr[c + 1]
        for e in range(begin, end):
            score = 0.0
            for j in range(weight_ptr[e], weight_ptr[e + 1]):
                score += theta[weights[j]]
                if len(origin) > 0:
                    score += origin[weights[j]]
            value[e] = score
        exponentiate(value[begin:end])
        least = 1.0
        for e in range(begin, end):
            factor = value[e]
            base = float(matrix[contexts.corr_previous[e], contexts.corr_label[e]])
            value[e] = base * factor
            change[e] = value[e] - base
            if e < start:
                least = min(least, factor)
        rewritten[c] = least < _LEAST_FACTOR
        for e in range(begin if rewritten[c] else start, end):
            change[e] = value[e]


@inlined
def _prefetch_corrections(c: int, pairs: Pairs, bigrams: Bigrams) -> None:
    """Prefetch the corrections of the context that is evaluated next."""
    contexts, potentials = pairs.contexts, pairs.potentials
    begin, end = contexts.corr_ptr[c], contexts.corr_ptr[c + 1]
    for e in range(begin, end, 8):
        prefetch(bigrams.corr_weight_ptr, e)
        prefetch(potentials.value, e)
        prefetch(potentials.change, e)
    for e in range(begin, end, 32):
        prefetch(contexts.corr_previous, e)
        prefetch(contexts.corr_label, e)


@inlined
def build_for_tokens(
    step: int, context: Ints, pairs: Pairs, bigrams: Bigrams, theta: Floats
) -> None:
    """Evaluate the matrices and corrections of the contexts of some tokens, once each.

    step: number of the step; steps at the same weights may share it; context: [T], of the tokens;
    theta: [K] float64, bigram weights.
    """
    contexts, stamp = pairs.contexts, pairs.potentials.stamp
    n_matrices = len(contexts.constant)
    for i in range(len(context)):
        if i + 1 < len(context):
            _prefetch_corrections(context[i + 1], pairs, bigrams)
        # The same type as in other calls, so that only one specialisation is compiled.
        c: Any = np.int64(context[i])
        m: Any = np.int64(contexts.matrix_of[c])
        # Matrices of ones do not change.
        if stamp[m] != step and not contexts.constant[m]:
            stamp[m] = step
            build_matrices(m, m + 1, pairs, bigrams, theta)
        if stamp[n_matrices + c] != step and contexts.corr_ptr[c] < contexts.corr_ptr[c + 1]:
            stamp[n_matrices + c] = step
            build_corrections(c, c + 1, pairs, bigrams, theta)


@inlined
def potential(c: int, place: int, pairs: Pairs) -> float:
    """Return the potential of the pair at position y' * Yp + y in context c."""
    contexts, potentials = pairs.contexts, pairs.potentials
    begin, end = contexts.corr_ptr[c], contexts.corr_ptr[c + 1]
    e = begin + position(contexts.corr_place[begin:end], place)
    if e < end and contexts.corr_place[e] == place:
        return float(potentials.value[e])
    return float(potentials.psi[contexts.matrix_of[c]].reshape(-1)[place])


@kernel
def slope_matrices(
    first: int, last: int, n_labels: int, bigrams: Bigrams, direction: Floats, slopes: Slopes
) -> None:
    """Evaluate the slopes of matrices first:last: sums of the weights of a direction.

    direction: [K] float64, of the bigram weights; slopes: psi is written.
    """
    for m in range(first, last):
        matrix = slopes.psi[m]
        fill(matrix.reshape(-1), 0, matrix.size, 0.0)
        rows = bigrams.mat_blocks[bigrams.mat_ptr[m] : bigrams.mat_ptr[m + 1]]
        score_pairs(matrix, rows, n_labels, bigrams, direction)


@kernel
def slope_corrections(
    first: int, last: int, pairs: Pairs, bigrams: Bigrams, direction: Floats, slopes: Slopes
) -> None:
    """Evaluate the slopes of the corrections of contexts first:last, after slopes of matrices.

    score[e]: score of the pair along the direction, including the part of the matrix; change[e]:
    derivative of the potential, minus the part that products with the matrix contain: the
    derivative of the matrix, or of the rewritten matrix with its slope; none in the start row.
    """
    weight_ptr, weights = bigrams.corr_weight_ptr, bigrams.corr_weights
    contexts, potentials = pairs.contexts, pairs.potentials
    for c in range(first, last):
        matrix = slopes.psi[contexts.matrix_of[c]]
        for e in range(contexts.corr_ptr[c], contexts.corr_ptr[c + 1]):
            slope = 0.0
            for j in range(weight_ptr[e], weight_ptr[e + 1]):
                slope += direction[weights[j]]
            base = float(matrix[contexts.corr_previous[e], contexts.corr_label[e]])
            slopes.score[e] = base + slope
            slopes.change[e] = potentials.value[e] * slope
            if e >= contexts.corr_start[c] or not potentials.rewritten[c]:
                slopes.change[e] += potentials.change[e] * base


@inlined
def slope_for_tokens(
    step: int, context: Ints, pairs: Pairs, bigrams: Bigrams, direction: Floats, slopes: Slopes
) -> None:
    """Evaluate the slopes of the contexts of tokens, once each; see `build_for_tokens`."""
    contexts, stamp, n_matrices = pairs.contexts, slopes.stamp, len(pairs.contexts.constant)
    for token_context in context:
        c: Any = np.int64(token_context)
        m: Any = np.int64(contexts.matrix_of[c])
        # Slopes of matrices of ones are zero.
        if stamp[m] != step and not contexts.constant[m]:
            stamp[m] = step
            slope_matrices(m, m + 1, pairs.n_labels, bigrams, direction, slopes)
        if stamp[n_matrices + c] != step and contexts.corr_ptr[c] < contexts.corr_ptr[c + 1]:
            stamp[n_matrices + c] = step
            slope_corrections(c, c + 1, pairs, bigrams, direction, slopes)
