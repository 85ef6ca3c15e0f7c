"""Pair potentials of working bigram weights, and the gradient of those weights."""

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import DTypeLike

from ..kernels.layout import (
    Bigrams,
    ContextsOf,
    MatrixSums,
    Pairs,
    Potentials,
    Sequences,
    Slopes,
    TokensBy,
    Vectors,
    Walk,
)
from ..kernels.pair_expectations import (
    count_entries,
    entry_sums,
    gather_bigrams,
    matrix_residuals,
    pair_sums,
    settle_entries,
)
from ..kernels.pairs import build_entries, build_matrices
from ..parallel import cut
from .contexts import lay_out_contexts
from .lattice import Floats
from .rows import Rows
from .workspace import LARGE_BYTES, MatrixTokens, Workspace, in_waves


class PairPotentials:
    """Matrices and entries (see `contexts`) of working bigram weights.

    rows: the weights by test; stochastic: whether for a stochastic solver. contexts: how they are
    laid out; arrays: what kernels take, with potentials of the weights that were filled in last, of
    the workspace's precision; bigrams: where the weights are; matrix_chunks, context_chunks,
    settle_chunks: matrices, contexts and matrices by their contexts' entries, cut into chunks;
    matrix_contexts: contexts of a matrix.
    """

    def __init__(self, space: Workspace, rows: Rows, stochastic: bool) -> None:
        self.space = space
        self.rows = rows
        self.contexts = lay_out_contexts(space, rows, stochastic)
        self.arrays = self.new_arrays(space.dtype)
        self.potentials = self.arrays.potentials
        matrix_rows, weights = self.contexts.matrix_rows, self.contexts.entry_weights
        of_matrices = matrix_rows.indptr, matrix_rows.indices, rows.ptr, rows.places
        self.bigrams = Bigrams(
            space.lattice.n_previous, *of_matrices, weights.indptr, weights.indices
        )
        self._entry_gold: Floats | None = None
        self._cut_chunks()

    def new_arrays(self, dtype: DTypeLike = np.float64) -> Pairs:
        """Pairs with potentials of which none was evaluated, but matrices of ones, and the mask."""
        n_matrices, n_labels = len(self.contexts.matrix_rows), self.space.n_labels
        n_contexts, n_entries = len(self.contexts.arrays.matrix_of), self.contexts.n_entries
        legal = self.space.lattice.legal
        shape = (n_matrices + (legal is not None), n_labels + 1, self.space.padded)
        psi = np.zeros(shape, dtype)
        psi[:n_matrices][self.contexts.arrays.constant, :, :n_labels] = 1.0
        if legal is not None:
            psi[-1, :n_labels, :n_labels] = legal[:n_labels, :n_labels]
            psi[-1, n_labels, :n_labels] = 1.0
        of_entries = np.zeros(n_entries), np.zeros(n_entries)
        rewritten = np.zeros(n_contexts, dtype=np.bool_)
        stamp = np.zeros(n_matrices + n_contexts, dtype=np.int64)
        potentials = Potentials(psi, np.zeros(n_matrices), *of_entries, rewritten, stamp)
        return Pairs(n_labels, self.contexts.arrays, potentials)

    def new_slopes(self, dtype: DTypeLike) -> Slopes:
        """Slopes of these potentials, of which none was evaluated; those of the mask are zeros."""
        potentials = self.potentials
        zeros = np.zeros_like(potentials.value), np.zeros_like(potentials.value)
        psi = np.zeros(potentials.psi.shape, dtype)
        return Slopes(psi, *zeros, np.zeros_like(potentials.stamp))

    def _cut_chunks(self) -> None:
        """Cut matrices, contexts, entries and rows into chunks of about equal work."""
        contexts, n_chunks = self.contexts, self.space.limits.n_chunks
        n_entries = np.diff(contexts.arrays.ent_ptr)
        self.matrix_chunks = cut(np.diff(contexts.matrix_rows.indptr), n_chunks)
        self.context_chunks = cut(n_entries, n_chunks)
        store = self.space.lattice.store
        tokens = store.counts(contexts.context, len(contexts.arrays.matrix_of))
        self._entry_chunks = cut(tokens[contexts.entry_context], n_chunks)
        self._row_matrices = contexts.matrix_rows.transposed(len(self.rows))
        self._row_chunks = self.rows.chunks(np.diff(self._row_matrices.indptr) + 1, n_chunks)
        by_matrix = np.argsort(contexts.arrays.matrix_of, kind="stable").astype(np.int32)
        bounds = np.arange(len(self.potentials.shift) + 1)
        ctx_ptr = np.searchsorted(contexts.arrays.matrix_of[by_matrix], bounds)
        self.matrix_contexts = ContextsOf(ctx_ptr, by_matrix)
        per_matrix = np.add.reduceat(n_entries[by_matrix], ctx_ptr[:-1])
        self.settle_chunks = cut(per_matrix, n_chunks)

    @cached_property
    def tokens(self) -> list[MatrixTokens]:
        """Of each shard, its tokens by matrix and by context."""
        contexts, n_matrices = self.contexts, len(self.potentials.shift)
        return [
            MatrixTokens(self.space, shard, contexts.context, contexts.arrays.matrix_of, n_matrices)
            for shard in self.space.shards
        ]

    @cached_property
    def walks(self) -> list[Walk]:
        """Of each shard, the order of its tokens in inference."""
        contexts, space, found = self.contexts, self.space, []
        for shard, chunks in zip(space.shards, space.chunks, strict=True):
            is_large = self.potentials.psi[:1].nbytes > LARGE_BYTES
            together = len(shard.offsets) if is_large else space.limits.together
            own = contexts.context[shard.begin : shard.end]
            walk = in_waves(shard, chunks, together, own, contexts.arrays.matrix_of)
            (order,) = space.lattice.store.kept((walk.order,))
            found.append(walk._replace(order=order))
            space.lattice.store.release()
        return found

    @cached_property
    def _residual(self) -> Floats:
        """[M, Y + 1, Yp], expected minus observed pair counts of a matrix."""
        return np.zeros(self.potentials.psi.shape)

    def _count_entries(self, sequences: Iterable[Sequences]) -> Floats:
        """[E], weighted gold counts of entries."""
        gold = np.zeros(self.contexts.n_entries)
        for own, tokens in zip(sequences, self.tokens, strict=True):
            count_entries(own, self.contexts.arrays, tokens.by_context, self.space.padded, gold)
        return gold

    def fill(self, theta: Floats) -> None:
        """Exponentiate the potentials of all matrices and entries, once each.

        theta: [K] float64, the bigram weights.
        """
        workers, given = self.space.workers, (self.arrays, self.bigrams, theta)
        workers.map(build_matrices, self.matrix_chunks, *given)
        workers.map(build_entries, self.context_chunks, *given)

    def begin_sums(self) -> None:
        """Clear what is summed over shards."""
        self._entry_sums = np.zeros(self.contexts.n_entries)

    def add_shard(self, i: int, sequences: Sequences, vectors: Vectors) -> None:
        """Add the pair counts of shard i, of which these are the sequences and the vectors."""
        tokens, residual = self.tokens[i], self._residual
        given = sequences, self.arrays, self.with_sums(i, tokens.by_matrix, vectors), vectors

        def add(first: int, last: int) -> None:
            matrix_residuals(first, last, *given, i == 0, np.zeros(residual.shape[1:]), residual)

        self.space.workers.map(add, tokens.chunks)
        self.sum_entries(tokens.by_context, vectors, self._entry_sums)

    def with_sums(self, i: int, by_matrix: TokensBy, vectors: Vectors) -> MatrixSums:
        """Tokens of shard i by matrix, with sums alpha_{t-1} (x) backward_t of their spans."""
        tokens, n_labels = self.tokens[i], self.space.n_labels
        sums = np.zeros((len(tokens.spans), *self.potentials.psi.shape[1:]))
        given = n_labels, tokens.spans, by_matrix.inner_tokens, vectors, sums
        chunks = [(span, span + 1) for span in range(len(tokens.spans))]
        self.space.workers.map(pair_sums, chunks, *given)
        return MatrixSums(by_matrix, tokens.mat_spans, sums)

    def sum_entries(self, tokens: TokensBy, vectors: Vectors, sums: Floats) -> None:
        """Add products alpha_{t-1}[y'] backward_t[y] of tokens of contexts to sums [E]."""
        given = self.contexts.arrays, self.contexts.entry_context, tokens, vectors, sums
        self.space.workers.map(entry_sums, self._entry_chunks, *given)

    def finish(self, sequences: Iterable[Sequences], gradient: Floats) -> None:
        """Gather the gradient [K] of the bigram weights from what was summed.

        sequences: of each shard.
        """
        if self._entry_gold is None:
            self._entry_gold = self._count_entries(sequences)
        given, sums = (self.arrays, self.matrix_contexts), (self._residual, self._entry_sums)
        workers = self.space.workers
        workers.map(settle_entries, self.settle_chunks, *given, self._entry_gold, *sums)
        self.gather(*sums, gradient)

    def gather(self, residual: Floats, entry_residual: Floats, gradient: Floats) -> None:
        """Gather the gradient [K] of the bigram weights.

        residual: [M, Y + 1, Yp], of matrices; entry_residual: [E].
        """
        matrices, entries = self._row_matrices, self.contexts.weight_entries
        given = self.space.n_labels, self.bigrams, matrices.indptr, matrices.indices, residual
        of_entries = entries.indptr, entries.indices, entry_residual, gradient
        self.space.workers.map(gather_bigrams, self._row_chunks, *given, *of_entries)
