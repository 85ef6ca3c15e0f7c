"""AdaGrad: stochastic gradient descent with a step size for each weight, and proximal penalties.

Minimises F(theta) = sum_i l_i(theta) + l1 |theta|_1 + l2 / 2 |theta|^2 over N examples, by

    theta_k := prox_{eta_k b / N (l1 |.| + l2 / 2 |.|^2)}(theta_k - eta_k g_k),
    eta_k = eta0 / (delta + sqrt(sum of g_k^2))                     (Schmidt 2015, section 6)

with g the sum of the gradients of a minibatch of b examples (Duchi et al. 2011). A weight without a
gradient moves by its penalty alone, which is applied lazily. Stops as all solvers do (see `base`).
"""

from dataclasses import dataclass

import numpy as np

from ...registry import crf_solvers
from ..corpus.numbering import Floats
from ..kernels.minibatch import ADAGRAD
from ..loss.examples import MinibatchDescent
from ..loss.protocols import ExampleLoss
from ..penalty import ElasticNet
from .solver import SolverState, StepReport
from .stochastic import StochasticSolver


@dataclass
class AdaGradState(SolverState):
    """The state of AdaGrad.

    squares: [K], sum of the squared gradients of minibatches; eta: step size, 0 before the first
    pass; epoch: passes done.
    """

    squares: Floats
    eta: float = 0.0
    epoch: int = 0


@crf_solvers("spacy_sparsecrf.AdaGrad.v1")
@dataclass(kw_only=True, eq=False)
class AdaGrad(StochasticSolver[ExampleLoss]):
    """AdaGrad on minibatches, by proximal steps; see the module for the update.

    Examples with missing gold labels are used.

    eta0: step size; 0 to calibrate it on a sample of the corpus.
    delta: > 0, added to the root.
    batch: b.
    """

    state_type = AdaGradState

    eta0: float = 0.0
    delta: float = 1.0
    batch: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(0, "eta0")
        self.require(1e-12, "delta")
        self.require(1, "batch")

    @property
    def columns(self) -> dict[str, float]:
        """Weights and sums of squared gradients; new weights have the full step size."""
        return {"theta": 0.0, "squares": 0.0}

    def step(self, loss: ExampleLoss, penalty: ElasticNet, state: AdaGradState) -> StepReport:
        """Pass over all examples once, in a random order, and evaluate; see `BatchSolver.step`."""
        # States share arrays, so the pass writes to copies.
        state.theta, state.squares = state.theta.copy(), state.squares.copy()
        descent = MinibatchDescent(
            loss,
            penalty,
            batch=self.batch,
            rule=ADAGRAD,
            theta=state.theta,
            extra=state.squares,
            delta=self.delta,
        )
        order, passes = self.begin_pass(descent, state, self.eta0)
        state.epoch += 1
        descent.run(order, np.full(len(descent.visited_before(order)), state.eta))
        return self.end_pass(loss, penalty, state, passes)
