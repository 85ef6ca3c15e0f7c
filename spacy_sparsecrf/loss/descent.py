"""Passes of stochastic descent over the examples of the chain loss."""

import numpy as np

from ..kernels.descent import Paid, penalise, sgd_pass
from ..kernels.minibatch import RowMarks, Rule, minibatch_pass
from ..penalty import ElasticNet
from .examples import Examples
from .lattice import Floats, Longs
from .working import WorkingLoss


class SequenceDescent:
    """Weights under stochastic gradient descent with the cumulative l1 penalty.

    working: the loss on the weights to learn, [K]; penalty: applied an example's share at a time;
    missing: whether examples with missing gold labels take part; n_examples: among how many the
    penalty is shared, 0 for those that take part.
    theta: [K] weights; received: [K], the l1 penalty that each has received; due: [2], the l1 and
    l2 rates cumulated so far. Once settled, these are the whole state.
    """

    def __init__(
        self, working: WorkingLoss, penalty: ElasticNet, missing: bool = False, n_examples: int = 0
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
        return float(sgd_pass(order, tables, unigram, bigram, *self._rates, eta, decay, visit))

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


class Minibatches:
    """Passes of a stochastic solver over minibatches of examples.

    working: the loss on the weights to learn, [K]; penalty: applied a minibatch's share at a
    time; batch: examples of a minibatch; n_examples: among how many the penalty is shared, 0 for
    those of the loss.
    sequences: [S] int64, the examples; share: the penalty of a minibatch.
    """

    def __init__(
        self, working: WorkingLoss, penalty: ElasticNet, batch: int, n_examples: int = 0
    ) -> None:
        self._examples = Examples(working)
        self.sequences: Longs = self._examples.sequences
        self.batch = batch
        share = 1.0 / -(-(n_examples or len(self.sequences)) // batch)
        self.share = ElasticNet(share * penalty.l1, share * penalty.l2)
        n_weights = len(working.coordinates)
        pair_ptr = working.split + working.bigram.ptr
        self._weights_of = np.concatenate((working.unigram.ptr[:-1], pair_ptr))
        self._gradient = np.zeros(n_weights)

    def n_steps(self, order: Longs) -> int:
        """How many minibatches an order [n] of examples is cut into."""
        return -(-len(order) // self.batch)

    def run(
        self,
        order: Longs,
        rule: int,
        etas: Floats,
        theta: Floats,
        extra: Floats,
        averaging: bool = False,
        delta: float = 1.0,
    ) -> float:
        """Pass over examples once.

        order: [n] int64; rule: see `kernels.minibatch`; etas: [n_steps], a step for each
        minibatch, 0 to measure; theta: [K], in and out; extra: [K], in and out, what the rule
        keeps of each weight; averaging: whether SGD sums its iterates there; delta: of AdaGrad.
        RETURNS: the weighted sum of the losses of the examples, each before its step.
        """
        l2 = self.share.l2
        shrinkage = np.concatenate(([0.0], np.cumsum(np.log1p(etas * l2))))
        averaged = np.zeros(len(etas) + 1)
        if averaging:
            averaged[1:] = np.cumsum(np.exp(-shrinkage[1:]))
        numbers = Rule(rule, delta, self.share.l1, l2, shrinkage, averaged, averaging)
        marks = self._new_marks()
        pass_of = order, self.batch, etas, numbers, self._examples.tables, marks
        sums = self._gradient, self._examples.gradients(self._gradient)
        return float(minibatch_pass(*pass_of, theta, extra, *sums, self._examples.visit))

    def _new_marks(self) -> RowMarks:
        """Marks of rows, of which none was visited."""
        n = len(self._weights_of) - 1
        unseen, nothing = np.full(n, -1, dtype=np.int64), np.zeros(n, dtype=np.int64)
        return RowMarks(self._weights_of, unseen, nothing, nothing.copy())
