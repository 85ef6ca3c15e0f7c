"""The chain loss an example at a time: what stochastic solvers need."""

import numpy as np
from numpy.typing import NDArray

from ..kernels.descent import Paid, penalise
from ..kernels.sgd import sgd_pass
from ..penalty import ElasticNet
from .tables import new_visit, tables_of
from .working import Floats, Longs, WorkingLoss


class Examples:
    """The examples of a working loss, and what kernels take to visit them.

    working: the loss on the weights to learn, laid out for a stochastic solver. An *example* is
    a sequence with gold labels, or one with missing labels and its constrained copy.
    sequences: [S] int64, those that are examples; complete: [S] bool, whether all gold labels are
    known; tables: the corpus and the weights; visit: workspaces, which a pass writes to and which
    mean nothing between passes; split: how many unigram weights there are.
    """

    def __init__(self, working: WorkingLoss) -> None:
        twin = working.space.lattice.twin
        self.sequences: Longs = np.setdiff1d(np.arange(len(twin)), twin[twin >= 0])
        self.complete: NDArray[np.bool_] = twin[self.sequences] < 0
        self.tables = tables_of(working)
        self.visit = new_visit(working)
        self.split = working.split

    def gradients(self, gradient: Floats) -> tuple[Paid, Paid]:
        """Sums of gradients [K], as kernels take them: weights on which nothing is due."""
        nothing, no_dues = np.zeros(len(gradient) + 1), np.zeros(2)
        split = self.split
        unigram = Paid(gradient[:split], nothing[:split], nothing, no_dues)
        n_bigram = len(gradient) - split
        return unigram, Paid(gradient[split:], nothing[:n_bigram], nothing, no_dues)


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
        unigram, bigram = self._paid()
        tables, visit = self._examples.tables, self._examples.visit
        loss: float = sgd_pass(order, tables, unigram, bigram, *self._rates, eta, decay, visit)
        return loss

    def _paid(self) -> tuple[Paid, Paid]:
        """The weights of each kind, and what they have received."""
        split = self._working.split
        return (
            Paid(self.theta[:split], self.received[:split], self._row_shrunk, self.due),
            Paid(self.theta[split:], self.received[split:], self._pair_shrunk, self.due),
        )

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
        unigram, bigram = self._paid()
        penalise(self._working.unigram.ptr, unigram)
        # Each bigram weight shrinks by itself.
        penalise(np.arange(len(self._pair_shrunk) + 1), bigram)
        return self.theta
