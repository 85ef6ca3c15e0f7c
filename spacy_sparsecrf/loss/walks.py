"""The orders in which `kernels.waves` goes over tokens."""

import numpy as np
from numpy.typing import NDArray

from ..kernels.layout import Walk
from ..parallel import Chunks
from .lattice import Block

Ints = NDArray[np.int32]

# A few sequences go together: where contexts are many, their matrices are still in a near cache on
# the way back; where one matrix takes more than this that is not to be had, and a whole chunk goes
# together.
LARGE_BYTES = 1 << 16


def in_sequence(block: Block) -> Walk:
    """One sequence after another."""
    lengths = np.diff(block.offsets)
    order = np.arange(len(block.begins)) - np.repeat(block.offsets[:-1], lengths)
    return Walk(_marked(order, block.begins), 1, False)


def in_waves(block: Block, chunks: Chunks, together: int, context: Ints, matrix_of: Ints) -> Walk:
    """The first tokens of some sequences of a chunk, then their second, and so on, by matrix.

    chunks: runs of sequences that cover the block; together: how many sequences of a chunk at a
    time; context: [n] int32, of the block's tokens; matrix_of: [C] int32, of contexts.
    """
    lengths = np.diff(block.offsets)
    sizes = [
        min(together, last - i) for first, last in chunks for i in range(first, last, together)
    ]
    run = np.repeat(np.arange(len(sizes)), sizes)
    begin = block.offsets[np.concatenate(([0], np.cumsum(sizes[:-1]))).astype(np.int64)]
    wave = np.repeat(run * (lengths.max(initial=0) + 1) - block.offsets[:-1], lengths)
    wave += np.arange(len(context))
    # Contexts with the same matrix are neighbours.
    rank = np.empty(len(matrix_of), np.int64)
    rank[np.argsort(matrix_of, kind="stable")] = np.arange(len(matrix_of))
    order = np.argsort(wave * len(matrix_of) + rank[context], kind="stable")
    first = np.repeat(begin[run], lengths) if len(run) else np.empty(0, np.int64)
    return Walk(_marked(order - first, block.begins[order]), together, False)


def _marked(order: NDArray[np.int64], begins: NDArray[np.bool_]) -> Ints:
    """Mark those tokens [n] of an order that begin sequences."""
    return np.where(begins, ~order, order).astype(np.int32)
