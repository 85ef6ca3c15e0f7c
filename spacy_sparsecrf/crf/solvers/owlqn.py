"""OWL-QN: limited-memory quasi-Newton for l1 (Andrew & Gao 2007); L-BFGS where l1 = 0.

Minimises F(theta) = l(theta) + l1 |theta|_1 + l2 / 2 |theta|^2 (Lavergne 2010, equation 6 and
section 3.2), by

    theta := pi(theta - a H v),    pi: projection onto the orthant of theta and -v

with v the pseudo-gradient of F, H the L-BFGS model of the inverse Hessian of l + l2 (Nocedal &
Wright 2006, algorithm 7.4), and the step a from backtracking (l1 > 0) or a search for the strong
Wolfe conditions (l1 = 0). Stops as all solvers do (see `base`), or if no step lowers F any more.

Two changes, which the variant "classic" does not have, save passes: 1.1 to 2.6 times fewer to 1 %
above the minimum (`project/measurements/SOLVERS.md`):

- OWL-QN zeroes the components of -H v whose sign differs from -v, which degrades the
  direction. Here the L-BFGS direction among the weights that are free to move is only projected
  onto the orthant: a projected scaled sub-gradient method (Schmidt, Fung & Rosales 2009).
- The initial H is a power of the Hessian's diagonal h (see `loss.protocols`), not a multiple of the
  identity: features differ in frequency by orders of magnitude. The power is a compromise, since
  h^(-1) would be right only if features occurred independently: with l1, h^(-3/4) takes fewer
  iterations while pairs are few, h^(-1/2) from then on.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ...registry import crf_solvers
from ..corpus.numbering import Floats, Longs, Mask, Singles
from ..loss.protocols import Function, WorkingLoss
from ..parallel import dot
from ..penalty import ElasticNet
from . import solver as base
from .solver import BatchSolver, EvaluatedPoint, StepReport
from .warm_start import WarmStart

Objective = Callable[[Floats], tuple[float, Floats]]

VARIANTS = ("steep", "plain", "classic")
# Sufficient decrease and curvature constants of the Wolfe conditions (Nocedal & Wright 2006, 3.1).
DECREASE = 1e-4
CURVATURE = 0.9
# Added to curvatures, in expected counts: a weight whose label is certain has none.
_FLOOR = 0.1
# Pairs to keep without l1 where h is below a number on average: there a pass over a few vectors of
# all weights, most of which are hardly ever observed, takes as long as a gradient.
_FEW_PAIRS, _FEW_COUNTS = 5, 1.5
# Near the minimum rounding hides changes of the objective smaller than the first fraction of it. A
# step is then accepted if it lowers the largest gradient to the second fraction.
_HIDDEN, _SMALLER = 16.0 * np.finfo(np.float64).eps, 0.9


@dataclass
class OwlqnState(base.SolverState):
    """The state of OWL-QN.

    metric: [K], h^(-1/2), for the initial inverse Hessian; steps, changes: [m, K] float32 (precise
    enough for directions), the last differences of theta and of the gradient, a pair in each row;
    products: [2, m, m], of pairs, see `smooth_direction`; stalled: whether rounding hides any
    further decrease; n_pairs: number of pairs so far; pair i is in row i mod m.
    """

    metric: Floats
    steps: Singles
    changes: Singles
    products: Floats
    stalled: bool = False
    n_pairs: int = 0


@crf_solvers("spacy_sparsecrf.OWLQN.v1")
@dataclass(kw_only=True, eq=False)
class OWLQN(BatchSolver[WorkingLoss]):
    """Orthant-wise limited-memory quasi-Newton, or L-BFGS with a Wolfe search where l1 = 0.

    history: pairs of differences to keep (Lavergne 2010, section 5.1, keeps 5; on a working set
        more cost little). Without l1 at most 5, if most of the weights are hardly ever observed.
    variant: "classic" is the original method of Andrew & Gao (2007), see the module; "plain" has
        the initial inverse Hessian h^(-1/2); and "steep" has h^(-3/4) instead, with l1, while there
        are fewer pairs than `history`.
    max_line_search: maximum number of evaluations in one line search.
    """

    state_type: ClassVar[type[Any]] = OwlqnState
    requires = base.requirements()
    warm_start: ClassVar[WarmStart] = WarmStart()

    history: int = 20
    variant: str = "steep"
    max_line_search: int = 40

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(1, "history", "max_line_search")
        self.require_one_of("variant", VARIANTS)

    def idle(self, penalty: ElasticNet) -> dict[str, str]:
        """Return settings without effect; see `BatchSolver.idle`."""
        reasons = super().idle(penalty)
        if penalty.l1 == 0.0 and self.variant == "plain":
            reasons["variant"] = "it is the same as 'steep' where l1 = 0"
        return reasons

    def start(self, loss: WorkingLoss, penalty: ElasticNet, theta: Floats) -> OwlqnState:
        """Evaluate the first point; see `BatchSolver.start`."""
        value, gradient = base.evaluate_start(loss, penalty, theta)
        metric = self._metric(loss, penalty, theta, gradient)
        few = np.sum(metric**-2.0) < (_FEW_COUNTS + penalty.l2) * len(theta)
        m = min(self.history, _FEW_PAIRS) if penalty.l1 == 0.0 and few else self.history
        # Memory that is not written to is not resident.
        return OwlqnState(
            theta,
            gradient,
            value,
            metric=metric,
            steps=np.zeros((m, len(theta)), np.float32),
            changes=np.zeros((m, len(theta)), np.float32),
            products=np.zeros((2, m, m)),
        )

    def check_state(self, loss: WorkingLoss, penalty: ElasticNet, state: Any) -> None:
        """Check a state, whose number of pairs depends on the first point; see `BatchSolver`."""
        theta = np.zeros(len(loss.coordinates))
        m = max(1, min(len(state.steps), self.history))
        pairs = np.zeros((m, len(theta)), np.float32)
        like = self.start(loss, penalty, theta)
        products = np.zeros((2, m, m))
        base.check_alike(state, replace(like, steps=pairs, changes=pairs, products=products))

    def remap(
        self,
        loss: WorkingLoss,
        penalty: ElasticNet,
        state: OwlqnState,
        source: Longs,
        gradient: Floats,
    ) -> OwlqnState:
        """Move weights and curvature pairs; see `BatchSolver.remap`.

        Pairs are zero at new coordinates.
        """
        theta = base.take(state.theta, source)
        metric = self._metric(loss, penalty, theta, gradient)
        if state.n_pairs:
            # One after the other, so that the first is freed before the second is moved.
            steps = state.steps = base.take(state.steps, source)
            changes = base.take(state.changes, source)
        else:
            # Nothing has been written to the rows, so that they are not resident.
            shape = len(state.steps), len(source)
            steps, changes = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        return OwlqnState(
            theta,
            gradient,
            state.value,
            metric=metric,
            steps=steps,
            changes=changes,
            products=state.products,
            n_pairs=state.n_pairs,
        )

    def _metric(
        self, loss: WorkingLoss, penalty: ElasticNet, theta: Floats, gradient: Floats
    ) -> Floats:
        """Return the state's metric at the point that was evaluated last."""
        if self.variant == "classic":
            return np.ones_like(theta)
        curvature = loss.curvature(gradient - penalty.slope(theta)) + penalty.l2
        metric: Floats = 1.0 / np.sqrt(curvature + _FLOOR)
        return metric

    def _first_model(self, penalty: ElasticNet, state: OwlqnState) -> Floats:
        """Return the initial inverse Hessian [K], up to a factor."""
        if self.variant == "steep" and penalty.l1 > 0.0 and state.n_pairs < len(state.steps):
            return state.metric * np.sqrt(state.metric)
        return state.metric

    def step(self, loss: Function, penalty: ElasticNet, state: OwlqnState) -> StepReport:
        """Do one iteration: direction, line search, update of the pairs."""
        pseudo = base.smallest_subgradient(penalty, state.theta, state.gradient)
        direction = self._direction(state, penalty, pseudo)
        point, n_evaluations = self._search(loss, penalty, state, pseudo=pseudo, way=direction)
        if _stays(state, point) and state.n_pairs:
            # The model of the Hessian is misleading: reset it, and step along the gradient.
            state.n_pairs = 0
            direction = -self._first_model(penalty, state) * pseudo
            point, more = self._search(loss, penalty, state, pseudo=pseudo, way=direction)
            n_evaluations += more
        state.stalled = point is None
        is_used_up = _stays(state, point) and not state.stalled
        if point is not None and not is_used_up:
            self._accept(state, point)
        report = self.report(penalty, state, n_evaluations, state.stalled)
        return replace(report, end=base.IDLE) if is_used_up else report

    def _direction(self, state: OwlqnState, penalty: ElasticNet, pseudo: Floats) -> Floats:
        """Return a direction of descent; pseudo: the pseudo-gradient [K]."""
        from ..kernels.weight_vectors import two_loops

        if penalty.l1 == 0.0:
            return smooth_direction(state, pseudo)

        def along(free: Mask) -> Floats:
            """Return the direction among the weights that are free to move, [K]."""
            direction: Floats = -two_loops(
                state.n_pairs,
                state.steps,
                state.changes,
                metric=self._first_model(penalty, state),
                free=free,
                vector=pseudo,
            )
            return direction

        if self.variant != "classic":
            direction = along((state.theta != 0.0) | (pseudo != 0.0))
            # A weight leaves zero only against its gradient.
            direction[(state.theta == 0.0) & (direction * pseudo >= 0.0)] = 0.0
            if dot(direction, pseudo) < 0.0:
                return direction
        direction = along(np.ones(len(pseudo), np.bool_))
        direction[direction * pseudo >= 0.0] = 0.0
        return direction

    def _search(
        self,
        loss: Function,
        penalty: ElasticNet,
        state: OwlqnState,
        *,
        pseudo: Floats,
        way: Floats,
    ) -> tuple[EvaluatedPoint | None, int]:
        """Search along a direction `way` [K], whose scale is unknown until there are pairs.

        With l1, backtrack along its projection onto an orthant (Andrew & Gao 2007, 3.2): accept the
        first theta' = pi(theta + a way) with F(theta') <= F(theta) + DECREASE * pseudo . (theta' -
        theta), or, if rounding hides the change of F, with a smaller gradient.

        RETURNS: the accepted point; the start if no step was accepted; None if none was because
            rounding hides the change of F; number of evaluations.
        """
        if not dot(way, pseudo) < 0.0:
            return None, 0
        objective, most = partial(base.evaluate, loss, penalty), self.max_line_search
        start = EvaluatedPoint(state.theta, state.value, state.gradient)
        step, shrink = (1.0, 0.5) if state.n_pairs else (1.0 / float(np.sqrt(dot(way, way))), 0.1)
        if penalty.l1 == 0.0:
            return wolfe(objective, start, direction=way, first_step=step, max_trials=most)
        orthant = np.where(state.theta != 0.0, np.sign(state.theta), -np.sign(pseudo))
        for trial in range(1, most + 1):
            theta = state.theta + step * way
            theta[theta * orthant <= 0.0] = 0.0
            point = EvaluatedPoint(theta, *objective(theta))
            if point.value <= state.value + DECREASE * dot(pseudo, theta - state.theta):
                return point, trial
            if _is_hidden(point.value, state.value):
                reached = base.smallest_subgradient(penalty, theta, point.gradient)
                if _is_smaller(reached, pseudo):
                    return point, trial
            step *= shrink
        return None if _is_hidden(point.value, state.value) else start, most

    def _accept(self, state: OwlqnState, point: EvaluatedPoint) -> None:
        """Move to a point and remember the last pairs."""
        step, change = point.theta - state.theta, point.gradient - state.gradient
        if dot(step, change) > 0.0:
            row = state.n_pairs % len(state.steps)
            # A pair that overflows float32 is left out, see `two_loops`, or misleads the search.
            with np.errstate(over="ignore"):
                state.steps[row], state.changes[row] = step, change
            state.n_pairs += 1
        state.theta, state.value, state.gradient = point.theta, point.value, point.gradient


def _stays(state: OwlqnState, point: EvaluatedPoint | None) -> bool:
    """Return whether a search has ended where it began."""
    return point is None or point.theta is state.theta


def _is_hidden(value: float, previous: float) -> bool:
    """Return whether rounding hides the change of the objective."""
    return bool(abs(value - previous) <= _HIDDEN * abs(previous))


def _is_smaller(gradient: Floats, previous: Floats) -> bool:
    """Return whether a step has lowered the largest gradient enough to be accepted."""
    return bool(np.abs(gradient).max() <= _SMALLER * np.abs(previous).max())


def wolfe(
    evaluate: Objective,
    start: EvaluatedPoint,
    *,
    direction: Floats,
    first_step: float,
    max_trials: int,
) -> tuple[EvaluatedPoint | None, int]:
    """Find a step that meets the strong Wolfe conditions, by bracketing and cubic interpolation.

    (Nocedal & Wright 2006, algorithms 3.5 and 3.6, in one loop over a bracket.) If rounding hides
    the change of the objective, the step must lower the gradient.

    evaluate: smooth objective and gradient; direction: [K], of descent.
    RETURNS: the accepted point, or None if rounding hides the change of the objective; number of
        evaluations. If max_trials ends the search before the curvature condition holds, the point
        is the best with sufficient decrease, or the start.
    """
    slope0 = dot(start.gradient, direction)
    low = (0.0, start.value, slope0)
    high: tuple[float, float, float] | None = None
    best: EvaluatedPoint | None = None
    step = first_step
    for trial in range(1, max_trials + 1):
        theta = start.theta + step * direction
        point = EvaluatedPoint(theta, *evaluate(theta))
        slope = dot(point.gradient, direction)
        here = (step, point.value, slope)
        if _is_hidden(point.value, start.value) and _is_smaller(point.gradient, start.gradient):
            return point, trial
        if point.value > start.value + DECREASE * step * slope0 or point.value >= low[1]:
            high = here
        else:
            best = point
            if abs(slope) <= -CURVATURE * slope0:
                return best, trial
            # The minimum lies behind, or the bracket is open on the other side.
            if slope * ((high[0] if high else np.inf) - low[0]) >= 0.0:
                high = low
            low = here
        step = 2.0 * step if high is None else _interpolate(low, high)
        if step == low[0]:
            # The bracket has shrunk to one number: rounding hides any further decrease.
            return best, trial
    if best is None and not _is_hidden(point.value, start.value):
        best = start
    return best, max_trials


def _interpolate(low: tuple[float, float, float], high: tuple[float, float, float]) -> float:
    """Return the minimiser of the cubic through two points with slopes, inside the bracket."""
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


def smooth_direction(state: OwlqnState, gradient: Floats) -> Floats:
    """Multiply minus the gradient [K] by the model of the inverse Hessian, all weights being free.

    The same as `two_loops` in two passes over the pairs: its loops only read products of s_i and
    y_i with the gradient, and of pairs, which are kept (compare Byrd, Nocedal & Schnabel 1994).

    state: `products` has s_i . y_j of pairs j not older than i, and y_i . metric y_j; it gets those
    of the newest pair.
    """
    from ..kernels.weight_vectors import combine_pairs, multiply_pairs

    m = len(state.steps)
    rows = [i % m for i in range(max(0, state.n_pairs - m), state.n_pairs)]
    newest = (state.n_pairs - 1) % m
    sy, yy = state.products
    a, b = np.zeros((2, m))
    sy[:, newest], sg, yy[newest], yg = multiply_pairs(
        newest, state.steps, state.changes, metric=state.metric, vector=gradient
    )
    yy[:, newest] = yy[newest]
    scale = sy[newest, newest] / yy[newest, newest] if rows else 1.0
    for i in reversed(rows):
        a[i] = sg[i] / sy[i, i]
        sg -= a[i] * sy[:, i]
        yg -= a[i] * yy[i]
    yg *= scale
    for i in rows:
        b[i] = yg[i] / sy[i, i] - a[i]
        yg -= b[i] * sy[i]
    direction = -scale * gradient
    combine_pairs(
        np.array([scale * a, b]),
        state.steps,
        state.changes,
        metric=state.metric,
        vector=direction,
    )
    return direction
