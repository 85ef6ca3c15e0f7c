"""SGD: stochastic gradient descent for l1 = 0, with schedules of its step."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors, SparseCRFError
from ..kernels.minibatch import SGD as RULE
from ..loss.minibatch import Minibatches
from ..loss.working import WorkingLoss
from ..penalty import ElasticNet
from ..registry import crf_solvers
from .base import BatchSettings, StepReport, evaluate_pass, evaluate_start, optimality, take
from .calibration import calibrate

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

SCHEDULES = ("constant", "annealed", "exponential", "pegasos")


@dataclass
class State:
    """Where SGD stands.

    theta, gradient: [K], the weights that it reports, iterates or their mean, and the gradient of
    loss + l2 there; value: the objective there; iterate: [K], the last iterate; n_averaged: how
    many iterates theta is the mean of, 0 = it is the last; eta: first step, 0 before it is
    calibrated; epoch: passes done.
    """

    theta: Floats
    gradient: Floats
    value: float
    iterate: Floats
    n_averaged: int
    eta: float
    epoch: int


@crf_solvers("spacy_sparsecrf.SGD.v1")
class SGD(BatchSettings):
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
    The other settings: see `BatchSettings`; `inner_iterations` are passes.
    RAISES: SparseCRFError where a setting is out of range.
    """

    state_type = State
    stochastic = True
    exact = False
    supports_l1 = False

    def __init__(
        self,
        *,
        schedule: str = "annealed",
        eta0: float = 0.0,
        decay: float = 0.85,
        batch: int = 1,
        average_from: int = 0,
        tolerance: float = 1e-3,
        window: float = 1e-4,
        inner_iterations: int = 1,
        warm_start_epochs: int = 0,
        seed: int = 0,
        polish_iterations: int = 0,
        polish_l2: float = 1e-5,
    ) -> None:
        super().__init__(
            tolerance,
            window,
            inner_iterations,
            warm_start_epochs,
            seed,
            polish_iterations,
            polish_l2,
        )
        self.schedule = schedule
        self.eta0 = eta0
        self.decay = decay
        self.batch = batch
        self.average_from = average_from
        self.needs_l2 = schedule == "pegasos"
        if schedule not in SCHEDULES:
            known = ", ".join(SCHEDULES)
            raise SparseCRFError(Errors.SC325.format(key="schedule", value=schedule, known=known))
        self.require(0, "eta0", "decay", "average_from")
        self.require(1, "batch")

    def start(self, loss: WorkingLoss, penalty: ElasticNet, theta: Floats) -> State:
        """Evaluate the first point.

        theta: [K]. RAISES: SparseCRFError where the objective is not finite there.
        """
        value, gradient = evaluate_start(loss, penalty, theta)
        eta = 1.0 if self.schedule == "pegasos" and self.eta0 == 0.0 else self.eta0
        return State(theta, gradient, value, theta.copy(), 0, eta, 0)

    def remap(
        self,
        loss: WorkingLoss,
        penalty: ElasticNet,
        state: State,
        source: NDArray[np.int64],
        gradient: Floats,
    ) -> State:
        """Carry weights and their mean over to another working set."""
        theta, iterate = take(state.theta, source), take(state.iterate, source)
        rest = (state.n_averaged, state.eta, state.epoch)
        return State(theta, gradient, state.value, iterate, *rest)

    def step(self, loss: WorkingLoss, penalty: ElasticNet, state: State) -> StepReport:
        """Pass over all examples once, in a random order, and evaluate.

        RAISES: SparseCRFError where steps are so long that weights grow without bounds.
        """
        minibatches = Minibatches(loss, penalty, self.batch)
        n = len(minibatches.sequences)
        order = np.random.default_rng([self.seed, state.epoch]).permutation(minibatches.sequences)
        visits = n
        if state.eta == 0.0:
            state.eta, trials = self._calibrate(minibatches, order, state)
            visits += trials
        etas = self._etas(state, penalty, n, minibatches.n_steps(order))
        state.epoch += 1
        averaging = 0 < self.average_from <= state.epoch
        # Of arrays that were handed out, none is written to.
        state.iterate, total = state.iterate.copy(), np.zeros_like(state.iterate)
        minibatches.run(order, RULE, etas, state.iterate, total, averaging)
        if averaging:
            before = state.n_averaged
            state.n_averaged += len(etas)
            state.theta = (before * state.theta + total) / state.n_averaged
        else:
            state.theta = state.iterate
        state.value, state.gradient = evaluate_pass(loss, penalty, state.theta, self)
        distance = optimality(penalty, state.theta, state.gradient)
        return StepReport(
            objective=state.value,
            optimality=distance,
            n_active=int(np.count_nonzero(state.theta)),
            passes=visits / n,
            converged=distance <= self.tolerance,
        )

    def _etas(self, state: State, penalty: ElasticNet, n: int, n_steps: int) -> Floats:
        """The steps of the next pass over n examples, [n_steps]."""
        visited = state.epoch * n + self.batch * np.arange(n_steps)
        if self.schedule == "constant":
            factors = np.ones(n_steps)
        elif self.schedule == "annealed":
            factors = 1.0 / (1.0 + visited / n)
        elif self.schedule == "exponential":
            factors = self.decay ** (visited / n)
        else:
            factors = n / (penalty.l2 * (self.batch + visited))
        etas: Floats = state.eta * factors
        return etas

    def _calibrate(self, minibatches: Minibatches, order: Longs, state: State) -> tuple[float, int]:
        """Find a first step, from the present weights."""

        def loss_after(sample: Longs, eta: float) -> float:
            theta, unused = state.iterate.copy(), np.zeros_like(state.iterate)
            etas = np.full(minibatches.n_steps(sample), eta)
            minibatches.run(sample, RULE, etas, theta, unused)
            return minibatches.run(sample, RULE, 0.0 * etas, theta, unused)

        return calibrate(order, loss_after)
