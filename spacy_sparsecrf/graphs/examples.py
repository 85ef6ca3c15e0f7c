"""Stochastic descent on the loss of graphs, whose weights all change at each step."""

import numpy as np

from ..kernels.minibatch import Rule, step_all
from ..kernels.sgd import Paid, penalise
from ..loss.lattice import Floats, Longs
from .loss import GraphLoss


class GraphExamples:
    """The examples of a loss of graphs, as `loss.examples.Examples` are of a loss of chains.

    sequences: [S] int64; complete: [S] bool, whether all gold labels are known.
    """

    def __init__(self, loss: GraphLoss) -> None:
        self.sequences, self.complete = loss.examples, loss.complete
        self.add, self.add_product = loss.add, loss.add_product
        self._ptr = loss.unigram.ptr

    def descend(
        self,
        order: Longs,
        paid: tuple[Paid, Paid],
        rates: tuple[float, float],
        eta: float,
        decay: float,
    ) -> float:
        """Pass over examples once, see `SequenceDescent.run`; rates: penalties of each."""
        own, loss = paid[0], 0.0
        for s in order:
            gradient = np.zeros_like(own.theta)
            loss += self.add(np.array([s]), own.theta, gradient)
            own.due[:] += eta * np.array(rates)
            own.theta[:] -= eta * gradient
            penalise(self._ptr, own)
            eta *= decay
        return loss

    def descend_in_batches(
        self, order: Longs, batch: int, etas: Floats, rule: Rule, theta: Floats, extra: Floats
    ) -> float:
        """Pass over examples once; see `Minibatches.run`."""
        gradient, loss = np.zeros_like(theta), 0.0
        for number, eta in enumerate(etas):
            members = order[number * batch : (number + 1) * batch]
            loss += self.add(members, theta, gradient)
            step_all(eta, rule, gradient, theta, extra)
        return loss
