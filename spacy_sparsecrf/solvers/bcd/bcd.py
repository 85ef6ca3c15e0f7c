"""Block coordinate descent: all weights of one test at a time."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...penalty import ElasticNet
from ...registry import crf_solvers
from ..base import BatchSolver, Floats, SolverState, StepReport, evaluate, requirements

if TYPE_CHECKING:
    from ...loss.working import WorkingLoss


@dataclass
class BcdState(SolverState):
    """Where block coordinate descent stands.

    kappa: [K], what the curvature is multiplied by, alike for the unigram and for the bigram
    weights of a test.
    """

    kappa: Floats


@crf_solvers("spacy_sparsecrf.BCD.v1")
@dataclass(kw_only=True, eq=False)
class BCD(BatchSolver):
    """Block coordinate descent (Lavergne 2010, section 3.4); a step is a sweep over all tests.

    The weights of one test take a Newton step together, with a diagonal Hessian and the l1 penalty
    in closed form; only sequences that contain the test are visited. kappa, which multiplies the
    Hessian, doubles where a step does not lower the objective, so that no step raises it.

    kappa: its least value; a step moves a weight by 1 / kappa at most.
    common: whether all weights of a test are damped like the one that moves farthest (as Wapiti
        does), instead of each by itself.
    The other settings: see `BatchSolver`.
    RAISES: SparseCRFError where a setting is out of range.
    """

    state_type = BcdState
    requires = requirements("indicators", "memory", "examples")

    kappa: float = 1.0
    common: bool = False
    inner_iterations: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(1e-3, "kappa")

    @property
    def columns(self) -> dict[str, float]:
        """Weights and kappa, of which new weights have the least."""
        return {"theta": 0.0, "kappa": self.kappa}

    def step(self, loss: "WorkingLoss", penalty: ElasticNet, state: BcdState) -> StepReport:
        """Do one sweep."""
        # Only now: settings are to be read without numba.
        from .block_loss import BlockDescent

        # A copy: whoever has the weights of the last step keeps them.
        before, state.theta = state.theta, state.theta.copy()
        descent = BlockDescent(loss, penalty, self.kappa, self.common, state.theta, state.kappa)
        descent.run()
        state.value, state.gradient = evaluate(loss, penalty, state.theta)
        if not np.isfinite(state.value):
            # Blocks are measured by sums of their own, which may be in range where those of the
            # whole are not.
            state.theta, state.kappa = before, 2.0 * state.kappa
            state.value, state.gradient = evaluate(loss, penalty, before)
        return self.report(penalty, state, descent.counts[0] / len(loss.space.lattice.weights))
