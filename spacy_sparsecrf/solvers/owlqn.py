"""OWL-QN: limited-memory quasi-Newton for l1 (Andrew & Gao 2007); L-BFGS where l1 = 0."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors, SparseCRFError
from ..penalty import ElasticNet
from ..registry import crf_solvers
from ..vectors import dot
from .base import BatchSettings, Loss, StepReport, evaluate, smallest_subgradient, take
from .line_search import Point, projected_backtracking, wolfe

Floats = NDArray[np.float64]


@dataclass
class State:
    """Where OWL-QN stands.

    theta, gradient: [K], weights and gradient of loss + l2; value: the objective; steps,
    changes: [m, K], the last differences of theta and of gradient, oldest first; stalled: no
    step along any direction lowers the objective any more.
    """

    theta: Floats
    gradient: Floats
    value: float
    steps: Floats
    changes: Floats
    stalled: bool = False


@crf_solvers("spacy_sparsecrf.OWLQN.v1")
class OWLQN(BatchSettings):
    """Orthant-wise limited-memory quasi-Newton, or L-BFGS with a Wolfe search where l1 = 0.

    history: pairs kept of differences (Lavergne 2010, section 5.1, keeps 5; on a working set more
        cost little).
    max_line_search: evaluations that one line search may take.
    The other settings: see `BatchSettings`.
    RAISES: SparseCRFError where a setting is out of range.
    """

    def __init__(
        self,
        *,
        history: int = 10,
        tolerance: float = 1e-3,
        window: float = 1e-5,
        inner_iterations: int = 10,
        max_line_search: int = 40,
        warm_start_epochs: int = 10,
        seed: int = 0,
    ) -> None:
        super().__init__(tolerance, window, inner_iterations, warm_start_epochs, seed)
        self.history = history
        self.max_line_search = max_line_search
        self.require(1, "history", "max_line_search")

    def start(self, loss: Loss, penalty: ElasticNet, theta: Floats) -> State:
        """Evaluate the first point.

        theta: [K]. RAISES: SparseCRFError where the objective is not finite there.
        """
        value, gradient = evaluate(loss, penalty, theta)
        if not np.isfinite(value):
            raise SparseCRFError(Errors.SC307)
        empty = np.empty((0, len(theta)))
        return State(theta, gradient, value, empty, empty.copy())

    def remap(self, state: State, source: NDArray[np.int64], gradient: Floats) -> State:
        """Carry weights and curvature pairs over to another working set at the same point.

        source: [K'] int64, old place of each coordinate or -1; gradient: [K'] of loss + l2.
        Pairs know nothing of new coordinates: zero there.
        """
        return _without_flat_pairs(
            State(
                theta=take(state.theta, source),
                gradient=gradient,
                value=state.value,
                steps=take(state.steps, source),
                changes=take(state.changes, source),
            )
        )

    def step(self, loss: Loss, penalty: ElasticNet, state: State) -> StepReport:
        """Do one iteration: direction, line search, update of the pairs."""
        pseudo = smallest_subgradient(penalty, state.theta, state.gradient)
        direction = -_inverse_hessian_product(state.steps, state.changes, pseudo)
        if penalty.l1 > 0.0:
            direction[direction * pseudo >= 0.0] = 0.0
        point, n_evaluations = self._search(loss, penalty, state, pseudo, direction)
        if point is None and len(state.steps):
            # The model of the curvature misleads: forget it and descend.
            state.steps, state.changes = state.steps[:0], state.changes[:0]
            point, more = self._search(loss, penalty, state, pseudo, -pseudo)
            n_evaluations += more
        if point is None:
            state.stalled = True
        else:
            self._accept(state, point)
        optimality = float(
            np.abs(smallest_subgradient(penalty, state.theta, state.gradient)).max(initial=0.0)
        )
        return StepReport(
            objective=state.value,
            optimality=optimality,
            n_active=int(np.count_nonzero(state.theta)),
            passes=float(n_evaluations),
            converged=state.stalled or optimality <= self.tolerance,
        )

    def _search(
        self, loss: Loss, penalty: ElasticNet, state: State, pseudo: Floats, direction: Floats
    ) -> tuple[Point | None, int]:
        """Search along a direction; the very first one has no scale yet."""
        length = float(np.sqrt(dot(direction, direction)))
        if length == 0.0:
            return None, 0
        origin = Point(state.theta, state.value, state.gradient)
        fresh = len(state.steps) == 0
        first_step = 1.0 / length if fresh else 1.0

        def objective(theta: Floats) -> tuple[float, Floats]:
            return evaluate(loss, penalty, theta)

        if penalty.l1 == 0.0:
            return wolfe(objective, origin, direction, first_step, self.max_line_search)
        orthant = np.where(state.theta != 0.0, np.sign(state.theta), -np.sign(pseudo))
        return projected_backtracking(
            objective,
            origin,
            pseudo,
            direction,
            orthant,
            first_step,
            0.1 if fresh else 0.5,
            self.max_line_search,
        )

    def _accept(self, state: State, point: Point) -> None:
        """Move to a point and remember the last `history` pairs."""
        keep = -self.history
        state.steps = np.vstack((state.steps, point.theta - state.theta))[keep:]
        state.changes = np.vstack((state.changes, point.gradient - state.gradient))[keep:]
        state.theta, state.value, state.gradient = point.theta, point.value, point.gradient
        _without_flat_pairs(state)


def _without_flat_pairs(state: State) -> State:
    """Drop pairs without positive curvature: they would break the positive definiteness."""
    curvature = np.einsum("mk,mk->m", state.steps, state.changes)
    scale = np.einsum("mk,mk->m", state.changes, state.changes)
    keep = curvature > 1e-10 * scale
    if not keep.all():
        state.steps, state.changes = state.steps[keep], state.changes[keep]
    return state


def _inverse_hessian_product(steps: Floats, changes: Floats, vector: Floats) -> Floats:
    """Two-loop recursion of L-BFGS (Nocedal & Wright 2006, algorithm 7.4), newest pair first."""
    q = vector.copy()
    if not len(steps):
        return q
    rho = 1.0 / np.einsum("mk,mk->m", steps, changes)
    factors = np.empty(len(steps))
    for i in range(len(steps) - 1, -1, -1):
        factors[i] = rho[i] * dot(steps[i], q)
        q -= factors[i] * changes[i]
    q /= rho[-1] * dot(changes[-1], changes[-1])
    for i in range(len(steps)):
        q += (factors[i] - rho[i] * dot(changes[i], q)) * steps[i]
    return q
