"""Screening: the gradient of *all* potential weights, of which only violators are kept."""

import numpy as np

from .compiled import kernel
from .expectations import add_rows
from .memory import lent


@kernel
def add_residuals(
    first: int,
    tests: np.ndarray,
    line: int,
    col_ptr: np.ndarray,
    col_tokens: np.ndarray,
    residual: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Add the residuals of a part of the tokens to the sums of tests from `first` on.

    tests: [n] int32, ascending, whose tokens are in the lines from `line` on of col_ptr,
    col_tokens: CSC; residual: [N, Yp]; sums: [tests, Yp] float64, added to.
    """
    col_tokens, residual, sums = lent(col_tokens), lent(residual), lent(sums)
    for i in range(len(tests)):
        begin, end = col_ptr[line + i], col_ptr[line + i + 1]
        add_rows(residual, col_tokens, begin, end, sums[tests[i] - first])


@kernel
def collect_labels(
    first: int,
    n_labels: int,
    sums: np.ndarray,
    threshold: float,
    coordinates: np.ndarray,
    gradients: np.ndarray,
) -> int:
    """Collect the unigram weights of tests from `first` on whose |gradient| exceeds a threshold.

    sums: [n, Yp], their gradients; coordinates (int64, test * Y + y) and gradients (float64):
    [n * Y], out. RETURNS: how many.
    """
    found = 0
    for i in range(len(sums)):
        for y in range(n_labels):
            if abs(sums[i, y]) > threshold:
                coordinates[found] = (first + i) * n_labels + y
                gradients[found] = sums[i, y]
                found += 1
    return found
