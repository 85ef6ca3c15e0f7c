"""Gradients and Hessian-vector products of minibatches."""

import numpy as np

from ..kernels.hessian import Turn
from ..kernels.layout import Tangents
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
        rows = self._examples.visit.vectors.alpha.shape

        def new_tangents() -> Tangents:
            return Tangents(*(np.zeros(rows) for _ in range(4)))

        slopes = working.pairs.new_slopes(np.float64)
        self._turn = Turn(slopes, new_tangents(), new_tangents())
        self._number = 0

    def add(
        self, members: Longs, theta: Floats, direction: Floats, gradient: Floats, product: Floats
    ) -> float:
        """Add the gradient of a minibatch, and its Hessian times direction, at theta.

        members: [b] int64 examples; theta, direction: [K]; gradient, product: [K], added to.
        RETURNS: the weighted sum of the examples' losses.
        """
        self._number += 1
        examples = self._examples
        loss: float = add_gradient_and_product(
            members,
            self._number,
            examples.tables,
            theta,
            direction,
            examples.gradients(gradient),
            product,
            examples.visit,
            self._turn,
        )
        return loss
