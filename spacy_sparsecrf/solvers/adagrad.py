"""AdaGrad: stochastic gradient descent with a step for each weight, and proximal penalties."""

from dataclasses import dataclass

import numpy as np

from ..kernels.minibatch import ADAGRAD, Rule, catch_up_each
from ..loss.examples import Minibatches
from ..loss.working import WorkingLoss
from ..penalty import ElasticNet
from ..registry import crf_solvers
from .base import Floats, Longs, SolverState, StepReport, evaluate_start
from .streaming import Batch, Columns, StreamSolver, Terms, Totals, calibrate


@dataclass
class AdaGradState(SolverState):
    """Where AdaGrad stands.

    squares: [K], sum of the squared gradients of minibatches; eta: step, 0 before it is calibrated;
    epoch: passes done.
    """

    squares: Floats
    eta: float
    epoch: int


@crf_solvers("spacy_sparsecrf.AdaGrad.v1")
@dataclass(kw_only=True, eq=False)
class AdaGrad(StreamSolver):
    """AdaGrad (Duchi et al. 2011) on minibatches of b examples of N, by proximal steps.

        theta_k := prox_{eta_k b / N (l1 |.| + l2 / 2 |.|^2)}(theta_k - eta_k g_k),
        eta_k = eta0 / (delta + sqrt(sum of g_k^2))                     (Schmidt 2015, section 6)

    with g the sum of the gradients of a minibatch's examples. The penalties of weights without a
    gradient are made up for when they are needed next. Examples with missing gold labels take
    part.

    eta0: step; 0 to find one on a sample of the corpus. delta: > 0, added to the root.
    batch: b.
    The other settings: see `BatchSolver` and `StreamSolver`; `inner_iterations` are passes.
    RAISES: SparseCRFError where a setting is out of range.
    """

    state_type = AdaGradState
    stream_marks = ("steps",)

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
        """Weights and sums of squared gradients: new weights have the full step."""
        return {"theta": 0.0, "squares": 0.0}

    def start(self, loss: WorkingLoss, penalty: ElasticNet, theta: Floats) -> AdaGradState:
        """Evaluate the first point; see `BatchSolver.start`."""
        value, gradient = evaluate_start(loss, penalty, theta)
        return AdaGradState(theta, gradient, value, np.zeros_like(theta), self.eta0, 0)

    def step(self, loss: WorkingLoss, penalty: ElasticNet, state: AdaGradState) -> StepReport:
        """Pass over all examples once, in a random order, and evaluate; see `BatchSolver.step`."""
        minibatches = Minibatches(loss, penalty, self.batch)
        n = len(minibatches.sequences)
        order = self.shuffled(minibatches.sequences, state.epoch)
        visits = n
        if state.eta == 0.0:
            state.eta, trials = self._calibrate(minibatches, order, state.theta, state.squares)
            visits += trials
        state.epoch += 1
        # Of arrays that were handed out, none is written to.
        state.theta, state.squares = state.theta.copy(), state.squares.copy()
        self._run(minibatches, order, state.eta, state.theta, state.squares)
        return self.end_pass(loss, penalty, state, visits / n)

    def _run(
        self, minibatches: Minibatches, order: Longs, eta: float, theta: Floats, squares: Floats
    ) -> float:
        etas = np.full(minibatches.n_steps(order), eta)
        return minibatches.run(order, ADAGRAD, etas, theta, squares, delta=self.delta)

    def _calibrate(
        self, minibatches: Minibatches, order: Longs, theta: Floats, squares: Floats
    ) -> tuple[float, int]:
        """Find a step, from weights and sums of squares [K]."""

        def loss_after(sample: Longs, eta: float) -> float:
            trial = theta.copy(), squares.copy()
            self._run(minibatches, sample, eta, *trial)
            return self._run(minibatches, sample, 0.0, *trial)

        return calibrate(order, loss_after)

    def begin_stream(self, penalty: ElasticNet) -> Totals:
        """Step and number of minibatches."""
        self.check_streamable()
        return {"eta": self.eta0, "steps": 0}

    def calibrate_stream(
        self, batch: Batch, columns: Columns, totals: Totals, terms: Terms
    ) -> None:
        """Find a step on a sample, if none is set."""
        if totals["eta"] == 0.0:
            minibatches = Minibatches(batch.loss, terms.penalty, self.batch, terms.horizon)
            order = batch.in_order(minibatches.sequences)
            start = columns["theta"], columns["squares"]
            totals["eta"], _ = self._calibrate(minibatches, order, *start)

    def catch_up(self, columns: Columns, since: Columns, totals: Totals, terms: Terms) -> None:
        """Apply the penalties of the minibatches since."""
        share = terms.share(self.batch)
        missed = (totals["steps"] - since["steps"]).astype(np.int64)
        rule = Rule(ADAGRAD, self.delta, share.l1, share.l2)
        catch_up_each(missed, totals["eta"], rule, columns["theta"], columns["squares"])

    def learn(self, batch: Batch, columns: Columns, totals: Totals, terms: Terms) -> float:
        """Visit the examples of a batch once, in minibatches."""
        minibatches = Minibatches(batch.loss, terms.penalty, self.batch, terms.horizon)
        order = batch.in_order(minibatches.sequences)
        totals["steps"] += minibatches.n_steps(order)
        state = columns["theta"], columns["squares"]
        return self._run(minibatches, order, totals["eta"], *state)
