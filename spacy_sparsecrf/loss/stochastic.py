"""The chain loss a sequence at a time: what stochastic solvers need."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.sgd import penalise, sgd_pass
from ..penalty import ElasticNet
from .working import Floats, Longs, WorkingLoss


class SequenceDescent:
    """Weights under stochastic gradient descent with the cumulative l1 penalty.

    working: the loss on the weights to learn, [K]; penalty: applied a sequence's share at a time.
    Sequences with missing gold labels are left out.
    """

    def __init__(self, working: WorkingLoss, penalty: ElasticNet) -> None:
        lattice = working.space.lattice
        self._working = working
        lengths = np.diff(lattice.offsets)
        complete = np.minimum.reduceat(lattice.labels, lattice.offsets[:-1]) >= 0
        self.sequences: Longs = np.flatnonzero(complete)
        share = 1.0 / max(1, len(self.sequences))
        self._rates = (share * penalty.l1, share * penalty.l2)
        longest = int(lengths.max())
        padded, n_labels = working.space.padded, working.space.n_labels
        runs = _most_runs(working.context, lattice.begins)
        self._workspaces: tuple[NDArray[Any], ...] = (
            np.arange(longest, dtype=np.int32),
            np.zeros(longest, dtype=np.int32),
            np.zeros((runs, n_labels + 1, padded)),
            np.zeros(runs),
            np.zeros((n_labels + 1, padded)),
            *(np.zeros((longest, padded)) for _ in range(3)),
            np.zeros(padded),
        )
        self.reset()

    def reset(self) -> None:
        """Set all weights to zero."""
        n = len(self._working.coordinates)
        self.theta = np.zeros(n)
        self._ledger = np.zeros((n, 2))
        self._due = np.zeros(2)

    def run(self, order: Longs, eta: float, decay: float) -> float:
        """Pass over sequences once.

        order: [n] int64; eta: step at the first, multiplied by decay after each; 0 to measure.
        RETURNS: sum of -log p(y | x) of the sequences, each before its update.
        """
        working, lattice = self._working, self._working.space.lattice
        loss: float = sgd_pass(
            order,
            working.space.n_labels,
            lattice.n_previous,
            lattice.offsets,
            lattice.labels,
            lattice.allowed,
            lattice.weights,
            working.token_rows.indptr,
            working.token_rows.indices,
            working.unigram.ptr,
            working.unigram.places,
            working.context,
            working.context_rows.indptr,
            working.context_rows.indices,
            working.bigram.ptr,
            working.bigram.places,
            working.split,
            self.theta,
            self._ledger,
            self._due,
            *self._rates,
            eta,
            decay,
            *self._workspaces,
        )
        return loss

    def settle(self) -> Floats:
        """Apply the penalties that are due to all weights, and return the weights [K]."""
        penalise(0, len(self.theta), self.theta, self._ledger, *self._due)
        return self.theta


def _most_runs(context: NDArray[np.int32], begins: NDArray[np.bool_]) -> int:
    """Largest number of runs of equal contexts in a sequence."""
    starts_run = begins.copy()
    starts_run[1:] |= context[1:] != context[:-1]
    return int(np.bincount(np.cumsum(begins) - 1, starts_run).max(initial=1))
