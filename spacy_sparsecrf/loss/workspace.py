"""Arrays that successive working losses share, and the order in which the corpus is processed.

Limits choose between algorithms and sizes: they change time and memory, and results only by
rounding.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..kernels.layout import BatchOrder, TokensBy
from ..parallel import Chunks, Workers, cut
from .lattice import Floats, Ints, Lattice, Longs, Mask, Shard


class Limits(NamedTuple):
    """Sizes of work items and buffers, and parameters of the cost model of pair potentials.

    shard_bytes: maximum size of the forward, and of the backward, vectors of a shard. n_chunks:
    chunks into which work is cut for any number of threads, so that sums do not depend on it.
    chunk_tokens: minimum tokens of an inference chunk: each sums frequent features separately.
    span: tokens of one matrix whose pair products one thread sums. together: sequences of an
    interleaved batch. table_bytes: maximum size of the table of frequent features, which stays in a
    cache, as do the sums of its gradient. sums_bytes: maximum size of the sums of real values of
    all chunks. held_pairs: numbers that screening holds at once, 512 MB. merged: minimum number of
    keys to merge at once. least_tokens: minimum tokens of a thread of stochastic descent. shares:
    candidate shares of the tokens from which features are in matrices. correction, correction_exp:
    cost of a sparse correction, and of its exponential, in units of the three products with one
    matrix element (forward, backward, expectation), 0.35 ns. With one context, corrections win if
    about 97 % of the pairs are zero (49 labels), or 95 % (443). matrix_bytes: limit for matrices,
    beyond which features become corrections at any cost; correction_bytes: limit for corrections.
    """

    shard_bytes: int = 1 << 24
    n_chunks: int = 64
    chunk_tokens: int = 1024
    span: int = 4096
    together: int = 8
    table_bytes: int = 1 << 18
    sums_bytes: int = 1 << 27
    held_pairs: int = 1 << 26
    merged: int = 1 << 20
    least_tokens: int = 256
    shares: tuple[float, ...] = (np.inf, 1.0, 1 / 16, 1 / 128, 1 / 1024, 0.0)
    correction: float = 20.0
    correction_exp: float = 40.0
    matrix_bytes: int = 1 << 30
    correction_bytes: int = 3 << 30


LIMITS = Limits()

# A larger matrix does not stay in a near cache: a whole chunk is then one interleaved batch.
LARGE_BYTES = 1 << 16


@dataclass(frozen=True)
class Contents:
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

    alpha, backward: [tokens of the largest shard, Yp]; residual: [N, Yp], Yp = Y padded to a
    multiple of 8, all of dtype `precision`; log_z: [S], scales, norms: [tokens of the largest
    shard] float64; contents: owner of these arrays, or None; feature_counts: [O] int64, tokens of a
    feature.
    """

    def __init__(
        self,
        lattice: Lattice,
        n_labels: int,
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
        self.chunks = [self._cut(shard) for shard in self.shards]
        longest = max((shard.end - shard.begin for shard in self.shards), default=0)
        self._longest = longest
        self.scales, self.norms = np.zeros(longest), np.zeros(longest)
        self.log_z = np.zeros(len(lattice.weights))
        self.contents: Contents | None = None
        self.feature_counts: Longs = np.diff(lattice.feature_tokens.indptr)

    @cached_property
    def alpha(self) -> NDArray[np.floating]:
        """Forward vectors; like `backward` and `residual`, allocated at first use."""
        return np.zeros((self._longest, self.padded), self.dtype)

    @cached_property
    def backward(self) -> NDArray[np.floating]:
        """Backward vectors."""
        return np.zeros((self._longest, self.padded), self.dtype)

    @cached_property
    def residual(self) -> NDArray[np.floating]:
        """Residuals, or marginals."""
        return np.zeros((self.lattice.n_tokens, self.padded), self.dtype)

    def free(self, *names: str) -> None:
        """Free the named arrays, by default vectors and residuals; next use reallocates them."""
        self.contents = None
        for name in names or ("alpha", "backward", "residual"):
            vars(self).pop(name, None)

    def _cut(self, shard: Shard) -> Chunks:
        limits, n_tokens = self.limits, shard.end - shard.begin
        n_chunks = min(limits.n_chunks, 1 + n_tokens // limits.chunk_tokens)
        return cut(np.diff(shard.offsets), n_chunks)

    def residual_of(self, shard: Shard) -> NDArray[np.floating]:
        """Return the rows of `residual` of the tokens of a shard."""
        return self.residual[shard.begin : shard.end]


class MatrixTokens:
    """The tokens of a shard by the matrix and by the context of their potentials.

    by_matrix, by_context: tokens that continue, and that begin, a sequence; spans [P, 2]: for
    matrices with many tokens, parts of the continuing tokens, which threads process in parallel;
    matrix m has the spans mat_spans[m]:mat_spans[m + 1].
    """

    def __init__(
        self, space: Workspace, shard: Shard, context: Ints, matrix_of: Ints, n_matrices: int
    ) -> None:
        limits = space.limits
        own = context[shard.begin : shard.end]
        self.by_matrix = tokens_by(shard, matrix_of[own], n_matrices)
        self.by_context = tokens_by(shard, own, len(matrix_of))
        self.mat_spans, self.spans = _cut_spans(self.by_matrix.inner_ptr, limits.span)
        self.chunks: Chunks = cut(np.diff(self.by_matrix.inner_ptr), limits.n_chunks)


def tokens_by(shard: Shard, key: Ints, n_keys: int) -> TokensBy:
    """Return the tokens of a shard that continue, and that begin, a sequence by a key [n].

    Tokens count from the first of the shard; n_keys: upper bound of keys.
    """
    arrays: list[NDArray[Any]] = []
    for members in (np.flatnonzero(~shard.begins), np.flatnonzero(shard.begins)):
        keys = key[members]
        order = np.argsort(keys, kind="stable")
        indptr = np.searchsorted(keys[order], np.arange(n_keys + 1)).astype(np.int64)
        arrays += [indptr, members[order].astype(np.int32)]
    return TokensBy(*arrays)


def _cut_spans(inner_ptr: Longs, span: int) -> tuple[Longs, Longs]:
    """Cut tokens of matrices with more than `span` tokens into spans; see `MatrixTokens`."""
    sizes = np.diff(inner_ptr)
    n_spans = np.where(sizes > span, -(-sizes // span), 0)
    mat_spans = np.concatenate(([0], np.cumsum(n_spans))).astype(np.int64)
    spans = [
        (begin, min(begin + span, inner_ptr[m + 1]))
        for m in np.flatnonzero(n_spans)
        for begin in range(inner_ptr[m], inner_ptr[m + 1], span)
    ]
    return mat_spans, np.array(spans, dtype=np.int64).reshape(-1, 2)


def sequential_order(shard: Shard) -> BatchOrder:
    """Return the order that processes one sequence after another."""
    lengths = np.diff(shard.offsets)
    order = np.arange(len(shard.begins)) - np.repeat(shard.offsets[:-1], lengths)
    return BatchOrder(_marked(order, shard.begins), 1, False)


def interleaved_order(
    shard: Shard, chunks: Chunks, together: int, context: Ints, matrix_of: Ints
) -> BatchOrder:
    """Return the order of interleaved batches: first tokens by matrix, second tokens, and so on.

    Batches are small: with many contexts, their matrices are still in a near cache in the backward
    pass.

    chunks: runs of sequences that cover the shard; together: sequences of a batch; context: [n]
    int32, of the tokens of the shard; matrix_of: [C] int32, of contexts.
    """
    lengths = np.diff(shard.offsets)
    sizes = [
        min(together, last - i) for first, last in chunks for i in range(first, last, together)
    ]
    run = np.repeat(np.arange(len(sizes)), sizes)
    begin = shard.offsets[np.concatenate(([0], np.cumsum(sizes[:-1]))).astype(np.int64)]
    batch = np.repeat(run * (lengths.max(initial=0) + 1) - shard.offsets[:-1], lengths)
    batch += np.arange(len(context))
    # Contexts with the same matrix are neighbours.
    rank = np.empty(len(matrix_of), np.int64)
    rank[np.argsort(matrix_of, kind="stable")] = np.arange(len(matrix_of))
    order = np.argsort(batch * len(matrix_of) + rank[context], kind="stable")
    first = np.repeat(begin[run], lengths) if len(run) else np.empty(0, np.int64)
    return BatchOrder(_marked(order - first, shard.begins[order]), together, False)


def _marked(order: Longs, begins: Mask) -> Ints:
    """Mark the tokens t of an order [n] that begin sequences as ~t."""
    return np.where(begins, ~order, order).astype(np.int32)
