"""Potentials from sparse weights: log-scores of tokens, exponentiated matrices of contexts.

Shapes: Y labels, Yp = Y padded to a multiple of 8. Row Y of a matrix belongs to the start label.
A *row* is a test with at least one working weight; its weights are contiguous. A row with all of
its potential weights is *full*: its weights lie in the order of the scores and add as a vector.
A *head* is a row of a frequent test, whose weights are copied to a table of all labels.
Where some labels may not follow others, a *mask* comes after the last matrix: 1 for pairs that may,
0 for others; its start row is 1.
"""

import numpy as np

from .compiled import inner, kernel
from .exp import exp_shifted, largest
from .memory import fill, lent, prefetch

# How many rows ahead their position, and their weights, are asked for.
_FAR = 24
_NEAR = 12


@inner
def add_heads(
    scores: np.ndarray, heads: np.ndarray, first: int, last: int, table: np.ndarray
) -> None:
    """Add to one token's scores the rows heads[first:last] of a table, four at a time.

    scores: [Yp]; heads: int32; table: [H, Yp], mu[o, y] of the frequent tests, zeros elsewhere.
    """
    unrolled = last - (last - first) % 4
    for j in range(first, unrolled, 4):
        a, b, c, d = table[heads[j]], table[heads[j + 1]], table[heads[j + 2]], table[heads[j + 3]]
        for y in range(len(scores)):
            scores[y] += (a[y] + b[y]) + (c[y] + d[y])
    for j in range(unrolled, last):
        a = table[heads[j]]
        for y in range(len(scores)):
            scores[y] += a[y]


@inner
def add_scores(
    scores: np.ndarray,
    rows: np.ndarray,
    first: int,
    last: int,
    n_labels: int,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    theta: np.ndarray,
) -> None:
    """Add to one token's scores the weights of its rows: scores[y] += sum_o mu[o, y].

    scores: [Yp]; rows[first:last]: int32 row ids; row_ptr: [R + 1] int64;
    row_labels: [K] uint32 label of a weight; theta: [K] weights.
    """
    for j in range(first, last):
        if j + _FAR < len(rows):
            prefetch(row_ptr, rows[j + _FAR])
            ahead = rows[j + _NEAR]
            prefetch(row_labels, row_ptr[ahead])
            for k in range(row_ptr[ahead], row_ptr[ahead + 1], 8):
                prefetch(theta, k)
        row = rows[j]
        begin, end = row_ptr[row], row_ptr[row + 1]
        if end - begin == n_labels:
            # A slice: numba tests the sign of other indices, and then does not vectorise.
            full = theta[begin:end]
            for y in range(n_labels):
                scores[y] += full[y]
        else:
            for k in range(begin, end):
                scores[row_labels[k]] += theta[k]


@inner
def add_pairs(
    matrix: np.ndarray,
    rows: np.ndarray,
    first: int,
    last: int,
    n_labels: int,
    n_previous: int,
    row_ptr: np.ndarray,
    row_places: np.ndarray,
    theta: np.ndarray,
) -> None:
    """Add to one matrix of log-potentials the weights of its rows.

    matrix: [Y + 1, Yp], matrix[y', y] += sum_o lam[o, y', y]; row_places: [K] uint32,
    place y' * Yp + y of a weight in the matrix; n_previous: Y, or Y + 1 with a start label; the
    rest as in `add_scores`.
    """
    flat = matrix.reshape(-1)
    for j in range(first, last):
        row = rows[j]
        begin, end = row_ptr[row], row_ptr[row + 1]
        if end - begin == n_previous * n_labels:
            full = theta[begin:end].reshape(-1, n_labels)
            for i in range(len(full)):
                for y in range(n_labels):
                    matrix[i, y] += full[i, y]
        else:
            for k in range(begin, end):
                flat[row_places[k]] += theta[k]


@inner
def _mask(matrix: np.ndarray, mask: np.ndarray, n_labels: int) -> None:
    """Multiply a matrix [Y + 1, Yp] by a mask, but for the start row."""
    for i in range(n_labels):
        for y in range(matrix.shape[1]):
            matrix[i, y] *= mask[i, y]


@inner
def _pad(matrix: np.ndarray, n_previous: int, n_labels: int, value: float) -> None:
    """Set the padding of a matrix to a value."""
    for i in range(n_previous):
        fill(matrix[i], n_labels, matrix.shape[1], value)


@kernel
def context_matrices(
    first: int,
    last: int,
    n_labels: int,
    n_previous: int,
    mat_ptr: np.ndarray,
    mat_rows: np.ndarray,
    row_ptr: np.ndarray,
    row_places: np.ndarray,
    theta: np.ndarray,
    psi: np.ndarray,
    shift: np.ndarray,
) -> None:
    """Build and exponentiate the pair potentials of matrices first:last, once each.

    psi: [M, Y + 1, Yp], out: exp(sum_o lam[o, y', y] - shift[m]), padding 0; with one matrix more
    than shifts, the last is the mask, by which others are multiplied;
    shift: [M] float64, out: the largest log-potential of a matrix;
    n_previous: Y + 1, or Y where no pair has a start label: the start row is then 1;
    mat_ptr, mat_rows: CSR of a matrix's rows.
    """
    mat_rows, row_ptr, row_places = lent(mat_rows), lent(row_ptr), lent(row_places)
    theta, psi = lent(theta), lent(psi)
    for m in range(first, last):
        matrix = psi[m]
        fill(matrix.reshape(-1), 0, matrix.size, 0.0)
        add_pairs(
            matrix,
            mat_rows,
            mat_ptr[m],
            mat_ptr[m + 1],
            n_labels,
            n_previous,
            row_ptr,
            row_places,
            theta,
        )
        used = matrix[:n_previous].reshape(-1)
        # The padding, which may lie above all potentials, is not to be the largest.
        _pad(matrix, n_previous, n_labels, matrix[0, 0])
        shift[m] = largest(used)
        exp_shifted(used, len(used), shift[m])
        _pad(matrix, n_previous, n_labels, 0.0)
        if n_previous == n_labels:
            fill(matrix[n_labels], 0, n_labels, 1.0)
        if len(psi) > len(shift):
            _mask(matrix, psi[len(shift)], n_labels)
