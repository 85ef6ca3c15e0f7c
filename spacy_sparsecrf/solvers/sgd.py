"""SGD: stochastic gradient descent for l1 = 0, with schedules of its step."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import minibatch
from ..loss.examples import Minibatches
from ..loss.working import WorkingLoss
from ..penalty import ElasticNet
from ..registry import crf_solvers
from .base import Floats, Longs, SolverState, StepReport, evaluate_start, requirements
from .streaming import Batch, Columns, StreamSolver, Terms, Totals, calibrate

# exp of so much costs one digit.
_MAX_SHRINKAGE = 3.0

SCHEDULES = ("constant", "annealed", "exponential", "pegasos")


@dataclass
class SgdState(SolverState):
    """Where SGD stands.

    theta, gradient: [K], the weights that it reports, iterates or their mean, and the gradient of
    loss + l2 there; value: the objective there; iterate: [K], the last iterate; n_averaged: how
    many iterates theta is the mean of, 0 = it is the last; eta: first step, 0 before it is
    calibrated; epoch: passes done.
    """

    iterate: Floats
    n_averaged: int
    eta: float
    epoch: int


@crf_solvers("spacy_sparsecrf.SGD.v1")
@dataclass(kw_only=True, eq=False)
class SGD(StreamSolver):
    """Stochastic gradient descent on minibatches of b examples of N, l1 = 0.

        theta := (theta - eta_k sum_{i in minibatch} g_i) / (1 + eta_k l2 b / N)

    where k examples have been visited; l2 acts by its proximal map, which is stable for any step.
    Steps: "constant" eta0; "annealed" eta0 / (1 + k / N), SGD(1/k) of Tsuboi 2011; "exponential"
    eta0 decay^(k / N), their SGD(alpha^k); "pegasos" eta0 / (lambda t) on the mean loss, lambda =
    l2 / N, t = 1 + k / b (Schmidt 2015, section 6), which is eta0 N / (l2 (b + k)) here. Examples
    with missing gold labels take part. Where l2 is 0, weights may grow without a bound.

    schedule: one of these. eta0: 0 to find one on a sample of the corpus; for "pegasos", 1.
    decay: of the exponential schedule over one pass. batch: b. average_from: report the mean of
    the iterates of passes average_from, average_from + 1, ... (1 is Schmidt's ASG), which are
    counted from 1; 0 for none.
    The other settings: see `BatchSolver` and `StreamSolver`; `inner_iterations` are passes.
    RAISES: SparseCRFError where a setting is out of range.
    """

    state_type = SgdState
    stream_marks = ("shrinkage", "averaged")
    requires = StreamSolver.requires | requirements("no l1")

    schedule: str = "annealed"
    eta0: float = 0.0
    decay: float = 0.85
    batch: int = 1
    average_from: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.schedule == "pegasos":
            self.requires = self.requires | requirements("l2")
        self.require_one_of("schedule", SCHEDULES)
        self.require(0, "eta0", "decay", "average_from")
        self.require(1, "batch")

    @property
    def columns(self) -> dict[str, float]:
        """Weights that are reported, and the last iterate."""
        return {"theta": 0.0, "iterate": 0.0}

    def start(self, loss: WorkingLoss, penalty: ElasticNet, theta: Floats) -> SgdState:
        """Evaluate the first point; see `BatchSolver.start`."""
        value, gradient = evaluate_start(loss, penalty, theta)
        return SgdState(theta, gradient, value, theta.copy(), 0, self._first_eta, 0)

    def step(self, loss: WorkingLoss, penalty: ElasticNet, state: SgdState) -> StepReport:
        """Pass over all examples once, in a random order, and evaluate; see `BatchSolver.step`."""
        minibatches = Minibatches(loss, penalty, self.batch)
        n = len(minibatches.sequences)
        order = self.shuffled(minibatches.sequences, state.epoch)
        visits = n
        if state.eta == 0.0:
            state.eta, trials = self._calibrate(minibatches, order, state.iterate)
            visits += trials
        visited = state.epoch * n + self.batch * np.arange(minibatches.n_steps(order))
        etas = self._etas(state.eta, visited, n, penalty)
        state.epoch += 1
        averaging = 0 < self.average_from <= state.epoch
        # Of arrays that were handed out, none is written to.
        state.iterate, total = state.iterate.copy(), np.zeros_like(state.iterate)
        minibatches.run(order, minibatch.SGD, etas, state.iterate, total, averaging)
        if averaging:
            before = state.n_averaged
            state.n_averaged += len(etas)
            state.theta = (before * state.theta + total) / state.n_averaged
        else:
            state.theta = state.iterate
        return self.end_pass(loss, penalty, state, visits / n)

    @property
    def _first_eta(self) -> float:
        """The first step, 0 if it is to be found."""
        return 1.0 if self.schedule == "pegasos" and self.eta0 == 0.0 else self.eta0

    def _etas(self, eta: float, visited: NDArray[Any], n: int, penalty: ElasticNet) -> Floats:
        """The steps [m] after so many visits of examples [m], of which a pass has n."""
        if self.schedule == "constant":
            factors = np.ones(len(visited))
        elif self.schedule == "annealed":
            factors = 1.0 / (1.0 + visited / n)
        elif self.schedule == "exponential":
            factors = self.decay ** (visited / n)
        else:
            factors = n / (penalty.l2 * (self.batch + visited))
        etas: Floats = eta * factors
        return etas

    def _calibrate(
        self, minibatches: Minibatches, order: Longs, start: Floats
    ) -> tuple[float, int]:
        """Find a first step, from weights [K]."""

        def loss_after(sample: Longs, eta: float) -> float:
            theta, unused = start.copy(), np.zeros_like(start)
            etas = np.full(minibatches.n_steps(sample), eta)
            minibatches.run(sample, minibatch.SGD, etas, theta, unused)
            return minibatches.run(sample, minibatch.SGD, 0.0 * etas, theta, unused)

        return calibrate(order, loss_after)

    @property
    def stream_columns(self) -> dict[str, float]:
        """The last iterate, and the sum of those that are averaged."""
        return {"theta": 0.0, "total": 0.0} if self.average_from else {"theta": 0.0}

    def begin_stream(self, penalty: ElasticNet) -> Totals:
        """Examples seen, step, how many iterates were summed, and how weights shrink.

        shrinkage: sum of log(1 + eta_k l2 / n); averaged: sum of exp(-shrinkage) over the
        iterates that are averaged (see `kernels.updates.catch_up_sgd`).
        """
        self.check_streamable()
        counts = {"seen": 0, "eta": self._first_eta, "n_averaged": 0}
        return {**counts, "shrinkage": 0.0, "averaged": 0.0}

    def calibrate_stream(
        self, batch: Batch, columns: Columns, totals: Totals, terms: Terms
    ) -> None:
        """Find a first step on a sample, if none is set."""
        if totals["eta"] == 0.0:
            minibatches = Minibatches(batch.loss, terms.penalty, self.batch, terms.horizon)
            order = batch.in_order(minibatches.sequences)
            totals["eta"], _ = self._calibrate(minibatches, order, columns["theta"])

    def catch_up(self, columns: Columns, since: Columns, totals: Totals, terms: Terms) -> None:
        """Shrink, and sum the iterates on the way."""
        theta = columns["theta"]
        if self.average_from:
            weight = np.exp(since["shrinkage"]) * (totals["averaged"] - since["averaged"])
            columns["total"] += weight * theta
        theta *= np.exp(since["shrinkage"] - totals["shrinkage"])

    def learn(self, batch: Batch, columns: Columns, totals: Totals, terms: Terms) -> float:
        """Visit the examples of a batch once, in minibatches."""
        minibatches = Minibatches(batch.loss, terms.penalty, self.batch, terms.horizon)
        order = batch.in_order(minibatches.sequences)
        seen, n = totals["seen"], terms.horizon
        visited = seen + self.batch * np.arange(minibatches.n_steps(order))
        etas = self._etas(totals["eta"], visited, n, terms.penalty)
        averaging = self.average_from > 0 and seen >= (self.average_from - 1) * n
        theta = columns["theta"]
        total = columns.get("total", np.zeros_like(theta))
        loss = minibatches.run(order, minibatch.SGD, etas, theta, total, averaging)
        shrinkage = totals["shrinkage"] + np.cumsum(np.log1p(etas * minibatches.share.l2))
        totals["seen"] += len(order)
        totals["shrinkage"] = float(shrinkage[-1])
        if averaging:
            totals["n_averaged"] += len(etas)
            totals["averaged"] += float(np.exp(-shrinkage).sum())
        return loss

    def must_settle(self, totals: Totals) -> bool:
        """Once sums of exp(-shrinkage) would lose digits."""
        return totals["averaged"] > 0.0 and totals["shrinkage"] > _MAX_SHRINKAGE

    def settled(self, totals: Totals) -> None:
        """Count shrinkage from here."""
        totals["shrinkage"] = totals["averaged"] = 0.0

    def stream_weights(self, columns: Columns, totals: Totals) -> Floats:
        """The last iterate, or the mean of those that are averaged, [K]."""
        n = totals["n_averaged"]
        return columns["total"] / n if n else columns["theta"]
