"""Line searches that solvers share.

Limited-memory models of the inverse Hessian, from differences of points and of gradients.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..parallel import dot

Floats = NDArray[np.float64]

Objective = Callable[[Floats], tuple[float, Floats]]

# Sufficient decrease and curvature constants of the Wolfe conditions (Nocedal & Wright 2006, 3.1).
DECREASE = 1e-4

CURVATURE = 0.9


@dataclass(frozen=True)
class Point:
    """A point, the objective there and the gradient of its smooth part.

    theta, gradient: [K] float64.
    """

    theta: Floats
    value: float
    gradient: Floats


def projected_backtracking(
    evaluate: Objective,
    origin: Point,
    pseudo_gradient: Floats,
    direction: Floats,
    orthant: Floats,
    first_step: float,
    shrink: float,
    max_trials: int,
) -> tuple[Point | None, int]:
    """Backtrack along the projection of a direction onto an orthant (Andrew & Gao 2007, 3.2).

    Accepts the first theta' = pi(theta + a d; orthant) with
    F(theta') <= F(theta) + DECREASE * pseudo_gradient . (theta' - theta).

    evaluate: objective and gradient of its smooth part; direction, orthant (signs): [K];
    first_step, shrink: the step sizes a are first_step * shrink^i.
    RETURNS: the accepted point, or None where max_trials steps failed; number of evaluations.
    """
    step = first_step
    for trial in range(1, max_trials + 1):
        theta = origin.theta + step * direction
        theta[theta * orthant <= 0.0] = 0.0
        value, gradient = evaluate(theta)
        if value <= origin.value + DECREASE * dot(pseudo_gradient, theta - origin.theta):
            return Point(theta, value, gradient), trial
        step *= shrink
    return None, max_trials


def wolfe(
    evaluate: Objective, origin: Point, direction: Floats, first_step: float, max_trials: int
) -> tuple[Point | None, int]:
    """Find a step with the strong Wolfe conditions by bracketing and cubic interpolation.

    (Nocedal & Wright 2006, algorithms 3.5 and 3.6, in one loop over a bracket.)

    evaluate: smooth objective and gradient; direction: [K], of descent.
    RETURNS: the accepted point (the best with sufficient decrease where max_trials ended the
        search before the curvature condition held), or None; number of evaluations.
    """
    slope0 = dot(origin.gradient, direction)
    low = (0.0, origin.value, slope0)
    high: tuple[float, float, float] | None = None
    best: Point | None = None
    step = first_step
    for trial in range(1, max_trials + 1):
        value, gradient = evaluate(origin.theta + step * direction)
        slope = dot(gradient, direction)
        here = (step, value, slope)
        if value > origin.value + DECREASE * step * slope0 or value >= low[1]:
            high = here
        else:
            best = Point(origin.theta + step * direction, value, gradient)
            if abs(slope) <= -CURVATURE * slope0:
                return best, trial
            # Where the minimum lies behind, or the bracket is open on the other side.
            if slope * ((high[0] if high else np.inf) - low[0]) >= 0.0:
                high = low
            low = here
        step = 2.0 * step if high is None else _interpolate(low, high)
        if step == low[0]:
            # The bracket has shrunk to one number: rounding hides any further decrease.
            return best, trial
    return best, max_trials


def _interpolate(low: tuple[float, float, float], high: tuple[float, float, float]) -> float:
    """Minimiser of the cubic through two points with slopes, kept inside the bracket."""
    (a, fa, da), (b, fb, db) = low, high
    width = b - a
    middle = a + 0.5 * width
    if width == 0.0 or not np.isfinite(fb) or not np.isfinite(db):
        return middle
    d1 = da + db - 3.0 * (fb - fa) / width
    square = d1 * d1 - da * db
    if square < 0.0:
        return middle
    d2 = np.copysign(np.sqrt(square), width)
    slope = db - da + 2.0 * d2
    if slope == 0.0:
        return middle
    step = b - width * (db + d2 - d1) / slope
    inside = min(a, b) + 0.1 * abs(width) <= step <= max(a, b) - 0.1 * abs(width)
    return float(step) if inside else middle


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
