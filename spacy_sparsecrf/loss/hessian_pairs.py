"""Pair weights in Hessian-vector products, on the layout of matrices and entries."""

import numpy as np
from numpy.typing import NDArray

from ..kernels.entries import entry_sums
from ..kernels.expectations import gather_bigrams, pair_sums
from ..kernels.hessian_pairs import entry_slopes, matrix_products, matrix_slopes, settle_slopes
from .lattice import Csr
from .pairs import PairPotentials

Floats = NDArray[np.float64]
Vectors = NDArray[np.floating]


class PairSlopes(PairPotentials):
    """Derivatives of pair potentials along a direction, and of the pairs' expected counts.

    pairs: the potentials, whose layout and arrays these share.
    slope: [M, Y + 1, Yp], the direction's scores in a matrix, of the workspace's precision;
    ent_score, ent_slope: [E] float64 (see `entry_slopes`).
    """

    def __init__(self, pairs: PairPotentials) -> None:
        # The same arrays: what `pairs` fills is what is differentiated here.
        vars(self).update(vars(pairs))
        self.slope = np.zeros_like(self.psi)
        self.ent_score, self.ent_slope = (np.zeros(self.contexts.n_entries) for _ in range(2))
        self._counts = np.zeros(self.psi.shape)
        self._total = np.zeros(self.psi.shape)
        self._ent_counts = np.zeros(self.contexts.n_entries)

    def turn(self, direction: Floats) -> None:
        """Evaluate the scores of a direction [K], of the bigram weights, and clear the sums."""
        space, contexts = self.space, self.contexts
        space.workers.map(
            lambda first, last: matrix_slopes(
                first,
                last,
                space.n_labels,
                space.lattice.n_previous,
                contexts.matrix_rows.indptr,
                contexts.matrix_rows.indices,
                self.rows.ptr,
                self.rows.places,
                direction,
                self.slope,
            ),
            self._matrix_chunks,
        )
        space.workers.map(
            lambda first, last: entry_slopes(
                first,
                last,
                contexts.matrix_of,
                contexts.ent_ptr,
                contexts.ent_start,
                contexts.ent_previous,
                contexts.ent_label,
                contexts.entry_weights.indptr,
                contexts.entry_weights.indices,
                direction,
                self.slope,
                self.ent_value,
                self.ent_change,
                self.rewritten,
                self.ent_score,
                self.ent_slope,
            ),
            self._context_chunks,
        )
        self._total[:, :, :] = 0.0
        self._entry_sums = np.zeros(contexts.n_entries)

    def count(self, i: int, alpha: Vectors, backward: Vectors) -> None:
        """Add the products of block i's vectors [tokens, Yp] to what `tangents` multiplies by V.

        The first block clears what was counted at another point.
        """
        if i == 0:
            self._counts[:, :, :] = 0.0
            self._ent_counts[:] = 0.0
        tokens = self._tokens[i]
        self._add(i, alpha, backward, tokens.starts, self._counts)
        self._add_entries(i, alpha, backward, tokens.entry_starts, self._ent_counts)

    def add(
        self,
        i: int,
        vectors: tuple[Vectors, Vectors],
        changes: tuple[Vectors, Vectors],
    ) -> None:
        """Add the products of block i's vectors with their changes.

        vectors: alpha and backward; changes: what `tangents` writes for them; [tokens, Yp] each.
        """
        tokens = self._tokens[i]
        (alpha, backward), (forward_change, backward_change) = vectors, changes
        # Before the first token nothing changes.
        no_starts = _emptied(tokens.starts), _emptied(tokens.entry_starts)
        self._add(i, forward_change, backward, no_starts[0], self._total)
        self._add(i, alpha, backward_change, tokens.starts, self._total)
        self._add_entries(i, forward_change, backward, no_starts[1], self._entry_sums)
        self._add_entries(i, alpha, backward_change, tokens.entry_starts, self._entry_sums)

    def _add(self, i: int, alpha: Vectors, backward: Vectors, starts: Csr, total: Floats) -> None:
        """Add products alpha_{t-1} (x) backward_t of block i to those of matrices."""
        space, tokens = self.space, self._tokens[i]
        sums = np.zeros((len(tokens.spans), *self.psi.shape[1:]))
        space.workers.map(
            lambda first, last: pair_sums(
                first,
                last,
                space.n_labels,
                tokens.spans,
                tokens.inner.indices,
                alpha,
                backward,
                sums,
            ),
            [(span, span + 1) for span in range(len(tokens.spans))],
        )
        space.workers.map(
            lambda first, last: matrix_products(
                first,
                last,
                space.n_labels,
                self.contexts.constant,
                tokens.mat_spans,
                sums,
                tokens.inner.indptr,
                tokens.inner.indices,
                starts.indptr,
                starts.indices,
                alpha,
                backward,
                total,
            ),
            tokens.chunks,
        )

    def _add_entries(
        self, i: int, alpha: Vectors, backward: Vectors, starts: Csr, sums: Floats
    ) -> None:
        """Add products alpha_{t-1} (x) backward_t of block i to those of entries."""
        contexts, tokens = self.contexts, self._tokens[i]
        self.space.workers.map(
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
                starts.indptr,
                starts.indices,
                alpha,
                backward,
                sums,
            ),
            self._entry_chunks,
        )

    def finish(self, gradient: Floats) -> None:
        """Gather the product [K] of the bigram weights from what was summed."""
        space, contexts = self.space, self.contexts
        space.workers.map(
            lambda first, last: settle_slopes(
                first,
                last,
                contexts.constant,
                self._ctx_ptr,
                self._by_matrix,
                contexts.ent_ptr,
                contexts.ent_previous,
                contexts.ent_label,
                self.psi,
                self.slope,
                self._counts,
                self.ent_value,
                self.ent_score,
                self._ent_counts,
                self._total,
                self._entry_sums,
            ),
            self._settle_chunks,
        )
        space.workers.map(
            lambda first, last: gather_bigrams(
                first,
                last,
                space.n_labels,
                space.lattice.n_previous,
                self.rows.ptr,
                self.rows.places,
                self._row_matrices.indptr,
                self._row_matrices.indices,
                self._total,
                contexts.weight_entries.indptr,
                contexts.weight_entries.indices,
                self._entry_sums,
                gradient,
            ),
            self._row_chunks,
        )


def _emptied(table: Csr) -> Csr:
    """A table of as many rows, without members."""
    return Csr(np.zeros_like(table.indptr), table.indices[:0])
