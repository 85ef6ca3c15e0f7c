"""Pair weights in Hessian-vector products, on the layout of matrices and entries."""

import numpy as np
from numpy.typing import NDArray

from ..kernels.layout import Tangents, TokensBy, Vectors
from ..kernels.pair_expectations import matrix_products, settle_changes
from ..kernels.pairs import slope_entries, slope_matrices
from .pairs import PairPotentials

Floats = NDArray[np.float64]


class PairSlopes:
    """Derivatives of pair potentials along a direction, and of the pairs' expected counts.

    pairs: the potentials. slopes: of the direction that was turned to last, of the workspace's
    precision.
    """

    def __init__(self, pairs: PairPotentials) -> None:
        self._pairs = pairs
        self.slopes = pairs.new_slopes(pairs.space.dtype)
        shape, n_entries = pairs.potentials.psi.shape, pairs.contexts.n_entries
        self._counts, self._changes = np.zeros(shape), np.zeros(shape)
        self._entry_counts, self._entry_changes = np.zeros(n_entries), np.zeros(n_entries)

    def turn(self, direction: Floats) -> None:
        """Evaluate the slopes along a direction [K], of the bigram weights, and clear the sums."""
        pairs, slopes = self._pairs, self.slopes
        workers, n_labels = pairs.space.workers, pairs.space.n_labels
        contexts, bigrams, potentials = pairs.contexts.arrays, pairs.bigrams, pairs.potentials
        workers.map(
            lambda first, last: slope_matrices(first, last, n_labels, bigrams, direction, slopes),
            pairs.matrix_chunks,
        )
        workers.map(
            lambda first, last: slope_entries(
                first, last, contexts, bigrams, direction, potentials, slopes
            ),
            pairs.context_chunks,
        )
        self._changes[:, :, :] = 0.0
        self._entry_changes[:] = 0.0

    def count(self, i: int, vectors: Vectors) -> None:
        """Add the products of block i's vectors to what is multiplied by slopes.

        The first block clears what was counted at another point.
        """
        if i == 0:
            self._counts[:, :, :] = 0.0
            self._entry_counts[:] = 0.0
        tokens = self._pairs.tokens[i]
        self._add(i, tokens.by_matrix, vectors, self._counts)
        self._pairs.sum_entries(tokens.by_context, vectors, self._entry_counts)

    def add(self, i: int, vectors: Vectors, tangents: Tangents) -> None:
        """Add the products of block i's vectors with their changes."""
        tokens = self._pairs.tokens[i]
        forward = vectors._replace(alpha=tangents.forward_change)
        backward = vectors._replace(backward=tangents.backward_change)
        # Before the first token nothing changes.
        self._add(i, _without_starts(tokens.by_matrix), forward, self._changes)
        self._add(i, tokens.by_matrix, backward, self._changes)
        by_context, changes = tokens.by_context, self._entry_changes
        self._pairs.sum_entries(_without_starts(by_context), forward, changes)
        self._pairs.sum_entries(by_context, backward, changes)

    def _add(self, i: int, tokens: TokensBy, vectors: Vectors, total: Floats) -> None:
        """Add products alpha_{t-1} (x) backward_t of block i to those of matrices."""
        own, n_labels = self._pairs.tokens[i], self._pairs.space.n_labels
        sums, constant = self._pairs.sum_spans(i, vectors), self._pairs.contexts.constant
        self._pairs.space.workers.map(
            lambda first, last: matrix_products(
                first, last, n_labels, constant, vectors, tokens, own.mat_spans, sums, total
            ),
            own.chunks,
        )

    def finish(self, product: Floats) -> None:
        """Gather the product [K] of the bigram weights from what was summed."""
        pairs = self._pairs
        contexts = pairs.contexts.arrays
        pairs.space.workers.map(
            lambda first, last: settle_changes(
                first,
                last,
                contexts,
                pairs.matrix_contexts.indptr,
                pairs.matrix_contexts.indices,
                pairs.potentials,
                self.slopes,
                self._counts,
                self._entry_counts,
                self._changes,
                self._entry_changes,
            ),
            pairs.settle_chunks,
        )
        pairs.gather(self._changes, self._entry_changes, product)


def _without_starts(tokens: TokensBy) -> TokensBy:
    """The same, without tokens that begin a sequence."""
    return tokens._replace(
        start_ptr=np.zeros_like(tokens.start_ptr), start_tokens=tokens.start_tokens[:0]
    )
