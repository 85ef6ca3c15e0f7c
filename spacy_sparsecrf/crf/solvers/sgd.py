"""SGD: stochastic gradient descent on minibatches, for l1 = 0.

Minimises F(theta) = sum_i l_i(theta) + l2 / 2 |theta|^2 over N examples, by

    theta := (theta - eta_k sum_{i in minibatch} g_i) / (1 + eta_k l2 b / N)

after k examples, with minibatches of b; l2 acts by its proximal map, which is stable for any step.
Step sizes eta_k, by `schedule`:

    constant     eta0
    annealed     eta0 / (1 + k / N)        SGD(1/k) of Tsuboi 2011, "Experimental Settings"
    exponential  eta0 .85^(k / N)          SGD(alpha^k), ibid.
    pegasos      eta0 N / (l2 (b + k))     eta / (lambda t) on the mean loss, lambda = l2 / N,
                                           t = 1 + k / b (Schmidt 2015, section 6)

Constant steps with a mean of the iterates are ASG (ibid.). Stops as all solvers do (see `base`).
Constant steps without a mean approach the minimiser, but do not reach it. With l2 = 0, weights may
diverge.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...registry import crf_solvers
from ..corpus.numbering import Floats
from ..kernels import minibatch
from ..loss.examples import MinibatchDescent
from ..loss.protocols import ExampleLoss
from ..penalty import ElasticNet
from .solver import SolverState, StepReport, evaluate_start, requirements
from .step_size import decayed
from .stochastic import StochasticSolver
from .warm_start import EPOCH_DECAY

SCHEDULES = ("constant", "annealed", "exponential", "pegasos")


@dataclass
class SgdState(SolverState):
    """The state of SGD.

    theta: [K], the reported weights: the last iterate, or a mean of iterates; gradient: [K], of
    loss + l2 at theta; value: the objective at theta; iterate: [K], the last iterate; n_averaged:
    number of iterates in the mean, 0 = theta is the last iterate; eta: first step size, 0 before
    the first pass; epoch: passes done.
    """

    iterate: Floats
    n_averaged: int = 0
    eta: float = 0.0
    epoch: int = 0


@crf_solvers("spacy_sparsecrf.SGD.v1")
@dataclass(kw_only=True, eq=False)
class SGD(StochasticSolver[ExampleLoss]):
    """Stochastic gradient descent on minibatches of b examples of N, l1 = 0.

    Examples with missing gold labels are used. See the module for update and schedules.

    schedule: "constant", "annealed", "exponential" or "pegasos".
    eta0: 0 to calibrate it on a sample of the corpus; for "pegasos", 1.
    batch: b.
    average_from: the reported weights are the mean of the iterates from this pass on, counted from
        1 (1 is Schmidt's ASG); 0 for no mean.
    """

    state_type = SgdState
    requires = StochasticSolver.requires | requirements("no l1")

    schedule: str = "annealed"
    eta0: float = 0.0
    batch: int = 1
    average_from: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.schedule == "pegasos":
            self.requires = self.requires | requirements("l2")
            self.eta0 = self.eta0 or 1.0
        self.require_one_of("schedule", SCHEDULES)
        self.require(0, "eta0", "average_from")
        self.require(1, "batch")

    @property
    def columns(self) -> dict[str, float]:
        """The reported weights, and the last iterate."""
        return {"theta": 0.0, "iterate": 0.0}

    def start(self, loss: ExampleLoss, penalty: ElasticNet, theta: Floats) -> SgdState:
        """Evaluate the first point; see `BatchSolver.start`."""
        value, gradient = evaluate_start(loss, penalty, theta)
        return SgdState(theta, gradient, value, theta.copy())

    def step(self, loss: ExampleLoss, penalty: ElasticNet, state: SgdState) -> StepReport:
        """Pass over all examples once, in a random order, and evaluate; see `BatchSolver.step`."""
        # States share arrays, so the pass writes to copies.
        state.iterate, total = state.iterate.copy(), np.zeros_like(state.iterate)
        descent = MinibatchDescent(
            loss,
            penalty,
            batch=self.batch,
            rule=minibatch.SGD,
            theta=state.iterate,
            extra=total,
        )
        order, passes = self.begin_pass(descent, state, self.eta0)
        n = len(order)
        etas = self._etas(state.eta, state.epoch * n + descent.visited_before(order), n, penalty)
        state.epoch += 1
        averaging = 0 < self.average_from <= state.epoch
        descent.run(order, etas, averaging)
        if averaging:
            n_before = state.n_averaged
            state.n_averaged += len(etas)
            state.theta = (n_before * state.theta + total) / state.n_averaged
        else:
            state.theta = state.iterate
        return self.end_pass(loss, penalty, state, passes)

    def _etas(self, eta: float, visited: NDArray[Any], n: int, penalty: ElasticNet) -> Floats:
        """Return the step sizes [m] after `visited` examples [m]; n: examples of a pass."""
        if self.schedule == "constant":
            factors = np.ones(len(visited))
        elif self.schedule == "annealed":
            factors = 1.0 / (1.0 + visited / n)
        elif self.schedule == "exponential":
            factors = decayed(1.0, EPOCH_DECAY, visited / n)
        else:
            factors = n / (penalty.l2 * (self.batch + visited))
        etas: Floats = eta * factors
        return etas
