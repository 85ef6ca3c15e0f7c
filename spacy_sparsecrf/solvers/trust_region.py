"""Steps of truncated Newton in a trust region, and the radius of the next region."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors, SparseCRFError
from ..parallel import dot
from ..penalty import ElasticNet
from .base import Function, evaluate
from .line_search import Point

Floats = NDArray[np.float64]

# A step is accepted above the first ratio of actual to predicted reduction (Lin, Weng & Keerthi
# 2008, section 4); the others, and the factors of the radius, belong to their equation 9.
ACCEPTED, POOR, GOOD = 1e-4, 0.25, 0.75
LEAST, SMALLER, LARGER = 0.25, 0.5, 4.0
# Differences below this fraction of the objective drown in its rounding.
_ROUNDING = 1e-13


def point_at(loss: Function, penalty: ElasticNet, theta: Floats) -> Point:
    """Evaluate a point, theta [K]; the objective is infinite where the gradient is not finite."""
    value, gradient = evaluate(loss, penalty, theta)
    if not np.isfinite(gradient).all():
        value, gradient = np.inf, np.zeros_like(theta)
    return Point(theta, value, gradient)


def first_point(loss: Function, penalty: ElasticNet, theta: Floats) -> Point:
    """`point_at` for the point that a run starts from.

    RAISES: SparseCRFError where objective or gradient are not finite there.
    """
    point = point_at(loss, penalty, theta)
    if not np.isfinite(point.value):
        raise SparseCRFError(Errors.SC307)
    return point


def noise(value: float) -> float:
    """How small differences of the objective are hidden by its rounding; value: the objective."""
    return _ROUNDING * max(1.0, abs(value))


def length(vector: Floats) -> float:
    """|v|."""
    return float(np.sqrt(dot(vector, vector)))


def truncated_newton_step(
    product: Callable[[Floats], Floats],
    gradient: Floats,
    radius: float,
    xi: float,
    max_products: int,
) -> tuple[Floats, Floats]:
    """Minimise gradient . s + s . H s / 2 over |s| <= radius by conjugate gradients from 0.

    (Steihaug 1983; Lin, Weng & Keerthi 2008, algorithm 2.) They end where
    |H s + gradient| <= xi |gradient|, at the boundary, which directions of negative curvature
    lead to, or after max_products.

    product: H v [K] of a vector [K]; gradient: [K], not zero.
    RETURNS: s and the residual -gradient - H s, [K] each.
    """
    step, residual = np.zeros_like(gradient), -gradient
    goal = xi * xi * dot(residual, residual)
    direction, square = residual.copy(), dot(residual, residual)
    for _ in range(max_products):
        changed = product(direction)
        if not np.isfinite(changed).all():
            # Probabilities at the limits of their precision: without a model, a step downhill.
            changed = np.zeros_like(step)
        curvature = dot(direction, changed)
        to_boundary = _distance_to_boundary(step, direction, radius)
        distance = square / curvature if curvature > 0.0 else np.inf
        inside = distance < to_boundary
        distance = min(distance, to_boundary)
        step += distance * direction
        residual -= distance * changed
        if not inside or dot(residual, residual) <= goal:
            break
        last, square = square, dot(residual, residual)
        direction = residual + (square / last) * direction
    return step, residual


def _distance_to_boundary(step: Floats, direction: Floats, radius: float) -> float:
    """The a >= 0 with |step + a direction| = radius."""
    a, b = dot(direction, direction), dot(step, direction)
    c = radius * radius - dot(step, step)
    root = np.sqrt(max(b * b + a * c, 0.0))
    # Of the two forms of the solution that which does not cancel.
    return float(c / (b + root) if b > 0.0 else (root - b) / a)


def adapted_radius(
    radius: float, length: float, actual: float, predicted: float, slope: float
) -> float:
    """The next radius of the trust region (Lin, Weng & Keerthi 2008, equation 9).

    In the intervals that they give, it is where a parabola through the objective at both ends of
    the step, and its slope, has its minimum.

    length: of the step; actual, predicted: reductions of the objective; slope: gradient . step.
    """
    bend = -actual - slope
    wanted = length * (-0.5 * slope / bend if bend > 0.0 else LARGER)
    if actual <= POOR * predicted:
        low, high = LEAST * min(length, radius), SMALLER * radius
    elif actual < GOOD * predicted:
        low, high = LEAST * radius, LARGER * radius
    else:
        low, high = radius, LARGER * radius
    return min(max(wanted, low), high)
