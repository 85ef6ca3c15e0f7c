"""The chain loss a sequence at a time: what stochastic solvers need."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.descent import penalise
from ..kernels.sgd import sgd_pass
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
        space, pairs = working.space, working.pairs
        shape = pairs.psi.shape[1:]
        # Matrices of ones are not built again.
        psi = np.zeros(pairs.psi.shape)
        psi[pairs.contexts.constant, :, : space.n_labels] = 1.0
        n_entries = pairs.contexts.n_entries
        self._workspaces: tuple[NDArray[Any], ...] = (
            np.arange(longest, dtype=np.int32),
            psi,
            np.zeros(len(psi)),
            np.zeros(n_entries),
            np.zeros(n_entries),
            np.zeros(len(pairs.rewritten), dtype=np.bool_),
            np.zeros(len(psi) + len(pairs.rewritten), dtype=np.int64),
            np.zeros(int(np.diff(pairs.contexts.ent_ptr).max(initial=0))),
            np.zeros(shape),
            np.zeros(shape),
            *(np.zeros((longest, space.padded)) for _ in range(3)),
            np.zeros(space.padded),
        )
        self.reset()

    def reset(self) -> None:
        """Set all weights to zero."""
        n = len(self._working.coordinates)
        self.theta = np.zeros(n)
        self._received = np.zeros(n)
        self._row_shrunk = np.zeros(len(self._working.unigram))
        self._pair_shrunk = np.zeros(n - self._working.split)
        self._due = np.zeros(2)

    def run(self, order: Longs, eta: float, decay: float) -> float:
        """Pass over sequences once.

        order: [n] int64; eta: step at the first, multiplied by decay after each; 0 to measure.
        RETURNS: sum of -log p(y | x) of the sequences, each before its update.
        """
        working, lattice = self._working, self._working.space.lattice
        contexts = working.pairs.contexts
        loss: float = sgd_pass(
            order,
            working.space.n_labels,
            lattice.n_previous,
            lattice.offsets,
            lattice.labels,
            lattice.allowed,
            lattice.weights,
            working.heads.tokens.indptr,
            working.heads.tokens.indices,
            working.heads.table,
            working.token_rows.indptr,
            working.token_rows.indices,
            working.unigram.ptr,
            working.unigram.places,
            contexts.context,
            contexts.matrix_of,
            contexts.constant,
            contexts.matrix_rows.indptr,
            contexts.matrix_rows.indices,
            working.bigram.ptr,
            working.bigram.places,
            contexts.ent_ptr,
            contexts.ent_start,
            contexts.ent_previous,
            contexts.ent_label,
            contexts.ent_place,
            contexts.entry_weights.indptr,
            contexts.entry_weights.indices,
            working.split,
            self.theta,
            self._received,
            self._row_shrunk,
            self._pair_shrunk,
            self._due,
            *self._rates,
            eta,
            decay,
            *self._workspaces,
        )
        return loss

    def settle(self) -> Floats:
        """Apply the penalties that are due to all weights, and return the weights [K]."""
        working, split = self._working, self._working.split
        unigram = (working.unigram.ptr, self.theta[:split], self._received[:split])
        penalise(*unigram, self._row_shrunk, self._due)
        # Each bigram weight shrinks by itself.
        bigram = (np.arange(len(self._pair_shrunk) + 1), self.theta[split:], self._received[split:])
        penalise(*bigram, self._pair_shrunk, self._due)
        return self.theta
