"""Pair potentials of working bigram weights, and the gradient of those weights."""

from functools import cached_property

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..kernels.entries import correct, count_entries, entry_sums, settle_entries
from ..kernels.expectations import gather_bigrams, matrix_residuals, pair_sums
from ..kernels.potentials import context_matrices
from ..parallel import cut
from .contexts import lay_out_contexts
from .rows import N_CHUNKS, Rows
from .walks import LARGE_BYTES, TOGETHER, Walk, in_waves
from .workspace import MatrixTokens, Workspace

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


class PairPotentials:
    """Matrices and entries (see `contexts`) of working bigram weights.

    rows: the weights by test; stochastic: whether for a stochastic solver. psi: [M, Y + 1, Yp] of
    the workspace's precision, then the mask where there is one (see `kernels.potentials`);
    psi_shift: [M]; ent_value, ent_change: [E] float64; rewritten: [C] bool (see `entries.correct`).
    """

    def __init__(self, space: Workspace, rows: Rows, stochastic: bool) -> None:
        self.space = space
        self.rows = rows
        n_labels, padded = space.n_labels, space.padded
        self.contexts = lay_out_contexts(space.lattice, rows, n_labels, padded, stochastic)
        self.psi, self.psi_shift = self.new_matrices(space.dtype)
        self.ent_value, self.ent_change = (np.zeros(self.contexts.n_entries) for _ in range(2))
        self.rewritten = np.zeros(len(self.contexts.matrix_of), dtype=np.bool_)
        self._cut_chunks()

    def new_matrices(self, dtype: DTypeLike = np.float64) -> tuple[NDArray[np.floating], Floats]:
        """Matrices like `psi`, ones where they are never built, and their shifts."""
        n_matrices, n_labels = len(self.contexts.matrix_rows), self.space.n_labels
        legal = self.space.lattice.legal
        shape = (n_matrices + (legal is not None), n_labels + 1, self.space.padded)
        psi = np.zeros(shape, dtype)
        psi[:n_matrices][self.contexts.constant, :, :n_labels] = 1.0
        if legal is not None:
            psi[-1, :n_labels, :n_labels] = legal[:n_labels, :n_labels]
            psi[-1, n_labels, :n_labels] = 1.0
        return psi, np.zeros(n_matrices)

    def _cut_chunks(self) -> None:
        """Cut matrices, contexts, entries and rows into chunks of about equal work."""
        contexts = self.contexts
        n_entries = np.diff(contexts.ent_ptr)
        self._matrix_chunks = cut(np.diff(contexts.matrix_rows.indptr), N_CHUNKS)
        self._context_chunks = cut(n_entries, N_CHUNKS)
        store = self.space.lattice.store
        tokens = store.counts(contexts.context, len(contexts.matrix_of))
        self._entry_chunks = cut(tokens[contexts.ent_context], N_CHUNKS)
        self._row_matrices = contexts.matrix_rows.transposed(len(self.rows))
        self._row_chunks = self.rows.chunks(np.diff(self._row_matrices.indptr) + 1)
        self._by_matrix = np.argsort(contexts.matrix_of, kind="stable").astype(np.int32)
        bounds = np.arange(len(self.psi_shift) + 1)
        self._ctx_ptr = np.searchsorted(contexts.matrix_of[self._by_matrix], bounds)
        per_matrix = np.add.reduceat(n_entries[self._by_matrix], self._ctx_ptr[:-1])
        self._settle_chunks = cut(per_matrix, N_CHUNKS)

    @cached_property
    def _tokens(self) -> list[MatrixTokens]:
        """Of each block, its tokens by matrix and by context."""
        contexts, n_matrices = self.contexts, len(self.psi_shift)
        return [
            MatrixTokens(
                block, contexts.context, contexts.matrix_of, n_matrices, self.space.lattice.store
            )
            for block in self.space.blocks
        ]

    @cached_property
    def walks(self) -> list[Walk]:
        """Of each block, the order of its tokens in forward-backward."""
        contexts, space, found = self.contexts, self.space, []
        for block, chunks in zip(space.blocks, space.chunks, strict=True):
            is_large = self.psi[:1].nbytes > LARGE_BYTES
            together = len(block.offsets) if is_large else TOGETHER
            own = contexts.context[block.begin : block.end]
            walk = in_waves(block, chunks, together, own, contexts.matrix_of)
            (order,) = space.lattice.store.kept((walk.order,))
            found.append(walk._replace(order=order))
            space.lattice.store.release()
        return found

    @cached_property
    def _residual(self) -> Floats:
        """[M, Y + 1, Yp], expected minus observed pair counts of a matrix."""
        return np.zeros(self.psi.shape)

    @cached_property
    def _entry_gold(self) -> Floats:
        """[E], weighted gold counts of entries."""
        lattice, contexts = self.space.lattice, self.contexts
        gold = np.zeros(contexts.n_entries)
        for block, tokens in zip(self.space.blocks, self._tokens, strict=True):
            count_entries(
                contexts.ent_ptr,
                contexts.ent_place,
                tokens.entry_inner.indptr,
                tokens.entry_inner.indices,
                tokens.entry_starts.indptr,
                tokens.entry_starts.indices,
                self.space.n_labels,
                self.space.padded,
                lattice.labels[block.begin : block.end],
                lattice.token_weight[block.begin : block.end],
                gold,
            )
        return gold

    def clear(self) -> None:
        """Set all potentials to zero: the gradient is then minus the observed counts."""
        self.psi[: len(self.psi_shift)] = 0.0
        self.ent_value[:] = 0.0

    def fill(self, theta: Floats) -> None:
        """Exponentiate the potentials of all matrices and entries, once each.

        theta: [K] float64, the bigram weights.
        """
        space, contexts = self.space, self.contexts
        space.workers.map(
            lambda first, last: context_matrices(
                first,
                last,
                space.n_labels,
                space.lattice.n_previous,
                contexts.matrix_rows.indptr,
                contexts.matrix_rows.indices,
                self.rows.ptr,
                self.rows.places,
                theta,
                self.psi,
                self.psi_shift,
            ),
            self._matrix_chunks,
        )
        space.workers.map(
            lambda first, last: correct(
                first,
                last,
                contexts.matrix_of,
                contexts.ent_ptr,
                contexts.ent_start,
                contexts.ent_previous,
                contexts.ent_label,
                contexts.entry_weights.indptr,
                contexts.entry_weights.indices,
                theta,
                self.psi,
                self.ent_value,
                self.ent_change,
                self.rewritten,
            ),
            self._context_chunks,
        )

    def begin_sums(self) -> None:
        """Clear what is summed over blocks."""
        self._entry_sums = np.zeros(self.contexts.n_entries)

    def add_block(self, i: int) -> None:
        """Add the pair counts of block i, whose vectors are in the workspace."""
        space, lattice, contexts = self.space, self.space.lattice, self.contexts
        block, tokens = space.blocks[i], self._tokens[i]
        sums = np.zeros((len(tokens.spans), *self.psi.shape[1:]))
        space.workers.map(
            lambda first, last: pair_sums(
                first,
                last,
                space.n_labels,
                tokens.spans,
                tokens.inner.indices,
                space.alpha,
                space.backward,
                sums,
            ),
            [(span, span + 1) for span in range(len(tokens.spans))],
        )
        space.workers.map(
            lambda first, last: matrix_residuals(
                first,
                last,
                space.n_labels,
                contexts.constant,
                tokens.mat_spans,
                sums,
                tokens.inner.indptr,
                tokens.inner.indices,
                tokens.starts.indptr,
                tokens.starts.indices,
                lattice.labels[block.begin : block.end],
                lattice.token_weight[block.begin : block.end],
                space.alpha,
                space.backward,
                self.psi,
                i == 0,
                self._residual,
            ),
            tokens.chunks,
        )
        space.workers.map(
            lambda first, last: entry_sums(
                first,
                last,
                contexts.ent_context,
                contexts.ent_ptr,
                contexts.ent_start,
                contexts.ent_previous,
                contexts.ent_label,
                tokens.entry_inner.indptr,
                tokens.entry_inner.indices,
                tokens.entry_starts.indptr,
                tokens.entry_starts.indices,
                space.alpha,
                space.backward,
                self._entry_sums,
            ),
            self._entry_chunks,
        )

    def finish(self, gradient: Floats) -> None:
        """Gather the gradient [K] of the bigram weights from what was summed."""
        contexts = self.contexts
        self.space.workers.map(
            lambda first, last: settle_entries(
                first,
                last,
                contexts.constant,
                self._ctx_ptr,
                self._by_matrix,
                contexts.ent_ptr,
                contexts.ent_previous,
                contexts.ent_label,
                self.ent_value,
                self._entry_gold,
                self.psi,
                self._residual,
                self._entry_sums,
            ),
            self._settle_chunks,
        )
        self.space.workers.map(
            lambda first, last: gather_bigrams(
                first,
                last,
                self.space.n_labels,
                self.space.lattice.n_previous,
                self.rows.ptr,
                self.rows.places,
                self._row_matrices.indptr,
                self._row_matrices.indices,
                self._residual,
                contexts.weight_entries.indptr,
                contexts.weight_entries.indices,
                self._entry_sums,
                gradient,
            ),
            self._row_chunks,
        )
