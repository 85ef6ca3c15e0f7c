"""SGD-L1: stochastic gradient descent with the cumulative l1 penalty.

Minimises F(w) = sum_i l_i(w) + l1 |w|_1 + l2 / 2 |w|^2 over N examples (Lavergne 2010, equation 6).
After example i, for its weights only,

    w := exp(-eta l2 / N) (w - eta g_i)                                  (Lavergne 2010, equation 7)
    w := max(0, w - (u + q)) if w > 0,  min(0, w + (u - q)) if w < 0                    (equation 8)

with u the sum of eta l1 / N so far, and q the part of it that w has received (Tsuruoka et al. 2009,
section 3.2). Equation 7 is printed with the sign of an ascent, and 8 with a wrong sign. Stops as
all solvers do (see `base`); it approaches the minimiser fast, but does not reach it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels.sgd import Paid, penalise
from ..loss.examples import SequenceDescent
from ..loss.working import WorkingLoss
from ..penalty import ElasticNet
from ..registry import crf_solvers
from .base import Floats, Longs, SolverState, StepReport
from .parameter_mixing import mix
from .streaming import Batch, Columns, StreamSolver, Terms, Totals


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
class SGDL1(StreamSolver):
    """Stochastic gradient descent with the cumulative l1 penalty (Tsuruoka et al. 2009).

    See the module for the update. Examples with missing gold labels are used. On a partitioned
    corpus, passes over its shards are mixed (see `parameter_mixing`).

    eta0: step size of the first example; 0 to calibrate it on a sample of the corpus.
    decay: factor of the step size over one pass, 0 < decay <= 1 (Wapiti's .85).
    """

    state_type = SgdL1State
    stream_marks = ("decayed",)
    divisible = True

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
        self, loss: WorkingLoss, penalty: ElasticNet, state: Any, source: Longs, gradient: Floats
    ) -> SgdL1State:
        """Move a state to another working set.

        A new weight counts as having received the whole penalty due, in the direction of its
        gradient: each of its examples would have moved it away from zero and back.
        """
        carried: SgdL1State = super().remap(loss, penalty, state, source, gradient)
        new = source < 0
        carried.received[new] = state.due * np.sign(gradient[new])
        return carried

    def step(self, loss: WorkingLoss, penalty: ElasticNet, state: SgdL1State) -> StepReport:
        """Pass over all examples once, in a random order, and evaluate; see `BatchSolver.step`."""
        if loss.is_divided:
            columns, totals, _ = mix(self, loss, penalty, state)
            state.theta, state.received = columns["theta"], columns["received"]
            state.due, state.eta = totals["due"], totals["eta"]
            state.epoch += 1
            return self.end_pass(loss, penalty, state)
        descent = SequenceDescent(loss, penalty, missing=True)
        descent.resume(state.theta, state.received, state.due)
        order, passes = self.begin_pass(descent, state)
        eta = state.eta * self.decay**state.epoch
        descent.run(order, eta, self.decay ** (1.0 / len(order)))
        state.theta = descent.settle()
        state.received, state.due = descent.received, float(descent.due[0])
        state.epoch += 1
        return self.end_pass(loss, penalty, state, passes)

    def parted(self, state: SgdL1State, horizon: int) -> tuple[Columns, Totals]:
        """See `StreamSolver.parted`."""
        columns = {"theta": state.theta, "received": state.received}
        seen, eta = float(state.epoch * horizon), state.eta or self.eta0
        return columns, {"seen": seen, "eta": eta, "due": state.due, "decayed": 0.0}

    def begin_stream(self, penalty: ElasticNet) -> Totals:
        """Return the examples seen, the step size, and the cumulated l1 and l2 rates."""
        return {"seen": 0, "eta": self.eta0, "due": 0.0, "decayed": 0.0}

    def descent(
        self, batch: Batch, columns: Columns, totals: Totals, terms: Terms
    ) -> SequenceDescent:
        """Return the descent over the examples of a batch; see `StreamSolver.descent`."""
        descent = SequenceDescent(batch.loss, terms.penalty, True, terms.horizon)
        descent.resume(columns["theta"], columns["received"], totals["due"])
        return descent

    def catch_up(self, columns: Columns, since: Columns, totals: Totals, terms: Terms) -> None:
        """Apply the penalties that are due: the l2 decay, then the l1 penalty."""
        theta, received = columns["theta"], columns["received"]
        due = np.array([totals["due"], totals["decayed"]])
        penalise(np.arange(len(theta) + 1), Paid(theta, received, since["decayed"], due))

    def learn(self, batch: Batch, columns: Columns, totals: Totals, terms: Terms) -> float:
        """Visit the examples of a batch once; the step is eta0 decay^(examples seen / N)."""
        descent = self.descent(batch, columns, totals, terms)
        order = batch.in_order(descent.sequences)
        eta = totals["eta"] * self.decay ** (totals["seen"] / terms.horizon)
        loss = descent.run(order, eta, self.decay ** (1.0 / terms.horizon))
        columns["theta"], columns["received"] = descent.settle(), descent.received
        totals["seen"] += len(order)
        totals["due"] = float(descent.due[0])
        totals["decayed"] += float(descent.due[1])
        return loss
