"""The orders in which `kernels.forward_backward` goes over tokens."""

import numpy as np
from numpy.typing import NDArray

from ..parallel import Chunks
from .lattice import Block

Ints = NDArray[np.int32]

# Where a matrix takes more than this, to read it costs more than to look for rows of tokens that
# are not neighbours.
LARGE_BYTES = 1 << 16


def one_sequence(n: int) -> Ints:
    """The walk through any sequence of at most n tokens."""
    walk = np.arange(n, dtype=np.int32)
    walk[:1] = ~walk[:1]
    return walk


def in_sequence(block: Block) -> Ints:
    """One sequence after another: [n] int32, ~t for tokens t that begin one."""
    return _marked(np.arange(len(block.begins), dtype=np.int32), block)


def in_waves(block: Block, chunks: Chunks, context: Ints, matrix_of: Ints) -> Ints:
    """In each chunk the first tokens of all sequences, then the second, and so on, by matrix.

    chunks: runs of sequences that cover the block; context: [n] int32, of its tokens; matrix_of:
    [C] int32, of contexts. RETURNS: [n] int32, ~t for tokens t that begin a sequence.
    """
    lengths = np.diff(block.offsets)
    chunk = np.repeat(np.arange(len(chunks)), [last - first for first, last in chunks])
    wave = np.repeat(chunk * (lengths.max(initial=0) + 1) - block.offsets[:-1], lengths)
    wave += np.arange(len(context))
    # Contexts with the same matrix are neighbours.
    rank = np.empty(len(matrix_of), np.int64)
    rank[np.argsort(matrix_of, kind="stable")] = np.arange(len(matrix_of))
    order = np.argsort(wave * len(matrix_of) + rank[context], kind="stable")
    return _marked(order.astype(np.int32), block)


def _marked(order: Ints, block: Block) -> Ints:
    return np.where(block.begins[order], ~order, order)
