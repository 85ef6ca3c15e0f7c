"""The chain loss an example at a time: what stochastic solvers need."""

import numpy as np
from numpy.typing import NDArray

from ..kernels.descent import penalise
from ..kernels.groups import PairSums
from ..kernels.sgd import sgd_pass
from ..penalty import ElasticNet
from .tables import new_potentials, new_vectors, tables_of
from .working import Floats, Longs, WorkingLoss


class Examples:
    """The examples of a working loss, and what kernels take to visit them.

    working: the loss on the weights to learn, laid out for a stochastic solver. An *example* is
    a sequence with gold labels, or one with missing labels and its constrained copy.
    sequences: [S] int64, those that are examples; complete: [S] bool, whether all gold labels are
    known; tables: the corpus and the weights; workspaces: arrays that a pass writes to and that
    mean nothing between passes.
    """

    def __init__(self, working: WorkingLoss) -> None:
        pairs, twin = working.pairs, working.space.lattice.twin
        self.sequences: Longs = np.setdiff1d(np.arange(len(twin)), twin[twin >= 0])
        self.complete: NDArray[np.bool_] = twin[self.sequences] < 0
        self.tables = tables_of(working)
        vectors = new_vectors(working, (2,))
        sums = PairSums(
            np.arange(len(vectors.walk), dtype=np.int32),
            np.zeros(int(np.diff(pairs.contexts.ent_ptr).max(initial=0))),
            np.zeros(pairs.psi.shape[1:]),
        )
        self.workspaces = new_potentials(working), vectors, sums


class SequenceDescent:
    """Weights under stochastic gradient descent with the cumulative l1 penalty.

    working: the loss on the weights to learn, [K]; penalty: applied an example's share at a time;
    missing: whether examples with missing gold labels take part; n_examples: among how many the
    penalty is shared, 0 for those that take part.
    theta: [K] weights; received: [K], the l1 penalty that each has received; due: [2], the l1 and
    l2 rates cumulated so far. Once settled, these are the whole state.
    """

    def __init__(
        self,
        working: WorkingLoss,
        penalty: ElasticNet,
        missing: bool = False,
        n_examples: int = 0,
    ) -> None:
        self._working = working
        self._examples = Examples(working)
        known = self._examples.complete
        self.sequences: Longs = self._examples.sequences[known | missing]
        share = 1.0 / max(1, n_examples or len(self.sequences))
        self._rates = (share * penalty.l1, share * penalty.l2)
        n = len(working.coordinates)
        self.resume(np.zeros(n), np.zeros(n), 0.0)

    def resume(self, theta: Floats, received: Floats, due: float) -> None:
        """Continue from settled weights; theta, received: [K]; due: the cumulated l1 rate."""
        self.theta = theta.copy()
        self.received = received.copy()
        # Settled weights have been shrunk by all that was due.
        self._row_shrunk = np.zeros(len(self._working.unigram))
        self._pair_shrunk = np.zeros(len(theta) - self._working.split)
        self.due = np.array([due, 0.0])

    def run(self, order: Longs, eta: float, decay: float) -> float:
        """Pass over examples once.

        order: [n] int64; eta: step at the first, multiplied by decay after each; 0 to measure.
        RETURNS: the weighted sum of the losses of the examples, each before its update.
        """
        arguments = (
            order,
            *self._examples.tables,
            self.theta,
            self.received,
            self._row_shrunk,
            self._pair_shrunk,
            self.due,
            *self._rates,
            eta,
            decay,
            *self._examples.workspaces,
        )
        return float(sgd_pass(*arguments))

    def loss_after(self, sample: Longs, eta: float) -> float:
        """The loss of a sample [n] int64 after a pass over it, which is then undone."""
        before = self.theta, self.received, float(self.due[0])
        self.resume(*before)
        self.run(sample, eta, 1.0)
        loss = self.run(sample, 0.0, 1.0)
        self.resume(*before)
        return loss

    def settle(self) -> Floats:
        """Apply the penalties that are due to all weights, and return the weights [K]."""
        working, split = self._working, self._working.split
        unigram = (working.unigram.ptr, self.theta[:split], self.received[:split])
        penalise(*unigram, self._row_shrunk, self.due)
        # Each bigram weight shrinks by itself.
        bigram = (np.arange(len(self._pair_shrunk) + 1), self.theta[split:], self.received[split:])
        penalise(*bigram, self._pair_shrunk, self.due)
        return self.theta
