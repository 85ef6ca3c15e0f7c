"""SMD: stochastic meta-descent, which adapts a gain for each weight by second-order information.

Minimises F(theta) = sum_i l_i(theta) + l2 / 2 |theta|^2 over N examples (Vishwanathan et al. 2006),
for each minibatch of b examples (equations 16 to 18) by

    eta   := eta max(1/2, 1 - mu g v)                              (equation 20)
    theta := theta - eta g                                         (equation 19)
    v     := lambda v - eta (g + lambda H v)                       (equation 21)

componentwise, with gains eta, and g and H v of the minibatch and its share b / N of l2. Gains are
adapted by the current g and v, before the step. Stops as all solvers do (see `base`). Because the
gains do not vanish, SMD approaches the minimiser but does not reach it.
"""

from dataclasses import dataclass

import numpy as np

from ...registry import crf_solvers
from ..corpus.numbering import Floats
from ..kernels.minibatch import Gained, Meta, step_smd
from ..loss.protocols import ExampleLoss
from ..penalty import ElasticNet
from .solver import SolverState, StepReport, requirements
from .stochastic import StochasticSolver


@dataclass
class SmdState(SolverState):
    """The state of SMD.

    gains: [K] > 0; v: [K], how theta depends on the logarithm of past gains; epoch: passes done.
    """

    gains: Floats
    v: Floats
    epoch: int = 0


@crf_solvers("spacy_sparsecrf.SMD.v1")
@dataclass(kw_only=True, eq=False)
class SMD(StochasticSolver[ExampleLoss]):
    """Stochastic meta-descent (Vishwanathan et al. 2006), l1 = 0; see the module for the update.

    Each minibatch changes all K weights: best if K is not large, as with observed pairs only.
    Examples with missing gold labels are used.

    eta0: first gain of each weight; mu: meta-gain, 0 for constant gains; decay: lambda, at most 1;
    batch: b (defaults: the paper's, for chunking).
    """

    state_type = SmdState
    requires = StochasticSolver.requires | requirements("no l1")

    eta0: float = 0.1
    mu: float = 0.1
    decay: float = 1.0
    batch: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(1e-12, "eta0")
        self.require(0, "mu", "decay")
        self.require(1, "batch")

    @property
    def columns(self) -> dict[str, float]:
        """Weights, gains, and v; new weights have the first gain."""
        return {"theta": 0.0, "gains": self.eta0, "v": 0.0}

    def step(self, loss: ExampleLoss, penalty: ElasticNet, state: SmdState) -> StepReport:
        """Pass over all examples once, in a random order, and evaluate; see `BatchSolver.step`."""
        order = self.shuffled(loss.sequences, state.epoch)
        state.epoch += 1
        # States share arrays, so the pass writes to copies.
        state.theta, state.gains, state.v = state.theta.copy(), state.gains.copy(), state.v.copy()
        l2 = penalty.l2 / -(-len(order) // self.batch)
        meta, weights = Meta(self.mu, self.decay, l2), Gained(state.theta, state.gains, state.v)
        gradient, product = np.zeros_like(state.theta), np.zeros_like(state.theta)
        for begin in range(0, len(order), self.batch):
            members = order[begin : begin + self.batch]
            loss.add_product(
                members, state.theta, direction=state.v, gradient=gradient, product=product
            )
            step_smd(meta, gradient, product, weights)
        return self.end_pass(loss, penalty, state)
