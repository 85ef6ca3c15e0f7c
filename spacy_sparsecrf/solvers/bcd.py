"""Block coordinate descent: all weights of one test at a time."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..penalty import ElasticNet
from ..registry import crf_solvers
from .base import BatchSettings, StepReport, evaluate, evaluate_start, optimality, take

if TYPE_CHECKING:
    from ..loss.working import WorkingLoss

Floats = NDArray[np.float64]


@dataclass
class State:
    """Where block coordinate descent stands.

    theta, gradient: [K], weights and gradient of loss + l2; value: the objective; kappa: [K], what
    the curvature is multiplied by, alike for the unigram and for the bigram weights of a test.
    """

    theta: Floats
    gradient: Floats
    value: float
    kappa: Floats


@crf_solvers("spacy_sparsecrf.BCD.v1")
class BCD(BatchSettings):
    """Block coordinate descent (Lavergne 2010, section 3.4); a step is a sweep over all tests.

    The weights of one test take a Newton step together, with a diagonal Hessian and the l1 penalty
    in closed form; only sequences that contain the test are visited. kappa, which multiplies the
    Hessian, doubles where a step does not lower the objective, so that no step raises it.

    kappa: its least value; a step moves a weight by 1 / kappa at most.
    common: whether all weights of a test are damped like the one that moves farthest (as Wapiti
        does), instead of each by itself.
    The other settings: see `BatchSettings`.
    RAISES: SparseCRFError where a setting is out of range.
    """

    state_type = State
    stochastic = True

    def __init__(
        self,
        *,
        kappa: float = 1.0,
        common: bool = False,
        tolerance: float = 1e-3,
        window: float = 1e-5,
        inner_iterations: int = 5,
        warm_start_epochs: int = 6,
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
        self.kappa = kappa
        self.common = common
        self.require(1e-3, "kappa")

    def start(self, loss: "WorkingLoss", penalty: ElasticNet, theta: Floats) -> State:
        """Evaluate the first point.

        theta: [K]. RAISES: SparseCRFError where the objective is not finite there.
        """
        value, gradient = evaluate_start(loss, penalty, theta)
        return State(theta, gradient, value, np.full(len(theta), self.kappa))

    def remap(
        self,
        loss: "WorkingLoss",
        penalty: ElasticNet,
        state: State,
        source: NDArray[np.int64],
        gradient: Floats,
    ) -> State:
        """Carry a state over to another working set; new weights have the least kappa."""
        kappa = take(state.kappa, source)
        kappa[source < 0] = self.kappa
        return State(take(state.theta, source), gradient, state.value, kappa)

    def step(self, loss: "WorkingLoss", penalty: ElasticNet, state: State) -> StepReport:
        """Do one sweep."""
        # Only now: settings are to be read without numba.
        from ..loss.blocks import BlockDescent

        # A copy: whoever has the weights of the last step keeps them.
        state.theta = state.theta.copy()
        descent = BlockDescent(loss, penalty, self.kappa, self.common, state.theta, state.kappa)
        descent.run()
        state.value, state.gradient = evaluate(loss, penalty, state.theta)
        distance = optimality(penalty, state.theta, state.gradient)
        return StepReport(
            objective=state.value,
            optimality=distance,
            n_active=int(np.count_nonzero(state.theta)),
            passes=float(descent.counts[0]) / len(loss.space.lattice.weights),
            converged=distance <= self.tolerance,
        )
