"""The warm start: initial weights by a few passes of SGD-L1.

It finds most weights that are not zero at the minimum, and labels well after few passes. The step
size is calibrated on a sample, and decays as in Wapiti.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..penalty import ElasticNet
from ..progress import Task
from .calibration import calibrate, decayed

Floats: TypeAlias = NDArray[np.float64]
Longs: TypeAlias = NDArray[np.int64]

if TYPE_CHECKING:
    from ..loss.examples import MinibatchDescent

# Decay of the step size over one epoch, as in Wapiti.
EPOCH_DECAY = 0.85
# Number of times per epoch that weights are added to the mean.
_TAKEN = 4


@dataclass(frozen=True, kw_only=True)
class WarmStart:
    """Compute initial weights by SGD-L1 (Tsuruoka 2009), mostly of observed features.

    Sequences with missing gold labels are skipped, and the steps of very long ones are shorter (see
    `loss.examples`). Only runs with l1 have a warm start; it is a separate outer iteration. A
    run with weights whose objective is above that of zero weights repeats it with shorter steps,
    or begins with zero weights.

    epochs: passes over the corpus; 0 for no warm start.
    averaged: whether the weights that are non-zero at the end are replaced by their means over the
        second half of the passes: means label well, and the first quasi-Newton iterations often
        make labels worse before they improve.
    seed: of the order of sequences, >= 0.
    evaluated: whether a run reports the weights of the warm start before it continues.
    """

    epochs: int = 4
    averaged: bool = True
    seed: int = 0
    evaluated: bool = True

    def __call__(
        self, loss: Any, penalty: ElasticNet, caution: float = 1.0
    ) -> tuple[Longs, Floats]:
        """Return coordinates [n] int64, ascending, and values [n] float64 of non-zero weights.

        loss: the full problem; caution: divisor of the step size.
        """
        if self.epochs == 0 or penalty.l1 == 0.0:
            return np.empty(0, np.int64), np.empty(0)
        # Imported here, so that settings are read without numba.
        from ..kernels.minibatch import SGD_L1
        from ..loss.examples import MinibatchDescent

        working = loss.restrict(loss.descent_coordinates(), stochastic=True)
        theta, received = np.zeros((2, len(working.coordinates)))
        descent = MinibatchDescent(working, penalty, 1, SGD_L1, theta, received, missing=False)
        total, n_taken = self._descend(descent, theta, caution)
        active = theta != 0.0
        first = total / n_taken if n_taken else theta
        return working.coordinates[active], first[active]

    def _descend(
        self, descent: "MinibatchDescent", theta: Floats, caution: float
    ) -> tuple[Floats, int]:
        """Make the passes; return the sum of the weights [K] over n times, and n."""
        rng, sequences = np.random.default_rng(self.seed), descent.sequences
        total, n_taken, n = np.zeros_like(theta), 0, len(sequences)
        if n == 0:
            return total, n_taken
        eta, _ = calibrate(rng.permutation(sequences), descent.loss_after)
        n_parts = _TAKEN if self.averaged else 1
        for epoch in Task("Warm start", "passes", self.epochs, range(self.epochs)):
            etas = decayed(eta / caution, EPOCH_DECAY, epoch + np.arange(n) / n)
            parts = (np.array_split(each, n_parts) for each in (rng.permutation(sequences), etas))
            for i, part in enumerate(zip(*parts, strict=True)):
                descent.run(*part)
                if self.averaged and 2 * (epoch * _TAKEN + i) >= self.epochs * _TAKEN:
                    total += theta
                    n_taken += 1
        return total, n_taken
