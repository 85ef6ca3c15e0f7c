"""What solvers by iterative scaling have in common."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors, SparseCRFError
from ..loss.working import WorkingLoss
from ..penalty import ElasticNet
from .base import BatchSettings, StepReport, optimality

Floats = NDArray[np.float64]


class IterativeScaling(BatchSettings):
    """Settings and checks of solvers by iterative scaling (Goodman 2002); see `BatchSettings`."""

    local_only = True

    def check(self, loss: WorkingLoss, penalty: ElasticNet) -> None:
        """Refuse what scaling cannot minimise.

        RAISES: SparseCRFError where labels of a sequence depend on each other, where a token may
            have several gold labels, and where a weight has no minimiser: without penalty, one
            whose feature never occurs tends to -inf.
        """
        name = type(self).__name__
        lengths = np.diff(loss.space.lattice.offsets)
        if lengths.max(initial=0) > 1 or loss.split < len(loss.coordinates):
            raise SparseCRFError(Errors.SC340.format(solver=name))
        if loss.space.lattice.weights.min(initial=0.0) < 0.0:
            raise SparseCRFError(Errors.SC361.format(solver=name))
        if penalty.l1 == penalty.l2 == 0.0:
            n_absent = int(np.count_nonzero(loss.observed <= 0.0))
            if n_absent:
                raise SparseCRFError(Errors.SC341.format(solver=name, n=n_absent))

    def report(self, penalty: ElasticNet, state: Any) -> StepReport:
        """What a pass has reached."""
        distance = optimality(penalty, state.theta, state.gradient)
        return StepReport(
            objective=state.value,
            optimality=distance,
            n_active=int(np.count_nonzero(state.theta)),
            passes=1.0,
            converged=distance <= self.tolerance,
        )
