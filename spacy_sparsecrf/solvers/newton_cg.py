"""Trust-region Newton with conjugate gradients, for l1 = 0 (Tsuboi, Unno, Kashima & Okazaki 2011).

The constants of the trust region, which that paper leaves open, are those of Lin, Weng & Keerthi
2008. Conjugate gradients are not preconditioned. The root of the Hessian's diagonal, and mixtures
of the diagonal with the identity, saved a quarter of the passes on letters and phonemes; but on
chunks, with their many rare tests, they were not within 1e-3 of the optimum after the passes that
suffice for 1e-6 without them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..loss.hessian import HessianProduct
from ..loss.working import WorkingLoss
from ..parallel import dot
from ..penalty import ElasticNet
from ..registry import crf_solvers
from .base import BatchSettings, StepReport, optimality, take
from .trust_region import (
    ACCEPTED,
    adapted_radius,
    first_point,
    length,
    noise,
    point_at,
    truncated_newton_step,
)

Floats = NDArray[np.float64]


@dataclass
class State:
    """Where Newton's method stands.

    theta, gradient: [K], weights and gradient of loss + l2; value: the objective; radius: of the
    trust region, 0 before the first step; stalled: no step that rounding lets one see lowers the
    objective.
    """

    theta: Floats
    gradient: Floats
    value: float
    radius: float = 0.0
    stalled: bool = False


@crf_solvers("spacy_sparsecrf.NewtonCG.v1")
class NewtonCG(BatchSettings):
    """Truncated Newton: each step solves H s = -gradient by conjugate gradients, to a fraction.

    Conjugate gradients stop where |H s + gradient| <= xi |gradient|, or at the boundary of the
    trust region |s| <= radius. A Hessian-vector product counts as one pass.

    stored: of how many sequences the marginals are stored for the products of a step, which are
        then about 1.5 times as fast; -1 for all (three vectors of labels a token).
    xi: see above (Tsuboi 2011 leave it open; 0.1: Lin, Weng & Keerthi 2008).
    max_cg: most products of one step.
    The other settings: see `BatchSettings`.
    RAISES: SparseCRFError where a setting is out of range.
    """

    state_type = State
    supports_values = True
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
        polish_iterations: int = 0,
        polish_l2: float = 1e-5,
    ) -> None:
        # Without l1 there is no warm start.
        super().__init__(tolerance, window, inner_iterations, 0, 0, polish_iterations, polish_l2)
        self.stored = stored
        self.xi = xi
        self.max_cg = max_cg
        self.require(-1, "stored")
        self.require(0.0, "xi")
        self.require(1, "max_cg")

    def start(self, loss: WorkingLoss, penalty: ElasticNet, theta: Floats) -> State:
        """Evaluate the first point, theta [K].

        RAISES: SparseCRFError where the objective is not finite there.
        """
        point = first_point(loss, penalty, theta)
        return State(point.theta, point.gradient, point.value)

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
        passes = 0.0
        if not state.stalled and dot(state.gradient, state.gradient) > 0.0:
            passes = self._move(loss, penalty, state)
        distance = optimality(penalty, state.theta, state.gradient)
        return StepReport(
            objective=state.value,
            optimality=distance,
            n_active=int(np.count_nonzero(state.theta)),
            passes=passes,
            converged=state.stalled or distance <= self.tolerance,
        )

    def _move(self, loss: WorkingLoss, penalty: ElasticNet, state: State) -> float:
        """Move to a better point, unless rounding hides that there is one; passes taken."""
        hessian = HessianProduct(loss, self.stored)
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
        self,
        loss: WorkingLoss,
        penalty: ElasticNet,
        state: State,
        hessian: HessianProduct,
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
        point = point_at(loss, penalty, state.theta + step)
        actual = state.value - point.value
        if predicted <= noise(state.value):
            # Too near to see the objective fall: the gradient tells.
            shorter = length(point.gradient) < length(state.gradient)
            accepted = shorter and -actual <= noise(state.value)
            state.stalled = not accepted
        else:
            reach = length(step)
            state.radius = adapted_radius(state.radius, reach, actual, predicted, slope)
            accepted = actual > ACCEPTED * predicted
        if accepted:
            state.theta, state.gradient, state.value = point.theta, point.gradient, point.value
        return accepted
