"""Sums over a corpus by a fixed binary tree, so that they can be divided among machines.

The sequences are cut into a power of two of *leaves* of about equal cost, whatever the number of
threads or machines. A leaf is summed in the order of its tokens, and leaves over the binary tree
whose nodes are aligned ranges of 2^k leaves; a node without anything to sum contributes nothing,
not even a zero. Who has some of the leaves tells one sum for each node of which it has all.
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
    """How many leaves a corpus has, a power of two; leaf_tokens: of a leaf, at most, on average."""
    return max(LEAST_LEAVES, 1 << max(0, -(-n_tokens // leaf_tokens) - 1).bit_length())


def cut_leaves(lengths: Longs, n: int) -> Longs:
    """Cut sequences into n leaves of about equal cost, some of which may be empty.

    lengths: [S] int64, tokens of each sequence of the whole corpus.
    RETURNS: [n + 1] int64: leaf i is the sequences ptr[i]:ptr[i + 1].
    """
    # A sequence without tokens counts too.
    ends = np.cumsum(lengths + 1, dtype=np.int64)
    goals = np.arange(1, n, dtype=np.int64) * (int(ends[-1]) if len(ends) else 0)
    # A sequence belongs to the leaf in which its middle is, and numbers stay integers.
    middles = 2 * ends - (lengths + 1)
    bounds = np.searchsorted(middles, -(-2 * goals // n))
    return np.concatenate(([0], bounds, [len(lengths)])).astype(np.int64)


def maximal_subtrees(first: int, last: int) -> list[tuple[int, int]]:
    """The nodes, as ranges of leaves in order, that make up leaves first:last and no more."""
    found = []
    while first < last:
        size = 1 << ((last - first).bit_length() - 1)
        size = min(size, first & -first) if first else size
        found.append((first, first + size))
        first += size
    return found


class TreeSum:
    """Sums arrays of one shape over the tree, as they come; it holds few of them at once.

    They are added to each other in place, where they can be written to: not what came from another
    process.
    """

    def __init__(self) -> None:
        self._leaves: list[int] = []
        self._sums: list[Floats] = []

    def add(self, leaf: int, partial: Floats) -> None:
        """Add the sum of a node, given its first leaf, which is behind all before."""
        self._close(leaf)
        self._leaves.append(leaf)
        self._sums.append(partial)

    def _close(self, leaf: int | None) -> None:
        """Add up the nodes that a leaf is behind; None: all of them."""
        leaves, sums = self._leaves, self._sums
        while len(sums) > 1:
            # The higher the bit in which two leaves differ, the higher is the node they share.
            if leaf is not None and leaves[-2] ^ leaves[-1] > leaves[-1] ^ leaf:
                return
            leaves.pop()
            added = sums.pop()
            if sums[-1].flags.writeable:
                sums[-1] += added
            else:
                sums[-1] = sums[-1] + added

    def total(self) -> Floats | None:
        """The sum of all that was added; None where nothing was."""
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
