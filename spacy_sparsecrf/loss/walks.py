"""The orders in which `kernels.forward_backward` goes over tokens."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..parallel import Chunks
from .lattice import Block

Ints = NDArray[np.int32]

# So many sequences go together: where contexts are many, their matrices are still in a near cache
# on the way back; where one matrix takes more than `LARGE_BYTES` that is not to be had, and a whole
# chunk goes together.
TOGETHER = 8
LARGE_BYTES = 1 << 16


class Walk(NamedTuple):
    """An order of a block's tokens.

    order: [n] int32, ~t for tokens t that begin a sequence; together: how many sequences are gone
    through forward and then back, before the next.
    """

    order: Ints
    together: int


def one_sequence(n: int) -> Ints:
    """The walk through any sequence of at most n tokens."""
    walk = np.arange(n, dtype=np.int32)
    walk[:1] = ~walk[:1]
    return walk


def in_sequence(block: Block) -> Walk:
    """One sequence after another."""
    return Walk(_marked(np.arange(len(block.begins), dtype=np.int32), block), 1)


def in_waves(block: Block, chunks: Chunks, together: int, context: Ints, matrix_of: Ints) -> Walk:
    """The first tokens of some sequences of a chunk, then their second, and so on, by matrix.

    chunks: runs of sequences that cover the block; together: how many sequences of a chunk at a
    time; context: [n] int32, of the block's tokens; matrix_of: [C] int32, of contexts.
    """
    lengths = np.diff(block.offsets)
    runs = [min(together, last - i) for first, last in chunks for i in range(first, last, together)]
    run = np.repeat(np.arange(len(runs)), runs)
    wave = np.repeat(run * (lengths.max(initial=0) + 1) - block.offsets[:-1], lengths)
    wave += np.arange(len(context))
    # Contexts with the same matrix are neighbours.
    rank = np.empty(len(matrix_of), np.int64)
    rank[np.argsort(matrix_of, kind="stable")] = np.arange(len(matrix_of))
    order = np.argsort(wave * len(matrix_of) + rank[context], kind="stable")
    return Walk(_marked(order.astype(np.int32), block), together)


def _marked(order: Ints, block: Block) -> Ints:
    return np.where(block.begins[order], ~order, order)
