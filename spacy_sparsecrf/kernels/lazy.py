"""Steps along a constant direction, made up for when a weight is next seen.

Step s of a pass, for a weight w that sequence s does not touch, is

    w := soft((1 - alpha_s lambda) w - q_s d, q_s l1),        soft(v, c) = sign(v) max(|v| - c, 0)

with d its sum of stored gradients, q_s = alpha_s / m_s (Schmidt 2015, equation 4; proximal as in
Defazio 2014). While w keeps its sign, t steps from a to b are R w - M (d + sign(w) l1) with
R = prod_s (1 - alpha_s lambda) and M = sum_s q_s prod_{s' > s} (1 - alpha_s' lambda). Two running
numbers a step give R and M between any two steps, `shrunk` and `moved`:

    log R = shrunk[b] - shrunk[a],        M = moved[b] - R moved[a].

d does not change between visits, so a weight changes sign once at most: it falls to zero and stays
there if |d| <= l1, else leaves on the other side. The step at which it arrives is found by
bisection, as |R w| - M (sign(w) d + l1) has the sign of an expression that falls with b.
"""

import numpy as np

from .compiled import inner


@inner
def _cross(
    w: float,
    d: float,
    l1: float,
    first: int,
    last: int,
    shrunk: np.ndarray,
    moved: np.ndarray,
) -> float:
    """The steps first:last of a weight w that is zero, or has changed its sign, after them."""
    sign = np.sign(w)
    size, slope = sign * w, sign * d
    low, high = first, last
    while high - low > 1:
        middle = (low + high) // 2
        ratio = np.exp(shrunk[middle] - shrunk[first])
        if ratio * size - (moved[middle] - ratio * moved[first]) * (slope + l1) > 0.0:
            low = middle
        else:
            high = middle
    ratio = np.exp(shrunk[low] - shrunk[first])
    size = ratio * size - (moved[low] - ratio * moved[first]) * (slope + l1)
    # To zero, or across it, in the first of these; then on.
    for begin, end in ((low, high), (high, last)):
        ratio = np.exp(shrunk[end] - shrunk[begin])
        move = moved[end] - ratio * moved[begin]
        size = min(ratio * size - move * (slope - l1), 0.0)
    return float(sign * size)


@inner
def catch_up(
    row: int,
    now: int,
    row_ptr: np.ndarray,
    theta: np.ndarray,
    total: np.ndarray,
    l1: float,
    reached: np.ndarray,
    shrunk: np.ndarray,
    moved: np.ndarray,
) -> None:
    """Do the steps reached[row]:now of the weights of a row.

    row_ptr: [R + 1], weights of a row; theta, total: [K], weights w and sums d; reached: [R]
    int64, in and out, steps that a row has done; shrunk, moved: [steps + 1] (see above).
    """
    past = reached[row]
    if past == now:
        return
    reached[row] = now
    ratio = np.exp(shrunk[now] - shrunk[past])
    move = moved[now] - ratio * moved[past]
    begin, end = row_ptr[row], row_ptr[row + 1]
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
            theta[k] = _cross(w, d, l1, past, now, shrunk, moved)


@inner
def catch_up_all(
    now: int,
    row_ptr: np.ndarray,
    theta: np.ndarray,
    total: np.ndarray,
    l1: float,
    reached: np.ndarray,
    shrunk: np.ndarray,
    moved: np.ndarray,
) -> None:
    """`catch_up` of all rows."""
    for row in range(len(reached)):
        catch_up(row, now, row_ptr, theta, total, l1, reached, shrunk, moved)
