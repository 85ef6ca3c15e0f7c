"""Screening: the gradient of *all* potential weights, of which only violators are kept."""

import numpy as np
from numba import njit

from .expectations import sum_rows
from .memory import lent


@njit(cache=True, nogil=True, error_model="numpy")
def _collect(
    base: int,
    row: np.ndarray,
    n: int,
    threshold: float,
    coordinates: np.ndarray,
    gradients: np.ndarray,
    found: int,
) -> int:
    """Append (base + i, row[i]) for |row[i]| > threshold; returns the new length."""
    for i in range(n):
        if abs(row[i]) > threshold:
            coordinates[found] = base + i
            gradients[found] = row[i]
            found += 1
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def screen_unigrams(
    first: int,
    last: int,
    n_labels: int,
    col_ptr: np.ndarray,
    col_tokens: np.ndarray,
    residual: np.ndarray,
    threshold: float,
    coordinates: np.ndarray,
    gradients: np.ndarray,
) -> int:
    """Collect the unigram weights of tests first:last whose |gradient| exceeds a threshold.

    col_ptr, col_tokens: CSC, tokens of a test; residual: [N, Yp]; coordinates (int64, test * Y +
    y) and gradients (float64): [(last - first) * Y], out. RETURNS: how many.
    """
    col_tokens, residual, coordinates = lent(col_tokens), lent(residual), lent(coordinates)
    gradients = lent(gradients)
    found = 0
    total = np.empty(residual.shape[1])
    for test in range(first, last):
        sum_rows(residual, col_tokens, col_ptr[test], col_ptr[test + 1], total)
        found = _collect(test * n_labels, total, n_labels, threshold, coordinates, gradients, found)
    return found
