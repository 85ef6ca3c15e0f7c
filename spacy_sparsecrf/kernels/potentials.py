"""Potentials from sparse weights: log-scores of tokens, exponentiated matrices of contexts.

Shapes: Y labels, Yp = Y padded to a multiple of 8. Row Y of a context's matrix belongs to the
start label. A *row* is a test with at least one working weight; its weights are contiguous.
"""

import numpy as np
from numba import njit

from .exp import exp_shifted


@njit(cache=True, nogil=True, error_model="numpy")
def add_scores(
    scores: np.ndarray,
    rows: np.ndarray,
    first: int,
    last: int,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    theta: np.ndarray,
) -> None:
    """Add to one token's scores the weights of its rows: scores[y] += sum_o mu[o, y].

    scores: [Yp] float64; rows[first:last]: int32 row ids; row_ptr: [R + 1] int64;
    row_labels: [K] int32 label of a weight; theta: [K] weights.
    """
    for j in range(first, last):
        row = rows[j]
        for k in range(row_ptr[row], row_ptr[row + 1]):
            scores[row_labels[k]] += theta[k]


@njit(cache=True, nogil=True, error_model="numpy")
def add_pairs(
    matrix: np.ndarray,
    rows: np.ndarray,
    first: int,
    last: int,
    row_ptr: np.ndarray,
    row_places: np.ndarray,
    theta: np.ndarray,
) -> None:
    """Add to one context's log-potentials the weights of its rows.

    matrix: [Y + 1, Yp] float64, matrix[y', y] += sum_o lam[o, y', y]; row_places: [K] int32,
    place y' * Yp + y of a weight in the matrix; the rest as in `add_scores`.
    """
    flat = matrix.reshape(-1)
    for j in range(first, last):
        row = rows[j]
        for k in range(row_ptr[row], row_ptr[row + 1]):
            flat[row_places[k]] += theta[k]


@njit(cache=True, nogil=True, error_model="numpy")
def context_matrices(
    first: int,
    last: int,
    n_labels: int,
    n_previous: int,
    ctx_ptr: np.ndarray,
    ctx_rows: np.ndarray,
    row_ptr: np.ndarray,
    row_places: np.ndarray,
    theta: np.ndarray,
    psi: np.ndarray,
    shift: np.ndarray,
) -> None:
    """Build and exponentiate the pair potentials of contexts first:last, once each.

    psi: [C, Y + 1, Yp] float64, out: exp(sum_o lam[o, y', y] - shift[c]), padding 0;
    shift: [C] float64, out: the largest log-potential of a context;
    n_previous: Y + 1, or Y where no pair has a start label: the start row is then 1;
    ctx_ptr, ctx_rows: CSR of a context's rows.
    """
    padded = psi.shape[2]
    for c in range(first, last):
        matrix = psi[c]
        matrix[:, :] = 0.0
        add_pairs(matrix, ctx_rows, ctx_ptr[c], ctx_ptr[c + 1], row_ptr, row_places, theta)
        top = matrix[0, 0]
        for previous in range(n_previous):
            for y in range(n_labels):
                top = max(top, matrix[previous, y])
        shift[c] = top
        for previous in range(n_previous):
            # The padding is overwritten: it may lie above the shift.
            matrix[previous, n_labels:] = top
            exp_shifted(matrix[previous], padded, top)
            matrix[previous, n_labels:] = 0.0
        if n_previous == n_labels:
            matrix[n_labels, :n_labels] = 1.0
