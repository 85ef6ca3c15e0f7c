"""A part of a training run: one problem, from the warm start to the certificate."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .loss.chain import ChainLoss
from .loss.parts import Part
from .penalty import ElasticNet
from .solvers.base import BatchSolver, StepReport
from .stages import polish, warm_start
from .working_set import WorkingSet

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]


class Run:
    """Minimises the loss of one part, an outer iteration a step.

    part: tells how its weights are named in the whole model; loss: of the part's corpus; penalty;
    solver.
    """

    def __init__(
        self, part: Part, loss: ChainLoss, penalty: ElasticNet, solver: BatchSolver
    ) -> None:
        self._part = part
        self._loss = loss
        self._penalty = penalty
        self._solver = solver
        self._working_set: WorkingSet | None = None
        self._optimality = np.inf
        self.n_sequences = part.corpus.n_sequences
        self.n_potential = loss.n_potential

    @property
    def converged(self) -> bool:
        """Whether further steps change nothing."""
        return self._working_set is not None and self._working_set.converged

    @property
    def objective(self) -> float:
        """Loss plus penalty at the current weights; infinite before the first step."""
        return np.inf if self._working_set is None else self._working_set.objective

    @property
    def weights(self) -> tuple[Longs, Floats]:
        """Coordinates in the whole model [n] int64 and values [n] float64 of non-zero weights."""
        if self._working_set is None:
            return np.empty(0, np.int64), np.empty(0)
        coordinates, theta = self._working_set.weights
        return self._part.outer(coordinates), theta

    def polished(self) -> tuple[Longs, Floats]:
        """`weights`, polished where the solver says so; the run goes on from what they were."""
        if self._working_set is None:
            return self.weights
        solver = self._solver
        settings = solver.polish_iterations, solver.polish_l2
        coordinates, theta = polish(self._loss, self._working_set.weights, *settings)
        return self._part.outer(coordinates), theta

    @property
    def reached(self) -> StepReport:
        """What the last step has reached, at no cost."""
        n_active = len(self.weights[0])
        return StepReport(self.objective, self._optimality, n_active, 0.0, self.converged)

    def begin(self, coordinates: Longs, theta: Floats, penalty: ElasticNet) -> None:
        """Take first weights, and the penalty; weights of other parts are left out.

        coordinates: [n] int64, distinct, in the whole model; theta: [n] float64.
        """
        self._penalty = penalty
        inner = self._part.inner(coordinates)
        order = np.argsort(inner)
        order = order[inner[order] >= 0]
        self._working_set = self._start((inner[order], theta[order]))

    def largest_gradient(self) -> float:
        """See `ChainLoss.largest_gradient`."""
        return self._loss.largest_gradient()

    def change(self, penalty: ElasticNet) -> None:
        """Go on from the weights so far with another l1 > 0; before the first step only take it."""
        self._penalty = penalty
        if self._working_set is not None:
            self._working_set.change(penalty)

    def step(self) -> StepReport:
        """Do one outer iteration; the first has the warm start in it."""
        n_epochs = 0
        if self._working_set is None:
            sparse = self._penalty.l1 > 0.0
            n_epochs = self._solver.warm_start_epochs if sparse else 0
            first = warm_start(self._loss, self._penalty, n_epochs, self._solver.seed)
            if self._solver.stochastic and n_epochs == 0 and sparse:
                coordinates = self._loss.descent_coordinates()
                first = coordinates, np.zeros(len(coordinates))
            self._working_set = self._start(first)
        report = self._working_set.step()
        self._optimality = report.optimality
        return replace(report, passes=report.passes + n_epochs)

    def _start(self, initial: tuple[Longs, Floats]) -> WorkingSet:
        return WorkingSet(self._loss, self._penalty, self._solver, initial)

    def values(self) -> dict[str, Any]:
        """Arrays and scalars by name, from which `restore` goes on; none where it has not begun."""
        if self._working_set is None:
            return {}
        return {**self._working_set.values(), "optimality": float(self._optimality)}

    def restore(self, values: dict[str, Any]) -> None:
        """Go on where another run's `values` were taken."""
        parts = self._loss, self._penalty, self._solver
        self._working_set = WorkingSet.restore(*parts, values)
        self._optimality = values["optimality"]
