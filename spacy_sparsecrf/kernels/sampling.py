"""Sampling in proportion to numbers that change: a binary tree of sums and maxima."""

import numpy as np

from .compiled import inner, kernel


@inner
def set_leaf(sums: np.ndarray, tops: np.ndarray, leaf: int, value: float) -> None:
    """Change the number of a leaf, and the sums and maxima above it.

    sums, tops: [2 P] float64, P a power of two: node j lies above the nodes 2 j and 2 j + 1; the
    root is 1, leaf i is node P + i.
    """
    node = len(sums) // 2 + leaf
    sums[node] = value
    tops[node] = value
    node //= 2
    while node >= 1:
        sums[node] = sums[2 * node] + sums[2 * node + 1]
        tops[node] = max(tops[2 * node], tops[2 * node + 1])
        node //= 2


@kernel
def set_leaves(sums: np.ndarray, tops: np.ndarray, values: np.ndarray) -> None:
    """Fill an empty tree with the numbers of its first leaves, [<= P]."""
    n_leaves = len(sums) // 2
    for i in range(n_leaves):
        value = values[i] if i < len(values) else 0.0
        sums[n_leaves + i] = value
        tops[n_leaves + i] = value
    for node in range(n_leaves - 1, 0, -1):
        sums[node] = sums[2 * node] + sums[2 * node + 1]
        tops[node] = max(tops[2 * node], tops[2 * node + 1])


@inner
def draw_leaf(sums: np.ndarray, uniform: float) -> int:
    """Choose a leaf with a probability in proportion to its number.

    sums: see `set_leaf`, of which some is positive; uniform: in [0, 1). RETURNS: a leaf whose
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
