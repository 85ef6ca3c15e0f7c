"""Gradients and Hessian-vector products of minibatches."""

import numpy as np

from ..kernels.smd import add_gradient_and_product
from .stochastic import Examples
from .working import Floats, Longs, WorkingLoss


class CurvedMinibatches:
    """Evaluates minibatches one at a time, with their Hessian times a vector.

    working: the loss on the weights to learn, [K].
    sequences: [S] int64, the examples.
    """

    def __init__(self, working: WorkingLoss) -> None:
        self._examples = Examples(working)
        self.sequences: Longs = self._examples.sequences
        space, lattice = working.space, working.space.lattice
        contexts = working.bigram.of(lattice.ctx_tests)
        self._rows = (lattice.context, contexts.indptr, contexts.indices)
        longest = int(np.diff(lattice.offsets).max())
        shape = working.pairs.psi.shape[1:]
        self._workspaces = (
            np.zeros(len(working.coordinates) + 1),
            np.zeros(2),
            *(np.zeros(shape) for _ in range(3)),
            *(np.zeros((longest, space.padded)) for _ in range(2)),
            np.zeros((4, space.padded)),
        )
        self._visit = 0

    def add(
        self, members: Longs, theta: Floats, direction: Floats, gradient: Floats, product: Floats
    ) -> float:
        """Add the gradient of a minibatch, and its Hessian times direction, at theta.

        members: [b] int64 examples; theta, direction: [K]; gradient, product: [K], added to.
        RETURNS: the weighted sum of the examples' losses.
        """
        self._visit += 1
        arguments = (
            members,
            self._visit,
            *self._rows,
            *self._examples.tables,
            theta,
            direction,
            gradient,
            product,
            *self._workspaces,
            *self._examples.workspaces,
        )
        return float(add_gradient_and_product(*arguments))
