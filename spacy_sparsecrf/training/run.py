"""A part of a training run: one problem, from the warm start to the certificate and polishing."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..loss.chain import ChainLoss
from ..loss.parts import Part
from ..loss.stochastic import SequenceDescent
from ..penalty import ElasticNet
from ..progress import followed
from ..solvers.base import BatchSolver, StepReport
from ..solvers.owlqn import OWLQN
from ..solvers.sgd import calibrate
from .working_set import WorkingSet

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

# Decay of the step over one epoch: the value that Wapiti has.
EPOCH_DECAY = 0.85


class Run:
    """Minimises the loss of one part, an outer iteration a step.

    part: tells how its weights are named in the whole model; loss: of the part's corpus; penalty;
    solver.
    """

    def __init__(
        self, part: Part, loss: ChainLoss, penalty: ElasticNet, solver: BatchSolver
    ) -> None:
        self._part = part
        self.loss = loss
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
        return self._of_whole(self._working_set.weights)

    def polished(self) -> tuple[Longs, Floats]:
        """`weights`, polished where the solver says so; the run goes on from what they were."""
        if self._working_set is None:
            return self.weights
        solver = self._solver
        settings = solver.polish_iterations, ElasticNet(0.0, solver.polish_l2)
        return self._of_whole(polish(self.loss, self._working_set.weights, *settings))

    def _of_whole(self, weights: tuple[Longs, Floats]) -> tuple[Longs, Floats]:
        coordinates, theta = weights
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
        kept = inner >= 0
        order = np.argsort(inner[kept])
        self._working_set = self._start((inner[kept][order], theta[kept][order]))

    def largest_gradient(self) -> float:
        """See `ChainLoss.largest_gradient`."""
        return self.loss.largest_gradient()

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
            first = warm_start(self.loss, self._penalty, n_epochs, self._solver.seed)
            if self._solver.stochastic and n_epochs == 0 and sparse:
                coordinates = self.loss.descent_coordinates()
                first = coordinates, np.zeros(len(coordinates))
            self._working_set = self._start(first)
        report = self._working_set.step()
        self._optimality = report.optimality
        return replace(report, passes=report.passes + n_epochs)

    def _start(self, initial: tuple[Longs, Floats]) -> WorkingSet:
        return WorkingSet(self.loss, self._penalty, self._solver, initial)

    def values(self) -> dict[str, Any]:
        """Arrays and scalars by name, from which `restore` goes on; none where it has not begun."""
        if self._working_set is None:
            return {}
        return {**self._working_set.values(), "optimality": float(self._optimality)}

    def restore(self, values: dict[str, Any]) -> None:
        """Go on where another run's `values` were taken."""
        problem = self.loss, self._penalty, self._solver
        self._working_set = WorkingSet(*problem, values)
        self._optimality = values["optimality"]


def warm_start(
    loss: ChainLoss, penalty: ElasticNet, n_epochs: int, seed: int
) -> tuple[Longs, Floats]:
    """Learn first weights by SGD-L1 (Tsuruoka 2009), mostly of pairs of test and label that occur.

    Sequences with missing gold labels are left out. n_epochs: passes over the corpus, none for 0;
    seed: of the order of sequences.
    RETURNS: coordinates [n] int64, ascending, and values [n] float64 of the non-zero weights.
    """
    if n_epochs == 0:
        return np.empty(0, np.int64), np.empty(0)
    rng = np.random.default_rng(seed)
    working = loss.restrict(loss.descent_coordinates(), stochastic=True)
    descent = SequenceDescent(working, penalty)
    sequences = descent.sequences
    if len(sequences) > 0:
        eta, _ = calibrate(rng.permutation(sequences), descent.loss_after)
        decay = EPOCH_DECAY ** (1.0 / len(sequences))
        for epoch in followed(range(n_epochs), "Warm start", "passes", n_epochs):
            descent.run(rng.permutation(sequences), eta * EPOCH_DECAY**epoch, decay)
    theta = descent.settle()
    active = theta != 0.0
    return working.coordinates[active], theta[active]


def polish(
    loss: ChainLoss, weights: tuple[Longs, Floats], n_iterations: int, penalty: ElasticNet
) -> tuple[Longs, Floats]:
    """Fine-tune weights by L-BFGS, all others staying zero (Lavergne 2010, section 5.3.1).

    l1 has chosen the weights but also shrunk them; here they only have a small l2 penalty.

    weights: coordinates [n] int64, ascending, and values [n] float64 of the non-zero weights;
    n_iterations: a handful: without l1, more would fit the corpus too closely; penalty: without l1.
    RETURNS: the same coordinates, and the new values. The workspace's marginals are overwritten.
    """
    coordinates, theta = weights
    if n_iterations == 0 or len(coordinates) == 0:
        return weights
    working, solver = loss.restrict(coordinates), OWLQN()
    state = solver.start(working, penalty, theta)
    for _ in followed(range(n_iterations), "Polishing", "iterations", n_iterations):
        if solver.step(working, penalty, state).converged:
            break
    return coordinates, state.theta
