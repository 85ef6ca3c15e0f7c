"""BCD: block coordinate descent, all weights of one feature at a time.

Minimises F(theta) = l(theta) + l1 |theta|_1 + l2 / 2 |theta|^2 (Lavergne 2010, equation 6 and
section 3.4). Each block of weights in turn minimises a quadratic model of F with a diagonal
Hessian,

    theta_k := s(h_k theta_k - g_k, l1) / (h_k + l2)                         (equations 9 to 11)

with s the soft threshold, g the gradient, and h the diagonal of the Hessian, approximated by sums
of p (1 - p), times kappa. Only sequences with the feature are evaluated, by truncated recursions
(section 4.1). kappa doubles while a step does not lower F. Stops as all solvers do (see `base`).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ....registry import crf_solvers
from ...corpus.numbering import Floats
from ...penalty import ElasticNet
from ..solver import BatchSolver, SolverState, StepReport, evaluate, requirements
from ..warm_start import WarmStart

if TYPE_CHECKING:
    from ...loss.examples import ChainExampleLoss


@dataclass
class BcdState(SolverState):
    """The state of block coordinate descent.

    kappa: [K], factor of the curvature; the unigram weights of a feature share one value, and so do
    its bigram weights.
    """

    kappa: Floats


@crf_solvers("spacy_sparsecrf.BCD.v1")
@dataclass(kw_only=True, eq=False)
class BCD(BatchSolver["ChainExampleLoss"]):
    """Block coordinate descent (Lavergne 2010, section 3.4); a step is a sweep over all features.

    A sweep runs in one thread: few blocks have no sequence in common.

    kappa: minimum factor of the Hessian; a step moves a weight by 1 / kappa at most.
    common: whether all weights of a feature have the damping of the weight that moves farthest (as
        in Wapiti), instead of separate ones.
    """

    state_type = BcdState
    requires = requirements("indicators", "examples", "whole corpus")
    linear_rate = True
    warm_start = WarmStart(epochs=6, averaged=False)

    kappa: float = 1.0
    common: bool = False
    inner_iterations: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(1e-3, "kappa")

    @property
    def columns(self) -> dict[str, float]:
        """Weights and kappa; new weights have the minimum kappa."""
        return {"theta": 0.0, "kappa": self.kappa}

    def step(self, loss: "ChainExampleLoss", penalty: ElasticNet, state: BcdState) -> StepReport:
        """Do one sweep."""
        # Imported here, so that settings are read without numba.
        from .block_loss import BlockDescent

        old_theta = state.theta
        # A copy, since reports of the last step share the array.
        state.theta = old_theta.copy()
        descent = BlockDescent(
            loss,
            penalty,
            least_kappa=self.kappa,
            common=self.common,
            theta=state.theta,
            kappa=state.kappa,
        )
        descent.run()
        state.value, state.gradient = evaluate(loss, penalty, state.theta)
        if not np.isfinite(state.value):
            # Sums over blocks may be finite although sums over the whole corpus are not.
            state.theta = old_theta
            state.kappa = 2.0 * state.kappa
            state.value, state.gradient = evaluate(loss, penalty, old_theta)
        return self.report(penalty, state, descent.counts[0] / len(loss.space.lattice.weights))
