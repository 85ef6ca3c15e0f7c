"""Trust-region Newton with conjugate gradients, for l1 = 0 (Tsuboi, Unno, Kashima & Okazaki 2011).

The constants of the trust region, which that paper leaves open, are those of Lin, Weng & Keerthi
2008.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..loss.hessian import HessianProduct
from ..loss.working import WorkingLoss
from ..penalty import ElasticNet
from ..registry import crf_solvers
from ..vectors import dot
from .base import BatchSettings, StepReport, evaluate, evaluate_start, optimality, take

Floats = NDArray[np.float64]

# Lin, Weng & Keerthi 2008, section 4: a step is accepted above the first ratio of actual to
# predicted reduction; the others, and the factors of the radius, belong to equation 9.
_ACCEPTED, _POOR, _GOOD = 1e-4, 0.25, 0.75
_LEAST, _SMALLER, _LARGER = 0.25, 0.5, 4.0
# Reductions below this fraction of the objective drown in its rounding.
_ROUNDING = 1e-13


@dataclass
class State:
    """Where Newton's method stands.

    theta, gradient: [K], weights and gradient of loss + l2; value: the objective; radius: of the
    trust region; stalled: no step that rounding lets one see lowers the objective.
    """

    theta: Floats
    gradient: Floats
    value: float
    radius: float
    stalled: bool = False


@crf_solvers("spacy_sparsecrf.NewtonCG.v1")
class NewtonCG(BatchSettings):
    """Truncated Newton: each step solves H s = -gradient by conjugate gradients, to a fraction.

    Conjugate gradients stop where |H s + gradient| <= xi |gradient|, or at the boundary of the
    trust region |s| <= radius. A Hessian-vector product counts as one pass.

    stored: of how many sequences the marginals are stored for the products of a step, which are
        then about twice as fast; -1 for all (three vectors of labels a token).
    xi: see above (Tsuboi 2011 leave it open; 0.1: Lin, Weng & Keerthi 2008).
    max_cg: most products of one step.
    The other settings: see `BatchSettings`.
    RAISES: SparseCRFError where a setting is out of range.
    """

    supports_l1 = False

    def __init__(
        self,
        *,
        stored: int = -1,
        xi: float = 0.1,
        max_cg: int = 200,
        tolerance: float = 1e-3,
        window: float = 1e-5,
        inner_iterations: int = 1,
    ) -> None:
        # Without l1 there is no warm start.
        super().__init__(tolerance, window, inner_iterations, warm_start_epochs=0, seed=0)
        self.stored = stored
        self.xi = xi
        self.max_cg = max_cg
        self.require(-1, "stored")
        self.require(0.0, "xi")
        self.require(1, "max_cg")

    def start(self, loss: WorkingLoss, penalty: ElasticNet, theta: Floats) -> State:
        """Evaluate the first point, theta [K]; the first radius is the gradient's length.

        RAISES: SparseCRFError where the objective is not finite there.
        """
        value, gradient = evaluate_start(loss, penalty, theta)
        return State(theta, gradient, value, _length(gradient))

    def remap(
        self,
        loss: WorkingLoss,
        penalty: ElasticNet,
        state: State,
        source: NDArray[np.int64],
        gradient: Floats,
    ) -> State:
        """Carry the weights and the radius over to another working set at the same point."""
        return State(take(state.theta, source), gradient, state.value, state.radius)

    def step(self, loss: WorkingLoss, penalty: ElasticNet, state: State) -> StepReport:
        """Do one Newton step: shrink the trust region until the objective falls enough."""
        hessian = HessianProduct(loss, self.stored)
        hessian.prepare(state.theta)
        n_evaluations, moved = 0, optimality(penalty, state.theta, state.gradient) == 0.0
        while not (moved or state.stalled):
            moved = self._try(loss, penalty, state, hessian)
            n_evaluations += 1
        distance = optimality(penalty, state.theta, state.gradient)
        return StepReport(
            objective=state.value,
            optimality=distance,
            n_active=int(np.count_nonzero(state.theta)),
            passes=n_evaluations + hessian.passes,
            converged=state.stalled or distance <= self.tolerance,
        )

    def _try(
        self, loss: WorkingLoss, penalty: ElasticNet, state: State, hessian: HessianProduct
    ) -> bool:
        """Try a step in the trust region and adapt the region; whether the step was taken."""
        step, residual = truncated_newton_step(
            lambda vector: hessian.product(vector) + penalty.l2 * vector,
            state.gradient,
            state.radius,
            self.xi,
            self.max_cg,
        )
        slope = dot(state.gradient, step)
        predicted = 0.5 * (dot(step, residual) - slope)
        theta = state.theta + step
        value, gradient = evaluate(loss, penalty, theta)
        actual = state.value - value
        if predicted <= _ROUNDING * abs(state.value):
            # Too near to see the objective fall: the gradient tells.
            accepted = _length(gradient) < _length(state.gradient)
            state.stalled = not accepted
        else:
            state.radius = adapted_radius(state.radius, _length(step), actual, predicted, slope)
            accepted = actual > _ACCEPTED * predicted
        if accepted:
            state.theta, state.gradient, state.value = theta, gradient, value
        return accepted


def truncated_newton_step(
    product: Callable[[Floats], Floats],
    gradient: Floats,
    radius: float,
    xi: float,
    max_products: int,
) -> tuple[Floats, Floats]:
    """Minimise gradient . s + s . H s / 2 over |s| <= radius by conjugate gradients from 0.

    (Steihaug 1983; Lin, Weng & Keerthi 2008, algorithm 2.) They end where |H s + gradient| <= xi
    |gradient|, at the boundary, which directions of negative curvature lead to, or after
    max_products.

    product: H v [K] of a vector [K]; gradient: [K].
    RETURNS: s and the residual -gradient - H s, [K] each.
    """
    step, residual = np.zeros_like(gradient), -gradient
    direction, square = residual.copy(), dot(residual, residual)
    goal = xi * xi * square
    for _ in range(max_products):
        changed = product(direction)
        curvature = dot(direction, changed)
        to_boundary = _distance_to_boundary(step, direction, radius)
        length = square / curvature if curvature > 0.0 else np.inf
        inside = length < to_boundary
        length = min(length, to_boundary)
        step += length * direction
        residual -= length * changed
        last, square = square, dot(residual, residual)
        if not inside or square <= goal:
            break
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
    wanted = length * (-0.5 * slope / bend if bend > 0.0 else _LARGER)
    if actual <= _POOR * predicted:
        low, high = _LEAST * min(length, radius), _SMALLER * radius
    elif actual < _GOOD * predicted:
        low, high = _LEAST * radius, _LARGER * radius
    else:
        low, high = radius, _LARGER * radius
    return min(max(wanted, low), high)


def _length(vector: Floats) -> float:
    return float(np.sqrt(dot(vector, vector)))
