"""Options of losses, as wrappers around any loss: a prior, weights that stay zero, polishing."""

from collections.abc import Callable
from functools import partial
from typing import cast

import numpy as np

from ..corpus.coordinates import NO_COORDINATES, Weights, distinct
from ..corpus.numbering import Array, Floats, Longs, Mask, find_ascending
from ..penalty import ElasticNet
from .chain_loss import largest
from .protocols import CurvedLoss, ExampleLoss, HessianProducts, Loss, Violators, Which, WorkingLoss
from .size import Size

Start = Callable[[Loss, ElasticNet], Weights]


class _Wrapper(Loss):
    """A loss that is another one but for what a subclass changes.

    loss: the other one; again: wraps another loss like this one.
    """

    def __init__(self, loss: Loss, again: Callable[[Loss], Loss]) -> None:
        self._loss, self._again = loss, again
        self.n_potential = loss.n_potential
        self.n_sequences = loss.n_sequences
        self.is_convex = loss.is_convex
        self.has_examples = loss.has_examples
        self.required = loss.required

    @property
    def n_coordinates(self) -> int:
        """See `Loss.n_coordinates`."""
        return self._loss.n_coordinates

    @property
    def arrays(self) -> list[Array]:
        """Arrays that identify the corpus."""
        return self._loss.arrays

    def restrict(self, coordinates: Longs) -> WorkingLoss:
        """See `Loss.restrict`."""
        return self._loss.restrict(coordinates)

    def by_example(self, coordinates: Longs, origin: Floats | None = None) -> ExampleLoss:
        """See `Loss.by_example`."""
        return self._loss.by_example(coordinates, origin)

    def screen(
        self, working: WorkingLoss, theta: Floats, threshold: float, limit: int
    ) -> Violators:
        """See `Loss.screen`."""
        return self._loss.screen(working, theta, threshold, limit)

    def coordinates(self, which: Which, known: Longs = NO_COORDINATES) -> Longs:
        """See `Loss.coordinates`."""
        return self._loss.coordinates(which, known)

    def first_weights(self, start: Start, penalty: ElasticNet) -> Weights:
        """Return the weights of a warm start on the wrapped loss, where the examples are."""
        if self.has_examples:
            return start(self, penalty)
        return self._loss.first_weights(partial(_start_on, start, self._again), penalty)

    def size(self, l1: float, history: int = 0, n_potential: int | None = None) -> Size:
        """See `Loss.size`."""
        return self._loss.size(l1, history, n_potential)

    def forget(self) -> None:
        """See `Loss.forget`."""
        self._loss.forget()

    def rest(self) -> None:
        """See `Loss.rest`."""
        self._loss.rest()

    def close(self) -> None:
        """See `Loss.close`."""
        self._loss.close()


def _start_on(
    start: Start, again: Callable[[Loss], Loss], loss: Loss, penalty: ElasticNet
) -> Weights:
    """Return the weights of a warm start on a loss that is wrapped first."""
    return start(again(loss), penalty)


class Shifted(_Wrapper):
    """loss(theta + origin): with a penalty on theta, the origin is a prior.

    loss: any loss; origin: weights that are added to those of solvers. Every working set contains
    its coordinates, which count as observed.
    """

    def __init__(self, loss: Loss, origin: Weights) -> None:
        super().__init__(loss, partial(Shifted, origin=origin))
        self._origin = origin
        self.required = self._with(loss.required)

    def _with(self, coordinates: Longs) -> Longs:
        return distinct(np.concatenate((coordinates, self._origin.coordinates)))

    def _at(self, coordinates: Longs) -> Floats:
        """Return the origin at coordinates [K] that contain its own, [K]."""
        origin = np.zeros(len(coordinates))
        origin[np.searchsorted(coordinates, self._origin.coordinates)] = self._origin.values
        return origin

    def restrict(self, coordinates: Longs) -> "ShiftedWorkingLoss":
        """Return the loss on a working set and the coordinates of the origin."""
        coordinates = self._with(coordinates)
        return ShiftedWorkingLoss(self._loss.restrict(coordinates), self._at(coordinates))

    def by_example(self, coordinates: Longs, origin: Floats | None = None) -> ExampleLoss:
        """See `Loss.by_example`; kernels add the origin for each token."""
        coordinates = self._with(coordinates)
        return self._loss.by_example(coordinates, self._at(coordinates))

    def screen(
        self, working: WorkingLoss, theta: Floats, threshold: float, limit: int
    ) -> Violators:
        """See `Loss.screen`."""
        if isinstance(working, ShiftedWorkingLoss):
            return self._loss.screen(working.loss, theta + working.origin, threshold, limit)
        return self._loss.screen(working, theta, threshold, limit)

    def coordinates(self, which: Which, known: Longs = NO_COORDINATES) -> Longs:
        """See `Loss.coordinates`."""
        return self._loss.coordinates(which, self._with(known))


class ShiftedWorkingLoss(CurvedLoss):
    """A working loss at theta + origin; loss: on K weights; origin: [K] float64."""

    def __init__(self, loss: WorkingLoss, origin: Floats) -> None:
        self.loss, self.origin, self.coordinates = loss, origin, loss.coordinates

    def value_and_grad(self, theta: Floats) -> tuple[float, Floats]:
        """Return the value, and the gradient [K], at theta [K]."""
        return self.loss.value_and_grad(theta + self.origin)

    def curvature(self, gradient: Floats) -> Floats:
        """See `WorkingLoss.curvature`."""
        return self.loss.curvature(gradient)

    def products(self, stored: int = -1) -> "_ShiftedProducts":
        """Return products of the Hessian, which the loss must have."""
        return _ShiftedProducts(cast("CurvedLoss", self.loss).products(stored), self.origin)


class _ShiftedProducts(HessianProducts):
    """Products of the Hessian at theta + origin."""

    def __init__(self, products: HessianProducts, origin: Floats) -> None:
        self._products, self._origin = products, origin

    @property
    def passes(self) -> float:
        """Number of evaluations and products so far."""
        return self._products.passes

    def prepare(self, theta: Floats, *, evaluated: bool = False) -> None:
        """Set the point theta [K]."""
        self._products.prepare(theta + self._origin, evaluated=evaluated)

    def product(self, vector: Floats) -> Floats:
        """Return H v [K] of a vector [K] float64."""
        return self._products.product(vector)


class Limited(_Wrapper):
    """A loss whose weights stay zero outside of those admitted.

    loss: any loss; admits: function that returns which of the coordinates [n] may have weights,
    [n] bool; admitted: all of them, ascending, if they are few: working sets of solvers that do not
    screen.
    """

    def __init__(
        self,
        loss: Loss,
        admits: Callable[[Longs], Mask],
        admitted: Longs | None = None,
        again: Callable[[Loss], Loss] | None = None,
    ) -> None:
        super().__init__(loss, again or partial(Limited, admits=admits, admitted=admitted))
        self._admits, self._admitted = admits, admitted
        if admitted is not None:
            self.n_potential = len(admitted)

    def screen(
        self, working: WorkingLoss, theta: Floats, threshold: float, limit: int
    ) -> Violators:
        """See `Loss.screen`."""
        everything = self._loss.n_potential
        coordinates, gradients, _ = self._loss.screen(working, theta, threshold, everything)
        admitted = self._admits(coordinates)
        return largest(coordinates[admitted], gradients[admitted], threshold, limit)

    def coordinates(self, which: Which, known: Longs = NO_COORDINATES) -> Longs:
        """See `Loss.coordinates`."""
        if self._admitted is None or which == "observed":
            return super().coordinates(which, known)
        return self._admitted

    def size(self, l1: float, history: int = 0, n_potential: int | None = None) -> Size:
        """See `Loss.size`."""
        return self._loss.size(l1, history, self.n_potential)


def observed_only(loss: Loss, also: Longs = NO_COORDINATES) -> Limited:
    """Return a loss whose features have weights only for labels (pairs) with which they occur.

    also: coordinates [n] that count as observed.
    """
    observed = (loss.coordinates("observed"), also, loss.required)
    admitted = distinct(np.concatenate(observed))

    def admits(coordinates: Longs) -> Mask:
        is_admitted: Mask = find_ascending(admitted, coordinates) >= 0
        return is_admitted

    return Limited(loss, admits, admitted, again=partial(observed_only, also=also))


class Restricted(WorkingLoss):
    """A working loss on some of its weights, the others being zero.

    loss: on K weights; chosen: [k] int64, ascending, indices of the weights.
    """

    def __init__(self, loss: WorkingLoss, chosen: Longs) -> None:
        self._loss, self._chosen = loss, chosen
        self.coordinates = loss.coordinates[chosen]

    def _expanded(self, values: Floats) -> Floats:
        expanded = np.zeros(len(self._loss.coordinates))
        expanded[self._chosen] = values
        return expanded

    def value_and_grad(self, theta: Floats) -> tuple[float, Floats]:
        """Return the value, and the gradient [k], at theta [k]."""
        value, gradient = self._loss.value_and_grad(self._expanded(theta))
        return value, gradient[self._chosen]

    def curvature(self, gradient: Floats) -> Floats:
        """See `WorkingLoss.curvature`."""
        return self._loss.curvature(self._expanded(gradient))[self._chosen]
