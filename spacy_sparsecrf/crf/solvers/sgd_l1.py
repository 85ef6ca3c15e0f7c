"""SGD-L1: stochastic gradient descent with the cumulative l1 penalty.

Minimises F(w) = sum_i l_i(w) + l1 |w|_1 + l2 / 2 |w|^2 over N examples (Lavergne 2010, equation 6).
After example i, for the weights of its features only,

    w := exp(-l2 r / N) (w - eta g_i)                                    (Lavergne 2010, equation 7)
    w := max(0, w - (u + q)) if w > 0,  min(0, w + (u - q)) if w < 0                    (equation 8)

with r the sum of eta since the weight's last step, this one included, so that the gradient is at w
without the l2 shrinkage that it has missed; u the sum of eta l1 / N so far, and q the part of it
that w has received (Tsuruoka et al. 2009, section 3.2). Equation 7 is printed with the sign of an
ascent, and 8 with a wrong sign. eta is smaller for a sequence of T > 2000 tokens, times 2000 / T.
Stops as all solvers do (see `base`); it approaches the minimiser fast, but does not reach it.
"""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ...registry import crf_solvers
from ..corpus.numbering import Floats, Longs
from ..kernels.minibatch import SGD_L1
from ..loss.examples import MinibatchDescent
from ..loss.protocols import ExampleLoss
from ..penalty import ElasticNet
from .solver import SolverState, StepReport
from .step_size import decayed
from .stochastic import StochasticSolver


@dataclass
class SgdL1State(SolverState):
    """The state of SGD-L1, with all penalties that are due applied.

    received: [K], the l1 penalty that each weight has received; due: the cumulated l1 rate, the
    maximum that a weight may have received; eta: first step size, 0 before the first pass; epoch:
    passes done.
    """

    received: Floats
    due: float = 0.0
    eta: float = 0.0
    epoch: int = 0


@crf_solvers("spacy_sparsecrf.SGDL1.v1")
@dataclass(kw_only=True, eq=False)
class SGDL1(StochasticSolver[ExampleLoss]):
    """Stochastic gradient descent with the cumulative l1 penalty (Tsuruoka et al. 2009).

    See the module for the update. Examples with missing gold labels are used.

    eta0: step size of the first example; 0 to calibrate it on a sample of the corpus.
    decay: factor of the step size over one pass, 0 < decay <= 1 (Wapiti's .85).
    """

    state_type = SgdL1State

    eta0: float = 0.0
    decay: float = 0.85

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(0, "eta0", "decay")

    @property
    def columns(self) -> dict[str, float]:
        """Weights, and the l1 penalty that each has received."""
        return {"theta": 0.0, "received": 0.0}

    def remap(
        self, loss: ExampleLoss, penalty: ElasticNet, state: Any, source: Longs, gradient: Floats
    ) -> SgdL1State:
        """Move a state to another working set.

        A new weight counts as having received the whole penalty due, in the direction of its
        gradient: each of its examples would have moved it away from zero and back.
        """
        moved = super().remap(loss, penalty, state, source=source, gradient=gradient)
        carried = cast("SgdL1State", moved)
        new = source < 0
        carried.received[new] = state.due * np.sign(gradient[new])
        return carried

    def step(self, loss: ExampleLoss, penalty: ElasticNet, state: SgdL1State) -> StepReport:
        """Pass over all examples once, in a random order, and evaluate; see `BatchSolver.step`."""
        # States share arrays, so the pass writes to copies.
        state.theta, state.received = state.theta.copy(), state.received.copy()
        descent = MinibatchDescent(
            loss,
            penalty,
            batch=1,
            rule=SGD_L1,
            theta=state.theta,
            extra=state.received,
            due=state.due,
        )
        order, passes = self.begin_pass(descent, state, self.eta0)
        epochs = state.epoch + np.arange(len(order)) / len(order)
        descent.run(order, decayed(state.eta, self.decay, epochs))
        state.due = descent.due
        state.epoch += 1
        return self.end_pass(loss, penalty, state, passes)
