"""Newton in orthants: truncated Newton for l1, as an extension of Tsuboi et al. (2011).

In an orthant the penalty is linear: there the free weights take a truncated Newton step, which is
then cut off where weights would cross zero (Byrd, Chin, Nocedal & Oztoprak 2012). Global
convergence is that of proximal gradient descent: a step that lowers the objective less than a
fixed share of what a proximal step promises gives way to the proximal step (as in Keskar,
Nocedal, Oztoprak & Waechter 2015).

It is exact, but slower than `OWLQN`, which it is not meant to replace: in single runs it took
three times the passes to within 1e-3 of the optimum on letters and phonemes, and was still 7e-3
above it on chunks after about twice the passes that `OWLQN` took to 1e-6.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..loss.hessian import HessianProduct
from ..loss.working import WorkingLoss
from ..penalty import ElasticNet
from ..registry import crf_solvers
from ..vectors import dot
from .base import BatchSettings, StepReport, optimality, smallest_subgradient, take
from .line_search import DECREASE, Point
from .trust_region import (
    adapted_radius,
    diagonal,
    first_point,
    length,
    noise,
    point_at,
    truncated_newton_step,
)

Floats = NDArray[np.float64]


@dataclass
class State:
    """Where the method stands.

    theta, gradient: [K], weights and gradient of loss + l2; value: the objective; radius: of the
    trust region, 0 before the first step; width: of the proximal steps, <= 1; evaluated: whether
    the loss of this working set was evaluated at theta; stalled: no step that rounding lets one
    see lowers the objective.
    """

    theta: Floats
    gradient: Floats
    value: float
    radius: float = 0.0
    width: float = 1.0
    evaluated: bool = True
    stalled: bool = False


@crf_solvers("spacy_sparsecrf.OrthantNewton.v1")
class OrthantNewton(BatchSettings):
    """Truncated Newton among the free weights, projected on their orthant.

    Free are weights that are not zero, and those that the gradient of the loss moves away from it.
    Preconditioned conjugate gradients stop where the residual is xi times the pseudo-gradient of
    these, or at the boundary of a trust region. A Hessian-vector product counts as one pass.

    stored: of how many sequences the marginals are stored for the products of a step, -1 for all.
    xi: see above.
    max_cg: most products of one step.
    max_line_search: most evaluations along one Newton step.
    The other settings: see `BatchSettings`.
    RAISES: SparseCRFError where a setting is out of range.
    """

    state_type = State
    supports_values = True

    def __init__(
        self,
        *,
        stored: int = -1,
        xi: float = 0.1,
        max_cg: int = 50,
        max_line_search: int = 5,
        tolerance: float = 1e-3,
        window: float = 1e-5,
        inner_iterations: int = 5,
        warm_start_epochs: int = 6,
        seed: int = 0,
        polish_iterations: int = 0,
        polish_l2: float = 1e-5,
    ) -> None:
        super().__init__(
            tolerance,
            window,
            inner_iterations,
            warm_start_epochs,
            seed,
            polish_iterations,
            polish_l2,
        )
        self.stored = stored
        self.xi = xi
        self.max_cg = max_cg
        self.max_line_search = max_line_search
        self.require(-1, "stored")
        self.require(0.0, "xi")
        self.require(1, "max_cg", "max_line_search")

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
        """Carry weights, radius and width over to another working set at the same point."""
        theta = take(state.theta, source)
        return State(theta, gradient, state.value, state.radius, state.width, evaluated=False)

    def step(self, loss: WorkingLoss, penalty: ElasticNet, state: State) -> StepReport:
        """Do one Newton step, or a proximal one where that fails."""
        pseudo = smallest_subgradient(penalty, state.theta, state.gradient)
        passes = 0.0
        if not state.stalled and dot(pseudo, pseudo) > 0.0:
            passes = self._move(loss, penalty, state, pseudo)
        distance = optimality(penalty, state.theta, state.gradient)
        return StepReport(
            objective=state.value,
            optimality=distance,
            n_active=int(np.count_nonzero(state.theta)),
            passes=passes,
            converged=state.stalled or distance <= self.tolerance,
        )

    def _move(self, loss: WorkingLoss, penalty: ElasticNet, state: State, pseudo: Floats) -> float:
        """Move to a better point, unless rounding hides that there is one; passes taken."""
        hessian = HessianProduct(loss, self.stored)
        hessian.prepare(state.theta, evaluated=state.evaluated)
        metric = diagonal(loss, penalty, state.theta, state.gradient)
        if state.radius == 0.0:
            state.radius = length(pseudo, 1.0 / metric)
        point, n_evaluations = self._newton(loss, penalty, state, pseudo, hessian, metric)
        if point is None:
            point, more = _proximal_search(loss, penalty, state, metric)
            n_evaluations += more
        if point is None:
            state.stalled = True
        else:
            state.theta, state.value, state.gradient = point.theta, point.value, point.gradient
        state.evaluated = point is not None
        return n_evaluations + hessian.passes

    def _newton(
        self,
        loss: WorkingLoss,
        penalty: ElasticNet,
        state: State,
        pseudo: Floats,
        hessian: HessianProduct,
        metric: Floats,
    ) -> tuple[Point | None, int]:
        """Search along a Newton step and adapt the trust region.

        RETURNS: a point that is good enough, or None; the number of evaluations.
        """
        step, slope, predicted = self._direction(penalty, state, pseudo, hessian, metric)
        reach = length(step, metric)
        _, promised = proximal_point(penalty, state.theta, state.gradient, metric, state.width)
        orthant = np.where(state.theta != 0.0, np.sign(state.theta), -np.sign(pseudo))
        shrunk = 1.0
        for trial in range(1, self.max_line_search + 1):
            theta = state.theta + shrunk * step
            if penalty.l1 > 0.0:
                theta[theta * orthant <= 0.0] = 0.0
            point = point_at(loss, penalty, theta)
            if trial == 1 and predicted > noise(state.value):
                actual = state.value - point.value
                state.radius = adapted_radius(state.radius, reach, actual, predicted, slope)
            if _is_better(penalty, state, point, DECREASE * promised):
                return point, trial
            shrunk *= 0.5
            state.radius = min(state.radius, shrunk * reach)
        return None, self.max_line_search

    def _direction(
        self,
        penalty: ElasticNet,
        state: State,
        pseudo: Floats,
        hessian: HessianProduct,
        metric: Floats,
    ) -> tuple[Floats, float, float]:
        """The Newton step [K], its slope and the reduction that the quadratic model predicts."""
        free = np.flatnonzero((state.theta != 0.0) | (pseudo != 0.0))
        vector = np.zeros_like(pseudo)

        def product(part: Floats) -> Floats:
            vector[free] = part
            changed: Floats = hessian.product(vector)[free] + penalty.l2 * part
            return changed

        part, residual = truncated_newton_step(
            product, pseudo[free], metric[free], state.radius, self.xi, self.max_cg
        )
        step = np.zeros_like(pseudo)
        step[free] = part
        slope = dot(pseudo[free], part)
        return step, slope, 0.5 * (dot(part, residual) - slope)


def proximal_point(
    penalty: ElasticNet, theta: Floats, gradient: Floats, metric: Floats, width: float
) -> tuple[Floats, float]:
    """Minimise gradient . (w - theta) + |w - theta|_M^2 / (2 width) + l1 |w|_1 over w.

    theta, gradient (of loss + l2), metric (the diagonal M): [K]; width: > 0.
    RETURNS: w [K], and how much gradient . (w - theta) + l1 (|w|_1 - |theta|_1) promises that the
    objective falls, >= 0 (Tseng & Yun 2009, equation 8, with opposite sign).
    """
    moved = theta - width * gradient / metric
    found = np.copysign(np.maximum(np.abs(moved) - width * penalty.l1 / metric, 0.0), moved)
    slope = dot(gradient, found - theta) + penalty.l1 * float((np.abs(found) - np.abs(theta)).sum())
    return found, -slope


def _proximal_search(
    loss: WorkingLoss, penalty: ElasticNet, state: State, metric: Floats
) -> tuple[Point | None, int]:
    """Take the first proximal step that is good enough, halving its width.

    RETURNS: the point, or None where rounding hides any decrease; the number of evaluations.
    """
    n_evaluations, width = 0, state.width
    while True:
        theta, promised = proximal_point(penalty, state.theta, state.gradient, metric, width)
        if promised <= noise(state.value):
            return None, n_evaluations
        point = point_at(loss, penalty, theta)
        n_evaluations += 1
        if _is_better(penalty, state, point, DECREASE * promised):
            # What was too wide here need not be so for ever.
            state.width = min(1.0, 2.0 * width)
            return point, n_evaluations
        width *= 0.5


def _is_better(penalty: ElasticNet, state: State, point: Point, wanted: float) -> bool:
    """Whether the objective falls by as much as wanted, >= 0.

    Where rounding hides that, the pseudo-gradient must become shorter.
    """
    hidden, fall = noise(state.value), state.value - point.value
    if wanted > hidden or abs(fall) > hidden:
        return fall >= wanted
    before, after = (smallest_subgradient(penalty, at.theta, at.gradient) for at in (state, point))
    return length(after) < length(before)
