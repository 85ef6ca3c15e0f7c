"""Arrays that successive working losses share, and how the corpus is cut for them."""

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..parallel import Chunks, Workers, cut
from .lattice import Block, Csr, Lattice
from .rows import N_CHUNKS

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
Ints = NDArray[np.int32]

# Forward and backward vectors take at most this much each; more are computed in blocks.
_BLOCK_BYTES = 1 << 27
# Tokens of one matrix whose pair products one thread sums.
_SPAN = 4096


class Workspace:
    """Token arrays that successive working losses share.

    alpha, backward: [tokens of the largest block, Yp]; residual: [N, Yp], Yp = Y padded to a
    multiple of 8, all of `precision`; log_z: [S] float64. `holder` is the loss whose marginals
    they are.
    """

    def __init__(
        self, lattice: Lattice, n_labels: int, workers: Workers, precision: DTypeLike
    ) -> None:
        self.lattice = lattice
        self.n_labels = n_labels
        self.padded = -(-n_labels // 8) * 8
        self.workers = workers
        self.dtype = np.dtype(precision)
        row_bytes = self.padded * self.dtype.itemsize
        self.blocks = lattice.blocks(max(1, _BLOCK_BYTES // row_bytes))
        self.chunks = [cut(np.diff(block.offsets), N_CHUNKS) for block in self.blocks]
        longest = max((block.end - block.begin for block in self.blocks), default=0)
        self.alpha = np.zeros((longest, self.padded), self.dtype)
        self.backward = np.zeros_like(self.alpha)
        self.residual = np.zeros((lattice.n_tokens, self.padded), self.dtype)
        self.log_z = np.zeros(len(lattice.weights))
        self.holder: object = None


class MatrixTokens:
    """A block's tokens by the matrix and by the context of their potentials.

    inner, starts: by matrix, those that continue and that begin a sequence; entry_inner,
    entry_starts: by context; spans [P, 2]: runs of `inner` of matrices with many tokens, which
    threads share, those of matrix m being mat_spans[m]:mat_spans[m + 1].
    """

    def __init__(self, block: Block, context: Ints, matrix_of: Ints, n_matrices: int) -> None:
        self.inner, self.starts = block.tokens_by(matrix_of[context], n_matrices)
        self.entry_inner, self.entry_starts = block.tokens_by(context, len(matrix_of))
        self.mat_spans, self.spans = _cut_spans(self.inner)
        self.chunks: Chunks = cut(np.diff(self.inner.indptr), N_CHUNKS)


def _cut_spans(inner: Csr) -> tuple[Longs, Longs]:
    """Cut groups of more than _SPAN tokens into spans; see `MatrixTokens`."""
    sizes = np.diff(inner.indptr)
    n_spans = np.where(sizes > _SPAN, -(-sizes // _SPAN), 0)
    mat_spans = np.concatenate(([0], np.cumsum(n_spans))).astype(np.int64)
    spans = [
        (begin, min(begin + _SPAN, inner.indptr[m + 1]))
        for m in np.flatnonzero(n_spans)
        for begin in range(inner.indptr[m], inner.indptr[m + 1], _SPAN)
    ]
    return mat_spans, np.array(spans, dtype=np.int64).reshape(-1, 2)
