"""RPROP: a step width for each weight, from the signs of successive gradients.

Minimises F(theta) = l(theta) + l1 |theta|_1 + l2 / 2 |theta|^2 by resilient backpropagation
(Riedmiller & Braun 1993), with the pseudo-gradient v of F as the gradient:

    width_k := clamp(width_k * (grow if v_k keeps its sign, shrink if it changes))
    theta_k := theta_k - sign(v_k) width_k

With l1, a weight stops at zero instead of crossing it. Stops as all solvers do (see `base`).
"""

from dataclasses import dataclass

import numpy as np

from ...registry import crf_solvers
from ..corpus.numbering import Floats
from ..loss.protocols import WorkingLoss
from ..penalty import ElasticNet
from . import solver as base
from .solver import BatchSolver, SolverState, StepReport
from .warm_start import WarmStart

# Least and largest width.
LEAST, LARGEST = 1e-8, 50.0


@dataclass
class RpropState(SolverState):
    """The state of RPROP.

    widths: [K] > 0; last: [K], the pseudo-gradient of the last moves, 0 if there was none or the
    move was reverted; moves: [K], the last change of each weight.
    """

    widths: Floats
    last: Floats
    moves: Floats


@crf_solvers("spacy_sparsecrf.RPROP.v1")
@dataclass(kw_only=True, eq=False)
class RPROP(BatchSolver[WorkingLoss]):
    """Resilient backpropagation (Riedmiller & Braun 1993), with l1 by the pseudo-gradient.

    A weight first reverts its last move if its pseudo-gradient changes sign (RPROP+).

    first_width: first width, in units of weights; grow, shrink: factors of the widths.
    """

    state_type = RpropState
    requires = base.requirements()
    linear_rate = True
    warm_start = WarmStart(epochs=6, averaged=False)

    first_width: float = 0.1
    grow: float = 1.2
    shrink: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(1.0, "grow")
        self.require(0.0, "shrink")
        self.require(LEAST, "first_width")

    @property
    def columns(self) -> dict[str, float]:
        """Weights, widths and the last moves; new weights have the first width."""
        return {"theta": 0.0, "widths": self.first_width, "last": 0.0, "moves": 0.0}

    def step(self, loss: WorkingLoss, penalty: ElasticNet, state: RpropState) -> StepReport:
        """Do one iteration; halve all widths instead if the objective is not finite."""
        pseudo = base.smallest_subgradient(penalty, state.theta, state.gradient)
        same = np.sign(pseudo * state.last)
        widths = state.widths * np.where(same > 0, self.grow, np.where(same < 0, self.shrink, 1.0))
        state.widths = np.clip(widths, LEAST, LARGEST)
        moves = np.where(same < 0, -state.moves, -np.sign(pseudo) * state.widths)
        # After a reverted move, the next one keeps its width: no sign is remembered.
        followed = np.where(same < 0, 0.0, pseudo)
        theta = state.theta + moves
        if penalty.l1 > 0.0:
            theta[theta * state.theta < 0.0] = 0.0
        value, gradient = base.evaluate(loss, penalty, theta)
        if np.isfinite(value):
            state.moves, state.last = theta - state.theta, followed
            state.theta, state.gradient, state.value = theta, gradient, value
        else:
            state.widths = np.maximum(0.5 * state.widths, LEAST)
        return self.report(penalty, state)
