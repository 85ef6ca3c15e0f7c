"""SGD-L1: stochastic gradient descent with a cumulative l1 penalty, as a solver of its own."""

from dataclasses import dataclass

import numpy as np

from ..kernels.sgd import Paid, penalise
from ..loss.examples import SequenceDescent
from ..loss.working import WorkingLoss
from ..penalty import ElasticNet
from ..registry import crf_solvers
from .base import Floats, Longs, SolverState, StepReport, evaluate_start
from .parameter_mixing import mix
from .streaming import Batch, Columns, StreamSolver, Terms, Totals, calibrate


@dataclass
class SgdL1State(SolverState):
    """Where SGD-L1 stands.

    received: [K], the l1 penalty that each weight has received; due: the l1 rate cumulated so far,
    the most that a weight may have received; eta: first step, 0 before it is calibrated; epoch:
    passes done. All penalties that are due have been applied: nothing is left to be shrunk.
    """

    received: Floats
    due: float
    eta: float
    epoch: int


@crf_solvers("spacy_sparsecrf.SGDL1.v1")
@dataclass(kw_only=True, eq=False)
class SGDL1(StreamSolver):
    """Stochastic gradient descent with the cumulative l1 penalty (Tsuruoka et al. 2009).

    After each example, w := w - eta g_i exp(-eta l2 / N), then max(0, w - (u + q)) for w > 0 and
    min(0, w + (u - q)) for w < 0, for the weights that the example has: u is the sum of eta l1 /
    N, q what w has received of it (Lavergne 2010, section 3.3 and equation 8, which has a wrong
    sign). It comes near the minimiser fast, and not to it. Examples with missing gold labels take
    part. Where a corpus is divided, passes over its parts are mixed (see `mixing`).

    eta0: step of the first example; 0 to find one on a sample of the corpus.
    decay: of the step over one pass, 0 < decay <= 1 (Wapiti's .85).
    The other settings: see `BatchSolver` and `StreamSolver`; `inner_iterations` are passes.
    RAISES: SparseCRFError where a setting is out of range.
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

    def start(self, loss: WorkingLoss, penalty: ElasticNet, theta: Floats) -> SgdL1State:
        """Evaluate the first point; see `BatchSolver.start`."""
        value, gradient = evaluate_start(loss, penalty, theta)
        return SgdL1State(theta, gradient, value, np.zeros_like(theta), 0.0, self.eta0, 0)

    def remap(
        self,
        loss: WorkingLoss,
        penalty: ElasticNet,
        state: SgdL1State,
        source: Longs,
        gradient: Floats,
    ) -> SgdL1State:
        """Carry a state over to another working set.

        A new weight counts as having paid all that was due in the direction of its gradient:
        it would have been pushed there and back at each example that has it.
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
        n = len(descent.sequences)
        order = self.shuffled(descent.sequences, state.epoch)
        visits = n
        if state.eta == 0.0:
            state.eta, trials = calibrate(order, descent.loss_after)
            visits += trials
        eta = state.eta * self.decay**state.epoch
        descent.run(order, eta, self.decay ** (1.0 / n))
        state.theta = descent.settle()
        state.received, state.due = descent.received, float(descent.due[0])
        state.epoch += 1
        return self.end_pass(loss, penalty, state, visits / n)

    def parted(self, state: SgdL1State, horizon: int) -> tuple[Columns, Totals]:
        """See `StreamSolver.parted`."""
        columns = {"theta": state.theta, "received": state.received}
        seen = float(state.epoch * horizon)
        return columns, {"seen": seen, "eta": state.eta, "due": state.due, "decayed": 0.0}

    def begin_stream(self, penalty: ElasticNet) -> Totals:
        """Examples seen, step, l1 rate cumulated as in `SgdL1State`, l2 rate cumulated."""
        self.check_streamable()
        return {"seen": 0, "eta": self.eta0, "due": 0.0, "decayed": 0.0}

    def calibrate_stream(
        self, batch: Batch, columns: Columns, totals: Totals, terms: Terms
    ) -> None:
        """Find a first step on a sample, if none is set."""
        if totals["eta"] == 0.0:
            descent = self._descent(batch, columns, totals, terms)
            order = batch.in_order(descent.sequences)
            totals["eta"], _ = calibrate(order, descent.loss_after)

    def _descent(
        self, batch: Batch, columns: Columns, totals: Totals, terms: Terms
    ) -> SequenceDescent:
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
        descent = self._descent(batch, columns, totals, terms)
        order = batch.in_order(descent.sequences)
        eta = totals["eta"] * self.decay ** (totals["seen"] / terms.horizon)
        loss = descent.run(order, eta, self.decay ** (1.0 / terms.horizon))
        columns["theta"], columns["received"] = descent.settle(), descent.received
        totals["seen"] += len(order)
        totals["due"] = float(descent.due[0])
        totals["decayed"] += float(descent.due[1])
        return loss
