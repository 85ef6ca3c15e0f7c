"""OWL-QN: limited-memory quasi-Newton for l1 (Andrew & Gao 2007); L-BFGS where l1 = 0.

By default with two changes, which make it several times faster:

- OWL-QN drops from a direction what disagrees in sign with steepest descent, and so spoils it. Here
  the direction is that of L-BFGS among the weights that are free to move, and only the orthant
  is kept: a projected scaled sub-gradient method (Schmidt, Fung & Rosales 2009).
- The first model of the inverse Hessian is h^(-1/2), h its diagonal (see `Loss.curvature`), and not
  a multiple of one: tests differ in frequency by orders of magnitude. The root is a compromise, as
  h itself takes tests for independent which mostly occur together.
"""

from dataclasses import dataclass

import numpy as np

from ..parallel import dot
from ..penalty import ElasticNet
from ..registry import crf_solvers
from .base import (
    BatchSolver,
    Floats,
    Function,
    Longs,
    Loss,
    SolverState,
    StepReport,
    evaluate,
    evaluate_start,
    needs,
    smallest_subgradient,
    take,
)
from .line_search import (
    Point,
    inverse_hessian_product,
    projected_backtracking,
    with_curvature,
    wolfe,
)

# Added to curvatures, in expected counts: a weight whose label is certain has none.
_FLOOR = 0.1


@dataclass
class State(SolverState):
    """Where OWL-QN stands.

    metric: [K], the first model of the inverse Hessian, up to a factor; steps, changes: [m, K], the
    last differences of theta and of gradient, oldest first; stalled: no step along any direction
    lowers the objective any more.
    """

    metric: Floats
    steps: Floats
    changes: Floats
    stalled: bool = False


@crf_solvers("spacy_sparsecrf.OWLQN.v1")
@dataclass(kw_only=True, eq=False)
class OWLQN(BatchSolver):
    """Orthant-wise limited-memory quasi-Newton, or L-BFGS with a Wolfe search where l1 = 0.

    history: pairs kept of differences (Lavergne 2010, section 5.1, keeps 5; on a working set more
        cost little).
    classic: whether to do as Andrew & Gao (2007) do, without the changes above.
    max_line_search: evaluations that one line search may take.
    average_warm_start: whether the warm start ends with means of its weights (see
        `training.run.warm_start`), and is an outer iteration of its own: means label well, and the
        first quasi-Newton iterations often lead to worse labels before they lead to better.
    The other settings: see `BatchSolver`.
    RAISES: SparseCRFError where a setting is out of range.
    """

    state_type = State
    requires = needs()

    history: int = 20
    classic: bool = False
    max_line_search: int = 40
    warm_start_epochs: int = 4
    average_warm_start: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(1, "history", "max_line_search")

    def start(self, loss: Loss, penalty: ElasticNet, theta: Floats) -> State:
        """Evaluate the first point; see `BatchSolver.start`."""
        value, gradient = evaluate_start(loss, penalty, theta)
        metric = self._metric(loss, penalty, theta, gradient)
        empty = np.empty((0, len(theta)))
        return State(theta, gradient, value, metric, empty, empty.copy())

    def remap(
        self, loss: Loss, penalty: ElasticNet, state: State, source: Longs, gradient: Floats
    ) -> State:
        """Carry weights and curvature pairs over; see `BatchSolver.remap`.

        Pairs know nothing of new coordinates: zero there.
        """
        theta = take(state.theta, source)
        metric = self._metric(loss, penalty, theta, gradient)
        pairs = with_curvature(take(state.steps, source), take(state.changes, source))
        return State(theta, gradient, state.value, metric, *pairs)

    def _metric(self, loss: Loss, penalty: ElasticNet, theta: Floats, gradient: Floats) -> Floats:
        """The first model of the inverse Hessian at the point that was evaluated last."""
        if self.classic:
            return np.ones_like(theta)
        curvature = loss.curvature(gradient - penalty.slope(theta)) + penalty.l2
        metric: Floats = 1.0 / np.sqrt(curvature + _FLOOR)
        return metric

    def step(self, loss: Function, penalty: ElasticNet, state: State) -> StepReport:
        """Do one iteration: direction, line search, update of the pairs."""
        pseudo = smallest_subgradient(penalty, state.theta, state.gradient)
        direction = self._direction(state, penalty, pseudo)
        point, n_evaluations = self._search(loss, penalty, state, pseudo, direction)
        if point is None and len(state.steps):
            # The model of the curvature misleads: forget it and descend.
            state.steps, state.changes = state.steps[:0], state.changes[:0]
            direction = -state.metric * pseudo
            point, more = self._search(loss, penalty, state, pseudo, direction)
            n_evaluations += more
        if point is None:
            state.stalled = True
        else:
            self._accept(state, point)
        return self.report(penalty, state, n_evaluations, state.stalled)

    def _direction(self, state: State, penalty: ElasticNet, pseudo: Floats) -> Floats:
        """A direction of descent; pseudo: the pseudo-gradient [K]."""
        pairs, metric = (state.steps, state.changes), state.metric
        if penalty.l1 == 0.0:
            return -inverse_hessian_product(*pairs, metric, pseudo)
        if not self.classic:
            free = np.flatnonzero((state.theta != 0.0) | (pseudo != 0.0))
            pairs_there = with_curvature(state.steps[:, free], state.changes[:, free])
            direction = np.zeros_like(pseudo)
            direction[free] = -inverse_hessian_product(*pairs_there, metric[free], pseudo[free])
            # A weight leaves zero only the way that its gradient points.
            direction[(state.theta == 0.0) & (direction * pseudo >= 0.0)] = 0.0
            if dot(direction, pseudo) < 0.0:
                return direction
        direction = -inverse_hessian_product(*pairs, metric, pseudo)
        direction[direction * pseudo >= 0.0] = 0.0
        return direction

    def _search(
        self, loss: Function, penalty: ElasticNet, state: State, pseudo: Floats, direction: Floats
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
        steps = np.vstack((state.steps, point.theta - state.theta))[keep:]
        changes = np.vstack((state.changes, point.gradient - state.gradient))[keep:]
        state.steps, state.changes = with_curvature(steps, changes)
        state.theta, state.value, state.gradient = point.theta, point.value, point.gradient
