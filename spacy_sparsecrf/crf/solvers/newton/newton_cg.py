"""Trust-region Newton with conjugate gradients, for l1 = 0 (Tsuboi, Unno, Kashima & Okazaki 2011).

Minimises F(theta) = l(theta) + l2 / 2 |theta|^2 by

    theta := theta + s,    H s = -g approximately                       (Tsuboi 2011, equation 2)

with g and H the gradient and the Hessian of F. Conjugate gradients from s = 0 end when |H s + g| <=
xi |g|, or at the boundary of the trust region |s| <= radius. Products with H: see equation 3 and
`kernels.hessian`. A step is taken if it lowers F enough, else the region shrinks. Stops as all
solvers do (see `base`), or if rounding hides any further decrease.

The constants of the trust region, which the paper does not give, are those of Lin, Weng & Keerthi
2008. Conjugate gradients are not preconditioned. Preconditioning by the root of the Hessian's
diagonal, or by mixtures of the diagonal with the identity, saved a quarter of the passes on letters
and phonemes. On chunks, with their many rare features, it did not come within 1e-3 of the optimum
in the passes that suffice for 1e-6 without it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ....registry import crf_solvers
from ...corpus.numbering import Floats
from ...loss.protocols import CurvedLoss, HessianProducts
from ...parallel import dot
from ...penalty import ElasticNet
from .. import solver as base
from ..solver import BatchSolver, SolverState, StepReport

# A step is accepted above the first ratio of actual to predicted reduction (Lin, Weng & Keerthi
# 2008, section 4); the others, and the factors of the radius, belong to their equation 9.
ACCEPTED, POOR, GOOD = 1e-4, 0.25, 0.75
LEAST, SMALLER, LARGER = 0.25, 0.5, 4.0
# Maximum number of products in one step.
MOST_PRODUCTS = 200
# Rounding hides differences below this fraction of the objective.
_ROUNDING = 1e-13


@dataclass
class NewtonCGState(SolverState):
    """The state of Newton's method.

    radius: of the trust region, 0 before the first step; stalled: rounding hides any further
    decrease of the objective.
    """

    radius: float = 0.0
    stalled: bool = False


@crf_solvers("spacy_sparsecrf.NewtonCG.v1")
@dataclass(kw_only=True, eq=False)
class NewtonCG(BatchSolver[CurvedLoss]):
    """Truncated Newton; see the module for its step. A Hessian-vector product counts as one pass.

    stored: number of sequences whose marginals are stored for the products of a step; -1 for all
        (three vectors of labels for each token). A product then costs 1.2 to 2.5 gradients, without
        1.9 to 3.4 (2026-11-27, `python -m study.medians RACE --products` in `project`, four sets).
    xi: tolerance of the conjugate gradients (not given by Tsuboi 2011; 0.1: Lin, Weng & Keerthi
        2008).
    """

    state_type = NewtonCGState
    requires = base.requirements("no l1", "whole corpus")

    stored: int = -1
    xi: float = 0.1
    inner_iterations: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(-1, "stored")
        self.require(0.0, "xi")

    def step(self, loss: CurvedLoss, penalty: ElasticNet, state: NewtonCGState) -> StepReport:
        """Do one Newton step: shrink the trust region until the objective falls enough."""
        passes = 0.0
        if not state.stalled and dot(state.gradient, state.gradient) > 0.0:
            passes = self._move(loss, penalty, state)
        return self.report(penalty, state, passes, state.stalled)

    def _move(self, loss: CurvedLoss, penalty: ElasticNet, state: NewtonCGState) -> float:
        """Move to a better point unless rounding hides the decrease; return the passes taken."""
        hessian = loss.products(self.stored)
        # A step ends at the point that was evaluated last.
        hessian.prepare(state.theta, evaluated=True)
        if state.radius == 0.0:
            # Lin, Weng & Keerthi 2008: the length of the gradient.
            state.radius = length(state.gradient)
        n_evaluations, moved = 0, False
        while not (moved or state.stalled):
            moved = self._try(loss, penalty, state, hessian)
            n_evaluations += 1
        return n_evaluations + hessian.passes

    def _try(
        self, loss: CurvedLoss, penalty: ElasticNet, state: NewtonCGState, hessian: HessianProducts
    ) -> bool:
        """Try a step in the trust region, and adapt the region; return whether it was taken."""

        def product(vector: Floats) -> Floats:
            return hessian.product(vector) + penalty.l2 * vector

        step, residual = truncated_newton_step(
            product, state.gradient, radius=state.radius, xi=self.xi, max_products=MOST_PRODUCTS
        )
        slope = dot(state.gradient, step)
        predicted = 0.5 * (dot(step, residual) - slope)
        theta = state.theta + step
        value, gradient = base.evaluate(loss, penalty, theta)
        actual = state.value - value
        if predicted <= noise(state.value):
            # Rounding hides the decrease of the objective: compare gradients.
            shorter = length(gradient) < length(state.gradient)
            accepted = shorter and -actual <= noise(state.value)
            state.stalled = not accepted
        else:
            state.radius = adapted_radius(
                state.radius, length=length(step), actual=actual, predicted=predicted, slope=slope
            )
            accepted = actual > ACCEPTED * predicted
        if accepted:
            state.theta, state.gradient, state.value = theta, gradient, value
        return accepted


def noise(value: float) -> float:
    """Return the rounding error of differences of the objective; value: the objective."""
    return _ROUNDING * max(1.0, abs(value))


def length(vector: Floats) -> float:
    """Return |v|."""
    return float(np.sqrt(dot(vector, vector)))


def truncated_newton_step(
    product: Callable[[Floats], Floats],
    gradient: Floats,
    radius: float,
    xi: float,
    max_products: int,
) -> tuple[Floats, Floats]:
    """Minimise gradient . s + s . H s / 2 over |s| <= radius by conjugate gradients from 0.

    (Steihaug 1983; Lin, Weng & Keerthi 2008, algorithm 2.) The iterations end if |H s + gradient|
    <= xi |gradient|, at the boundary, which directions of negative curvature lead to, or after
    max_products.

    product: H v [K] of a vector [K]; gradient: [K], not zero.
    RETURNS: s and the residual -gradient - H s, [K] each.
    """
    step, residual = np.zeros_like(gradient), -gradient
    goal = xi * xi * dot(residual, residual)
    direction, square = residual.copy(), dot(residual, residual)
    for _ in range(max_products):
        changed = product(direction)
        if not np.isfinite(changed).all():
            # Probabilities at the limits of their precision: step along the gradient.
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
        old_square, square = square, dot(residual, residual)
        direction = residual + (square / old_square) * direction
    return step, residual


def _distance_to_boundary(step: Floats, direction: Floats, radius: float) -> float:
    """Return the a >= 0 with |step + a direction| = radius."""
    a, b = dot(direction, direction), dot(step, direction)
    c = radius * radius - dot(step, step)
    root = np.sqrt(max(b * b + a * c, 0.0))
    # The form of the solution that does not cancel.
    return float(c / (b + root) if b > 0.0 else (root - b) / a)


def adapted_radius(
    radius: float, length: float, actual: float, predicted: float, slope: float
) -> float:
    """Return the next radius of the trust region (Lin, Weng & Keerthi 2008, equation 9).

    The radius is at the minimum of a parabola through the objective at both ends of the step, with
    the slope at its start, clamped to the intervals of equation 9.

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
