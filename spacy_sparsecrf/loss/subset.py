"""The chain loss on some of the examples."""

import numpy as np

from ..kernels.sgd import add_gradients
from .stochastic import Examples
from .working import Floats, Longs, WorkingLoss


class ExampleSums:
    """Sums the losses and gradients of examples.

    working: the loss on the weights to learn, [K], laid out for a stochastic solver.
    sequences: [S] int64, the examples.
    """

    def __init__(self, working: WorkingLoss) -> None:
        self._examples = Examples(working)
        self.sequences: Longs = self._examples.sequences
        self._visit = 0

    def add(self, members: Longs, theta: Floats, gradient: Floats) -> float:
        """Add the weighted gradients of examples.

        members: [b] int64; theta: [K]; gradient: [K], added to.
        RETURNS: the weighted sum of their losses.
        """
        self._visit += 1
        own = self._examples
        loss: float = add_gradients(
            members, self._visit, own.tables, theta, *own.gradients(gradient), own.visit
        )
        return loss


class Subset:
    """The loss of some of N examples as a function of the weights, scaled up to all of them.

    sums: of the examples; members: [b] int64.
    scale: N / b.
    """

    def __init__(self, sums: ExampleSums, members: Longs) -> None:
        self._sums = sums
        self._members = members
        self.scale = len(sums.sequences) / len(members)

    def value_and_grad(self, theta: Floats) -> tuple[float, Floats]:
        """The value, and the gradient [K], at theta [K]."""
        gradient = np.zeros_like(theta)
        value = self._sums.add(self._members, theta, gradient)
        return self.scale * value, self.scale * gradient
