"""Sums over a corpus by a fixed binary tree, so that they can be distributed among machines.

The sequences are cut into a power of two of *leaves* of about equal cost, whatever the number of
threads or machines. A leaf is summed in the order of its tokens, and leaves over the binary tree
whose nodes are aligned ranges of 2^k leaves. An empty node contributes nothing, not even a zero. A
machine with some of the leaves returns one sum for each maximal node that it owns completely.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

# Tokens of a leaf are at most about so many, and leaves at least so many.
LEAF_TOKENS = 1 << 14
LEAST_LEAVES = 8


def count_leaves(n_tokens: int, leaf_tokens: int = LEAF_TOKENS) -> int:
    """Return the number of leaves, a power of two; leaf_tokens: average maximum of a leaf."""
    return max(LEAST_LEAVES, 1 << max(0, -(-n_tokens // leaf_tokens) - 1).bit_length())


def cut_leaves(lengths: Longs, n: int) -> Longs:
    """Cut sequences into n leaves of about equal cost, some of which may be empty.

    lengths: [S] int64, tokens of each sequence of the whole corpus.
    RETURNS: [n + 1] int64: leaf i is the sequences ptr[i]:ptr[i + 1].
    """
    # A sequence without tokens has a cost too.
    ends = np.cumsum(lengths + 1, dtype=np.int64)
    goals = np.arange(1, n, dtype=np.int64) * (int(ends[-1]) if len(ends) else 0)
    # A sequence belongs to the leaf in which its middle is, and numbers stay integers.
    middles = 2 * ends - (lengths + 1)
    bounds = np.searchsorted(middles, -(-2 * goals // n))
    return np.concatenate(([0], bounds, [len(lengths)])).astype(np.int64)


def maximal_subtrees(first: int, last: int) -> list[tuple[int, int]]:
    """Return the largest nodes, as ranges of leaves in order, that make up leaves first:last."""
    found = []
    while first < last:
        size = 1 << ((last - first).bit_length() - 1)
        size = min(size, first & -first) if first else size
        found.append((first, first + size))
        first += size
    return found


class TreeSum:
    """Sum arrays of one shape over the tree as they arrive, holding few of them at once.

    Writable arrays are added in place; arrays of another process are not writable.
    """

    def __init__(self) -> None:
        self._leaves: list[int] = []
        self._sums: list[Floats] = []

    def add(self, leaf: int, partial: Floats) -> None:
        """Add the sum of a node, given its first leaf; leaves must ascend."""
        self._close(leaf)
        self._leaves.append(leaf)
        self._sums.append(partial)

    def _close(self, leaf: int | None) -> None:
        """Sum the nodes that end before a leaf; None: all of them."""
        leaves, sums = self._leaves, self._sums
        while len(sums) > 1:
            # The higher the bit in which two leaves differ, the higher their common node.
            if leaf is not None and leaves[-2] ^ leaves[-1] > leaves[-1] ^ leaf:
                return
            leaves.pop()
            added = sums.pop()
            if sums[-1].flags.writeable:
                sums[-1] += added
            else:
                sums[-1] = sums[-1] + added

    def total(self) -> Floats | None:
        """Return the sum of all arrays; None if there were none."""
        self._close(None)
        return self._sums[0] if self._sums else None


def sum_over_tree(partials: Iterable[tuple[int, Floats]]) -> Floats | None:
    """Sum arrays of one shape over the tree; see `TreeSum`.

    partials: the first leaf of a node and its sum, by ascending leaf.
    RETURNS: the sum; None where there is nothing to sum.
    """
    tree = TreeSum()
    for leaf, partial in partials:
        tree.add(leaf, partial)
    return tree.total()
