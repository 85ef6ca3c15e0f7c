"""The steps and draws of SAG (Schmidt et al. 2015, section 5).

Sequences are drawn in proportion to changing numbers, by a binary tree of sums and maxima. The
*curvature* of a sequence, the Lipschitz constant of its gradient, is found by a search.

Steps along a constant direction are done lazily, when a weight is next needed. Step s of a pass,
for a weight w that sequence s does not have, is

    w := soft((1 - alpha_s lambda) w - q_s d, q_s l1),        soft(v, c) = sign(v) max(|v| - c, 0)

with d its sum of stored gradients, q_s = alpha_s / m_s (equation 4; proximal as in Defazio 2014).
While w keeps its sign, t steps from a to b are R w - M (d + sign(w) l1) with
R = prod_s (1 - alpha_s lambda) and M = sum_s q_s prod_{s' > s} (1 - alpha_s' lambda). Two running
totals for each step, `shrunk` and `moved`, give R and M between any two steps:

    log R = shrunk[b] - shrunk[a],        M = moved[b] - R moved[a].

d does not change between visits, so a weight changes sign once at most: it falls to zero and stays
there if |d| <= l1, else it crosses zero. Bisection finds the step at which it reaches zero, as
|R w| - M (sign(w) d + l1) has the sign of an expression that falls with b.
"""

from typing import NamedTuple

import numpy as np

from ...kernels.exp import exp
from ...kernels.layout import Floats, Ints
from ...kernels.numba_support import inlined

# Sampling modes: uniform; a share of draws from unseen sequences; half of draws by curvature; two
# draws, one by curvature for the step, one uniform for the memory (proposition 1b).
UNIFORM, GROWING, BALANCED, PAIRED = 0, 1, 2, 3


class Rules(NamedTuple):
    """Rules of sampling, and of step sizes.

    mode: UNIFORM, GROWING, BALANCED or PAIRED; saga: whether steps are unbiased (proposition 1);
    revisit: see `first_estimate`; least_norm: |g|^2 up to which there is no search for a curvature;
    caution: divisor of step sizes; l1: penalty of the summed loss; decay: lambda, l2 penalty of the
    mean loss.
    """

    mode: int
    saga: bool
    revisit: float
    least_norm: float
    caution: float
    l1: float
    decay: float


class Steps(NamedTuple):
    """The steps of a pass, and the number that weights have applied.

    reached: [blocks] int64, zeros at first, steps that a feature block has applied; shrunk, moved:
    [steps + 1], the first 0 (see the module).
    """

    reached: Ints
    shrunk: Floats
    moved: Floats


class Pending(NamedTuple):
    """Steps that weights have missed: theta, total: [K], weights w and sums d; l1: penalty."""

    theta: Floats
    total: Floats
    l1: float
    steps: Steps


@inlined
def curvature_share(mode: int, n_seen: int, n: int) -> float:
    """Return the probability of a first draw by curvature, if n_seen of n sequences have one."""
    if mode in (UNIFORM, PAIRED) or n_seen == 0:
        return 0.0
    return 0.5 * n_seen / n if mode == GROWING else 0.5


@inlined
def set_leaf(sums: Floats, tops: Floats, leaf: int, value: float) -> None:
    """Set the number of a leaf, and update the sums and maxima above it.

    sums, tops: [2 P] float64, P a power of two: node j is the parent of the nodes 2 j and 2 j + 1;
    the root is 1, leaf i is node P + i.
    """
    node = len(sums) // 2 + leaf
    sums[node] = value
    tops[node] = value
    node //= 2
    while node >= 1:
        sums[node] = sums[2 * node] + sums[2 * node + 1]
        tops[node] = max(tops[2 * node], tops[2 * node + 1])
        node //= 2


def set_leaves(sums: Floats, tops: Floats, values: Floats) -> None:
    """Fill an empty tree with the numbers of its first leaves, [<= P]."""
    end = len(sums) // 2
    sums[end : end + len(values)] = tops[end : end + len(values)] = values
    while end > 1:
        begin = end // 2
        sums[begin:end] = sums[end : 2 * end].reshape(-1, 2).sum(axis=1)
        tops[begin:end] = tops[end : 2 * end].reshape(-1, 2).max(axis=1)
        end = begin


@inlined
def draw_leaf(sums: Floats, uniform: float) -> int:
    """Choose a leaf with a probability in proportion to its number.

    sums: see `set_leaf`; at least one number is positive; uniform: in [0, 1). RETURNS: a leaf whose
    number is positive.
    """
    left = uniform * sums[1]
    node = 1
    while node < len(sums) // 2:
        node *= 2
        # By rounding, `left` may reach the sum of all.
        if left >= sums[node] and sums[node + 1] > 0.0:
            left -= sums[node]
            node += 1
    return node - len(sums) // 2


@inlined
def draw(
    uniform: Floats, mode: int, share: float, n_seen: int, order: Ints, sums: Floats
) -> tuple[int, float]:
    """Choose a sequence, by its curvature in a share of the draws.

    Other draws are uniform over all n. GROWING, PAIRED: (n - n_seen) / n of all draws are uniform
    over the sequences not seen, the rest over the others; a new one moves to index n_seen.

    uniform: [2] in [0, 1); order: [n] int64, in and out (see `kernels.Progress`); sums: tree of
    curvatures (see `set_leaf`). RETURNS: the sequence, and its probability in this draw.
    """
    n, by_order = len(order), mode in (GROWING, PAIRED)
    if uniform[0] < share:
        s = draw_leaf(sums, uniform[1])
    elif not by_order:
        s = min(int(uniform[1] * n), n - 1)
    elif uniform[0] < n_seen / n:
        s = order[min(int(uniform[1] * n_seen), n_seen - 1)]
    else:
        drawn = min(n_seen + int(uniform[1] * (n - n_seen)), n - 1)
        s = order[drawn]
        order[drawn] = order[n_seen]
        order[n_seen] = s
        return s, 1.0 / n
    others = (n_seen / n - share) / n_seen if by_order else (1.0 - share) / n
    by_curvature = share * sums[len(sums) // 2 + s] / sums[1] if share > 0.0 else 0.0
    return s, others + by_curvature


@inlined
def first_estimate(old: float, mean: float, by_mean: bool, initial: float, decay: float) -> float:
    """Return the curvature from which the search for a sequence starts.

    old: its last estimate, 0 = not seen yet; mean: of all seen, 0 = none; by_mean: whether a new
    sequence starts from half of the mean (2015) or from `initial` (2013); decay: factor of the last
    estimate.
    """
    if old > 0.0:
        return decay * old
    if by_mean and mean > 0.0:
        return 0.5 * mean
    return initial


@inlined
def step_size(share: float, largest: float, mean: float, rules: Rules, n: int) -> float:
    """Return the step size alpha for a share of draws by curvature, in units of the mean loss.

    SAG: (1 - share) / (L_max + lambda) + share / (L_mean + lambda), 1 / max_i L_i / (n p_i). SAGA
    uses it as 1 / L in alpha = 1 / (4 L + n lambda) (proposition 1a, with p_i = 1 / n). PAIRED:
    1 / (4 (L_mean + lambda)) (proposition 1b, whose L is printed without its bar).

    largest, mean: of the curvatures of sequences seen.
    """
    decay = rules.decay
    if rules.mode == PAIRED:
        return 0.25 / (mean + decay)
    alpha = (1.0 - share) / (largest + decay) + share / (mean + decay)
    return alpha / (4.0 + n * decay * alpha) if rules.saga else alpha


@inlined
def _cross(w: float, d: float, l1: float, first: int, last: int, steps: Steps) -> float:
    """Apply the steps first:last to a weight w that ends at zero or with the other sign."""
    sign, shrunk, moved = np.sign(w), steps.shrunk, steps.moved
    size, slope = sign * w, sign * d
    low, high = first, last
    while high - low > 1:
        middle = (low + high) // 2
        ratio = exp(shrunk[middle] - shrunk[first])
        if ratio * size - (moved[middle] - ratio * moved[first]) * (slope + l1) > 0.0:
            low = middle
        else:
            high = middle
    ratio = exp(shrunk[low] - shrunk[first])
    size = ratio * size - (moved[low] - ratio * moved[first]) * (slope + l1)
    # The weight reaches or crosses zero in the first range, and moves on in the second.
    for begin, end in ((low, high), (high, last)):
        ratio = exp(shrunk[end] - shrunk[begin])
        move = moved[end] - ratio * moved[begin]
        size = min(ratio * size - move * (slope - l1), 0.0)
    return float(sign * size)


@inlined
def repeat_steps(begin: int, end: int, past: int, now: int, pending: Pending) -> None:
    """Apply the steps past:now to the weights begin:end; see `kernels.lazy.advance`."""
    theta, total, l1, steps = pending
    ratio = exp(steps.shrunk[now] - steps.shrunk[past])
    move = steps.moved[now] - ratio * steps.moved[past]
    if l1 == 0.0:
        for k in range(begin, end):
            theta[k] = ratio * theta[k] - move * total[k]
        return
    for k in range(begin, end):
        w, d = theta[k], total[k]
        if w == 0.0 and abs(d) <= l1:
            continue
        positive = w > 0.0 or (w == 0.0 and d < 0.0)
        drawn = ratio * w - move * (d + (l1 if positive else -l1))
        if (drawn > 0.0) == positive and drawn != 0.0:
            theta[k] = drawn
        else:
            theta[k] = _cross(w, d, l1, first=past, last=now, steps=steps)
