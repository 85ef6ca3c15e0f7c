"""Limited-memory models of the inverse Hessian, from differences of points and of gradients."""

import numpy as np
from numpy.typing import NDArray

from ..vectors import dot

Floats = NDArray[np.float64]


def with_curvature(steps: Floats, changes: Floats) -> tuple[Floats, Floats]:
    """Leave out pairs without positive curvature: they would break the positive definiteness.

    steps, changes: [m, K], differences of points and of gradients.
    """
    curvature = np.einsum("mk,mk->m", steps, changes)
    keep = curvature > 1e-10 * np.einsum("mk,mk->m", changes, changes)
    return (steps, changes) if keep.all() else (steps[keep], changes[keep])


def inverse_hessian_product(
    steps: Floats, changes: Floats, metric: Floats | float, vector: Floats
) -> Floats:
    """Two-loop recursion of L-BFGS (Nocedal & Wright 2006, algorithm 7.4), newest pair last.

    H0 = metric * (s . y) / (y . metric y) of the newest pair (equation 7.20 where metric = 1).

    steps, changes: [m, K], with positive curvature; metric: [K] or 1, > 0; vector: [K].
    """
    q = vector.copy()
    if not len(steps):
        return q * metric
    rho = 1.0 / np.einsum("mk,mk->m", steps, changes)
    factors = np.empty(len(steps))
    for i in range(len(steps) - 1, -1, -1):
        factors[i] = rho[i] * dot(steps[i], q)
        q -= factors[i] * changes[i]
    q *= metric / (rho[-1] * dot(changes[-1], metric * changes[-1]))
    for i in range(len(steps)):
        q += (factors[i] - rho[i] * dot(changes[i], q)) * steps[i]
    return q
