"""Minimisation of one sub-problem on a working set, from the warm start to polishing.

At the minimum of an l1 problem nearly all weights are zero. A batch solver sees only the weights
that are, or are about to be, non-zero: the *working set*. A zero weight stays zero while its loss
gradient is at most l1 in magnitude. *Screening* computes this gradient for all potential weights,
and the worst violators enter. Without violators, the minimiser on the working set is the minimiser
of the full problem, as StepReport.optimality certifies.

Weights are those of the loss, which may be wrapped, see `loss.wrappers`.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...errors import SparseCRFError, Warnings, warn
from ...progress import Task
from ..corpus.coordinates import NO_COORDINATES, Weights
from ..corpus.numbering import Floats, Longs
from ..loss.protocols import Loss, WorkingLoss
from ..loss.wrappers import Restricted
from ..penalty import ElasticNet
from ..solvers.owlqn import OWLQN
from ..solvers.solver import CONVERGED, IDLE, BatchSolver, StepReport, check_alike, evaluate
from ..solvers.warm_start import WarmStart

# Violators that may enter at once: the larger of a number and a share of the working set.
_MIN_GROWTH = 20_000
_GROWTH = 0.5
# A zero weight leaves if its gradient is below this share of l1; others would soon return.
_SHRINK = 0.9
# Without violators, the working set shrinks only if less than this share of it would stay.
_WORTH_SHRINKING = 0.7
# Outer iterations in a row that end a run: of an exact solver, if the objective stays within
# `window` of the best, because new weights need one to act; of any, if none lowers the best by
# `window`, because objectives may rise and fall.
_MAX_STILL, _MAX_IDLE = 2, 5
# Divisors of the steps of a warm start, until it is better than zero weights.
_CAUTIONS = (1.0, 4.0, 16.0, 64.0)
# Rounding changes the objective by at most this fraction.
_ROUNDING = 1e-12
# No run has converged with a bound above the first fraction of the objective; above the second, a
# solver with a linear rate has not converged because its objective stands still.
_FAR, _NEAR = 0.01, 0.001


@dataclass
class RunState:
    """The state of a run: arrays and scalars only, so that a resumed run is bit-identical.

    coordinates: [K] int64, ascending, the working set; solver: the solver's state there; best:
    lowest objective after an outer iteration, or of a solver with a bound, minus the bound; n_idle:
    outer iterations in a row that did not lower it by the fraction `window`; n_still: those in a
    row that did not raise it either; violation: largest excess of a gradient over l1 outside of the
    working set; optimality, gap, end: see `StepReport`.
    """

    coordinates: Longs
    solver: Any
    best: float = np.inf
    n_idle: int = 0
    n_still: int = 0
    violation: float = np.inf
    optimality: float = np.inf
    gap: float = np.inf
    end: str = ""


class Run:
    """Minimises the loss of one sub-problem on a working set; a step is an outer iteration.

    loss, penalty, solver, warm_start: of the sub-problem. state: None before the first step.
    """

    def __init__(
        self,
        loss: Loss,
        penalty: ElasticNet,
        solver: BatchSolver[Any],
        warm_start: WarmStart,
    ) -> None:
        self.loss, self._penalty = loss, penalty
        self._solver, self._warm_start = solver, warm_start
        self.state: RunState | None = None
        self._working: Any = None  # the `WorkingLoss` on the working set

    def begin(self, weights: Weights) -> None:
        """Begin, or restart, from weights."""
        self._restrict(weights.coordinates)
        working = self._working
        theta = np.zeros(len(working.coordinates))
        theta[np.searchsorted(working.coordinates, weights.coordinates)] = weights.values
        state = self._solver.start(working, self._penalty, theta)
        self.state = RunState(working.coordinates, state)
        self._regrow(self.state)

    def _restrict(self, coordinates: Longs) -> None:
        """Set the working set to coordinates [K], ascending; free the previous loss first."""
        self.loss.forget()
        self._working = None
        self._working = laid_out(self.loss, coordinates, self._solver)

    @property
    def objective(self) -> float:
        """Loss plus penalty at the current weights; infinite before the first step."""
        return np.inf if self.state is None else float(self.state.solver.value)

    @property
    def end(self) -> str:
        """The end of the run, "" = it has not ended; see `StepReport`."""
        return "" if self.state is None else self.state.end

    @property
    def weights(self) -> Weights:
        """The non-zero weights."""
        if self.state is None:
            return Weights(NO_COORDINATES, np.empty(0))
        theta = self.state.solver.theta
        active = theta != 0.0
        return Weights(self._working.coordinates[active], theta[active])

    def polished(self, polish: "Polish") -> Weights:
        """Return the weights after polishing, which may be all weights that are not fixed at 0."""
        if self.state is None or polish.iterations == 0:
            return self.weights
        theta, working = self.state.solver.theta, self._working
        is_active = (theta != 0.0) | np.isin(working.coordinates, self.loss.required)
        active = np.flatnonzero(is_active)
        weights = Weights(working.coordinates[active], polish(working, theta, active))
        # The workspace has the marginals of other weights.
        self.loss.rest()
        return weights

    def reached(self, passes: float = 0.0) -> StepReport:
        """Return the report of the last step; passes: of it."""
        state = self.state
        assert state is not None
        return StepReport(
            objective=float(state.solver.value),
            optimality=state.optimality,
            n_active=int(np.count_nonzero(state.solver.theta)),
            passes=passes,
            converged=state.end == CONVERGED,
            gap=state.gap,
            end=state.end,
        )

    def step(self) -> StepReport:
        """Do one outer iteration: `inner_iterations` of the solver, then screen and regrow.

        A warm start is the first one.
        """
        passes = 0.0
        if self.state is None:
            passes = float(self._warm_up())
            if passes and self._warm_start.evaluated:
                self.loss.rest()
                return self.reached(passes)
        state, n_iterations = self.state, self._solver.inner_iterations
        assert state is not None
        if state.best < np.inf:
            n_iterations = self._solver.later_iterations or n_iterations
        with Task("Minimising", "iterations", n_iterations, range(n_iterations)) as shown:
            for _ in shown:
                report = self._solver.step(self._working, self._penalty, state.solver)
                shown.set_postfix_str(f"objective {report.objective:.6g}", refresh=False)
                passes += report.passes
                if report.converged or report.end:
                    break
        self._regrow(state)
        self._judge(state, report)
        self.loss.rest()
        return replace(self.reached(passes), objective=report.objective)

    def _judge(self, state: RunState, report: StepReport) -> None:
        """Decide whether the run ends after an outer iteration; report: of its last step.

        It has converged if the rule of the solver says so and violators are within the tolerance;
        if the gap is below the fraction `tolerance_gap`; or if the objective of an exact solver
        stands still. A solver that raises a bound, whose progress is that of the bound, has to come
        within `window` of it: its objective may rise meanwhile. Solvers that are not exact do not
        converge by `tolerance`, and none converges while a known bound is far.
        """
        solver, size = self._solver, abs(report.objective)
        state.optimality = max(report.optimality, state.violation)
        raises_bound = report.bound > -np.inf
        state.gap = min(state.gap, max(0.0, report.objective - report.bound))
        value = -report.bound if raises_bound else report.objective
        lowered = state.best - value
        is_idle = lowered <= solver.window * abs(value)
        is_still = is_idle and -lowered <= max(solver.window, _ROUNDING) * abs(value)
        state.n_idle = state.n_idle + 1 if is_idle else 0
        state.n_still = state.n_still + 1 if is_still else 0
        state.best = min(state.best, value)
        tolerance = solver.tolerance_at(self._penalty)
        met = report.converged or (report.optimality <= tolerance and not solver.own_rule)
        met = met and state.violation <= tolerance
        stands = state.n_still >= _MAX_STILL and not solver.own_rule
        if raises_bound:
            stands = report.objective - report.bound <= solver.window * size
        is_far = np.inf > state.gap > _FAR * size
        is_slow = solver.linear_rate and stands and not state.gap <= _NEAR * size
        sure = (met and solver.own_rule) or (solver.exact and (met or (stands and not is_slow)))
        ended = met or is_slow or report.end == IDLE or state.n_idle >= _MAX_IDLE
        if (sure and not is_far) or state.gap < solver.tolerance_gap * size:
            state.end = CONVERGED
        else:
            state.end = IDLE if ended else ""

    def _warm_up(self) -> int:
        """Begin with the weights of a warm start, or zero if that is better; return its passes."""
        sparse = self._penalty.l1 > 0.0
        n_epochs = self._warm_start.epochs if sparse else 0
        if n_epochs:
            working = self.loss.restrict(NO_COORDINATES)
            zero, _ = evaluate(working, self._penalty, np.zeros(len(working.coordinates)))
            self.loss.rest()
            for caution in _CAUTIONS:
                start = partial(self._warm_start, caution=caution)
                weights = self.loss.first_weights(start, self._penalty)
                # Weights may be so large that the objective is not finite.
                with suppress(SparseCRFError):
                    self.begin(weights)
                    if self.objective <= zero:
                        return n_epochs
            warn(Warnings.SCW341.format(objective=self.objective, zero=zero))
        coordinates = NO_COORDINATES
        if "examples" in self._solver.requires and sparse:
            coordinates = self.loss.coordinates("descent")
        self.begin(Weights(coordinates, np.zeros(len(coordinates))))
        return n_epochs

    def resume(self, state: RunState) -> None:
        """Continue from the state of another run, which was read from a file.

        RAISES: ValueError if it does not fit this run.
        """
        coordinates = np.asarray(state.coordinates)
        if coordinates.dtype != np.int64 or coordinates.ndim != 1:
            raise ValueError("coordinates are no array of int64")
        check_alike(state, RunState(coordinates, state.solver))
        ends = np.concatenate(([-1], coordinates, [self.loss.n_coordinates]))
        if not (ends[:-1] < ends[1:]).all():
            raise ValueError("coordinates do not rise, or are out of range")
        if not np.isin(self.loss.required, coordinates).all():
            raise ValueError("coordinates of the prior are missing")
        self._restrict(coordinates)
        self._solver.check_state(self._working, self._penalty, state.solver)
        self.loss.rest()
        self.state = state

    def _regrow(self, state: RunState) -> None:
        """Add violators to the working set, and remove idle weights."""
        if self._penalty.l1 == 0.0:
            self._take_all(state)
        elif (chosen := self._chosen(state)) is not None:
            state.coordinates = chosen.coordinates
            self._restrict(state.coordinates)
            state.solver = self._solver.remap(
                self._working,
                self._penalty,
                state.solver,
                source=chosen.source,
                gradient=chosen.gradient,
            )

    def _chosen(self, state: RunState) -> "_NextSet | None":
        """Screen for `_regrow`, and choose the next working set; None to keep the current one."""
        old: Longs = self._working.coordinates
        theta, gradient, l1 = state.solver.theta, state.solver.gradient, self._penalty.l1
        limit = len(old) + max(_MIN_GROWTH, int(_GROWTH * len(old)))
        with Task("Screening"):
            violators = self.loss.screen(self._working, theta, l1, limit)
        state.gap = np.inf
        if self.loss.is_convex:
            state.gap = self._bound(state.solver, violators.squared_excess)
        new = np.isin(violators.coordinates, old, assume_unique=True, invert=True)
        entering, gradients = violators.coordinates[new], violators.gradients[new]
        state.violation = float(np.abs(gradients).max(initial=l1)) - l1
        staying = (theta != 0.0) | (np.abs(gradient) > _SHRINK * l1)
        if len(self.loss.required):
            staying[np.searchsorted(old, self.loss.required)] = True
        if not len(entering) and staying.sum() >= _WORTH_SHRINKING * len(old):
            return None
        coordinates = np.concatenate((old[staying], entering))
        order = np.argsort(coordinates)
        source = np.concatenate((np.flatnonzero(staying), np.full(len(entering), -1)))
        gradient = np.concatenate((gradient[staying], gradients))
        return _NextSet(coordinates[order], source[order], gradient[order])

    def _bound(self, state: Any, squared_excess: float | None = None) -> float:
        """Return the bound `ElasticNet.gap`.

        state: of the solver; squared_excess: default: of the working set.
        """
        gradient = state.gradient - self._penalty.slope(state.theta)
        if squared_excess is None:
            squared_excess = self._penalty.squared_excess(gradient)
        return self._penalty.gap(state.theta, gradient, squared_excess)

    def _take_all(self, state: RunState) -> None:
        """Put all weights in the working set: without l1, each is non-zero at the minimum."""
        state.violation, state.gap = 0.0, np.inf
        old: Longs = self._working.coordinates
        if len(old) == self.loss.n_potential:
            if self.loss.is_convex:
                state.gap = self._bound(state.solver)
            return
        everything = self.loss.coordinates("all")
        theta = np.zeros(len(everything))
        theta[np.searchsorted(everything, old)] = state.solver.theta
        self._restrict(everything)
        state.coordinates = everything
        state.solver = self._solver.start(self._working, self._penalty, theta)


class _NextSet(NamedTuple):
    """The next working set: its coordinates [K], the index of each in the current working set, -1
    for a new one, and the gradient [K].
    """

    coordinates: Longs
    source: Longs
    gradient: Floats


def laid_out(loss: Loss, coordinates: Longs, solver: BatchSolver[Any]) -> WorkingLoss:
    """Return the loss on a working set [K], laid out as a solver requires."""
    if loss.has_examples and "examples" in solver.requires:
        return loss.by_example(coordinates)
    return loss.restrict(coordinates)


@dataclass(frozen=True)
class Polish:
    """Fine-tune non-zero weights by L-BFGS; all others stay zero (Lavergne 2010, section 5.3.1).

    The l1 penalty selects weights but also shrinks them; polishing only has a small l2 penalty,
    around the weights of the prior, if any.

    iterations: of L-BFGS, a few, as more would overfit without l1; 0 for none; l2: the penalty.
    """

    iterations: int = 0
    l2: float = 1e-5

    def __call__(self, loss: WorkingLoss, theta: Floats, active: Longs) -> Floats:
        """Return the polished values [n] of the active weights.

        loss, theta: the loss on a working set [K], and weights there; active: [n] int64, ascending,
        indices of those that are not zero. The marginals of the workspace are overwritten.
        """
        if self.iterations == 0 or len(active) == 0:
            return theta[active]
        working, solver, penalty = Restricted(loss, active), OWLQN(), ElasticNet(0.0, self.l2)
        state = solver.start(working, penalty, theta[active])
        n = self.iterations
        for _ in Task("Polishing", "iterations", n, range(n)):
            if solver.step(working, penalty, state).converged:
                break
        return state.theta
