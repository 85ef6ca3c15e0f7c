"""Arrays of tokens that successive working losses share, and sizes.

Limits choose between algorithms and sizes: they change time and memory, and results only by
rounding.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..corpus.numbering import Floats
from ..parallel import Workers, cut
from .lattice import Lattice


class Limits(NamedTuple):
    """Sizes of work items and buffers, and parameters of the cost model of pair potentials.

    shard_bytes: maximum size of the forward, and of the backward, vectors of a shard. n_chunks:
    chunks into which work is cut for any number of threads, so that sums do not depend on it.
    chunk_tokens: minimum tokens of an inference chunk. span: tokens of one matrix whose pair
    products one thread sums. together: sequences of an interleaved batch. shared: minimum number of
    tokens of a bundle. sums_bytes: maximum size of the sums of real values of all chunks.
    held_pairs: numbers that screening holds at once, 512 MB. shares: two candidate shares of the
    tokens from which features are in matrices; shares_by_example: where potentials are built for
    each sequence. correction, correction_exp: cost of a sparse correction, and of its exponential,
    in units of the three products with one matrix element (forward, backward, expectation), 0.35
    ns. With one context, corrections win if about 97 % of the pairs are zero (49 labels), or 95 %
    (443). matrix_bytes: limit for matrices, beyond which features become corrections at any cost;
    correction_bytes: limit for corrections.
    """

    shard_bytes: int = 1 << 24
    n_chunks: int = 64
    chunk_tokens: int = 1024
    span: int = 4096
    together: int = 8
    shared: int = 4
    sums_bytes: int = 1 << 27
    held_pairs: int = 1 << 26
    shares: tuple[float, float] = (np.inf, 1 / 128)
    shares_by_example: tuple[float, float] = (np.inf, 1.0)
    correction: float = 20.0
    correction_exp: float = 40.0
    matrix_bytes: int = 1 << 30
    correction_bytes: int = 3 << 30


LIMITS = Limits()


class Contents(NamedTuple):
    """Owner of the marginals, or vectors, in a workspace.

    owner: object that inferred them; theta: [K] float64, its weights.
    """

    owner: Any
    theta: Floats

    def are_of(self, owner: Any, theta: Floats) -> bool:
        """Return whether the contents belong to an owner at weights theta [K]."""
        return self.owner is owner and np.array_equal(theta, self.theta)


class Workspace:
    """Token arrays that successive working losses share.

    vectors: [2, tokens of the largest shard, Yp], forward and backward; residual: [N + B, Yp],
    residuals of sites, or marginals of tokens, Yp = Y padded to a multiple of 8, both of dtype
    `precision`; log_z: [S], scales, norms: [tokens of the largest shard] float64; contents: owner
    of these arrays, or None; bundle_chunks: bundles by their numbers of tokens.
    """

    def __init__(
        self,
        lattice: Lattice,
        n_labels: int,
        *,
        workers: Workers,
        precision: DTypeLike,
        limits: Limits = LIMITS,
    ) -> None:
        self.lattice = lattice
        self.limits = limits
        self.n_labels = n_labels
        self.padded = -(-n_labels // 8) * 8
        self.workers = workers
        self.dtype = np.dtype(precision)
        row_bytes = self.padded * self.dtype.itemsize
        self.shards = lattice.shards(max(1, limits.shard_bytes // row_bytes))
        self.chunks = []
        longest = 0
        for shard in self.shards:
            n_tokens = shard.end - shard.begin
            longest = max(longest, n_tokens)
            n_chunks = min(limits.n_chunks, 1 + n_tokens // limits.chunk_tokens)
            self.chunks.append(cut(np.diff(shard.offsets), n_chunks))
        self.vectors = np.zeros((2, longest, self.padded), self.dtype)
        self.residual = np.zeros((lattice.n_tokens + lattice.n_bundles, self.padded), self.dtype)
        self.scales, self.norms = np.zeros(longest), np.zeros(longest)
        self.log_z = np.zeros(len(lattice.weights))
        self.contents: Contents | None = None
        # Of work whose results are not summed; a call costs as much as many tokens.
        self.n_chunks = min(limits.n_chunks, 1 + lattice.n_tokens // limits.chunk_tokens)
        self.bundle_chunks = cut(np.diff(lattice.bundle_tokens.indptr), self.n_chunks)
