"""Minimisation of one sub-problem on a working set, from the warm start to polishing.

At the minimum of an l1 problem nearly all weights are zero. A batch solver sees only the weights
that are, or are about to be, non-zero: the *working set*. A zero weight stays zero while its loss
gradient is at most l1 in magnitude. *Screening* computes this gradient for all potential weights,
and the worst violators enter. Without violators, the minimiser on the working set is the minimiser
of the full problem, as StepReport.optimality certifies.

With a prior, all of this applies to the difference from the prior's weights, which solvers
optimise. Weights in arguments and results are those of the model.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..corpus.numbering import find_ascending
from ..loss.chain import ChainLoss
from ..loss.subproblems import Part
from ..loss.working import WorkingLoss
from ..penalty import ElasticNet
from ..progress import progress, track
from ..schema import SchemaField
from ..solvers.base import BatchSolver, Floats, Longs, StepReport, fields_of
from ..solvers.owlqn import OWLQN
from ..solvers.warm_start import WarmStart
from .checkpoint import expect, expect_state, prefixed, without_prefix

# Violators that may enter at once: the larger of a number and a share of the working set.
_MIN_GROWTH = 20_000
_GROWTH = 0.5
# A zero weight leaves if its gradient is below this share of l1; others would soon return.
_SHRINK = 0.9
# Without violators, the working set shrinks only if less than this share of it would stay.
_WORTH_SHRINKING = 0.7
# Outer iterations in a row within `window` that end a run: new weights need one to act.
_MAX_IDLE = 2
# Saved values of a run, in addition to the solver's state.
_SAVED: dict[str, SchemaField | type] = {
    "coordinates": SchemaField("<i8", "K", below="potential", rises=True),
    "violation": float,
    "previous": float,
    "n_idle": int,
    "converged": bool,
    "optimality": float,
    "gap": float,
}


class Run:
    """Minimises the loss of one sub-problem on a working set; a step is an outer iteration.

    part: maps the coordinates of its weights to the whole model; loss: of the part's corpus;
    penalty; solver; first: the warm start.
    """

    def __init__(
        self,
        part: Part,
        loss: ChainLoss,
        penalty: ElasticNet,
        solver: BatchSolver,
        first: WarmStart,
    ) -> None:
        self._part = part
        self.loss = loss
        self._penalty = penalty
        self._solver, self._first = solver, first
        self.n_sequences = part.corpus.n_sequences
        self._optimality = np.inf
        # State of the solver on the working set; None before the first step.
        self._state: Any = None
        self._working: WorkingLoss
        self._forget()

    def _forget(self) -> None:
        """Reset the results of screenings and steps."""
        self._violation = self._previous = self._gap = np.inf
        self._n_idle = 0
        self.converged = False

    def _start(self, coordinates: Longs, theta: Floats, moved: bool = True) -> None:
        """Begin, or restart, from weights theta [n] at coordinates [n], ascending.

        moved: whether theta is the difference from the prior, not weights of the model.
        """
        self._forget()
        self._restrict(self.loss.with_prior(coordinates))
        working = self._working
        first = np.zeros(len(working.coordinates))
        first[np.searchsorted(working.coordinates, coordinates)] = theta
        first = first if moved else first - working.model_weights(np.zeros(len(first)))
        self._state = self._solver.start(working, self._penalty, first)
        self._regrow()

    def _restrict(self, coordinates: Longs) -> None:
        """Set the working set to coordinates [K], ascending; free the previous loss first."""
        self.loss.forget()
        self.__dict__.pop("_working", None)
        self._working = self.loss.restrict(coordinates, "examples" in self._solver.requires)

    @property
    def objective(self) -> float:
        """Loss plus penalty at the current weights; infinite before the first step."""
        return np.inf if self._state is None else float(self._state.value)

    @property
    def _weights(self) -> tuple[Longs, Floats]:
        """Coordinates in the part [n] int64, ascending, and values [n] of non-zero weights."""
        if self._state is None:
            return np.empty(0, np.int64), np.empty(0)
        theta = self._working.model_weights(self._state.theta)
        active = theta != 0.0
        return self._working.coordinates[active], theta[active]

    @property
    def weights(self) -> tuple[Longs, Floats]:
        """Coordinates in the whole model [n] int64 and values [n] float64 of non-zero weights."""
        coordinates, theta = self._weights
        return self._part.to_global(coordinates), theta

    def polished(self, polish: "Polish") -> tuple[Longs, Floats]:
        """Return `weights`, polished; the run keeps the unpolished ones."""
        coordinates, theta = polish(self.loss, self._weights)
        return self._part.to_global(coordinates), theta

    @property
    def reached(self) -> StepReport:
        """Report of the last step, with no passes."""
        n_active = len(self._weights[0])
        values = self.objective, self._optimality, n_active, 0.0, self.converged, self._gap
        return StepReport(*values)

    def begin(self, coordinates: Longs, theta: Floats, penalty: ElasticNet) -> None:
        """Begin with given weights and a penalty; weights of other parts are ignored.

        coordinates: [n] int64, distinct, in the whole model; theta: [n] float64.
        """
        self._penalty = penalty
        self._start(*self._part.local_weights(coordinates, theta), moved=False)

    def step(self) -> StepReport:
        """Do one outer iteration: `inner_iterations` of the solver, then screen and regrow.

        A warm start is the first one.
        """
        passes = 0.0
        if self._state is None:
            passes = float(self._warm_up())
            if passes and self._first.evaluated:
                return replace(self.reached, passes=passes)
        n_iterations = self._solver.inner_iterations
        with progress("Minimising", "iterations", n_iterations) as shown:
            for _ in shown.over(range(n_iterations)):
                report = self._solver.step(self._working, self._penalty, self._state)
                shown.detail = f"objective {report.objective:.6g}"
                passes += report.passes
                if report.converged:
                    break
        self._regrow()
        self._optimality = max(report.optimality, self._violation)
        decrease = self._previous - report.objective
        self._previous = report.objective
        idle = decrease <= self._solver.window * abs(report.objective)
        self._n_idle = self._n_idle + 1 if idle else 0
        self.converged = (
            self._optimality <= self._solver.tolerance
            or self._n_idle == _MAX_IDLE
            or self._gap < self._solver.tolerance_gap * abs(report.objective)
        )
        return replace(self.reached, objective=report.objective, passes=passes)

    def _first_weights(self) -> tuple[Longs, Floats]:
        """Return the weights of the warm start."""
        return self._first(self.loss, self._penalty)

    def _warm_up(self) -> int:
        """Begin with the weights of a warm start; return its number of passes."""
        sparse = self._penalty.l1 > 0.0
        n_epochs = self._first.epochs if sparse else 0
        first = self._first_weights()
        if "examples" in self._solver.requires and n_epochs == 0 and sparse:
            coordinates = self.loss.descent_coordinates()
            first = coordinates, np.zeros(len(coordinates))
        self._start(*first)
        return n_epochs

    def values(self) -> dict[str, Any]:
        """Return arrays and scalars by name, for `restore`; empty if the run has not begun."""
        if self._state is None:
            return {}
        own = {
            "coordinates": self._working.coordinates,
            "violation": self._violation,
            "previous": self._previous,
            "n_idle": self._n_idle,
            "converged": self.converged,
            "optimality": float(self._optimality),
            "gap": float(self._gap),
        }
        return own | prefixed("state.", fields_of(self._state))

    def restore(self, values: dict[str, Any]) -> None:
        """Resume from the `values` of another run. RAISES: ValueError for invalid values."""
        state = without_prefix("state.", values)
        own = {name: value for name, value in values.items() if not name.startswith("state.")}
        # Earlier versions did not save the gap.
        own.setdefault("gap", np.inf)
        expect(own, _SAVED, {"potential": self._part.corpus.n_potential(self._part.n_labels)})
        self._restrict(values["coordinates"])
        theta: Any = state.get("theta")
        expect(
            {"theta": theta}, {"theta": SchemaField("<f8", "K")}, {"K": len(values["coordinates"])}
        )
        form = self._solver.start(_Unevaluated(self._working), self._penalty, theta)
        state = expect_state(state, form)
        self._violation, self._previous = values["violation"], values["previous"]
        self._n_idle, self.converged = values["n_idle"], values["converged"]
        self._optimality, self._gap = values["optimality"], own["gap"]
        self._state = self._solver.state_type(**state)

    def _regrow(self, threshold: float | None = None, restart: bool = False) -> None:
        """Add violators to the working set, and remove idle weights.

        threshold: gradient above which a weight enters, at most l1 (the default); restart: whether
        to remap the solver's state even if the working set is unchanged.
        """
        if self._penalty.l1 == 0.0:
            self._take_all()
        elif (chosen := self._chosen(threshold, restart)) is not None:
            coordinates, source, gradient = chosen
            self._restrict(coordinates)
            self._state = self._solver.remap(
                self._working, self._penalty, self._state, source, gradient
            )

    def _chosen(self, threshold: float | None, restart: bool) -> tuple[Longs, Longs, Floats] | None:
        """Screen for `_regrow`, and choose the next working set.

        RETURNS: its coordinates [K], the index of each in the current working set, -1 for a new
            one, and the gradient [K]; None to keep the current working set.
        """
        old: Longs = self._working.coordinates
        limit = len(old) + max(_MIN_GROWTH, int(_GROWTH * len(old)))
        threshold = self._penalty.l1 if threshold is None else threshold
        with progress("Screening"):
            found, gradients, squared_excess = self.loss.screen(
                self._working, self._state.theta, threshold, limit
            )
        # With a lower threshold, squared_excess is not the excess over l1.
        known = self.loss.is_convex and threshold == self._penalty.l1
        self._gap = self._bound(squared_excess) if known else np.inf
        new = find_ascending(old, found) < 0
        found, gradients = found[new], gradients[new]
        worst = np.abs(gradients).max(initial=self._penalty.l1)
        self._violation = float(worst) - self._penalty.l1
        staying = (self._state.theta != 0.0) | (
            np.abs(self._state.gradient) > _SHRINK * self._penalty.l1
        )
        staying |= self._working.model_weights(np.zeros(len(old))) != 0.0
        if not restart and not len(found) and staying.sum() >= _WORTH_SHRINKING * len(old):
            return None
        coordinates = np.concatenate((old[staying], found))
        order = np.argsort(coordinates)
        source = np.concatenate((np.flatnonzero(staying), np.full(len(found), -1)))[order]
        gradient = np.concatenate((self._state.gradient[staying], gradients))[order]
        return coordinates[order], source, gradient

    def _bound(self, squared_excess: float | None = None) -> float:
        """Return the bound `ElasticNet.gap`; squared_excess: default: of the working set."""
        state = self._state
        gradient = state.gradient - self._penalty.slope(state.theta)
        if squared_excess is None:
            squared_excess = self._penalty.squared_excess(gradient)
        return self._penalty.gap(state.theta, gradient, squared_excess)

    def _take_all(self) -> None:
        """Put all weights in the working set: without l1, each is non-zero at the minimum."""
        self._violation, self._gap = 0.0, np.inf
        old: Longs = self._working.coordinates
        if len(old) == self.loss.n_potential:
            if self.loss.is_convex:
                self._gap = self._bound()
            return
        everything = self.loss.all_coordinates()
        theta = np.zeros(len(everything))
        theta[np.searchsorted(everything, old)] = self._state.theta
        self._restrict(everything)
        self._state = self._solver.start(self._working, self._penalty, theta)


class _Unevaluated:
    """A loss that is never evaluated, for creating a state of the right form."""

    def __init__(self, loss: WorkingLoss) -> None:
        self._loss = loss

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loss, name)

    def value_and_grad(self, theta: Floats) -> tuple[float, Floats]:
        """Return placeholders of the same form."""
        return 0.0, np.zeros_like(theta)

    def curvature(self, gradient: Floats) -> Floats:
        """Return placeholders of the same form."""
        return np.ones_like(gradient)


@dataclass(frozen=True)
class Polish:
    """Fine-tune non-zero weights by L-BFGS; all others stay zero (Lavergne 2010, section 5.3.1).

    The l1 penalty selects weights but also shrinks them; polishing only has a small l2 penalty.

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
        state = solver.start(working, penalty, theta)
        for _ in track(range(self.iterations), "Polishing", "iterations", self.iterations):
            if solver.step(working, penalty, state).converged:
                break
        return coordinates, state.theta
