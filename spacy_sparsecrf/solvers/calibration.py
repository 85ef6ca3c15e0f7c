"""A first step for stochastic solvers (Bottou's calibration)."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

# Steps are tried on so many examples, growing or shrinking by a factor.
_SAMPLE = 500
_FIRST_STEP = 0.1
_FACTOR = 2.0
_MAX_TRIALS = 10


def calibrate(
    order: NDArray[np.int64], loss_after: Callable[[NDArray[np.int64], float], float]
) -> tuple[float, int]:
    """Find the step with the lowest loss after a pass over a sample, among powers of a factor.

    order: [n] int64 examples in random order; loss_after: of a sample and a step, the loss on the
    sample after a pass over it with that step, from the same weights each time.
    RETURNS: the step, and how many visits of an example the trials took.
    """
    sample = order[:_SAMPLE]
    trials = 0

    def tried(eta: float) -> float:
        nonlocal trials
        trials += 1
        loss = loss_after(sample, eta)
        return loss if np.isfinite(loss) else np.inf

    best, lowest = _FIRST_STEP, tried(_FIRST_STEP)
    for factor in (_FACTOR, 1.0 / _FACTOR):
        eta = best * factor
        for _ in range(_MAX_TRIALS):
            loss = tried(eta)
            if loss >= lowest:
                break
            best, lowest = eta, loss
            eta *= factor
        if best > _FIRST_STEP:
            # The next smaller step was tried on the way up, and was worse.
            break
    # Each trial learns from the sample, then measures.
    return best, 2 * trials * len(sample)
