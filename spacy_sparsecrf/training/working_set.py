"""Working set: a batch solver sees only the weights that are, or are about to be, non-zero.

At the minimum of an l1 problem nearly all weights are zero. A zero weight stays zero while its
loss gradient is at most l1 in magnitude; *screening* computes that gradient for all potential
weights, and the worst violators enter. When none violates, the minimiser on the working set is
the minimiser of the full problem, with the certificate that StepReport.optimality reports.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..loss.chain import ChainLoss
from ..penalty import ElasticNet
from ..progress import task
from ..solvers.base import BatchSolver, StepReport, fields_of

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

# How many violators may enter at once, at the least, and for each weight there already.
_MIN_GROWTH = 20_000
_GROWTH = 0.5
# A zero weight leaves when its gradient is this far below l1: nearer ones would soon return.
_SHRINK = 0.9
# Larger working sets than this share of themselves are worth the cost of moving.
_WORTH_SHRINKING = 0.7
# Outer iterations within the objective window that end a run: new weights need one to act.
_MAX_IDLE = 2


class WorkingSet:
    """Runs a batch solver on a growing and shrinking set of coordinates.

    loss: the full problem; penalty; solver; initial: ([n] int64 ascending coordinates, [n]
    float64 weights) to start from, or the `values` of another to go on from.
    """

    def __init__(
        self,
        loss: ChainLoss,
        penalty: ElasticNet,
        solver: BatchSolver,
        initial: tuple[Longs, Floats] | dict[str, Any],
    ) -> None:
        self._loss = loss
        self._penalty = penalty
        self._solver = solver
        self._violation = np.inf
        self._previous = np.inf
        self._n_idle = 0
        self.converged = False
        self._state: Any
        if isinstance(initial, dict):
            self._go_on(initial)
            return
        coordinates, theta = initial
        self._restrict(coordinates)
        self._state = solver.start(self._working, self._penalty, theta)
        self._regrow()

    def values(self) -> dict[str, Any]:
        """Arrays and scalars by name, from which another goes on."""
        own = {
            "coordinates": self._working.coordinates,
            "violation": self._violation,
            "previous": self._previous,
            "n_idle": self._n_idle,
            "converged": self.converged,
        }
        return own | {f"state.{name}": value for name, value in fields_of(self._state).items()}

    def _go_on(self, values: dict[str, Any]) -> None:
        """Be as another was when its `values` were taken."""
        self._restrict(values["coordinates"])
        self._violation, self._previous = values["violation"], values["previous"]
        self._n_idle, self.converged = values["n_idle"], values["converged"]
        prefix = "state."
        state = {k.removeprefix(prefix): v for k, v in values.items() if k.startswith(prefix)}
        self._state = self._solver.state_type(**state)

    def _restrict(self, coordinates: Longs) -> None:
        """Let these weights [K], ascending, work: take their loss."""
        self._working = self._loss.restrict(coordinates, self._solver.stochastic)

    @property
    def weights(self) -> tuple[Longs, Floats]:
        """Coordinates [n] int64, ascending, and values [n] float64 of the non-zero weights."""
        theta: Floats = self._state.theta
        active = theta != 0.0
        return self._working.coordinates[active], theta[active]

    @property
    def objective(self) -> float:
        """Loss plus penalty at the current weights."""
        return float(self._state.value)

    def step(self) -> StepReport:
        """Do one outer iteration: `inner_iterations` of the solver, then screen and regrow."""
        n_iterations, passes = self._solver.inner_iterations, 0.0
        with task("Minimising", "iterations", n_iterations) as shown:
            for _ in shown.over(range(n_iterations)):
                report = self._solver.step(self._working, self._penalty, self._state)
                shown.detail = f"objective {report.objective:.6g}"
                passes += report.passes
                if report.converged:
                    break
        self._regrow()
        optimality = max(report.optimality, self._violation)
        decrease = self._previous - report.objective
        self._previous = report.objective
        idle = decrease <= self._solver.window * abs(report.objective)
        self._n_idle = self._n_idle + 1 if idle else 0
        self.converged = optimality <= self._solver.tolerance or self._n_idle == _MAX_IDLE
        return StepReport(
            objective=report.objective,
            optimality=optimality,
            n_active=report.n_active,
            passes=passes,
            converged=self.converged,
        )

    def change(self, penalty: ElasticNet) -> None:
        """Go on from the weights so far with another l1 > 0, of which all else is forgotten.

        A weight enters where the sequential strong rule does not discard it (Tibshirani et al.
        2012), |gradient| >= 2 l1 - the last l1, unless its gradient is so far below l1 that it
        would leave again. The next screenings find out where the rule erred.
        penalty: with the same l2.
        """
        state, last = self._state, self._penalty
        state.value += penalty.value(state.theta) - last.value(state.theta)
        self._penalty = penalty
        self._previous, self._n_idle, self.converged = np.inf, 0, False
        kept = max(2.0 * penalty.l1 - last.l1, _SHRINK * penalty.l1)
        self._regrow(min(kept, penalty.l1), anew=True)

    def _regrow(self, threshold: float | None = None, anew: bool = False) -> None:
        """Let violators enter and idle weights leave.

        threshold: of the gradients that let a weight enter, at most l1, which is the default;
        anew: whether the solver goes on from its weights in any case.
        """
        if self._penalty.l1 == 0.0:
            self._take_all()
            return
        old: Longs = self._working.coordinates
        limit = len(old) + max(_MIN_GROWTH, int(_GROWTH * len(old)))
        threshold = self._penalty.l1 if threshold is None else threshold
        with task("Screening"):
            found, gradients = self._loss.screen(self._working, self._state.theta, threshold, limit)
        new = ~np.isin(found, old, assume_unique=True)
        worst = np.abs(gradients[new]).max(initial=self._penalty.l1)
        self._violation = float(worst) - self._penalty.l1
        staying = (self._state.theta != 0.0) | (
            np.abs(self._state.gradient) > _SHRINK * self._penalty.l1
        )
        if not anew and not new.any() and staying.sum() >= _WORTH_SHRINKING * len(old):
            return
        coordinates = np.concatenate((old[staying], found[new]))
        order = np.argsort(coordinates)
        source = np.concatenate((np.flatnonzero(staying), np.full(new.sum(), -1)))[order]
        gradient = np.concatenate((self._state.gradient[staying], gradients[new]))[order]
        self._restrict(coordinates[order])
        self._state = self._solver.remap(
            self._working, self._penalty, self._state, source, gradient
        )

    def _take_all(self) -> None:
        """Without l1 every weight is non-zero at the minimum: all of them work."""
        self._violation = 0.0
        old: Longs = self._working.coordinates
        if len(old) == self._loss.n_potential:
            return
        everything = self._loss.all_coordinates()
        theta = np.zeros(len(everything))
        theta[np.searchsorted(everything, old)] = self._state.theta
        self._restrict(everything)
        self._state = self._solver.start(self._working, self._penalty, theta)
