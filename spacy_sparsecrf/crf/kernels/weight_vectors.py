"""Vectors of all weights: inner products, and the L-BFGS model of the inverse Hessian."""

import numpy as np

from .layout import Flags, Floats
from .numba_support import inlined, kernel
from .small import dot

# Pairs whose curvature s . y is below this share of y . y are skipped: they would spoil the model.
_LEAST_CURVATURE = 1e-10
# Weights that are summed at a time: their products stay in the nearest cache.
_AT_A_TIME = 512


@kernel
def inner_product(a: Floats, b: Floats) -> float:
    """Return the inner product of two vectors [K]."""
    return dot(a, b)


@inlined
def _measure(
    step: Floats, change: Floats, metric: Floats, free: Flags, q: Floats, space: Floats
) -> tuple[float, float, float, float]:
    """Return the sums over free weights s . y, y . y, y . metric y and s . q of a pair s, y.

    space: [2, n], a workspace; n: number of weights summed at a time.
    """
    sy, yy, scaled, sq = 0.0, 0.0, 0.0, 0.0
    for begin in range(0, len(q), space.shape[1]):
        end = min(begin + space.shape[1], len(q))
        y, product = space[0, : end - begin], space[1, : end - begin]
        s = step[begin:end]
        for k in range(end - begin):
            y[k] = change[begin + k] if free[begin + k] else 0.0
            product[k] = metric[begin + k] * y[k]
        sy += dot(s, y)
        yy += dot(y, y)
        scaled += dot(product, y)
        sq += dot(s, q[begin:end])
    return sy, yy, scaled, sq


@inlined
def _add(factor: float, row: Floats, free: Flags, q: Floats) -> None:
    """Add factor times a row to q, for free weights only."""
    for k in range(len(q)):
        q[k] += factor * row[k] if free[k] else 0.0


@kernel(allocates=True)
def two_loops(
    n_pairs: int, steps: Floats, changes: Floats, metric: Floats, free: Flags, vector: Floats
) -> Floats:
    """Multiply a vector by the model (Nocedal & Wright 2006, algorithm 7.4), newest pair first.

    H0 = metric * (s . y) / (y . metric y) of the newest pair (equation 7.20 where metric = 1).
    Pairs are restricted to the free weights, and skipped if no positive curvature remains: the
    model would no longer be positive definite.

    n_pairs: number of pairs so far; steps, changes: [m, K], pair i in row i mod m; metric: [K];
    free: [K], the weights that may move; vector: [K], zero where a weight is not free.
    RETURNS: the product [K].
    """
    m, scale, space, q = len(steps), 0.0, np.empty((2, _AT_A_TIME)), vector.copy()
    oldest, rho, factors = max(0, n_pairs - m), np.empty(m), np.empty(m)
    for i in range(n_pairs - 1, oldest - 1, -1):
        row = i % m
        sy, yy, scaled, sq = _measure(steps[row], changes[row], metric, free, q, space)
        rho[row] = 1.0 / sy if sy > _LEAST_CURVATURE * yy else 0.0
        factors[row] = rho[row] * sq
        if rho[row] > 0.0:
            _add(-factors[row], changes[row], free, q)
            scale = sy / scaled if scale == 0.0 else scale
    for k in range(len(q)):
        q[k] *= metric[k] * (scale if scale > 0.0 else 1.0)
    for i in range(oldest, n_pairs):
        row = i % m
        if rho[row] > 0.0:
            factor = factors[row] - rho[row] * dot(changes[row], q)
            _add(factor, steps[row], free, q)
    return q


@kernel(allocates=True)
def multiply_pairs(
    newest: int, steps: Floats, changes: Floats, metric: Floats, vector: Floats
) -> Floats:
    """Multiply all pairs by the newest change y and by a vector v, in one pass.

    newest: row of y; steps, changes: [m, K]; metric, vector: [K].
    RETURNS: [4, m], s . y, s . v, y' . metric y and y' . metric v of each pair s, y'.
    """
    sums, space = np.zeros((4, len(steps))), np.empty((2, _AT_A_TIME))
    for begin in range(0, len(vector), _AT_A_TIME):
        end = min(begin + _AT_A_TIME, len(vector))
        y, v, scale = changes[newest, begin:end], vector[begin:end], metric[begin:end]
        for k in range(len(v)):
            space[0, k] = scale[k] * y[k]
            space[1, k] = scale[k] * v[k]
        for row in range(len(steps)):
            s, change = steps[row, begin:end], changes[row, begin:end]
            sums[0, row] += dot(s, y)
            sums[1, row] += dot(s, v)
            sums[2, row] += dot(change, space[0])
            sums[3, row] += dot(change, space[1])
    return sums


@inlined
def _accumulate(factor: float, row: Floats, total: Floats) -> None:
    """Add factor times a row to a vector."""
    for k in range(len(total)):
        total[k] += factor * row[k]


@kernel
def combine_pairs(
    factors: Floats, steps: Floats, changes: Floats, metric: Floats, vector: Floats
) -> None:
    """V := metric * (v + sum_i a_i changes_i) + sum_i b_i steps_i, in one pass.

    factors: [2, m], a and b; steps, changes: [m, K]; metric: [K]; vector: [K], v, in and out.
    """
    for begin in range(0, len(vector), _AT_A_TIME):
        end = min(begin + _AT_A_TIME, len(vector))
        part, scale = vector[begin:end], metric[begin:end]
        for row in range(len(steps)):
            _accumulate(factors[0, row], changes[row, begin:end], part)
        for k in range(len(part)):
            part[k] *= scale[k]
        for row in range(len(steps)):
            _accumulate(factors[1, row], steps[row, begin:end], part)
