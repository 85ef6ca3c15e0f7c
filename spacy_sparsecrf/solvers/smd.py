"""SMD: stochastic meta-descent, which adapts a gain for each weight by second-order information."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kernels.smd import catch_up_smd, step_smd
from ..loss.curved import CurvedMinibatches
from ..loss.working import WorkingLoss
from ..penalty import ElasticNet
from ..registry import crf_solvers
from .base import StepReport, evaluate_pass, evaluate_start, optimality, take
from .streaming import Batch, Columns, StreamSettings, Terms, Totals

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]


@dataclass
class State:
    """Where SMD stands.

    theta, gradient: [K], weights and gradient of loss + l2; value: the objective; gains: [K] > 0;
    v: [K], how theta depends on the logarithm of past gains; epoch: passes done.
    """

    theta: Floats
    gradient: Floats
    value: float
    gains: Floats
    v: Floats
    epoch: int


@crf_solvers("spacy_sparsecrf.SMD.v1")
class SMD(StreamSettings):
    """Stochastic meta-descent (Vishwanathan et al. 2006, equations 17 to 21), l1 = 0.

        eta := eta max(1/2, 1 - mu g v);  theta := theta - eta g;
        v := lambda v - eta (g + lambda H v)

    componentwise, with g and H of a minibatch of b examples of N and its share b / N of l2. All K
    weights change at each minibatch: best where K is not large, as with observed pairs only.
    Examples with missing gold labels take part.

    eta0: first gain of each weight; mu: meta-gain, 0 for constant gains; decay: lambda, at most 1;
    batch: b (all as the paper has them for chunking).
    The other settings: see `BatchSettings` and `StreamSettings`; `inner_iterations` are passes.
    RAISES: SparseCRFError where a setting is out of range.
    """

    state_type = State
    out_of_core = True
    stream_marks = ("steps",)
    supports_l1 = False

    def __init__(
        self,
        *,
        eta0: float = 0.1,
        mu: float = 0.1,
        decay: float = 1.0,
        batch: int = 8,
        tolerance: float = 1e-3,
        window: float = 1e-4,
        inner_iterations: int = 1,
        warm_start_epochs: int = 0,
        seed: int = 0,
        polish_iterations: int = 0,
        polish_l2: float = 1e-5,
        on_batches: bool = False,
        horizon: int = 0,
    ) -> None:
        super().__init__(
            tolerance,
            window,
            inner_iterations,
            warm_start_epochs,
            seed,
            polish_iterations,
            polish_l2,
            on_batches,
            horizon,
        )
        self.eta0 = eta0
        self.mu = mu
        self.decay = decay
        self.batch = batch
        self.require(1e-12, "eta0")
        self.require(0, "mu", "decay")
        self.require(1, "batch")

    def start(self, loss: WorkingLoss, penalty: ElasticNet, theta: Floats) -> State:
        """Evaluate the first point.

        theta: [K]. RAISES: SparseCRFError where the objective is not finite there.
        """
        value, gradient = evaluate_start(loss, penalty, theta)
        gains = np.full(len(theta), self.eta0)
        return State(theta, gradient, value, gains, np.zeros_like(theta), 0)

    def remap(
        self,
        loss: WorkingLoss,
        penalty: ElasticNet,
        state: State,
        source: NDArray[np.int64],
        gradient: Floats,
    ) -> State:
        """Carry a state over to another working set; new weights have the first gain."""
        gains = take(state.gains, source)
        gains[source < 0] = self.eta0
        theta, v = take(state.theta, source), take(state.v, source)
        return State(theta, gradient, state.value, gains, v, state.epoch)

    def step(self, loss: WorkingLoss, penalty: ElasticNet, state: State) -> StepReport:
        """Pass over all examples once, in a random order, and evaluate.

        RAISES: SparseCRFError where steps are so long that weights grow without bounds.
        """
        minibatches = CurvedMinibatches(loss)
        sequences = minibatches.sequences
        order = np.random.default_rng([self.seed, state.epoch]).permutation(sequences)
        state.epoch += 1
        # Of arrays that were handed out, none is written to.
        theta, gains, v = state.theta.copy(), state.gains.copy(), state.v.copy()
        l2 = penalty.l2 / -(-len(order) // self.batch)
        self._run(minibatches, order, l2, theta, gains, v)
        state.theta, state.gains, state.v = theta, gains, v
        state.value, state.gradient = evaluate_pass(loss, penalty, theta, self)
        distance = optimality(penalty, theta, state.gradient)
        return StepReport(
            objective=state.value,
            optimality=distance,
            n_active=int(np.count_nonzero(theta)),
            passes=1.0,
            converged=distance <= self.tolerance,
        )

    def _run(
        self,
        minibatches: CurvedMinibatches,
        order: Longs,
        l2: float,
        theta: Floats,
        gains: Floats,
        v: Floats,
    ) -> float:
        """Visit examples [n], in minibatches, each with a penalty l2, and return their losses."""
        gradient, product = np.zeros_like(theta), np.zeros_like(theta)
        loss = 0.0
        for first in range(0, len(order), self.batch):
            members = order[first : first + self.batch]
            loss += minibatches.add(members, theta, v, gradient, product)
            step_smd(self.mu, self.decay, l2, gradient, product, theta, gains, v)
        return loss

    @property
    def stream_columns(self) -> dict[str, float]:
        """Weights, gains, and v."""
        return {"theta": 0.0, "gains": self.eta0, "v": 0.0}

    def begin_stream(self, penalty: ElasticNet) -> Totals:
        """The number of minibatches."""
        self.check_streamable()
        return {"steps": 0}

    def catch_up(self, columns: Columns, since: Columns, totals: Totals, terms: Terms) -> None:
        """Do the steps of the minibatches since, one by one where the penalty changes weights."""
        l2 = terms.share(self.batch).l2
        if l2 > 0.0 or self.decay < 1.0:
            missed = (totals["steps"] - since["steps"]).astype(np.int64)
            state = columns["theta"], columns["gains"], columns["v"]
            catch_up_smd(missed, self.mu, self.decay, l2, *state)

    def learn(self, batch: Batch, columns: Columns, totals: Totals, terms: Terms) -> float:
        """Visit the examples of a batch once, in minibatches."""
        minibatches = CurvedMinibatches(batch.loss)
        order = batch.in_order(minibatches.sequences)
        totals["steps"] += -(-len(order) // self.batch)
        state = columns["theta"], columns["gains"], columns["v"]
        return self._run(minibatches, order, terms.share(self.batch).l2, *state)

    def stream_weights(self, columns: Columns, totals: Totals) -> Floats:
        """The weights [K]."""
        return columns["theta"]
