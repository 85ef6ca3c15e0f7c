"""The diagonal of the loss's Hessian, as solvers use it to scale their steps."""

import numpy as np

from .compiled import kernel


@kernel
def unigram_curvature(
    first: int,
    last: int,
    row_columns: np.ndarray,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    col_ptr: np.ndarray,
    col_tokens: np.ndarray,
    labels: np.ndarray,
    token_weight: np.ndarray,
    residual: np.ndarray,
    curvature: np.ndarray,
) -> None:
    """Variance of the unigram weights of rows first:last: sum_t w p(y_t = y) (1 - p(y_t = y)).

    This leaves out what two tokens of a test in one sequence have in common. Tokens of negative
    weight, of constrained copies, are left out as well.

    row_*, col_*: as in `gather_unigrams`; labels: [N] gold, -1 = none; token_weight: [N];
    residual: [N, Yp], w p(y_t) minus w where gold; curvature: [K] float64, added to.
    """
    for row in range(first, last):
        column = row_columns[row]
        if column < 0:
            continue
        for j in range(col_ptr[column], col_ptr[column + 1]):
            t = col_tokens[j]
            weight = token_weight[t]
            if weight <= 0.0:
                continue
            for k in range(row_ptr[row], row_ptr[row + 1]):
                y = row_labels[k]
                mass = residual[t, y] + (weight if labels[t] == y else 0.0)
                # Rounding may leave a certain label a little more than its weight.
                curvature[k] += max(mass * (1.0 - mass / weight), 0.0)
