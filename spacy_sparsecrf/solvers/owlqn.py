"""OWL-QN: limited-memory quasi-Newton for l1 (Andrew & Gao 2007); L-BFGS where l1 = 0."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors, SparseCRFError
from ..penalty import ElasticNet
from ..registry import crf_solvers
from ..vectors import dot
from .base import Loss, StepReport
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
class OWLQN:
    """Orthant-wise limited-memory quasi-Newton, or L-BFGS with a Wolfe search where l1 = 0.

    history: pairs kept of differences (Lavergne 2010, section 5.1, keeps 5; on a working set more
        cost little).
    tolerance: stop when no coordinate of -gradient is farther than this from the
        subdifferential (unit: expected counts; compare l1).
    window: stop when an outer iteration lowers the objective by less than this fraction.
    inner_iterations: quasi-Newton iterations in one outer iteration (one `update`).
    max_line_search: evaluations that one line search may take.
    warm_start_epochs: passes of SGD-L1 before the first iteration, as part of the first outer
        one; 0 for none. Without l1, or with init_weights, there are none.
    seed: of the order in which the warm start visits sequences, >= 0.
    RAISES: SparseCRFError where a setting is out of range.
    """

    streaming = False

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
        self.history = history
        self.tolerance = tolerance
        self.window = window
        self.inner_iterations = inner_iterations
        self.max_line_search = max_line_search
        self.warm_start_epochs = warm_start_epochs
        self.seed = seed
        for key in ("history", "inner_iterations", "max_line_search"):
            if getattr(self, key) < 1:
                raise SparseCRFError(Errors.SC306.format(key=key, value=getattr(self, key), low=1))
        for key in ("tolerance", "window", "warm_start_epochs", "seed"):
            if not getattr(self, key) >= 0.0:
                raise SparseCRFError(Errors.SC306.format(key=key, value=getattr(self, key), low=0))

    def start(self, loss: Loss, penalty: ElasticNet, theta: Floats) -> State:
        """Evaluate the first point.

        theta: [K]. RAISES: SparseCRFError where the objective is not finite there.
        """
        value, gradient = _evaluate(loss, penalty, theta)
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
                theta=_take(state.theta, source),
                gradient=gradient,
                value=state.value,
                steps=_take(state.steps, source),
                changes=_take(state.changes, source),
            )
        )

    def step(self, loss: Loss, penalty: ElasticNet, state: State) -> StepReport:
        """Do one iteration: direction, line search, update of the pairs."""
        pseudo = _pseudo_gradient(penalty, state)
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
        optimality = float(np.abs(_pseudo_gradient(penalty, state)).max(initial=0.0))
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

        def evaluate(theta: Floats) -> tuple[float, Floats]:
            return _evaluate(loss, penalty, theta)

        if penalty.l1 == 0.0:
            return wolfe(evaluate, origin, direction, first_step, self.max_line_search)
        orthant = np.where(state.theta != 0.0, np.sign(state.theta), -np.sign(pseudo))
        return projected_backtracking(
            evaluate,
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


def _evaluate(loss: Loss, penalty: ElasticNet, theta: Floats) -> tuple[float, Floats]:
    """The objective, and the gradient of its smooth part, loss + l2."""
    value, gradient = loss.value_and_grad(theta)
    return value + penalty.value(theta), gradient + penalty.l2 * theta


def _pseudo_gradient(penalty: ElasticNet, state: State) -> Floats:
    # The state's gradient has l2 in it already.
    return penalty.pseudo_gradient(state.theta, state.gradient - penalty.l2 * state.theta)


def _take(array: Floats, source: NDArray[np.int64]) -> Floats:
    """Select along the last axis, 0 where source is -1."""
    taken = np.zeros((*array.shape[:-1], len(source)))
    taken[..., source >= 0] = array[..., source[source >= 0]]
    return taken


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
