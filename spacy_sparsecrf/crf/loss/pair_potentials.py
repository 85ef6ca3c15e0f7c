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

from ..corpus.numbering import Floats, Ints, Longs, Mask
from ..kernels import layout, pair_counts
from ..kernels.indexing import select, take, transpose
from ..kernels.layout import Csr
from ..kernels.pairs import build_corrections, build_matrices
from ..parallel import Chunks, cut
from .feature_blocks import FeatureBlocks
from .lattice import Shard
from .workspace import Limits, Workspace

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


def lay_out_contexts(
    space: Workspace, rows: FeatureBlocks, cost_model: "type[CostModel]"
) -> ContextLayout:
    """Choose the matrices and sparse corrections of the contexts.

    space: for its lattice and limits; rows: bigram feature blocks; cost_model: of an evaluation.
    """
    lattice = space.lattice
    blocks = select(lattice.ctx_features, rows.number())
    # Sets of blocks are compared by random sums modulo 2**64, as features are by their hashes.
    marks = np.random.default_rng(0).integers(1, 1 << 63, len(rows), dtype=np.uint64)
    sums = row_sums(blocks, marks[blocks.indices])
    _, representative, active = np.unique(sums, return_index=True, return_inverse=True)
    merged, context = take(blocks, representative), active.astype(np.int32)[lattice.context]
    model = cost_model(space, rows, blocks=merged, marks=marks, context=context)
    choice, other = map(model.choose, model.shares(space.limits))
    if other.cost < choice.cost:
        choice = other
    matrix_blocks = take(_selected(merged, choice.in_matrix), choice.context_of)
    corrections = _corrections(_selected(merged, ~choice.in_matrix), rows, space)
    n_corrections = np.diff(corrections.ptr)
    return ContextLayout(
        blocks,
        active=active.astype(np.int32),
        context=context,
        matrix_blocks=matrix_blocks,
        arrays=layout.Contexts(
            choice.matrix_of.astype(np.int32),
            constant=(np.diff(matrix_blocks.indptr) == 0) & (lattice.valid is None),
            corr_ptr=corrections.ptr,
            corr_start=corrections.start,
            corr_previous=corrections.previous,
            corr_label=corrections.label,
            corr_place=corrections.position,
        ),
        correction_context=np.repeat(np.arange(len(n_corrections), dtype=np.int32), n_corrections),
        correction_weights=corrections.weights,
        weight_corrections=transpose(corrections.weights, int(rows.ptr[-1])),
    )


def row_sums(table: Csr, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the sum of the values [nnz] of each row, modulo 2**64."""
    ends = np.zeros(len(values) + 1, np.uint64)
    np.cumsum(values, out=ends[1:])
    sums: NDArray[np.uint64] = np.diff(ends[table.indptr])
    return sums


def _selected(table: Csr, mask: Mask) -> Csr:
    """Return a table without the entries that a mask [nnz] excludes."""
    return Csr(np.append(0, np.cumsum(mask))[table.indptr], table.indices[mask])


class _Choice(NamedTuple):
    """A layout: cost of an evaluation; in_matrix: [nnz], which blocks of contexts are in matrices;
    context_of: [M], a context of each matrix; matrix_of: [C].
    """

    cost: float
    in_matrix: Mask
    context_of: Longs
    matrix_of: Longs


class CostModel:
    """Cost model of an evaluation, for a division of features into matrices and corrections.

    space, rows: see `lay_out_contexts`; blocks: of the merged contexts; marks: [R] uint64, random;
    context: [N]. Here potentials are built once per evaluation.
    """

    def __init__(
        self,
        space: Workspace,
        rows: FeatureBlocks,
        *,
        blocks: Csr,
        marks: NDArray[np.uint64],
        context: Ints,
    ) -> None:
        self._limits, self._lattice = space.limits, space.lattice
        self._blocks, self._context = blocks, context
        self._area = float(space.n_labels * space.padded)
        n, lengths = len(blocks.indptr) - 1, np.diff(blocks.indptr)
        self._row = np.repeat(np.arange(n), lengths)
        self._sizes, self._marks = np.diff(rows.ptr)[blocks.indices], marks[blocks.indices]
        self._tokens = np.bincount(context, minlength=n).astype(np.float64)
        self._n_exps = self._builds(self._tokens)
        # Without a start label, the first token of a sequence has no bigram feature.
        n_tokens = max(1.0, self._tokens[lengths > 0].sum())
        per_block = np.bincount(blocks.indices, self._tokens[self._row], minlength=len(rows))
        self._share = (per_block / n_tokens)[blocks.indices]

    @staticmethod
    def shares(limits: Limits) -> tuple[float, float]:
        """Return the two candidate shares of the tokens, see `Limits`."""
        return limits.shares

    @staticmethod
    def _builds(tokens: Floats) -> Floats:
        """Return how often the potentials of contexts with these numbers of tokens are built."""
        return np.ones(len(tokens))

    def _n_built(self, weighted: Mask, matrix_of: Longs) -> float:
        """Return the number of matrices with weights that are built; see `_matrix_cost`."""
        return float(weighted.sum())

    def choose(self, least_share: float) -> _Choice:
        """Put features with a minimum share of the tokens into matrices, and all features of
        contexts that would have too many corrections; above a limit of memory, any other is better.
        """
        limits, n = self._limits, len(self._blocks.indptr) - 1
        in_matrix = self._share >= least_share
        n_weights = np.bincount(self._row, np.where(in_matrix, 0, self._sizes), minlength=n)
        per_weight = limits.correction * self._tokens + limits.correction_exp * self._n_exps
        cost_alone = self._area * ((_UNCACHED - 1.0) * self._tokens + _BUILD * self._n_exps)
        alone = n_weights * per_weight > cost_alone
        if _BYTES_PER_ELEMENT * self._area * alone.sum() <= limits.matrix_bytes:
            in_matrix |= alone[self._row]
            n_weights[alone] = 0
        sums = row_sums(self._blocks, np.where(in_matrix, self._marks, np.uint64(0)))
        marked, context_of, matrix_of = np.unique(sums, return_index=True, return_inverse=True)
        of_matrices = _BYTES_PER_ELEMENT * self._area * len(context_of)
        of_corrections = BYTES_PER_ENTRY * n_weights.sum()
        cost = float((n_weights * per_weight).sum()) + self._matrix_cost(marked > 0, matrix_of)
        if of_matrices > limits.matrix_bytes or of_corrections > limits.correction_bytes:
            cost = 1e30 * (of_matrices + of_corrections)
        return _Choice(cost, in_matrix, context_of=context_of, matrix_of=matrix_of)

    def _matrix_cost(self, weighted: Mask, matrix_of: Longs) -> float:
        """Return the cost of building matrices and of their products; matrices of ones are free."""
        if self._lattice.valid is not None:
            weighted = np.ones_like(weighted)
        uncached = 8.0 * self._area * len(weighted) > _CACHE_BYTES
        n_products = float(self._tokens[weighted[matrix_of]].sum())
        products = self._area * (_UNCACHED if uncached else 1.0) * n_products
        return products + _BUILD * self._area * self._n_built(weighted, matrix_of)


class SequentialCostModel(CostModel):
    """Cost model where potentials are built for each sequence, as solvers by example do."""

    @staticmethod
    def shares(limits: Limits) -> tuple[float, float]:
        """See `CostModel.shares`."""
        return limits.shares_by_example

    @staticmethod
    def _builds(tokens: Floats) -> Floats:
        return tokens

    def _n_built(self, weighted: Mask, matrix_of: Longs) -> float:
        """Return the number of tokens whose matrix has weights and differs from the previous."""
        matrix = matrix_of[self._context]
        changes = self._lattice.begins | (matrix != np.append(-1, matrix[:-1]))
        return float((changes & weighted[matrix]).sum())


class _Corrections(NamedTuple):
    """Sparse corrections: the fields of `layout.Contexts` about them, and the weights of each."""

    ptr: Longs
    start: Longs
    previous: Shorts
    label: Shorts
    position: Ints
    weights: Csr


def _corrections(lines: Csr, rows: FeatureBlocks, space: Workspace) -> _Corrections:
    """Number the sparse corrections of each context: the label pairs of its blocks in `lines`."""
    n_labels, padded = space.n_labels, space.padded
    n, area = len(lines.indptr) - 1, (n_labels + 1) * padded
    of_blocks = Csr(rows.ptr, np.arange(len(rows.places), dtype=np.int32))
    ptr, weights = take(of_blocks, lines.indices.astype(np.int64))
    lengths = np.diff(ptr)
    context = np.repeat(np.arange(n), np.diff(lines.indptr))
    keys = np.repeat(context * area, lengths) + rows.places[weights]
    # The weights of a correction stay in the order of the blocks.
    order = np.argsort(keys, kind="stable")
    corrected, begins = np.unique(keys[order], return_index=True)
    bounds = np.arange(n + 1) * area
    position = (corrected % area).astype(np.int32)
    previous, label = np.stack(np.divmod(position, padded)).astype(np.uint16)
    return _Corrections(
        np.searchsorted(corrected, bounds),
        start=np.searchsorted(corrected, bounds[:-1] + n_labels * padded),
        previous=previous,
        label=label,
        position=position,
        weights=Csr(np.append(begins, len(order)).astype(np.int64), weights[order]),
    )


class PairSums(NamedTuple):
    """Sums over tokens: by matrix [M, Y + 1, Yp], and by sparse correction [E]."""

    by_matrix: Floats
    by_correction: Floats

    @classmethod
    def zeros(cls, potentials: layout.Potentials) -> "PairSums":
        """Allocate sums for potentials."""
        return cls(np.zeros(potentials.psi.shape), np.zeros(len(potentials.value)))

    def clear(self) -> None:
        """Set the sums to zero."""
        for sums in self:
            sums[...] = 0.0


class PairPotentials:
    """Matrices and sparse corrections of the bigram weights.

    rows: bigram feature blocks; cost_model: see `lay_out_contexts`. contexts: layout of the
    contexts; arrays: kernel arguments with the potentials of the last `fill`, in the precision of
    the workspace; bigrams: index of the weights; matrix_chunks, context_chunks, settle_chunks:
    chunks of matrices, of contexts, and of matrices by the corrections of their contexts;
    matrix_contexts: contexts of a matrix; tokens: of each shard; sums: products of the vectors.
    """

    def __init__(
        self, space: Workspace, rows: FeatureBlocks, cost_model: type[CostModel] = CostModel
    ) -> None:
        self.space = space
        self.rows = rows
        self.contexts = lay_out_contexts(space, rows, cost_model)
        self.arrays = self.new_arrays(space.dtype)
        self.potentials = self.arrays.potentials
        matrix_blocks, weights = self.contexts.matrix_blocks, self.contexts.correction_weights
        self.bigrams = layout.Bigrams(
            space.lattice.n_previous,
            mat_ptr=matrix_blocks.indptr,
            mat_blocks=matrix_blocks.indices,
            block_ptr=rows.ptr,
            block_places=rows.places,
            corr_weight_ptr=weights.indptr,
            corr_weights=weights.indices,
            origin=np.empty(0),
        )
        self.sums = PairSums.zeros(self.potentials)
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
        potentials = layout.Potentials(
            psi,
            shift=np.zeros(n_matrices),
            value=np.zeros(n_corrections),
            change=np.zeros(n_corrections),
            rewritten=np.zeros(n_contexts, dtype=np.bool_),
            stamp=np.zeros(n_matrices + n_contexts, dtype=np.int64),
        )
        return layout.Pairs(n_labels, self.contexts.arrays, potentials)

    def new_slopes(self, dtype: DTypeLike) -> layout.Slopes:
        """Allocate slopes of these potentials, all zero; the slopes of the mask stay zero."""
        potentials = self.potentials
        return layout.Slopes(
            np.zeros(potentials.psi.shape, dtype),
            score=np.zeros_like(potentials.value),
            change=np.zeros_like(potentials.value),
            stamp=np.zeros_like(potentials.stamp),
        )

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
        for build, chunks in (
            (build_matrices, self.matrix_chunks),
            (build_corrections, self.context_chunks),
        ):
            self.space.workers.map(
                build, chunks, pairs=self.arrays, bigrams=self.bigrams, theta=theta
            )

    def begin_sums(self) -> None:
        """Clear the sums over shards."""
        self.sums.clear()

    def add_products(self, tokens: "ShardTokens", vectors: layout.Vectors, sums: PairSums) -> None:
        """Add products alpha_{t-1}[y'] backward_t[y] of the tokens of a shard.

        vectors: of the shard; sums: added to.
        """
        workers = self.space.workers
        spans = np.zeros((len(tokens.spans), *sums.by_matrix.shape[1:]))
        workers.map(
            pair_counts.pair_sums,
            [*pairwise(range(len(spans) + 1))],
            n_labels=self.space.n_labels,
            spans=tokens.spans,
            tokens=tokens.by_matrix.inner_tokens,
            vectors=vectors,
            sums=spans,
        )
        workers.map(
            pair_counts.matrix_products,
            tokens.chunks,
            pairs=self.arrays,
            of_matrix=layout.MatrixSums(tokens.by_matrix, tokens.mat_spans, spans),
            vectors=vectors,
            total=sums.by_matrix,
        )
        workers.map(
            pair_counts.correction_sums,
            self._correction_chunks,
            contexts=self.contexts.arrays,
            corr_context=self.contexts.correction_context,
            tokens=tokens.by_context,
            vectors=vectors,
            sums=sums.by_correction,
        )

    def settle(self) -> None:
        """Turn the sums into expected counts."""
        self.space.workers.map(
            pair_counts.settle_counts,
            self.settle_chunks,
            pairs=self.arrays,
            of_matrix=self.matrix_contexts,
            total=self.sums.by_matrix,
            sums=self.sums.by_correction,
        )

    def gather(self, sums: PairSums, gradient: Floats) -> None:
        """Gather numbers [K] of the bigram weights, such as expected counts, from sums."""
        matrices, corrections = self._row_matrices, self.contexts.weight_corrections
        self.space.workers.map(
            pair_counts.gather_bigrams,
            self._row_chunks,
            n_labels=self.space.n_labels,
            bigrams=self.bigrams,
            col_ptr=matrices.indptr,
            col_matrices=matrices.indices,
            residual=sums.by_matrix,
            weight_ptr=corrections.indptr,
            weight_corrections=corrections.indices,
            correction_residual=sums.by_correction,
            gradient=gradient,
        )


class ShardTokens:
    """The tokens of a shard by the matrix and by the context of their potentials.

    by_matrix, by_context: tokens that continue, and that begin, a sequence; spans [P, 2]: for
    matrices with many tokens, parts of the continuing tokens, which threads process in parallel;
    matrix m has the spans mat_spans[m]:mat_spans[m + 1]; chunks: of matrices; order: of inference.
    """

    def __init__(self, pairs: PairPotentials, shard: Shard, chunks: Chunks) -> None:
        contexts, limits = pairs.contexts, pairs.space.limits
        context = contexts.context[shard.begin : shard.end]
        matrix_of = contexts.arrays.matrix_of
        self.by_matrix = tokens_by(shard, matrix_of[context], len(pairs.potentials.shift))
        self.by_context = tokens_by(shard, context, len(matrix_of))
        self.mat_spans, self.spans = _cut_spans(self.by_matrix.inner_ptr, limits.span)
        self.chunks: Chunks = cut(np.diff(self.by_matrix.inner_ptr), limits.n_chunks)
        is_large = pairs.potentials.psi[:1].nbytes > _LARGE_BYTES
        together = len(shard.offsets) if is_large else limits.together
        self.order = interleaved_order(
            shard, chunks, together=together, context=context, matrix_of=matrix_of
        )

    def without_starts(self) -> "ShardTokens":
        """Return the tokens without those that begin a sequence."""
        inner = copy(self)
        inner.by_matrix = _without_starts(self.by_matrix)
        inner.by_context = _without_starts(self.by_context)
        return inner


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
    shard: Shard, chunks: Chunks, *, together: int, context: Ints, matrix_of: Ints
) -> layout.BatchOrder:
    """Return the order of interleaved batches: first tokens by matrix, second tokens, and so on.

    Batches are small: with many contexts, their matrices are still in a near cache in the backward
    pass.

    chunks: runs of sequences that cover the shard; together: sequences of a batch; context: [n]
    int32, of the tokens of the shard; matrix_of: [C] int32, of contexts.
    """
    begins, ends = np.array(chunks, np.int64).reshape(-1, 2).T
    heads = (np.arange(len(shard.offsets) - 1) - np.repeat(begins, ends - begins)) % together == 0
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
