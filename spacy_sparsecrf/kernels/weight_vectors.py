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
    for first in range(0, len(q), space.shape[1]):
        last = min(first + space.shape[1], len(q))
        y, product = space[0, : last - first], space[1, : last - first]
        s = step[first:last]
        for k in range(last - first):
            y[k] = change[first + k] if free[first + k] else 0.0
            product[k] = metric[first + k] * y[k]
        sy += dot(s, y)
        yy += dot(y, y)
        scaled += dot(product, y)
        sq += dot(s, q[first:last])
    return sy, yy, scaled, sq


@inlined
def _add(factor: float, row: Floats, free: Flags, q: Floats) -> None:
    """Add factor times a row to q, for free weights only."""
    for k in range(len(q)):
        q[k] += factor * row[k] if free[k] else 0.0


@kernel(allocates=True)
def two_loops(
    n_pairs: int,
    steps: Floats,
    changes: Floats,
    metric: Floats,
    free: Flags,
    rho: Floats,
    factors: Floats,
    q: Floats,
) -> None:
    """Multiply a vector by the model (Nocedal & Wright 2006, algorithm 7.4), newest pair first.

    H0 = metric * (s . y) / (y . metric y) of the newest pair (equation 7.20 where metric = 1).
    Pairs are restricted to the free weights, and skipped if no positive curvature remains: the
    model would no longer be positive definite.

    n_pairs: number of pairs so far; steps, changes: [m, K], pair i in row i mod m; metric: [K];
    free: [K]; rho, factors: [m], workspaces; q: [K], in and out, zero where a weight is not free.
    """
    m, scale, space = len(steps), 0.0, np.empty((2, _AT_A_TIME))
    first = max(0, n_pairs - m)
    for i in range(n_pairs - 1, first - 1, -1):
        row = i % m
        sy, yy, scaled, sq = _measure(steps[row], changes[row], metric, free, q, space)
        rho[row] = 1.0 / sy if sy > _LEAST_CURVATURE * yy else 0.0
        factors[row] = rho[row] * sq
        if rho[row] > 0.0:
            _add(-factors[row], changes[row], free, q)
            scale = sy / scaled if scale == 0.0 else scale
    for k in range(len(q)):
        q[k] *= metric[k] * (scale if scale > 0.0 else 1.0)
    for i in range(first, n_pairs):
        row = i % m
        if rho[row] > 0.0:
            factor = factors[row] - rho[row] * dot(changes[row], q)
            _add(factor, steps[row], free, q)
