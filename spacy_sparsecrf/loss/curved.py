"""Gradients and Hessian-vector products of minibatches."""

from typing import Any

import numpy as np

from ..kernels.smd import add_gradient_and_product
from ..kernels.tangent import TangentSpace
from .stochastic import Examples
from .tables import context_rows_of
from .working import Floats, Longs, WorkingLoss


class CurvedMinibatches:
    """Evaluates minibatches one at a time, with their Hessian times a vector.

    working: the loss on the weights to learn, [K].
    sequences: [S] int64, the examples.
    """

    def __init__(self, working: WorkingLoss) -> None:
        self._examples = Examples(working)
        self.sequences: Longs = self._examples.sequences
        space = working.space
        self._rows = context_rows_of(working)
        self._zeros = np.zeros(len(working.coordinates) + 1), np.zeros(2)
        longest = int(np.diff(space.lattice.offsets).max())
        shape = working.pairs.psi.shape[1:]
        self._tangents = TangentSpace(
            np.zeros(shape),
            np.zeros(shape),
            np.zeros(shape),
            np.zeros((longest, space.padded)),
            np.zeros((longest, space.padded)),
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
        arguments: tuple[Any, ...] = (
            members,
            self._visit,
            *self._examples.tables,
            self._rows,
            theta,
            direction,
            gradient,
            product,
            *self._zeros,
            *self._examples.workspaces,
            self._tangents,
        )
        return float(add_gradient_and_product(*arguments))
