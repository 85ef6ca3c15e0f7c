"""Step sizes of stochastic descent: calibration of the first on a sample, and decay."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Longs: TypeAlias = NDArray[np.int64]

# Examples in the sample, first step size, its factor, and maximum of trials above and below it: the
# steps of very long sequences are tiny.
SAMPLE = 500
FIRST_STEP = 0.1
_FACTOR = 2.0
_MOST_ABOVE, _MOST_BELOW = 10, 40


def calibrate(order: Longs, loss_of: Callable[[Longs, float], float]) -> tuple[float, int, float]:
    """Find the step size with the lowest loss in, or after, a pass over a sample.

    It is among powers of a factor. order: [n] int64 examples in random order; loss_of: function of
    a sample and a step size, which makes the pass, from the same weights each time.
    RETURNS: the step size, the number of visits of an example in the trials, and the lowest loss.
    """
    sample = order[:SAMPLE]
    trials = 0

    def tried(eta: float) -> float:
        nonlocal trials
        trials += 1
        loss = loss_of(sample, eta)
        return loss if np.isfinite(loss) else np.inf

    best, lowest = FIRST_STEP, tried(FIRST_STEP)
    for factor, most in ((_FACTOR, _MOST_ABOVE), (1.0 / _FACTOR, _MOST_BELOW)):
        eta = best * factor
        for _ in range(most):
            loss = tried(eta)
            if loss >= lowest and not (factor < 1.0 and np.isinf(loss)):
                break
            best, lowest = eta, loss
            eta *= factor
        if best > FIRST_STEP:
            # The next smaller step size has been tried already, and was worse.
            break
    # A trial learns from the sample, and may then measure.
    return best, 2 * trials * len(sample), lowest


def decayed(eta: float, decay: float, epochs: NDArray[Any]) -> NDArray[np.float64]:
    """Return eta decay^e for numbers of epochs e [n]; NumPy's powers differ between processors."""
    return eta * np.array([decay**power for power in epochs.tolist()])
