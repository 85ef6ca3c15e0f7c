"""What a solver is: the protocol, what it sees of a problem, what it reports."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..penalty import ElasticNet

Floats = NDArray[np.float64]


class Loss(Protocol):
    """A smooth convex function of K weights, as a gradient solver sees it."""

    def value_and_grad(self, theta: Floats) -> tuple[float, Floats]:
        """The value, and the gradient [K] float64, at theta [K] float64."""
        ...


@dataclass(frozen=True)
class StepReport:
    """What one step reached.

    objective: loss plus penalty. optimality: largest distance of a coordinate of -gradient to
    the penalty's subdifferential; 0 at a minimiser. n_active: non-zero weights. passes:
    evaluations of a sequence divided by the number of sequences, in this step (Schmidt 2015).
    converged: whether further steps are pointless.
    """

    objective: float
    optimality: float
    n_active: int
    passes: float
    converged: bool


class BatchSolver(Protocol):
    """A solver that uses the gradient over the whole corpus.

    Its settings are plain scalars; its state is arrays and scalars only, so that it can be saved
    and resumed bit for bit. `streaming` tells whether it can learn from the batches of spaCy's
    loop alone; a batch solver cannot.
    """

    streaming: bool
    tolerance: float
    window: float
    inner_iterations: int
    warm_start_epochs: int
    seed: int

    def start(self, loss: Loss, penalty: ElasticNet, theta: Floats) -> Any:
        """Evaluate the first point theta [K] and return the state there."""
        ...

    def step(self, loss: Loss, penalty: ElasticNet, state: Any) -> StepReport:
        """Do one iteration, in place."""
        ...

    def remap(self, state: Any, source: NDArray[np.int64], gradient: Floats) -> Any:
        """Carry a state over to another working set at the same point.

        source: [K'] int64, for each new coordinate its place in the old state, or -1 if it was
        not there (its weight is then zero); gradient: [K'] of loss + l2 at the point.
        """
        ...
