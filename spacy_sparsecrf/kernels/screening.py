"""Screening: the gradient of *all* potential weights, of which only violators are kept."""

import numpy as np
from numba import njit

from .expectations import add_outer_products, add_starts, subtract_gold_pairs


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
    found = 0
    padded = residual.shape[1]
    total = np.empty(padded)
    for test in range(first, last):
        total[:] = 0.0
        for j in range(col_ptr[test], col_ptr[test + 1]):
            t = col_tokens[j]
            for y in range(padded):
                total[y] += residual[t, y]
        found = _collect(test * n_labels, total, n_labels, threshold, coordinates, gradients, found)
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def screen_bigrams(
    first: int,
    last: int,
    n_labels: int,
    n_previous: int,
    col_ptr: np.ndarray,
    col_contexts: np.ndarray,
    active_context: np.ndarray,
    inner_ptr: np.ndarray,
    inner_tokens: np.ndarray,
    start_ptr: np.ndarray,
    start_tokens: np.ndarray,
    labels: np.ndarray,
    token_weight: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    psi: np.ndarray,
    threshold: float,
    coordinates: np.ndarray,
    gradients: np.ndarray,
) -> int:
    """Collect the bigram weights of tests first:last whose |gradient| exceeds a threshold.

    col_ptr, col_contexts: CSC, contexts of a test; active_context: [C] int32, of each context the
    number of its matrix in psi [A, Y + 1, Yp]; inner_*, start_*: CSR of a context's tokens;
    n_previous: Y, or Y + 1 with a start label; coordinates (int64, (test * n_previous + y') * Y +
    y) and gradients: [(last - first) * n_previous * Y], out. RETURNS: how many.
    """
    found = 0
    pairs = np.empty((psi.shape[1], psi.shape[2]))
    total = np.empty((psi.shape[1], psi.shape[2]))
    for test in range(first, last):
        total[:, :] = 0.0
        pairs[:, :] = 0.0
        for j in range(col_ptr[test], col_ptr[test + 1]):
            c = col_contexts[j]
            add_outer_products(
                inner_tokens, inner_ptr[c], inner_ptr[c + 1], n_labels, alpha, backward, pairs
            )
            add_starts(start_tokens, start_ptr[c], start_ptr[c + 1], n_labels, backward, pairs)
            # Contexts that share a matrix stand together: multiply when it changes.
            is_last = j + 1 == col_ptr[test + 1]
            if is_last or active_context[col_contexts[j + 1]] != active_context[c]:
                matrix = psi[active_context[c]]
                for i in range(n_labels + 1):
                    for y in range(n_labels):
                        total[i, y] += matrix[i, y] * pairs[i, y]
                pairs[:, :] = 0.0
        for j in range(col_ptr[test], col_ptr[test + 1]):
            c = col_contexts[j]
            subtract_gold_pairs(
                c, n_labels, inner_ptr, inner_tokens, False, labels, token_weight, total
            )
            subtract_gold_pairs(
                c, n_labels, start_ptr, start_tokens, True, labels, token_weight, total
            )
        for i in range(n_previous):
            base = (test * n_previous + i) * n_labels
            found = _collect(base, total[i], n_labels, threshold, coordinates, gradients, found)
    return found
