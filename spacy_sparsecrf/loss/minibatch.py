"""The chain loss a minibatch at a time."""

import numpy as np

from ..kernels.minibatch import RowMarks, Rule, minibatch_pass
from ..penalty import ElasticNet
from .stochastic import Examples
from .working import Floats, Longs, WorkingLoss


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
        self._rows = working.context_rows
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
        n_rows = len(self._weights_of) - 1
        marks = RowMarks(
            self._weights_of,
            np.full(n_rows, -1, dtype=np.int64),
            np.zeros(n_rows, dtype=np.int64),
            np.zeros(n_rows, dtype=np.int64),
        )
        loss: float = minibatch_pass(
            order,
            self.batch,
            etas,
            Rule(rule, delta, self.share.l1, l2, shrinkage, averaged, averaging),
            self._examples.tables,
            self._rows,
            marks,
            theta,
            extra,
            self._gradient,
            self._examples.gradients(self._gradient),
            self._examples.visit,
        )
        return loss
