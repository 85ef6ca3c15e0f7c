"""Screening: the gradient of *all* potential weights, of which only violators are kept."""

import numpy as np
from numba import njit

from .expectations import add_outer_products, add_starts, subtract_gold_pairs, sum_rows
from .memory import fill, lent


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


@njit(cache=True, nogil=True, error_model="numpy")
def _add_expected_pairs(
    pairs: np.ndarray,
    matrix: np.ndarray,
    first: int,
    last: int,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    ent_value: np.ndarray,
    n_labels: int,
    total: np.ndarray,
) -> None:
    """Add Psi * pairs to a total, Psi being a matrix with a context's entries first:last in it."""
    for i in range(n_labels + 1):
        for y in range(n_labels):
            total[i, y] += matrix[i, y] * pairs[i, y]
    for e in range(first, last):
        i, y = ent_previous[e], ent_label[e]
        total[i, y] += (ent_value[e] - matrix[i, y]) * pairs[i, y]


@njit(cache=True, nogil=True, error_model="numpy")
def add_test_pairs(
    first: int,
    last: int,
    n_labels: int,
    col_ptr: np.ndarray,
    col_contexts: np.ndarray,
    active_context: np.ndarray,
    matrix_of: np.ndarray,
    ent_ptr: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    ent_value: np.ndarray,
    inner_ptr: np.ndarray,
    inner_tokens: np.ndarray,
    start_ptr: np.ndarray,
    start_tokens: np.ndarray,
    labels: np.ndarray,
    token_weight: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    psi: np.ndarray,
    totals: np.ndarray,
) -> None:
    """Add expected minus observed pair counts of a block's tokens to those of tests first:last.

    col_ptr, col_contexts: CSC, contexts of a test, those with one active context together;
    active_context: of each context; matrix_of, ent_*: of active contexts, see `entries.correct`;
    inner_*, start_*: CSR of a context's tokens in the block; totals: [last - first, Y + 1, Yp]
    float64, added to.
    """
    pairs = np.zeros((totals.shape[1], totals.shape[2]))
    for test in range(first, last):
        total = totals[test - first]
        for j in range(col_ptr[test], col_ptr[test + 1]):
            c = col_contexts[j]
            add_outer_products(
                inner_tokens, inner_ptr[c], inner_ptr[c + 1], n_labels, alpha, backward, pairs
            )
            add_starts(start_tokens, start_ptr[c], start_ptr[c + 1], n_labels, backward, pairs)
            active = active_context[c]
            is_last = j + 1 == col_ptr[test + 1]
            if is_last or active_context[col_contexts[j + 1]] != active:
                _add_expected_pairs(
                    pairs,
                    psi[matrix_of[active]],
                    ent_ptr[active],
                    ent_ptr[active + 1],
                    ent_previous,
                    ent_label,
                    ent_value,
                    n_labels,
                    total,
                )
                fill(pairs.reshape(-1), 0, pairs.size, 0.0)
        for j in range(col_ptr[test], col_ptr[test + 1]):
            c = col_contexts[j]
            subtract_gold_pairs(
                int(c),
                n_labels,
                inner_ptr,
                inner_tokens,
                start_ptr,
                start_tokens,
                labels,
                token_weight,
                total,
            )


@njit(cache=True, nogil=True, error_model="numpy")
def screen_bigrams(
    first: int,
    last: int,
    n_labels: int,
    n_previous: int,
    totals: np.ndarray,
    threshold: float,
    coordinates: np.ndarray,
    gradients: np.ndarray,
) -> int:
    """Collect the bigram weights of tests first:last whose |gradient| exceeds a threshold.

    totals: [last - first, Y + 1, Yp] of `add_test_pairs`; n_previous: Y, or Y + 1 with a start
    label; coordinates (int64, (test * n_previous + y') * Y + y) and gradients (float64):
    [(last - first) * n_previous * Y], out. RETURNS: how many.
    """
    found = 0
    for test in range(first, last):
        for i in range(n_previous):
            base = (test * n_previous + i) * n_labels
            row = totals[test - first, i]
            found = _collect(base, row, n_labels, threshold, coordinates, gradients, found)
    return found
