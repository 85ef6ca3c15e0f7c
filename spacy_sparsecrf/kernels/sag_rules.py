"""The rules of SAG: which sequence to draw, its curvature at first, the step (Schmidt 2015, 5)."""

from typing import NamedTuple

import numpy as np

from .compiled import inner
from .sampling import draw_leaf

# How sequences are drawn: all alike; those not yet seen first of all; half of them by curvature.
UNIFORM, GROWING, BALANCED = 0, 1, 2


class Rules(NamedTuple):
    """How sequences are drawn, and how large steps are.

    mode: UNIFORM, GROWING or BALANCED; saga: whether steps are unbiased (proposition 1); fresh,
    revisit: see `first_estimate`; grow, least_norm: of the search for a curvature, which is left
    out where |g|^2 is not larger; caution: steps are divided by it; l1: penalty of the summed loss;
    decay: lambda, penalty of the mean loss.
    """

    mode: int
    saga: bool
    fresh: float
    revisit: float
    grow: float
    least_norm: float
    caution: float
    l1: float
    decay: float


@inner
def curvature_share(mode: int, n_seen: int, n: int) -> float:
    """The probability that a draw is by curvature, n_seen of n sequences having one."""
    if mode == UNIFORM or n_seen == 0:
        return 0.0
    return 0.5 * n_seen / n if mode == GROWING else 0.5


@inner
def seen_first(curvatures: np.ndarray, order: np.ndarray) -> int:
    """List the sequences with a curvature, then the others, and count the former.

    curvatures: [n], 0 = not seen yet; order: [n] int64, out.
    """
    n_seen = 0
    for s in range(len(curvatures)):
        n_seen += curvatures[s] > 0.0
    place, waiting = 0, n_seen
    for s in range(len(curvatures)):
        if curvatures[s] > 0.0:
            order[place] = s
            place += 1
        else:
            order[waiting] = s
            waiting += 1
    return n_seen


@inner
def draw(
    uniform: np.ndarray, mode: int, n_seen: int, order: np.ndarray, sums: np.ndarray
) -> tuple[int, float]:
    """Choose a sequence, by its curvature in a share of the draws (see `curvature_share`).

    The other draws are of all n alike. GROWING: of the n_seen that were seen alike, as many as by
    curvature, and (n - n_seen) / n of those that were not; a new one moves to the place n_seen.

    uniform: [2] in [0, 1); order: [n] int64, in and out (see `seen_first`); sums: tree of
    curvatures (see `sampling`). RETURNS: the sequence, and the probability that it had.
    """
    n, share = len(order), curvature_share(mode, n_seen, len(order))
    if uniform[0] < share:
        s = draw_leaf(sums, uniform[1])
    elif mode != GROWING:
        s = min(int(uniform[1] * n), n - 1)
    elif uniform[0] < 2.0 * share:
        s = order[min(int(uniform[1] * n_seen), n_seen - 1)]
    else:
        place = min(n_seen + int(uniform[1] * (n - n_seen)), n - 1)
        s = order[place]
        order[place] = order[n_seen]
        order[n_seen] = s
        return s, 1.0 / n
    others = share / n_seen if mode == GROWING else (1.0 - share) / n
    by_curvature = share * sums[len(sums) // 2 + s] / sums[1] if share > 0.0 else 0.0
    return s, others + by_curvature


@inner
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


@inner
def step_size(share: float, largest: float, mean: float, decay: float, saga: bool, n: int) -> float:
    """The step alpha for a share of draws by curvature, in units of the mean loss.

    SAG: (1 - share) / (L_max + lambda) + share / (L_mean + lambda), 1 / max_i L_i / (n p_i). SAGA
    takes that for 1 / L in alpha = 1 / (4 L + n lambda) (proposition 1, with p_i = 1 / n).

    largest, mean: of the curvatures of sequences seen; decay: lambda.
    """
    alpha = (1.0 - share) / (largest + decay) + share / (mean + decay)
    return alpha / (4.0 + n * decay * alpha) if saga else alpha
