"""Minimisation of one sub-problem on a working set, from the warm start to polishing.

At the minimum of an l1 problem nearly all weights are zero. A batch solver sees only the weights
that are, or are about to be, non-zero: the *working set*. A zero weight stays zero while its loss
gradient is at most l1 in magnitude. *Screening* computes this gradient for all potential weights,
and the worst violators enter. Without violators, the minimiser on the working set is the minimiser
of the full problem, as StepReport.optimality certifies.

With a prior, all of this applies to the difference from the prior's weights, which solvers
optimise. Weights in arguments and results are those of the model.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..errors import SparseCRFError, Warnings, warn
from ..loss.chain import NO_COORDINATES, ChainLoss
from ..loss.working import WorkingLoss
from ..penalty import ElasticNet
from ..progress import Task
from ..solvers.base import CONVERGED, IDLE, BatchSolver, Floats, Longs, StepReport, evaluate
from ..solvers.owlqn import OWLQN
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

    loss, penalty, solver; first: the warm start; n_sequences: of the sub-problem's corpus. state:
    None before the first step.
    """

    def __init__(
        self,
        loss: ChainLoss,
        penalty: ElasticNet,
        solver: BatchSolver,
        first: WarmStart,
        n_sequences: int,
    ) -> None:
        self.loss, self.n_sequences = loss, n_sequences
        self._penalty, self._solver, self._first = penalty, solver, first
        self.state: RunState | None = None
        self._working: WorkingLoss

    def begin(self, coordinates: Longs, theta: Floats, moved: bool = False) -> None:
        """Begin, or restart, from weights theta [n] at coordinates [n], ascending.

        moved: whether theta is the difference from the prior, not weights of the model.
        """
        self._restrict(self.loss.with_prior(coordinates))
        working = self._working
        first = np.zeros(len(working.coordinates))
        first[np.searchsorted(working.coordinates, coordinates)] = theta
        first = first if moved else first - working.model_weights(np.zeros(len(first)))
        state = self._solver.start(working, self._penalty, first)
        self.state = RunState(working.coordinates, state)
        self._regrow(self.state)

    def _restrict(self, coordinates: Longs) -> None:
        """Set the working set to coordinates [K], ascending; free the previous loss first."""
        self.loss.forget()
        self.__dict__.pop("_working", None)
        self._working = self.loss.restrict(coordinates, "examples" in self._solver.requires)

    @property
    def objective(self) -> float:
        """Loss plus penalty at the current weights; infinite before the first step."""
        return np.inf if self.state is None else float(self.state.solver.value)

    @property
    def end(self) -> str:
        """The end of the run, "" = it has not ended; see `StepReport`."""
        return "" if self.state is None else self.state.end

    @property
    def weights(self) -> tuple[Longs, Floats]:
        """Coordinates [n] int64, ascending, and values [n] float64 of non-zero weights."""
        if self.state is None:
            return np.empty(0, np.int64), np.empty(0)
        theta = self._working.model_weights(self.state.solver.theta)
        active = theta != 0.0
        return self._working.coordinates[active], theta[active]

    def reached(self, passes: float = 0.0) -> StepReport:
        """Return the report of the last step; passes: of it."""
        n_active, state = len(self.weights[0]), self.state
        if state is None:
            return StepReport(np.inf, np.inf, n_active, passes, False)
        values = self.objective, state.optimality, n_active, passes, state.end == CONVERGED
        return StepReport(*values, state.gap, state.end)

    def step(self) -> StepReport:
        """Do one outer iteration: `inner_iterations` of the solver, then screen and regrow.

        A warm start is the first one.
        """
        passes = 0.0
        if self.state is None:
            passes = float(self._warm_up())
            if passes and self._first.evaluated:
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
                if report.converged:
                    break
        self._regrow(state)
        self._judge(state, report)
        self.loss.rest()
        return replace(self.reached(passes), objective=report.objective)

    def _judge(self, state: RunState, report: StepReport) -> None:
        """Decide whether the run ends after an outer iteration; report: of its last step.

        It has converged if the rule of the solver says so and violators are within the tolerance;
        if the gap is below the fraction `tolerance_gap`; or if the objective of an exact solver
        stands still. A solver that raises a bound has to come within `window` of it: its objective
        may rise meanwhile. Solvers that are not exact do not converge by `tolerance`.
        """
        solver, size = self._solver, abs(report.objective)
        state.optimality = max(report.optimality, state.violation)
        state.gap = min(state.gap, report.gap)
        value = report.objective if report.gap == np.inf else report.gap - report.objective
        lowered = state.best - value
        idle = lowered <= solver.window * size
        still = idle and -lowered <= max(solver.window, _ROUNDING) * size
        state.n_idle = state.n_idle + 1 if idle else 0
        state.n_still = state.n_still + 1 if still else 0
        state.best = min(state.best, value)
        tolerance = solver.tolerance_at(self._penalty)
        met = report.converged or (report.optimality <= tolerance and not solver.own_rule)
        met = met and state.violation <= tolerance
        stands = state.n_still >= _MAX_STILL and not solver.own_rule
        if report.gap < np.inf:
            stands = report.gap <= solver.window * size
        sure = (met and solver.own_rule) or (solver.exact and (met or stands))
        ended = met or state.n_idle >= _MAX_IDLE
        if sure or state.gap < solver.tolerance_gap * size:
            state.end = CONVERGED
        else:
            state.end = IDLE if ended else ""

    def _warm_up(self) -> int:
        """Begin with the weights of a warm start, or zero if that is better; return its passes."""
        sparse = self._penalty.l1 > 0.0
        n_epochs = self._first.epochs if sparse else 0
        if n_epochs:
            working = self.loss.restrict(self.loss.with_prior(NO_COORDINATES))
            zero, _ = evaluate(working, self._penalty, np.zeros(len(working.coordinates)))
            self.loss.rest()
            for caution in _CAUTIONS:
                start = partial(self._first, caution=caution)
                first = self.loss.first_weights(start, self._penalty)
                # Weights may be so large that the objective is not finite.
                with suppress(SparseCRFError):
                    self.begin(*first, moved=True)
                    if self.objective <= zero:
                        return n_epochs
            warn(Warnings.SCW341.format(objective=self.objective, zero=zero))
        coordinates = NO_COORDINATES
        if "examples" in self._solver.requires and sparse:
            coordinates = self.loss.descent_coordinates()
        self.begin(coordinates, np.zeros(len(coordinates)), moved=True)
        return n_epochs

    def resume(self, state: RunState) -> None:
        """Continue from the state of another run."""
        self._restrict(state.coordinates)
        self.state = state

    def _regrow(self, state: RunState) -> None:
        """Add violators to the working set, and remove idle weights."""
        if self._penalty.l1 == 0.0:
            self._take_all(state)
        elif (chosen := self._chosen(state)) is not None:
            state.coordinates, source, gradient = chosen
            self._restrict(state.coordinates)
            state.solver = self._solver.remap(
                self._working, self._penalty, state.solver, source, gradient
            )

    def _chosen(self, state: RunState) -> tuple[Longs, Longs, Floats] | None:
        """Screen for `_regrow`, and choose the next working set.

        RETURNS: its coordinates [K], the index of each in the current working set, -1 for a new
            one, and the gradient [K]; None to keep the current working set.
        """
        old: Longs = self._working.coordinates
        theta, gradient, l1 = state.solver.theta, state.solver.gradient, self._penalty.l1
        limit = len(old) + max(_MIN_GROWTH, int(_GROWTH * len(old)))
        with Task("Screening"):
            found, gradients, squared_excess = self.loss.screen(self._working, theta, l1, limit)
        convex = self.loss.is_convex
        state.gap = self._bound(state.solver, squared_excess) if convex else np.inf
        new = np.isin(found, old, assume_unique=True, invert=True)
        found, gradients = found[new], gradients[new]
        state.violation = float(np.abs(gradients).max(initial=l1)) - l1
        staying = (theta != 0.0) | (np.abs(gradient) > _SHRINK * l1)
        staying |= self._working.model_weights(np.zeros(len(old))) != 0.0
        if not len(found) and staying.sum() >= _WORTH_SHRINKING * len(old):
            return None
        coordinates = np.concatenate((old[staying], found))
        order = np.argsort(coordinates)
        source = np.concatenate((np.flatnonzero(staying), np.full(len(found), -1)))[order]
        return coordinates[order], source, np.concatenate((gradient[staying], gradients))[order]

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
        everything = self.loss.all_coordinates()
        theta = np.zeros(len(everything))
        theta[np.searchsorted(everything, old)] = state.solver.theta
        self._restrict(everything)
        state.coordinates = everything
        state.solver = self._solver.start(self._working, self._penalty, theta)


@dataclass(frozen=True)
class Polish:
    """Fine-tune non-zero weights by L-BFGS; all others stay zero (Lavergne 2010, section 5.3.1).

    The l1 penalty selects weights but also shrinks them; polishing only has a small l2 penalty,
    around the weights of the prior, if any.

    iterations: of L-BFGS, a few, as more would overfit without l1; 0 for none; l2: the penalty.
    """

    iterations: int = 0
    l2: float = 1e-5

    def __call__(self, loss: ChainLoss, weights: tuple[Longs, Floats]) -> tuple[Longs, Floats]:
        """Return the coordinates, and the polished values.

        weights: coordinates [n] int64, ascending, and values [n] float64 of the non-zero weights.
        The marginals of the workspace are overwritten.
        """
        coordinates, theta = weights
        if self.iterations == 0 or len(coordinates) == 0:
            return weights
        working, solver, penalty = loss.restrict(coordinates), OWLQN(), ElasticNet(0.0, self.l2)
        origin = working.model_weights(np.zeros(len(theta)))
        state = solver.start(working, penalty, theta - origin)
        n = self.iterations
        for _ in Task("Polishing", "iterations", n, range(n)):
            if solver.step(working, penalty, state).converged:
                break
        return coordinates, working.model_weights(state.theta)
