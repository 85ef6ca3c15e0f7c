"""Pair potentials of the bigram weights: shared matrices plus sparse corrections; their gradient.

Contexts with the same features in the working set are merged. Some features of a context form its
*matrix*, which all contexts with those features share. The weights of its other features are
*sparse corrections*: label pairs in which its potentials differ from the matrix. A cost model
chooses the layout. At one extreme every context has its own matrix; at the other all share a matrix
of ones, which is the sparse forward-backward of Lavergne 2010, section 4.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..corpus.csr import Csr
from ..corpus.numbering import distinct_rows
from ..kernels import layout
from ..kernels.indexing import count_places, list_places
from ..kernels.pair_counts import (
    correction_sums,
    count_corrections,
    gather_bigrams,
    matrix_residuals,
    pair_sums,
    settle_corrections,
)
from ..kernels.pairs import build_corrections, build_matrices
from ..parallel import Chunks, cut, each_with
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
# Bytes of sparse corrections for each of their weights.
_BYTES_PER_ENTRY = 60.0


@dataclass(frozen=True)
class ContextLayout:
    """Matrices and sparse corrections of merged contexts.

    active: [C'] int32, merged context of each context of the corpus; context: [N] int32, merged
    context of a token; matrix_blocks: feature blocks of a matrix; arrays: matrix and corrections of
    a context; correction_context: [E] int32; correction_weights, weight_corrections: weights of a
    correction, and its transpose.
    """

    active: Ints
    context: Ints
    matrix_blocks: Csr
    arrays: layout.Contexts
    correction_context: Ints
    correction_weights: Csr
    weight_corrections: Csr

    @property
    def n_corrections(self) -> int:
        """Number of sparse corrections E."""
        return len(self.arrays.corr_place)


def lay_out_contexts(space: Workspace, rows: FeatureBlocks, stochastic: bool) -> ContextLayout:
    """Choose the matrices and sparse corrections of the contexts.

    space: for its lattice and limits; rows: bigram feature blocks; stochastic: whether potentials
    are built for each sequence instead of once per evaluation.
    """
    costs = _CostModel(space, rows, stochastic)
    in_matrix = costs.choose()
    bases = np.where(in_matrix, costs.table, 0)
    first, matrix_of = distinct_rows(np.sort(bases, axis=1))
    matrix_blocks = _csr(bases[first])
    constant = (np.diff(matrix_blocks.indptr) == 0) & (space.lattice.valid is None)
    table = np.where(in_matrix, 0, costs.table)
    entries, weights = _entries(table, rows, space.n_labels, space.padded)
    corr_ptr = entries[0]
    return ContextLayout(
        costs.active,
        costs.context,
        matrix_blocks,
        layout.Contexts(matrix_of, constant, *entries),
        np.repeat(np.arange(len(table), dtype=np.int32), np.diff(corr_ptr)),
        weights,
        weights.transposed(int(rows.ptr[-1])),
    )


def bytes_of_pairs(space: Workspace, rows: FeatureBlocks) -> int:
    """Estimate the memory of the potentials of bigram weights and of their gradient, in bytes.

    Arguments as `lay_out_contexts`.
    """
    costs = _CostModel(space, rows, False)
    n_matrices, n_weights = costs.sizes(costs.choose())
    area = (space.n_labels + 1) * space.padded
    return 3 * 8 * area * n_matrices + int(_BYTES_PER_ENTRY * n_weights)


def _csr(matrix: Ints) -> Csr:
    """Return the inverse of `Csr.padded`: the numbers of each row that are not 0, minus 1."""
    present = matrix > 0
    indptr = np.concatenate(([0], np.cumsum(present.sum(axis=1)))).astype(np.int64)
    return Csr(indptr, (matrix[present] - 1).astype(np.int32))


class _CostModel:
    """Cost model of an evaluation, for a division of features into matrices and corrections.

    space: for its lattice and limits; rows: bigram feature blocks; stochastic: see
    `lay_out_contexts`. active, context: see `ContextLayout`; table: [C, R] int32, 1 + feature
    blocks of a context.
    """

    def __init__(self, space: Workspace, rows: FeatureBlocks, stochastic: bool) -> None:
        lattice, sizes = space.lattice, np.diff(rows.ptr)
        every = np.sort(lattice.ctx_features.selected(rows.number()).padded(), axis=1)
        representatives, self.active = distinct_rows(every)
        self.table = table = every[representatives]
        self.context = self.active[lattice.context]
        self._begins = lattice.begins
        self._limits = space.limits
        self._area = float(space.n_labels * space.padded)
        self._stochastic = stochastic
        self._masked = lattice.valid is not None
        self._tokens = np.bincount(self.context, minlength=len(table)).astype(np.float64)
        self._n_exps = self._tokens if stochastic else np.ones(len(table))
        self._sizes = np.concatenate(([0.0], sizes))[table]
        # Compare sets of blocks by random sums modulo 2**64; collisions matter little to estimates.
        marks = np.random.default_rng(0).integers(1, 1 << 63, len(sizes) + 1, dtype=np.uint64)
        marks[0] = 0
        self._marks = marks[table]
        per_row = np.bincount(
            table.ravel(), np.repeat(self._tokens, table.shape[1]), minlength=len(sizes) + 1
        )
        # Without a start label, the first token of a sequence has no bigram feature.
        n_tokens = self._tokens[(table > 0).any(axis=1)].sum()
        self._share = (per_row / max(1.0, n_tokens))[table]

    def choose(self) -> Mask:
        """Return which features belong to the matrix of their context: [C, R] bool."""
        masks: list[Mask] = []
        for mask in (mask for share in self._limits.shares for mask in self._masks(share)):
            # Several shares may give the same mask, and the cost is slow to evaluate.
            if not any(np.array_equal(mask, other) for other in masks):
                masks.append(mask)
        costs = [self._cost(mask) for mask in masks]
        return masks[int(np.argmin(costs))]

    def _masks(self, least_share: float) -> list[Mask]:
        """Return the mask of features with a minimum share of the tokens; if some contexts then
        have too many corrections, also a mask that adds all features of these contexts.
        """
        present = self.table > 0
        mask: Mask = np.logical_and(present, self._share >= least_share)
        own_cost = self._area * ((_UNCACHED - 1.0) * self._tokens + _BUILD * self._n_exps)
        own = self._correction_cost(mask) > own_cost
        return [mask, np.where(own[:, None], present, mask)] if own.any() else [mask]

    def _correction_cost(self, mask: Mask) -> Floats:
        """Return the cost of the corrections of each context [C]."""
        entries: Floats = np.where(mask, 0.0, self._sizes).sum(axis=1)
        return entries * (
            self._limits.correction * self._tokens + self._limits.correction_exp * self._n_exps
        )

    def _matrices(self, mask: Mask) -> tuple[Longs, Longs]:
        """Return contexts with distinct matrices, [M], and the matrix of each context, [C]."""
        sums = np.where(mask, self._marks, 0).sum(axis=1, dtype=np.uint64)
        _, first, matrix_of = np.unique(sums, return_index=True, return_inverse=True)
        return first, matrix_of

    def sizes(self, mask: Mask) -> tuple[int, float]:
        """Return the number of matrices, and of weights in corrections, counted by context."""
        return len(self._matrices(mask)[0]), float(np.where(mask, 0.0, self._sizes).sum())

    def _cost(self, mask: Mask) -> float:
        """Return the cost of an evaluation; above any feasible cost if it exceeds the memory."""
        first, matrix_of = self._matrices(mask)
        # A matrix and its gradient, in float64.
        n_bytes = 2.0 * 8.0 * self._area * len(first)
        correction_bytes = _BYTES_PER_ENTRY * float(np.where(mask, 0.0, self._sizes).sum())
        if n_bytes > self._limits.matrix_bytes or correction_bytes > self._limits.correction_bytes:
            return 1e30 * (n_bytes + correction_bytes)
        cost = self._matrix_cost(np.any(mask[first], axis=1) | self._masked, matrix_of)
        return cost + float(self._correction_cost(mask).sum())

    def _matrix_cost(self, weighted: Mask, matrix_of: Longs) -> float:
        """Return the cost of building matrices and of their products; matrices of ones are free."""
        uncached = 8.0 * self._area * len(weighted) > _CACHE_BYTES
        n_products = float(self._tokens[weighted[matrix_of]].sum())
        products = self._area * (_UNCACHED if uncached else 1.0) * n_products
        n_built = float(weighted.sum())
        if self._stochastic:
            n_built = float(self._n_changes(matrix_of, weighted))
        return products + _BUILD * self._area * n_built

    def _n_changes(self, matrix_of: Longs, weighted: Mask) -> int:
        """Count the tokens whose matrix has weights and differs from the previous matrix."""
        matrix = matrix_of[self.context]
        changes = self._begins | (matrix != np.append(-1, matrix[:-1]))
        return int((changes & weighted[matrix]).sum())


def _entries(
    table: Ints, rows: FeatureBlocks, n_labels: int, padded: int
) -> tuple[tuple[Longs, Longs, Shorts, Shorts, Ints], Csr]:
    """Number the sparse corrections of each context: the label pairs of features in `table`.

    RETURNS: the fields of `Contexts` about corrections, and the weights of each correction.
    """
    lines = _csr(table)
    args = lines.indptr, lines.indices, rows.ptr, rows.places
    area = (n_labels + 1) * padded
    sizes, n_weights = (np.zeros(len(table), np.int64) for _ in range(2))
    count_places(*args, np.full(area, -1, np.int32), sizes, n_weights)
    corr_ptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    n_corrections = int(corr_ptr[-1])
    place = np.empty(n_corrections, np.int32)
    weights = Csr(np.empty(n_corrections + 1, np.int64), np.empty(n_weights.sum(), np.int32))
    n_words = -(-area // 64)
    bits, counts = np.zeros(n_words, np.uint64), np.zeros(64 * n_words, np.int64)
    list_places(*args, corr_ptr, bits, counts, place, weights.indptr, weights.indices)
    context = np.repeat(np.arange(len(table)), sizes)
    before_start = np.bincount(context[place < n_labels * padded], minlength=len(table))
    previous, label = (of_place.astype(np.uint16) for of_place in np.divmod(place, padded))
    return (corr_ptr, corr_ptr[:-1] + before_start, previous, label, place), weights


class PairPotentials:
    """Matrices and sparse corrections of the bigram weights.

    rows: bigram feature blocks; stochastic: whether for a stochastic solver; origin: [K] float64,
    added to the weights of `fill`, or [0]. contexts: layout of the contexts; arrays: kernel
    arguments with the potentials of the last `fill`, in the precision of the workspace; bigrams:
    index of the weights; matrix_chunks, context_chunks, settle_chunks: chunks of matrices, of
    contexts, and of matrices by the corrections of their contexts; matrix_contexts: contexts of a
    matrix.
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
        self._correction_gold: Floats | None = None
        self._cut_chunks()

    def new_arrays(self, dtype: DTypeLike = np.float64) -> layout.Pairs:
        """Allocate potentials; only matrices of ones and the mask are filled in."""
        n_matrices, n_labels = len(self.contexts.matrix_blocks), self.space.n_labels
        n_contexts, n_corrections = len(self.contexts.arrays.matrix_of), self.contexts.n_corrections
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
        self._row_matrices = contexts.matrix_blocks.transposed(len(self.rows))
        self._row_chunks = self.rows.chunks(np.diff(self._row_matrices.indptr) + 1, n_chunks)
        by_matrix = np.argsort(contexts.arrays.matrix_of, kind="stable").astype(np.int32)
        bounds = np.arange(len(self.potentials.shift) + 1)
        ctx_ptr = np.searchsorted(contexts.arrays.matrix_of[by_matrix], bounds)
        self.matrix_contexts = layout.ContextsOf(ctx_ptr, by_matrix)
        per_matrix = np.add.reduceat(n_corrections[by_matrix], ctx_ptr[:-1])
        self.settle_chunks = cut(per_matrix, n_chunks)

    @cached_property
    def tokens(self) -> list["ShardTokens"]:
        """Tokens of each shard by matrix and by context, and their order in inference."""
        found = []
        for shard, chunks in zip(self.space.shards, self.space.chunks, strict=True):
            found.append(ShardTokens(self, shard, chunks))
        return found

    @cached_property
    def _residual(self) -> Floats:
        """Expected minus observed pair counts of each matrix, [M, Y + 1, Yp]."""
        return np.zeros(self.potentials.psi.shape)

    def fill(self, theta: Floats) -> None:
        """Evaluate the potentials of all matrices and corrections, once each.

        theta: [K] float64, the bigram weights.
        """
        workers, args = self.space.workers, (self.arrays, self.bigrams, theta)
        workers.map(build_matrices, self.matrix_chunks, *args)
        workers.map(build_corrections, self.context_chunks, *args)

    def begin_sums(self) -> None:
        """Clear the sums over shards."""
        self._correction_sums = np.zeros(self.contexts.n_corrections)

    def add_shard(self, i: int, sequences: layout.Sequences, vectors: layout.Vectors) -> None:
        """Add the pair counts of shard i, given its sequences and vectors."""
        tokens, residual = self.tokens[i], self._residual
        sums = self.with_sums(i, tokens.by_matrix, vectors)
        totals = np.zeros((len(tokens.chunks), *residual.shape[1:]))
        args = sequences, self.arrays, sums, vectors, i == 0, residual
        self.space.workers.map(matrix_residuals, each_with(tokens.chunks, totals), *args)
        self.sum_corrections(tokens.by_context, vectors, self._correction_sums)

    def with_sums(
        self, i: int, by_matrix: layout.TokensBy, vectors: layout.Vectors
    ) -> layout.MatrixSums:
        """Return tokens of shard i by matrix, with alpha_{t-1} (x) backward_t summed over spans."""
        tokens, n_labels = self.tokens[i], self.space.n_labels
        sums = np.zeros((len(tokens.spans), *self.potentials.psi.shape[1:]))
        args = n_labels, tokens.spans, by_matrix.inner_tokens, vectors, sums
        self.space.workers.map(pair_sums, [*pairwise(range(len(sums) + 1))], *args)
        return layout.MatrixSums(by_matrix, tokens.mat_spans, sums)

    def sum_corrections(
        self, tokens: layout.TokensBy, vectors: layout.Vectors, sums: Floats
    ) -> None:
        """Add products alpha_{t-1}[y'] backward_t[y] of tokens of contexts to sums [E]."""
        args = self.contexts.arrays, self.contexts.correction_context, tokens, vectors, sums
        self.space.workers.map(correction_sums, self._correction_chunks, *args)

    def finish(self, shards: Sequence[layout.Tables], gradient: Floats) -> None:
        """Gather the gradient [K] of the bigram weights from the sums over all shards."""
        if self._correction_gold is None:
            self._correction_gold = gold = np.zeros(self.contexts.n_corrections)
            contexts, padded = self.contexts.arrays, self.space.padded
            for own, tokens in zip(shards, self.tokens, strict=True):
                count_corrections(own.sequences, contexts, tokens.by_context, padded, gold)
        args, sums = (self.arrays, self.matrix_contexts), (self._residual, self._correction_sums)
        workers = self.space.workers
        workers.map(settle_corrections, self.settle_chunks, *args, self._correction_gold, *sums)
        self.gather(*sums, gradient)

    def gather(self, residual: Floats, correction_residual: Floats, gradient: Floats) -> None:
        """Gather the gradient [K] of the bigram weights.

        residual: [M, Y + 1, Yp], of matrices; correction_residual: [E].
        """
        matrices, entries = self._row_matrices, self.contexts.weight_corrections
        args = self.space.n_labels, self.bigrams, matrices.indptr, matrices.indices, residual
        of_entries = entries.indptr, entries.indices, correction_residual, gradient
        self.space.workers.map(gather_bigrams, self._row_chunks, *args, *of_entries)


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
