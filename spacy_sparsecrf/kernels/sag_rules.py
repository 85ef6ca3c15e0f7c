"""The rules of SAG: which sequence to draw, its curvature at first, the step (Schmidt 2015, 5)."""

import numpy as np
from numba import njit

from .sampling import draw_leaf

# How sequences are drawn: all alike; by curvature, the more the more are seen; half and half.
UNIFORM, GROWING, BALANCED = 0, 1, 2


@njit(cache=True, nogil=True, error_model="numpy")
def draw(uniform: np.ndarray, share: float, n: int, sums: np.ndarray) -> tuple[int, float]:
    """Choose a sequence, by its curvature with probability `share`, else any of n.

    uniform: [2] in [0, 1); sums: tree of curvatures (see `sampling`).
    RETURNS: the sequence, and the probability that it had.
    """
    s = draw_leaf(sums, uniform[1]) if uniform[0] < share else min(int(uniform[1] * n), n - 1)
    probability = (1.0 - share) / n
    if share > 0.0:
        probability += share * sums[len(sums) // 2 + s] / sums[1]
    return s, probability


@njit(cache=True, nogil=True, error_model="numpy")
def first_estimate(
    old: float, mean: float, by_mean: bool, initial: float, fresh: float, decay: float
) -> float:
    """The curvature of a sequence from which the search starts.

    old: what it was when it was last seen, 0 = never; mean: of all seen, 0 = none;
    by_mean: whether a sequence starts from fresh * mean (2015) or from `initial` (2013); decay:
    factor of one seen before.
    """
    if old > 0.0:
        return decay * old
    if by_mean and mean > 0.0:
        return fresh * mean
    return initial


@njit(cache=True, nogil=True, error_model="numpy")
def step_size(share: float, largest: float, mean: float, decay: float, saga: bool, n: int) -> float:
    """The step alpha for a share of draws by curvature, in units of the mean loss.

    SAG: (1 - share) / (L_max + lambda) + share / (L_mean + lambda), 1 / max_i L_i / (n p_i). SAGA
    takes that for 1 / L in alpha = 1 / (4 L + n lambda) (proposition 1, with p_i = 1 / n).

    largest, mean: of the curvatures of sequences seen; decay: lambda.
    """
    alpha = (1.0 - share) / (largest + decay) + share / (mean + decay)
    return alpha / (4.0 + n * decay * alpha) if saga else alpha
