"""Pair potentials of working bigram weights, and the gradient of those weights."""

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..kernels.layout import Bigrams, Potentials, Sequences, Slopes, TokensBy, Vectors, Walk
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
from .lattice import Csr
from .rows import Rows
from .walks import LARGE_BYTES, in_waves
from .workspace import MatrixTokens, Workspace

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


class PairPotentials:
    """Matrices and entries (see `contexts`) of working bigram weights.

    rows: the weights by test; stochastic: whether for a stochastic solver. contexts: how they are
    laid out; potentials: of the weights that were filled in last, of the workspace's precision;
    bigrams: where the weights are; matrix_chunks, context_chunks, settle_chunks: matrices, contexts
    and matrices by their contexts' entries, cut into chunks; matrix_contexts: contexts of a matrix.
    """

    def __init__(self, space: Workspace, rows: Rows, stochastic: bool) -> None:
        self.space = space
        self.rows = rows
        self.contexts = lay_out_contexts(space, rows, stochastic)
        self.potentials = self.new_potentials(space.dtype)
        self.bigrams = Bigrams(
            space.lattice.n_previous,
            self.contexts.matrix_rows.indptr,
            self.contexts.matrix_rows.indices,
            rows.ptr,
            rows.places,
            self.contexts.entry_weights.indptr,
            self.contexts.entry_weights.indices,
        )
        self._entry_gold: Floats | None = None
        self._cut_chunks()

    def new_potentials(self, dtype: DTypeLike = np.float64) -> Potentials:
        """Potentials of which none was evaluated, but matrices of ones, and the mask."""
        n_matrices, n_labels = len(self.contexts.matrix_rows), self.space.n_labels
        n_contexts, n_entries = len(self.contexts.matrix_of), self.contexts.n_entries
        legal = self.space.lattice.legal
        shape = (n_matrices + (legal is not None), n_labels + 1, self.space.padded)
        psi = np.zeros(shape, dtype)
        psi[:n_matrices][self.contexts.constant, :, :n_labels] = 1.0
        if legal is not None:
            psi[-1, :n_labels, :n_labels] = legal[:n_labels, :n_labels]
            psi[-1, n_labels, :n_labels] = 1.0
        return Potentials(
            psi,
            np.zeros(n_matrices),
            np.zeros(n_entries),
            np.zeros(n_entries),
            np.zeros(n_contexts, dtype=np.bool_),
            np.zeros(n_matrices + n_contexts, dtype=np.int64),
        )

    def new_slopes(self, dtype: DTypeLike) -> Slopes:
        """Slopes of these potentials, of which none was evaluated; those of the mask are zeros."""
        potentials = self.potentials
        zeros = np.zeros_like(potentials.value), np.zeros_like(potentials.value)
        psi = np.zeros(potentials.psi.shape, dtype)
        return Slopes(psi, *zeros, np.zeros_like(potentials.stamp))

    def _cut_chunks(self) -> None:
        """Cut matrices, contexts, entries and rows into chunks of about equal work."""
        contexts, n_chunks = self.contexts, self.space.limits.n_chunks
        n_entries = np.diff(contexts.ent_ptr)
        self.matrix_chunks = cut(np.diff(contexts.matrix_rows.indptr), n_chunks)
        self.context_chunks = cut(n_entries, n_chunks)
        store = self.space.lattice.store
        tokens = store.counts(contexts.context, len(contexts.matrix_of))
        self._entry_chunks = cut(tokens[contexts.ent_context], n_chunks)
        self._row_matrices = contexts.matrix_rows.transposed(len(self.rows))
        self._row_chunks = self.rows.chunks(np.diff(self._row_matrices.indptr) + 1, n_chunks)
        by_matrix = np.argsort(contexts.matrix_of, kind="stable").astype(np.int32)
        bounds = np.arange(len(self.potentials.shift) + 1)
        ctx_ptr = np.searchsorted(contexts.matrix_of[by_matrix], bounds)
        self.matrix_contexts = Csr(ctx_ptr, by_matrix)
        per_matrix = np.add.reduceat(n_entries[by_matrix], ctx_ptr[:-1])
        self.settle_chunks = cut(per_matrix, n_chunks)

    @cached_property
    def tokens(self) -> list[MatrixTokens]:
        """Of each block, its tokens by matrix and by context."""
        contexts, n_matrices = self.contexts, len(self.potentials.shift)
        return [
            MatrixTokens(self.space, block, contexts.context, contexts.matrix_of, n_matrices)
            for block in self.space.blocks
        ]

    @cached_property
    def walks(self) -> list[Walk]:
        """Of each block, the order of its tokens in inference."""
        contexts, space, found = self.contexts, self.space, []
        for block, chunks in zip(space.blocks, space.chunks, strict=True):
            is_large = self.potentials.psi[:1].nbytes > LARGE_BYTES
            together = len(block.offsets) if is_large else space.limits.together
            own = contexts.context[block.begin : block.end]
            walk = in_waves(block, chunks, together, own, contexts.matrix_of)
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
        space, bigrams, potentials = self.space, self.bigrams, self.potentials
        space.workers.map(
            lambda first, last: build_matrices(
                first, last, space.n_labels, bigrams, theta, potentials
            ),
            self.matrix_chunks,
        )
        contexts = self.contexts.arrays
        space.workers.map(
            lambda first, last: build_entries(first, last, contexts, bigrams, theta, potentials),
            self.context_chunks,
        )

    def begin_sums(self) -> None:
        """Clear what is summed over blocks."""
        self._entry_sums = np.zeros(self.contexts.n_entries)

    def add_block(self, i: int, sequences: Sequences, vectors: Vectors) -> None:
        """Add the pair counts of block i, of which these are the sequences and the vectors."""
        tokens, psi, contexts = self.tokens[i], self.potentials.psi, self.contexts.arrays
        sums = self.sum_spans(i, vectors)
        self.space.workers.map(
            lambda first, last: matrix_residuals(
                first,
                last,
                sequences,
                contexts.constant,
                psi,
                vectors,
                tokens.by_matrix,
                tokens.mat_spans,
                sums,
                i == 0,
                np.zeros(psi.shape[1:]),
                self._residual,
            ),
            tokens.chunks,
        )
        self.sum_entries(tokens.by_context, vectors, self._entry_sums)

    def sum_spans(self, i: int, vectors: Vectors) -> Floats:
        """Sums of products alpha_{t-1} (x) backward_t of spans of block i, [P, Y + 1, Yp]."""
        tokens, n_labels = self.tokens[i], self.space.n_labels
        sums = np.zeros((len(tokens.spans), *self.potentials.psi.shape[1:]))
        self.space.workers.map(
            lambda first, last: pair_sums(
                first, last, n_labels, tokens.spans, tokens.inner.indices, vectors, sums
            ),
            [(span, span + 1) for span in range(len(tokens.spans))],
        )
        return sums

    def sum_entries(self, tokens: TokensBy, vectors: Vectors, sums: Floats) -> None:
        """Add products alpha_{t-1}[y'] backward_t[y] of tokens of contexts to sums [E]."""
        contexts, ent_context = self.contexts.arrays, self.contexts.ent_context
        self.space.workers.map(
            lambda first, last: entry_sums(
                first, last, contexts, ent_context, tokens, vectors, sums
            ),
            self._entry_chunks,
        )

    def finish(self, sequences: Iterable[Sequences], gradient: Floats) -> None:
        """Gather the gradient [K] of the bigram weights from what was summed.

        sequences: of each block.
        """
        if self._entry_gold is None:
            self._entry_gold = self._count_entries(sequences)
        gold, contexts = self._entry_gold, self.contexts.arrays
        self.space.workers.map(
            lambda first, last: settle_entries(
                first,
                last,
                contexts,
                self.matrix_contexts.indptr,
                self.matrix_contexts.indices,
                self.potentials,
                gold,
                self._residual,
                self._entry_sums,
            ),
            self.settle_chunks,
        )
        self.gather(self._residual, self._entry_sums, gradient)

    def gather(self, residual: Floats, entry_residual: Floats, gradient: Floats) -> None:
        """Gather the gradient [K] of the bigram weights.

        residual: [M, Y + 1, Yp], of matrices; entry_residual: [E].
        """
        weights = self.contexts.weight_entries
        self.space.workers.map(
            lambda first, last: gather_bigrams(
                first,
                last,
                self.space.n_labels,
                self.bigrams,
                self._row_matrices.indptr,
                self._row_matrices.indices,
                residual,
                weights.indptr,
                weights.indices,
                entry_residual,
                gradient,
            ),
            self._row_chunks,
        )
