"""Pair potentials of the bigram weights: shared matrices plus sparse corrections; their gradient.

Contexts with the same features in the working set are merged. Some features of a context form its
*matrix*, which all contexts with those features share. The weights of its other features are
*sparse corrections*: label pairs in which its potentials differ from the matrix. A cost model
chooses between two layouts: frequent features in matrices, or no matrix with weights, which is the
sparse forward-backward of Lavergne 2010, section 4.1. In both, a context with many corrections gets
its own matrix.
"""

from copy import copy
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..kernels import layout, pair_counts
from ..kernels.indexing import select, take, transpose
from ..kernels.layout import Csr
from ..kernels.pairs import build_corrections, build_matrices
from ..parallel import Chunks, cut
from .lattice import Floats, Ints, Longs, Mask, Shard
from .weights import FeatureBlocks
from .workspace import Workspace

Shorts = NDArray[np.uint16]

# Costs in units of the three products with one matrix element (see `Limits`): building an element;
# products with an element of a matrix outside the near cache.
_BUILD = 7.0
_UNCACHED = 1.3
_CACHE_BYTES = 1 << 20
# A larger matrix does not stay in a near cache: a whole chunk is then one interleaved batch.
_LARGE_BYTES = 1 << 16
# Bytes of a matrix element and its gradient, and of sparse corrections for each of their weights.
_BYTES_PER_ELEMENT = 16.0
BYTES_PER_ENTRY = 60.0


class ContextLayout(NamedTuple):
    """Matrices and sparse corrections of merged contexts.

    blocks: feature blocks of each of the C' contexts of the corpus; active: [C'] int32, its merged
    context; context: [N] int32, merged context of a token; matrix_blocks: feature blocks of a
    matrix; arrays: matrix and corrections of a context; correction_context: [E] int32;
    correction_weights, weight_corrections: weights of a correction, and its transpose.
    """

    blocks: Csr
    active: Ints
    context: Ints
    matrix_blocks: Csr
    arrays: layout.Contexts
    correction_context: Ints
    correction_weights: Csr
    weight_corrections: Csr


def lay_out_contexts(space: Workspace, rows: FeatureBlocks, stochastic: bool) -> ContextLayout:
    """Choose the matrices and sparse corrections of the contexts.

    space: for its lattice and limits; rows: bigram feature blocks; stochastic: whether potentials
    are built for each sequence instead of once per evaluation.
    """
    lattice, limits = space.lattice, space.limits
    blocks = select(lattice.ctx_features, rows.number())
    # Sets of blocks are compared by random sums modulo 2**64, as features are by their hashes.
    marks = np.random.default_rng(0).integers(1, 1 << 63, len(rows), dtype=np.uint64)
    sums = row_sums(blocks, marks[blocks.indices])
    _, first, active = np.unique(sums, return_index=True, return_inverse=True)
    merged, context = take(blocks, first), active.astype(np.int32)[lattice.context]
    model = _CostModel(space, rows, merged, marks, context, stochastic)
    found, other = map(model.choose, limits.shares_by_example if stochastic else limits.shares)
    choice = found if found.cost <= other.cost else other
    matrix_blocks = take(_kept(merged, choice.in_matrix), choice.first)
    constant = (np.diff(matrix_blocks.indptr) == 0) & (lattice.valid is None)
    corrected = _kept(merged, ~choice.in_matrix)
    entries, weights = _entries(corrected, rows, space.n_labels, space.padded)
    return ContextLayout(
        blocks,
        active.astype(np.int32),
        context,
        matrix_blocks,
        layout.Contexts(choice.matrix_of.astype(np.int32), constant, *entries),
        np.repeat(np.arange(len(first), dtype=np.int32), np.diff(entries[0])),
        weights,
        transpose(weights, int(rows.ptr[-1])),
    )


def row_sums(table: Csr, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the sum of the values [nnz] of each row, modulo 2**64."""
    ends = np.zeros(len(values) + 1, np.uint64)
    np.cumsum(values, out=ends[1:])
    sums: NDArray[np.uint64] = np.diff(ends[table.indptr])
    return sums


def _kept(table: Csr, mask: Mask) -> Csr:
    """Return a table without the entries that a mask [nnz] excludes."""
    return Csr(np.append(0, np.cumsum(mask))[table.indptr], table.indices[mask])


class _Choice(NamedTuple):
    """A layout: cost of an evaluation; in_matrix: [nnz], which blocks of contexts are in matrices;
    first: [M], a context of each matrix; matrix_of: [C].
    """

    cost: float
    in_matrix: Mask
    first: Longs
    matrix_of: Longs


class _CostModel:
    """Cost model of an evaluation, for a division of features into matrices and corrections.

    space, rows, stochastic: see `lay_out_contexts`; blocks: of the merged contexts; marks: [R]
    uint64, random; context: [N].
    """

    def __init__(
        self,
        space: Workspace,
        rows: FeatureBlocks,
        blocks: Csr,
        marks: NDArray[np.uint64],
        context: Ints,
        stochastic: bool,
    ) -> None:
        self._limits, self._lattice, self._blocks = space.limits, space.lattice, blocks
        self._context, self._stochastic = context, stochastic
        self._area = float(space.n_labels * space.padded)
        n, lengths = len(blocks.indptr) - 1, np.diff(blocks.indptr)
        self._row = np.repeat(np.arange(n), lengths)
        self._sizes, self._marks = np.diff(rows.ptr)[blocks.indices], marks[blocks.indices]
        self._tokens = np.bincount(context, minlength=n).astype(np.float64)
        self._n_exps = self._tokens if stochastic else np.ones(n)
        # Without a start label, the first token of a sequence has no bigram feature.
        n_tokens = max(1.0, self._tokens[lengths > 0].sum())
        per_block = np.bincount(blocks.indices, self._tokens[self._row], minlength=len(rows))
        self._share = (per_block / n_tokens)[blocks.indices]

    def choose(self, least_share: float) -> _Choice:
        """Put features with a minimum share of the tokens into matrices, and all features of
        contexts that would have too many corrections; above a limit of memory, any other is better.
        """
        limits, n = self._limits, len(self._blocks.indptr) - 1
        in_matrix = self._share >= least_share
        n_weights = np.bincount(self._row, np.where(in_matrix, 0, self._sizes), minlength=n)
        per_weight = limits.correction * self._tokens + limits.correction_exp * self._n_exps
        own_cost = self._area * ((_UNCACHED - 1.0) * self._tokens + _BUILD * self._n_exps)
        own = n_weights * per_weight > own_cost
        if _BYTES_PER_ELEMENT * self._area * own.sum() <= limits.matrix_bytes:
            in_matrix |= own[self._row]
            n_weights[own] = 0
        sums = row_sums(self._blocks, np.where(in_matrix, self._marks, np.uint64(0)))
        found, first, matrix_of = np.unique(sums, return_index=True, return_inverse=True)
        of_matrices = _BYTES_PER_ELEMENT * self._area * len(first)
        of_corrections = BYTES_PER_ENTRY * n_weights.sum()
        cost = float((n_weights * per_weight).sum()) + self._matrix_cost(found > 0, matrix_of)
        if of_matrices > limits.matrix_bytes or of_corrections > limits.correction_bytes:
            cost = 1e30 * (of_matrices + of_corrections)
        return _Choice(cost, in_matrix, first, matrix_of)

    def _matrix_cost(self, weighted: Mask, matrix_of: Longs) -> float:
        """Return the cost of building matrices and of their products; matrices of ones are free."""
        if self._lattice.valid is not None:
            weighted = np.ones_like(weighted)
        uncached = 8.0 * self._area * len(weighted) > _CACHE_BYTES
        n_products = float(self._tokens[weighted[matrix_of]].sum())
        products = self._area * (_UNCACHED if uncached else 1.0) * n_products
        n_built = float(weighted.sum())
        if self._stochastic:
            # Tokens whose matrix has weights and differs from the previous matrix.
            matrix = matrix_of[self._context]
            changes = self._lattice.begins | (matrix != np.append(-1, matrix[:-1]))
            n_built = float((changes & weighted[matrix]).sum())
        return products + _BUILD * self._area * n_built


def _entries(
    lines: Csr, rows: FeatureBlocks, n_labels: int, padded: int
) -> tuple[tuple[Longs, Longs, Shorts, Shorts, Ints], Csr]:
    """Number the sparse corrections of each context: the label pairs of its blocks in `lines`.

    RETURNS: the fields of `Contexts` about corrections, and the weights of each correction.
    """
    n, area = len(lines.indptr) - 1, (n_labels + 1) * padded
    of_blocks = Csr(rows.ptr, np.arange(len(rows.places), dtype=np.int32))
    ptr, weights = take(of_blocks, lines.indices.astype(np.int64))
    lengths = np.diff(ptr)
    context = np.repeat(np.arange(n), np.diff(lines.indptr))
    keys = np.repeat(context * area, lengths) + rows.places[weights]
    # The weights of a correction stay in the order of the blocks.
    order = np.argsort(keys, kind="stable")
    found, first = np.unique(keys[order], return_index=True)
    indptr = np.append(first, len(order)).astype(np.int64)
    bounds = np.arange(n + 1) * area
    corr_ptr = np.searchsorted(found, bounds)
    corr_start = np.searchsorted(found, bounds[:-1] + n_labels * padded)
    place = (found % area).astype(np.int32)
    previous, label = np.stack(np.divmod(place, padded)).astype(np.uint16)
    of_corrections = Csr(indptr, weights[order])
    return (corr_ptr, corr_start, previous, label, place), of_corrections


class PairPotentials:
    """Matrices and sparse corrections of the bigram weights.

    rows: bigram feature blocks; stochastic: whether for a stochastic solver; origin: [K] float64,
    added to the weights of `fill`, or [0]. contexts: layout of the contexts; arrays: kernel
    arguments with the potentials of the last `fill`, in the precision of the workspace; bigrams:
    index of the weights; matrix_chunks, context_chunks, settle_chunks: chunks of matrices, of
    contexts, and of matrices by the corrections of their contexts; matrix_contexts: contexts of a
    matrix; tokens: of each shard; sums: products of the vectors, by matrix [M, Y + 1, Yp] and by
    correction [E].
    """

    def __init__(
        self, space: Workspace, rows: FeatureBlocks, stochastic: bool, origin: Floats
    ) -> None:
        self.space = space
        self.rows = rows
        self.contexts = lay_out_contexts(space, rows, stochastic)
        self.arrays = self.new_arrays(space.dtype)
        self.potentials = self.arrays.potentials
        matrix_blocks, weights = self.contexts.matrix_blocks, self.contexts.correction_weights
        of_matrices = matrix_blocks.indptr, matrix_blocks.indices, rows.ptr, rows.places
        self.bigrams = layout.Bigrams(
            space.lattice.n_previous, *of_matrices, weights.indptr, weights.indices, origin
        )
        n_corrections = len(self.potentials.value)
        self.sums = np.zeros(self.potentials.psi.shape), np.zeros(n_corrections)
        self._cut_chunks()
        self.tokens: list[ShardTokens] = []
        for shard, chunks in zip(space.shards, space.chunks, strict=True):
            self.tokens.append(ShardTokens(self, shard, chunks))

    def new_arrays(self, dtype: DTypeLike = np.float64) -> layout.Pairs:
        """Allocate potentials; only matrices of ones and the mask are filled in."""
        n_matrices, n_labels = len(self.contexts.matrix_blocks.indptr) - 1, self.space.n_labels
        n_contexts = len(self.contexts.arrays.matrix_of)
        n_corrections = len(self.contexts.arrays.corr_place)
        valid = self.space.lattice.valid
        shape = (n_matrices + (valid is not None), n_labels + 1, self.space.padded)
        psi = np.zeros(shape, dtype)
        psi[:n_matrices][self.contexts.arrays.constant, :, :n_labels] = 1.0
        if valid is not None:
            psi[-1, :n_labels, :n_labels] = valid[:n_labels, :n_labels]
            psi[-1, n_labels, :n_labels] = 1.0
        of_entries = np.zeros(n_corrections), np.zeros(n_corrections)
        rewritten = np.zeros(n_contexts, dtype=np.bool_)
        stamp = np.zeros(n_matrices + n_contexts, dtype=np.int64)
        potentials = layout.Potentials(psi, np.zeros(n_matrices), *of_entries, rewritten, stamp)
        return layout.Pairs(n_labels, self.contexts.arrays, potentials)

    def new_slopes(self, dtype: DTypeLike) -> layout.Slopes:
        """Allocate slopes of these potentials, all zero; the slopes of the mask stay zero."""
        potentials = self.potentials
        zeros = np.zeros_like(potentials.value), np.zeros_like(potentials.value)
        psi = np.zeros(potentials.psi.shape, dtype)
        return layout.Slopes(psi, *zeros, np.zeros_like(potentials.stamp))

    def _cut_chunks(self) -> None:
        """Cut matrices, contexts, corrections and blocks into chunks of about equal work."""
        contexts, n_chunks = self.contexts, self.space.limits.n_chunks
        n_corrections = np.diff(contexts.arrays.corr_ptr)
        self.matrix_chunks = cut(np.diff(contexts.matrix_blocks.indptr), n_chunks)
        self.context_chunks = cut(n_corrections, n_chunks)
        tokens = np.bincount(contexts.context, minlength=len(contexts.arrays.matrix_of))
        self._correction_chunks = cut(tokens[contexts.correction_context], n_chunks)
        self._row_matrices = transpose(contexts.matrix_blocks, len(self.rows))
        self._row_chunks = self.rows.chunks(np.diff(self._row_matrices.indptr) + 1, n_chunks)
        by_matrix = np.argsort(contexts.arrays.matrix_of, kind="stable").astype(np.int32)
        bounds = np.arange(len(self.potentials.shift) + 1)
        ctx_ptr = np.searchsorted(contexts.arrays.matrix_of[by_matrix], bounds)
        self.matrix_contexts = layout.ContextsOf(ctx_ptr, by_matrix)
        per_matrix = np.add.reduceat(n_corrections[by_matrix], ctx_ptr[:-1])
        self.settle_chunks = cut(per_matrix, n_chunks)

    def fill(self, theta: Floats) -> None:
        """Evaluate the potentials of all matrices and corrections, once each.

        theta: [K] float64, the bigram weights.
        """
        workers, args = self.space.workers, (self.arrays, self.bigrams, theta)
        workers.map(build_matrices, self.matrix_chunks, *args)
        workers.map(build_corrections, self.context_chunks, *args)

    def begin_sums(self) -> None:
        """Clear the sums over shards."""
        for sums in self.sums:
            sums[...] = 0.0

    def add_products(
        self, tokens: "ShardTokens", vectors: layout.Vectors, total: Floats, sums: Floats
    ) -> None:
        """Add products alpha_{t-1}[y'] backward_t[y] of the tokens of a shard.

        vectors: of the shard; total: [M, Y + 1, Yp], by matrix; sums: [E], by correction.
        """
        workers, n_labels = self.space.workers, self.space.n_labels
        spans = np.zeros((len(tokens.spans), *total.shape[1:]))
        chunks, inner = [*pairwise(range(len(spans) + 1))], tokens.by_matrix.inner_tokens
        workers.map(pair_counts.pair_sums, chunks, n_labels, tokens.spans, inner, vectors, spans)
        of_matrix = layout.MatrixSums(tokens.by_matrix, tokens.mat_spans, spans)
        workers.map(
            pair_counts.matrix_products, tokens.chunks, self.arrays, of_matrix, vectors, total
        )
        args = self.contexts.arrays, self.contexts.correction_context, tokens.by_context
        workers.map(pair_counts.correction_sums, self._correction_chunks, *args, vectors, sums)

    def settle(self) -> None:
        """Turn the sums into expected counts."""
        args = self.arrays, self.matrix_contexts, *self.sums
        self.space.workers.map(pair_counts.settle_counts, self.settle_chunks, *args)

    def gather(self, total: Floats, of_corrections: Floats, gradient: Floats) -> None:
        """Gather numbers [K] of the bigram weights, such as expected counts.

        total: [M, Y + 1, Yp], of matrices; of_corrections: [E].
        """
        matrices, entries = self._row_matrices, self.contexts.weight_corrections
        args = self.space.n_labels, self.bigrams, matrices.indptr, matrices.indices, total
        of_entries = entries.indptr, entries.indices, of_corrections, gradient
        self.space.workers.map(pair_counts.gather_bigrams, self._row_chunks, *args, *of_entries)


class ShardTokens:
    """The tokens of a shard by the matrix and by the context of their potentials.

    by_matrix, by_context: tokens that continue, and that begin, a sequence; spans [P, 2]: for
    matrices with many tokens, parts of the continuing tokens, which threads process in parallel;
    matrix m has the spans mat_spans[m]:mat_spans[m + 1]; chunks: of matrices; order: of inference.
    """

    def __init__(self, pairs: PairPotentials, shard: Shard, chunks: Chunks) -> None:
        contexts, limits = pairs.contexts, pairs.space.limits
        own, matrix_of = contexts.context[shard.begin : shard.end], contexts.arrays.matrix_of
        self.by_matrix = tokens_by(shard, matrix_of[own], len(pairs.potentials.shift))
        self.by_context = tokens_by(shard, own, len(matrix_of))
        self.mat_spans, self.spans = _cut_spans(self.by_matrix.inner_ptr, limits.span)
        self.chunks: Chunks = cut(np.diff(self.by_matrix.inner_ptr), limits.n_chunks)
        is_large = pairs.potentials.psi[:1].nbytes > _LARGE_BYTES
        together = len(shard.offsets) if is_large else limits.together
        self.order = interleaved_order(shard, chunks, together, own, matrix_of)

    def without_starts(self) -> "ShardTokens":
        """Return the tokens without those that begin a sequence."""
        found = copy(self)
        found.by_matrix, found.by_context = map(_without_starts, (self.by_matrix, self.by_context))
        return found


def tokens_by(shard: Shard, key: Ints, n_keys: int) -> layout.TokensBy:
    """Return the tokens of a shard that continue, and that begin, a sequence by a key [n].

    Tokens count from the first of the shard; n_keys: upper bound of keys.
    """
    arrays: list[NDArray[Any]] = []
    for members in (np.flatnonzero(~shard.begins), np.flatnonzero(shard.begins)):
        keys = key[members]
        order = np.argsort(keys, kind="stable")
        indptr = np.searchsorted(keys[order], np.arange(n_keys + 1)).astype(np.int64)
        arrays += [indptr, members[order].astype(np.int32)]
    return layout.TokensBy(*arrays)


def _without_starts(tokens: layout.TokensBy) -> layout.TokensBy:
    return tokens._replace(
        start_ptr=np.zeros_like(tokens.start_ptr), start_tokens=tokens.start_tokens[:0]
    )


def _cut_spans(inner_ptr: Longs, span: int) -> tuple[Longs, Longs]:
    """Cut tokens of matrices with more than `span` tokens into spans; see `ShardTokens`."""
    sizes = np.diff(inner_ptr)
    n_spans = np.where(sizes > span, -(-sizes // span), 0)
    mat_spans = np.concatenate(([0], np.cumsum(n_spans))).astype(np.int64)
    number = np.arange(mat_spans[-1]) - np.repeat(mat_spans[:-1], n_spans)
    begin = np.repeat(inner_ptr[:-1], n_spans) + number * span
    end = np.minimum(begin + span, np.repeat(inner_ptr[1:], n_spans))
    return mat_spans, np.stack((begin, end), axis=1)


def sequential_order(shard: Shard) -> layout.BatchOrder:
    """Return the order that processes one sequence after another."""
    lengths = np.diff(shard.offsets)
    order = np.arange(len(shard.begins)) - np.repeat(shard.offsets[:-1], lengths)
    return layout.BatchOrder(np.where(shard.begins, ~order, order).astype(np.int32), 1, False)


def interleaved_order(
    shard: Shard, chunks: Chunks, together: int, context: Ints, matrix_of: Ints
) -> layout.BatchOrder:
    """Return the order of interleaved batches: first tokens by matrix, second tokens, and so on.

    Batches are small: with many contexts, their matrices are still in a near cache in the backward
    pass.

    chunks: runs of sequences that cover the shard; together: sequences of a batch; context: [n]
    int32, of the tokens of the shard; matrix_of: [C] int32, of contexts.
    """
    first, last = np.array(chunks, np.int64).reshape(-1, 2).T
    heads = (np.arange(len(shard.offsets) - 1) - np.repeat(first, last - first)) % together == 0
    run, lengths = np.cumsum(heads) - 1, np.diff(shard.offsets)
    batch = np.repeat(run * (lengths.max(initial=0) + 1) - shard.offsets[:-1], lengths)
    batch += np.arange(len(context))
    # Contexts with the same matrix are neighbours.
    rank = np.empty(len(matrix_of), np.int64)
    rank[np.argsort(matrix_of, kind="stable")] = np.arange(len(matrix_of))
    order = np.argsort(batch * len(matrix_of) + rank[context], kind="stable")
    order_in_run = order - np.repeat(shard.offsets[:-1][heads][run], lengths)
    marked = np.where(shard.begins[order], ~order_in_run, order_in_run).astype(np.int32)
    return layout.BatchOrder(marked, together, False)
