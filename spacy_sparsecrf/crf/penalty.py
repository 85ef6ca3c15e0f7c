"""The elastic net: value, proximal map, pseudo-gradient, distance to the subdifferential."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors, SparseCRFError
from .parallel import dot

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ElasticNet:
    """l1 |w|_1 + (l2 / 2) |w|_2^2  (Lavergne 2010, equation 6), not divided by anything.

    l1, l2: finite and >= 0. l2 is 1 / sigma^2 of a Gaussian prior, n * lambda of a penalty on
    the mean loss, and twice CRFsuite's c2.
    RAISES: SparseCRFError if a value is negative or not finite.
    """

    l1: float
    l2: float

    def __post_init__(self) -> None:
        for key, value in (("l1", self.l1), ("l2", self.l2)):
            if not math.isfinite(value) or value < 0.0:
                raise SparseCRFError(Errors.SC303.format(key=key, value=value))

    def slope(self, theta: Floats) -> Floats:
        """Return the gradient of the l2 term at the weights theta [K]."""
        return self.l2 * theta

    def value(self, theta: Floats) -> float:
        """Return the penalty of the weights theta [K]."""
        absolute = dot(theta, np.sign(theta)) if self.l1 else 0.0
        return self.l1 * absolute + 0.5 * self.l2 * dot(theta, theta)

    def prox(self, theta: Floats, step: float) -> Floats:
        """Minimise |w - theta|^2 / (2 step) + penalty(w): soft threshold, then shrink [K]."""
        shrunk = np.maximum(np.abs(theta) - step * self.l1, 0.0) / (1.0 + step * self.l2)
        return np.copysign(shrunk, theta)

    def pseudo_gradient(self, theta: Floats, gradient: Floats) -> Floats:
        """Return the smallest subgradient of the objective (Andrew & Gao 2007, equation 4).

        theta: [K] weights; gradient: [K] of the loss. RETURNS: [K], zero at a minimiser.
        """
        smooth = gradient + self.slope(theta)
        if self.l1 == 0.0:
            return smooth
        at_zero = np.copysign(np.maximum(np.abs(smooth) - self.l1, 0.0), smooth)
        return np.where(theta != 0.0, smooth + self.l1 * np.sign(theta), at_zero)

    def squared_excess(self, gradient: Floats) -> float:
        """Return sum_k max(|g_k| - l1, 0)^2; gradient: [K] of the loss."""
        excess = np.maximum(np.abs(gradient) - self.l1, 0.0)
        return dot(excess, excess)

    def gap(self, theta: Floats, gradient: Floats, squared_excess: float) -> float:
        """Bound how far the objective P of a convex loss is above its minimum, by duality.

        g . w + l1 |w|_1 + (l2 / 2) |w|^2 + sum_k max(|g_k| - l1, 0)^2 / (2 l2) >= P(w) - min P,
        because a convex loss is nowhere below its tangent at w.

        theta, gradient: [K], weights w and gradient g of the loss at w; all other weights are
        zero. squared_excess: of the gradients of all potential weights. RETURNS: the bound;
        infinite if l2 = 0 and a gradient exceeds l1.
        """
        if self.l2 == 0.0 and squared_excess > 0.0:
            return math.inf
        dual = squared_excess / (2.0 * self.l2) if squared_excess else 0.0
        return max(0.0, dot(gradient, theta) + self.value(theta) + dual)

    def distance(self, theta: Floats, gradient: Floats) -> float:
        """Return the largest distance of any -gradient_k to the penalty's subdifferential.

        theta: [K] weights; gradient: [K] of the loss. RETURNS: 0 exactly at a minimiser.
        """
        return float(np.abs(self.pseudo_gradient(theta, gradient)).max(initial=0.0))
