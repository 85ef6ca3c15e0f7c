"""Pair potentials of the bigram weights: shared matrices plus sparse corrections; their gradient.

See `loss.context_layout` for the layout.
"""

from copy import copy
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..corpus.numbering import Floats, Ints, Longs
from ..corpus.ragged import by_key, pointers
from ..kernels import layout, pair_counts
from ..kernels.indexing import transpose
from ..kernels.pairs import build_corrections, build_matrices
from ..parallel import Chunks, cut
from .context_layout import CostModel, lay_out_contexts
from .feature_blocks import FeatureBlocks
from .lattice import Shard
from .workspace import Workspace

# A larger matrix does not stay in a near cache: a whole chunk is then one interleaved batch.
_LARGE_BYTES = 1 << 16


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
        by_matrix = by_key(contexts.arrays.matrix_of, len(self.potentials.shift))
        self.matrix_contexts = layout.ContextsOf(by_matrix.indptr, by_matrix.indices)
        per_matrix = np.add.reduceat(n_corrections[by_matrix.indices], by_matrix.indptr[:-1])
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
        indptr, order = by_key(key[members], n_keys)
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
    mat_spans = pointers(n_spans)
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
