"""Arrays that successive working losses share, and the order in which the corpus is processed.

Limits choose between algorithms and sizes: they change time and memory, and results only by
rounding.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..corpus.arrays import Memory
from ..corpus.numbering import find_ascending
from ..kernels.layout import BatchOrder, TokensBy
from ..parallel import Chunks, Workers, cut
from .lattice import Csr, Floats, Ints, Lattice, Longs, Mask, Shard


class Limits(NamedTuple):
    """Sizes of work items and buffers, and parameters of the cost model of pair potentials.

    shard_bytes: maximum size of the forward, and of the backward, vectors of a shard. n_chunks:
    chunks into which work is cut for any number of threads, so that sums do not depend on it.
    chunk_tokens: minimum tokens of an inference chunk: each sums frequent features separately.
    span: tokens of one matrix whose pair products one thread sums. together: sequences of an
    interleaved batch. table_bytes: maximum size of the table of frequent features, which stays in a
    cache, as do the sums of its gradient. sums_bytes: maximum size of the sums of real values of
    all chunks. held_sums (only if the corpus is in files), held_pairs: numbers that screening holds
    at once, 512 MB each. merged: minimum number of keys to merge at once. least_tokens: minimum
    tokens of a thread of stochastic descent. shares: candidate shares of the tokens from which
    features are in matrices. correction, correction_exp: cost of a sparse correction, and of its
    exponential, in units of the three products with one matrix element (forward, backward,
    expectation), 0.35 ns. With one context, corrections win if about 97 % of the pairs are zero (49
    labels), or 95 % (443). matrix_bytes: limit for matrices, beyond which features become
    corrections at any cost; correction_bytes: limit for corrections.
    """

    shard_bytes: int = 1 << 24
    n_chunks: int = 64
    chunk_tokens: int = 1024
    span: int = 4096
    together: int = 8
    table_bytes: int = 1 << 18
    sums_bytes: int = 1 << 27
    held_sums: int = 1 << 26
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


class FeatureColumns:
    """The tokens of features in a section: the whole corpus, or a shard if it is in files.

    features: [C] int32, ascending, features with tokens; None for all; tokens: tokens of each
    feature, counted from the first token of the section.
    """

    def __init__(self, features: Ints | None, tokens: Csr) -> None:
        self._features = features
        self.tokens = tokens

    def of(self, wanted: Ints) -> Ints:
        """Return the rows [n] of `tokens` for features [n], -1 for none."""
        if self._features is None:
            return wanted
        return find_ascending(self._features, wanted).astype(np.int32)

    def between(self, first: int, last: int) -> tuple[int, Ints]:
        """Return the first row of features first:last, and the features that have a row."""
        if self._features is None:
            return first, np.arange(first, last, dtype=np.int32)
        begin, end = np.searchsorted(self._features, (first, last))
        return int(begin), self._features[begin:end]


@dataclass(frozen=True)
class Contents:
    """Owner of the marginals, or vectors, in a workspace.

    owner: object that inferred them; theta: [K] float64, its weights, None if not stored.
    """

    owner: Any
    theta: Floats | None

    def are_of(self, owner: Any, theta: Floats) -> bool:
        """Return whether the contents belong to an owner at weights theta [K]."""
        return self.owner is owner and self.theta is not None and np.array_equal(theta, self.theta)


class BufferPool:
    """A pool of reusable arrays [n] float64.

    Allocating and clearing memory takes a tenth of an evaluation if the working set is large.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._free: list[Floats] = []

    def take(self) -> Floats:
        """Return an array with arbitrary values; the caller may keep it."""
        return self._free.pop() if self._free else np.empty(self._n)

    def give(self, array: Floats) -> None:
        """Return an unused array to the pool, which keeps one array."""
        self._free = [array]


class Workspace:
    """Token arrays that successive working losses share.

    alpha, backward: [tokens of the largest shard, Yp]; residual: [N, Yp], Yp = Y padded to a
    multiple of 8, all of dtype `precision`; if the corpus is in files, residual is of one shard;
    log_z: [S], scales, norms: [tokens of the largest shard] float64; contents: owner of these
    arrays, or None; columns: tokens of features, of the whole corpus, or of each shard if it is in
    files; feature_counts: [O] int64, tokens of a feature; costs: see `ChainLoss`.
    """

    def __init__(
        self,
        lattice: Lattice,
        n_labels: int,
        workers: Workers,
        precision: DTypeLike,
        limits: Limits = LIMITS,
        costs: Floats | None = None,
    ) -> None:
        self.lattice = lattice
        self.limits = limits
        self.costs = costs
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
        self.by_shard = lattice.store.on_disk
        self.log_z = lattice.store.zeros(len(lattice.weights), np.float64)
        self.contents: Contents | None = None
        self.feature_counts: Longs = np.zeros(lattice.n_features, np.int64)
        self.columns = self._columns()
        for section in self.columns:
            first, features = section.between(0, lattice.n_features)
            lengths = np.diff(section.tokens.indptr)
            self.feature_counts[features] += lengths[first : first + len(features)]

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
        n_kept = self._longest if self.by_shard else self.lattice.n_tokens
        return np.zeros((n_kept, self.padded), self.dtype)

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
        begin = 0 if self.by_shard else shard.begin
        return self.residual[begin : begin + shard.end - shard.begin]

    def _columns(self) -> list[FeatureColumns]:
        lattice = self.lattice
        if not self.by_shard:
            return [FeatureColumns(None, lattice.feature_tokens)]
        found, table = [], lattice.features.by_row()
        for shard in self.shards:
            indptr = table.indptr[shard.begin : shard.end + 1]
            own_rows = Csr(indptr - indptr[0], table.indices[indptr[0] : indptr[-1]])
            columns = own_rows.transposed(lattice.n_features)
            features = np.flatnonzero(np.diff(columns.indptr))
            ends = np.append(columns.indptr[features], columns.indptr[-1])
            own = lattice.store.kept((features.astype(np.int32), ends, columns.indices))
            found.append(FeatureColumns(own[0], Csr(own[1], own[2])))
            lattice.store.release()
        return found


class MatrixTokens:
    """The tokens of a shard by the matrix and by the context of their potentials.

    by_matrix, by_context: tokens that continue, and that begin, a sequence; spans [P, 2]: for
    matrices with many tokens, parts of the continuing tokens, which threads process in parallel;
    matrix m has the spans mat_spans[m]:mat_spans[m + 1].
    """

    def __init__(
        self, space: Workspace, shard: Shard, context: Ints, matrix_of: Ints, n_matrices: int
    ) -> None:
        store, limits = space.lattice.store, space.limits
        own = context[shard.begin : shard.end]
        self.by_matrix = tokens_by(shard, matrix_of[own], n_matrices, store)
        self.by_context = tokens_by(shard, own, len(matrix_of), store)
        self.mat_spans, self.spans = _cut_spans(self.by_matrix.inner_ptr, limits.span)
        self.chunks: Chunks = cut(np.diff(self.by_matrix.inner_ptr), limits.n_chunks)


def tokens_by(shard: Shard, key: Ints, n_keys: int, store: Memory) -> TokensBy:
    """Return the tokens of a shard that continue, and that begin, a sequence by a key [n].

    Tokens count from the first of the shard; n_keys: upper bound of keys; store: of the arrays.
    """
    arrays: list[NDArray[Any]] = []
    for members in (np.flatnonzero(~shard.begins), np.flatnonzero(shard.begins)):
        keys = key[members]
        order = np.argsort(keys, kind="stable")
        indptr = np.searchsorted(keys[order], np.arange(n_keys + 1)).astype(np.int64)
        arrays += [indptr, members[order].astype(np.int32)]
    return TokensBy(*store.kept(arrays))


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
