"""The warm start: initial weights by a few passes of SGD-L1.

It finds most weights that are not zero at the minimum, and labels well after few passes. The step
size has the lowest loss on the sentences of a sample before it learns from them, and decays as in
Wapiti.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...progress import Task
from ..corpus.coordinates import NO_COORDINATES, Weights
from ..corpus.numbering import Floats, Longs
from ..loss.protocols import Loss
from ..penalty import ElasticNet
from .step_size import FIRST_STEP, SAMPLE, calibrate, decayed

if TYPE_CHECKING:
    from ..loss.examples import MinibatchDescent

# Decay of the step size over one epoch, as in Wapiti.
EPOCH_DECAY = 0.85
# Rounds of an epoch: after each, the parts go on from their mean, which counts in the mean of all.
_ROUNDS = 8
# Parts of the corpus, for any number of threads.
_PARTS = 2
# A sample teaches something about the next sentences if it lowers their loss by this share.
_LEAST_GAIN = 1e-3


@dataclass(frozen=True, kw_only=True)
class WarmStart:
    """Compute initial weights by SGD-L1 (Tsuruoka 2009), mostly of observed features.

    Sequences with missing gold labels are skipped, and the steps of very long ones are shorter (see
    `loss.examples`). Only runs with l1 have a warm start; it is a separate outer iteration. A
    run with weights whose objective is above that of zero weights repeats it with shorter steps,
    or begins with zero weights.

    The parts of a large corpus are visited in parallel, each from the mean of their last weights
    (McDonald, Hall & Mann 2010, iterative parameter mixing).

    epochs: passes over the corpus; 0 for no warm start.
    averaged: whether the weights that are non-zero at the end are replaced by their means over the
        second half of the passes: means label well, and the first quasi-Newton iterations often
        make labels worse before they improve.
    seed: of the order of sequences, >= 0.
    evaluated: whether a run reports the weights of the warm start before it continues.
    """

    epochs: int = 2
    averaged: bool = True
    seed: int = 0
    evaluated: bool = True

    def __call__(self, loss: Loss, penalty: ElasticNet, caution: float = 1.0) -> Weights:
        """Return the non-zero weights.

        loss: the full problem; caution: divisor of the step size.
        """
        if self.epochs == 0 or penalty.l1 == 0.0:
            return Weights(NO_COORDINATES, np.empty(0))
        # Imported here, so that settings are read without numba.
        from ..kernels.minibatch import SGD_L1
        from ..loss.examples import MinibatchDescent

        working = loss.by_example(loss.coordinates("descent"))
        views = working.views(_PARTS)
        weights = np.zeros((len(views), 2, len(working.coordinates)))
        descents = [
            MinibatchDescent(
                view,
                penalty,
                batch=1,
                rule=SGD_L1,
                theta=theta,
                extra=received,
                missing=False,
            )
            for view, (theta, received) in zip(views, weights, strict=True)
        ]
        total, n_taken = self._descend(descents, weights, caution)
        theta: Floats = weights[0, 0]
        active = np.flatnonzero(theta)
        means = total / n_taken if n_taken else theta
        return Weights(working.coordinates[active], means[active])

    def _descend(
        self, descents: "Sequence[MinibatchDescent]", weights: Floats, caution: float
    ) -> tuple[Floats, int]:
        """Make the passes; return the sum of the weights [K] over n times, and n.

        descents: of the parts; weights: [parts, 2, K], their weights, and penalties received.
        """
        from ..loss.examples import run_parts

        rng, sequences = np.random.default_rng(self.seed), descents[0].sequences
        total, n_taken, n = np.zeros(weights.shape[2]), 0, len(sequences)
        if n == 0:
            return total, n_taken
        eta = _step_size(descents[0], rng.permutation(sequences))
        for epoch in Task("Warm start", "passes", self.epochs, range(self.epochs)):
            etas = decayed(eta / caution, EPOCH_DECAY, epoch + np.arange(n) / n)
            orders = np.array_split(rng.permutation(sequences), _ROUNDS)
            rounds = zip(orders, np.array_split(etas, _ROUNDS), strict=True)
            for i, (order, etas_of_round) in enumerate(rounds):
                run_parts(descents, order, etas_of_round)
                np.add.reduce(weights, out=weights[0])
                weights[0] /= len(weights)
                weights[1:] = weights[0]
                if self.averaged and 2 * (epoch * _ROUNDS + i) >= self.epochs * _ROUNDS:
                    total += weights[0, 0]
                    n_taken += 1
        return total, n_taken


def _step_size(descent: "MinibatchDescent", order: Longs) -> float:
    """Find the step size with the lowest loss of sequences before they are learnt.

    The loss after they are learnt calls for longer steps, which learn them by heart. Where a
    sequence teaches nothing about the next one, no step is best: the first one is taken.
    order: [n] int64, of all sequences.
    """
    sample = descent.sample(order)[:SAMPLE]
    eta, _, lowest = calibrate(sample, descent.loss_of_unseen)
    unlearnt = descent.loss_of_unseen(sample, 0.0)
    return eta if lowest < (1.0 - _LEAST_GAIN) * unlearnt else FIRST_STEP
