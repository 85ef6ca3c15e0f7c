"""Sums over a corpus by a fixed binary tree, so that they can be distributed among machines.

The sequences are cut into a power of two of *leaves* of about equal cost, for any number of threads
or machines. A leaf is summed in the order of its tokens, and leaves are summed over the binary tree
whose nodes are aligned ranges of 2^k leaves. An empty node contributes nothing, not even a zero. A
machine with some of the leaves returns one sum for each maximal node that it owns completely.
"""

from collections.abc import Iterable

import numpy as np

from ..crf.corpus.numbering import Floats, Longs

# Maximum number of tokens of an average leaf, and minimum number of leaves.
LEAF_TOKENS = 1 << 14
LEAST_LEAVES = 8


def count_leaves(n_tokens: int, leaf_tokens: int = LEAF_TOKENS) -> int:
    """Return the number of leaves, a power of two; leaf_tokens: maximum of an average leaf."""
    return max(LEAST_LEAVES, 1 << max(0, -(-n_tokens // leaf_tokens) - 1).bit_length())


def cut_leaves(lengths: Longs, n: int) -> Longs:
    """Cut sequences into n leaves of about equal cost; some leaves may be empty.

    lengths: [S] int64, tokens of each sequence of the whole corpus.
    RETURNS: [n + 1] int64: leaf i is the sequences ptr[i]:ptr[i + 1].
    """
    # A sequence without tokens has a cost too.
    ends = np.cumsum(lengths + 1, dtype=np.int64)
    goals = np.arange(1, n, dtype=np.int64) * (int(ends[-1]) if len(ends) else 0)
    # A sequence belongs to the leaf that contains its middle; doubled, so that it is an integer.
    middles = 2 * ends - (lengths + 1)
    bounds = np.searchsorted(middles, -(-2 * goals // n))
    return np.concatenate(([0], bounds, [len(lengths)])).astype(np.int64)


def maximal_subtrees(first: int, last: int) -> list[tuple[int, int]]:
    """Return the largest nodes, as ranges of leaves in order, that make up leaves first:last."""
    subtrees = []
    begin = first
    while begin < last:
        size = 1 << ((last - begin).bit_length() - 1)
        size = min(size, begin & -begin) if begin else size
        subtrees.append((begin, begin + size))
        begin += size
    return subtrees


def sum_over_tree(partials: Iterable[tuple[int, Floats]]) -> Floats | None:
    """Sum arrays of one shape over the tree as they arrive, holding few of them at once.

    Writable arrays are added in place; arrays of another process are not writable.

    partials: the first leaf of a node and its sum, by ascending leaf.
    RETURNS: the sum; None if there are no arrays.
    """
    leaves: list[int] = []
    sums: list[Floats] = []

    def close(leaf: int | None) -> None:
        """Sum the nodes that end before a leaf; None: all of them."""
        # The higher the bit in which two leaves differ, the higher their common node.
        while len(sums) > 1 and (leaf is None or leaves[-2] ^ leaves[-1] <= leaves[-1] ^ leaf):
            leaves.pop()
            added = sums.pop()
            if sums[-1].flags.writeable:
                sums[-1] += added
            else:
                sums[-1] = sums[-1] + added

    for leaf, partial in partials:
        close(leaf)
        leaves.append(leaf)
        sums.append(partial)
    close(None)
    return sums[0] if sums else None
