"""The warm start: initial weights by a few passes of SGD-L1.

It finds most weights that are not zero at the minimum, and labels well after few passes. The step
size is calibrated on a sample, and decays as in Wapiti. Weights are clipped once a token, not once
an example (see `sgd_l1`).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..penalty import ElasticNet
from ..progress import Task
from .calibration import calibrate

Floats: TypeAlias = NDArray[np.float64]
Longs: TypeAlias = NDArray[np.int64]

if TYPE_CHECKING:
    from ..loss.examples import SequenceDescent

# Decay of the step size over one epoch, as in Wapiti.
EPOCH_DECAY = 0.85
# Number of times per epoch that weights are added to the mean.
_TAKEN = 4


@dataclass(frozen=True, kw_only=True)
class WarmStart:
    """Compute initial weights by SGD-L1 (Tsuruoka 2009), mostly of observed features.

    Sequences with missing gold labels are skipped. Only runs with l1 have a warm start; it is an
    outer iteration of its own.

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

    def __call__(self, loss: Any, penalty: ElasticNet) -> tuple[Longs, Floats]:
        """Return coordinates [n] int64, ascending, and values [n] float64 of non-zero weights.

        loss: the full problem.
        """
        if self.epochs == 0 or penalty.l1 == 0.0:
            return np.empty(0, np.int64), np.empty(0)
        # Imported here, so that settings are read without numba.
        from ..loss.examples import SequenceDescent

        working = loss.restrict(loss.descent_coordinates(), stochastic=True)
        descent = SequenceDescent(working, penalty)
        total, n_taken = self._descend(descent)
        theta = descent.settle()
        active = theta != 0.0
        first = total / n_taken if n_taken else theta
        return working.coordinates[active], first[active]

    def _descend(self, descent: "SequenceDescent") -> tuple[Floats, int]:
        """Make the passes; return the sum of the weights [K] over n times, and n."""
        rng, sequences = np.random.default_rng(self.seed), descent.sequences
        total, n_taken = np.zeros_like(descent.theta), 0
        if len(sequences) == 0:
            return total, n_taken
        eta, _ = calibrate(rng.permutation(sequences), descent.loss_after)
        decay = EPOCH_DECAY ** (1.0 / len(sequences))
        for epoch in Task("Warm start", "passes", self.epochs, range(self.epochs)):
            step, order = eta * EPOCH_DECAY**epoch, rng.permutation(sequences)
            for i, part in enumerate(np.array_split(order, _TAKEN if self.averaged else 1)):
                descent.run(part, step, decay)
                step *= decay ** len(part)
                if self.averaged and 2 * (epoch * _TAKEN + i) >= self.epochs * _TAKEN:
                    total += descent.settle()
                    n_taken += 1
        return total, n_taken
