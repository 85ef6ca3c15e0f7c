"""The chain loss as a function of working weights: value and gradient."""

import numpy as np
from numpy.typing import NDArray

from ..corpus import distinct_rows
from ..kernels.expectations import (
    context_residuals,
    gather_bigrams,
    gather_unigrams,
    pair_sums,
    scatter_unigrams,
    subtract_gold,
)
from ..kernels.forward_backward import forward_backward
from ..kernels.layout import select
from ..kernels.potentials import context_matrices
from ..parallel import Chunks, Workers, cut
from ..vectors import dot
from .lattice import Csr, Lattice

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

# Fixed, so that chunks and thus sums do not depend on the number of threads.
_N_CHUNKS = 64
# Unigram weights up to which every chunk of sequences sums a gradient of its own, which stays in
# a cache; beyond, each weight's gradient is gathered over all its tokens.
_MAX_SCATTERED = 1 << 18
# Tokens of one context whose pair products one thread sums.
_SPAN = 4096


class Workspace:
    """Token arrays that successive working losses share.

    alpha, backward, residual: [N, Yp] float64, Yp = Y padded to a multiple of 8; log_z: [S].
    """

    def __init__(self, lattice: Lattice, n_labels: int, workers: Workers) -> None:
        self.lattice = lattice
        self.n_labels = n_labels
        self.padded = -(-n_labels // 8) * 8
        self.workers = workers
        self.alpha = np.zeros((lattice.n_tokens, self.padded))
        self.backward = np.zeros_like(self.alpha)
        self.residual = np.zeros_like(self.alpha)
        self.log_z = np.zeros(len(lattice.weights))
        self.sequence_chunks = cut(np.diff(lattice.offsets), _N_CHUNKS)


class _Rows:
    """Working weights of one kind, grouped by test: a *row* is a test that has any.

    tests: [R] int32; ptr: [R + 1] int64; places: [K] int32, y, or y' * Yp + y for pairs: a weight's
    place in a row or matrix of scores.
    """

    def __init__(
        self, coordinates: Longs, n_labels: int, n_previous: int, padded: int, n_tests: int
    ) -> None:
        pair, label = np.divmod(coordinates, n_labels)
        test, previous = np.divmod(pair, n_previous)
        self.tests, first = np.unique(test.astype(np.int32), return_index=True)
        self.ptr = np.append(first, len(coordinates)).astype(np.int64)
        self.places = (previous * padded + label).astype(np.int32)
        self.number = np.full(n_tests, -1, dtype=np.int32)
        self.number[self.tests] = np.arange(len(self.tests), dtype=np.int32)

    def __len__(self) -> int:
        return len(self.tests)

    def of(self, table: Csr) -> Csr:
        """The rows in each line of a table of tests."""
        indptr = np.empty_like(table.indptr)
        indices = np.empty_like(table.indices)
        kept = select(table.indptr, table.indices, self.number, indptr, indices)
        return Csr(indptr, indices[:kept].copy())

    def chunks(self, sizes: Longs) -> Chunks:
        """Runs of rows of about equal cost; sizes: [R], over how many items each row sums."""
        return cut(sizes * np.diff(self.ptr), _N_CHUNKS)


class WorkingLoss:
    """Value and gradient of the loss at working weights.

    coordinates: [K] int64, ascending (see `chain`); n_unigram: how many potential coordinates
    are unigram weights.
    """

    def __init__(self, workspace: Workspace, coordinates: Longs, n_unigram: int) -> None:
        lattice = workspace.lattice
        n_labels = workspace.n_labels
        self.coordinates = coordinates
        self.space = workspace
        self.split = int(np.searchsorted(coordinates, n_unigram))
        padded = workspace.padded
        self.unigram = _Rows(
            coordinates[: self.split], n_labels, 1, padded, len(lattice.test_tokens)
        )
        self.bigram = _Rows(
            coordinates[self.split :] - n_unigram,
            n_labels,
            lattice.n_previous,
            padded,
            len(lattice.test_contexts),
        )
        self.token_rows = self.unigram.of(lattice.tests)
        n_tokens = np.diff(lattice.test_tokens.indptr)
        self._unigram_chunks = self.unigram.chunks(n_tokens[self.unigram.tests])
        self._lay_out_contexts()
        self._evaluated: Floats | None = None
        self.observed = self._observed_counts()

    def _lay_out_contexts(self) -> None:
        """Contexts that agree in their *working* tests share one matrix."""
        lattice, n_labels = self.space.lattice, self.space.n_labels
        full = self.bigram.of(lattice.ctx_tests)
        lengths = np.diff(full.indptr)
        table = np.zeros((len(full), int(lengths.max(initial=0))), dtype=np.uint64)
        line = np.repeat(np.arange(len(full)), lengths)
        table[line, np.arange(len(full.indices)) - full.indptr[line]] = full.indices + 1
        representatives, self.active_context = distinct_rows(table)
        self.context = self.active_context[lattice.context]
        chosen = table[representatives]
        indptr = np.concatenate(([0], np.cumsum((chosen > 0).sum(axis=1)))).astype(np.int64)
        self.context_rows = Csr(indptr, (chosen[chosen > 0] - 1).astype(np.int32))
        n_contexts = len(self.context_rows)
        self._row_contexts = self.context_rows.transposed(len(self.bigram))
        self._inner, self._starts = lattice.tokens_by_context(self.context, n_contexts)
        self.psi = np.zeros((n_contexts, n_labels + 1, self.space.padded))
        self._psi_shift = np.zeros(n_contexts)
        self._context_chunks = cut(np.diff(self._inner.indptr), _N_CHUNKS)
        self._bigram_chunks = self.bigram.chunks(np.diff(self._row_contexts.indptr))
        self._lay_out_spans()

    def _lay_out_spans(self) -> None:
        """Cut contexts with many tokens into spans, which threads can share."""
        sizes = np.diff(self._inner.indptr)
        n_spans = np.where(sizes > _SPAN, -(-sizes // _SPAN), 0)
        self._ctx_spans = np.concatenate(([0], np.cumsum(n_spans))).astype(np.int64)
        bounds = [
            np.minimum(begin + _SPAN * np.arange(n), begin + size)
            for begin, size, n in zip(self._inner.indptr, sizes, n_spans, strict=False)
            if n
        ]
        ends = self._inner.indptr[1:][n_spans > 0]
        starts = np.concatenate([np.empty(0, np.int64), *bounds])
        # A span ends where the next begins, the last of a context where the context ends.
        stops = np.append(starts[1:], 0)
        stops[np.cumsum(n_spans[n_spans > 0]) - 1] = ends
        self._spans = np.stack((starts, stops), axis=1) if len(starts) else np.empty((0, 2), int)
        self._sums = np.zeros((len(starts), *self.psi.shape[1:]))

    def value_and_grad(self, theta: Floats) -> tuple[float, Floats]:
        """The loss and its gradient E - O (Lavergne 2010, equations 3 and 4).

        theta: [K] float64, weights of `coordinates`.
        RETURNS: the value, infinite where no path has a positive float64, and the gradient [K].
        """
        space, lattice = self.space, self.space.lattice
        self._fill_matrices(theta)
        parts = space.workers.map(lambda a, b: self._infer(theta, a, b), space.sequence_chunks)
        value = dot(space.log_z, lattice.weights) - dot(theta, self.observed)
        self._evaluated = theta.copy()
        if not np.isfinite(value):
            return np.inf, np.zeros_like(theta)
        return value, self._gradient(parts)

    def prepare_screening(self, theta: Floats) -> None:
        """Leave marginals and potentials at theta in the workspace."""
        if self._evaluated is None or not np.array_equal(theta, self._evaluated):
            self.value_and_grad(theta)
        self._fill_matrices(theta)

    def _fill_matrices(self, theta: Floats) -> None:
        """Exponentiate the potentials of all contexts, once each."""
        space = self.space
        space.workers.map(
            lambda first, last: context_matrices(
                first,
                last,
                space.n_labels,
                space.lattice.n_previous,
                self.context_rows.indptr,
                self.context_rows.indices,
                self.bigram.ptr,
                self.bigram.places,
                theta[self.split :],
                self.psi,
                self._psi_shift,
            ),
            self._context_chunks,
        )

    def _infer(self, theta: Floats, first: int, last: int) -> Floats:
        """Forward-backward of sequences first:last; leaves residuals in the workspace.

        RETURNS: these sequences' part of the unigram gradient, as `_scatter` does.
        """
        space, lattice = self.space, self.space.lattice
        forward_backward(
            first,
            last,
            space.n_labels,
            lattice.offsets,
            lattice.weights,
            lattice.allowed,
            self.token_rows.indptr,
            self.token_rows.indices,
            self.unigram.ptr,
            self.unigram.places,
            theta[: self.split],
            self.context,
            self.psi,
            self._psi_shift,
            space.alpha,
            space.backward,
            space.residual,
            space.log_z,
            np.empty(space.padded),
        )
        return self._scatter(first, last)

    def _scatter(self, first: int, last: int) -> Floats:
        """Subtract the gold labels of sequences first:last and sum their unigram residuals.

        RETURNS: [K] of the unigram weights; empty where they are gathered instead.
        """
        space, lattice = self.space, self.space.lattice
        subtract_gold(first, last, lattice.offsets, lattice.weights, lattice.labels, space.residual)
        if self.split > _MAX_SCATTERED:
            return np.empty(0)
        part = np.zeros(self.split)
        scatter_unigrams(
            lattice.offsets[first],
            lattice.offsets[last],
            self.token_rows.indptr,
            self.token_rows.indices,
            self.unigram.ptr,
            self.unigram.places,
            space.residual,
            part,
        )
        return part

    def _gradient(self, parts: list[Floats]) -> Floats:
        """Sum residuals over the tokens and contexts of each working weight.

        parts: of each chunk of sequences, what `_scatter` returned.
        """
        gradient = np.zeros(len(self.coordinates))
        for part in parts:
            gradient[: len(part)] += part
        if self.split > _MAX_SCATTERED:
            self._gather_unigrams(gradient[: self.split])
        self._sum_pairs()
        self._gather_bigrams(gradient[self.split :])
        return gradient

    def _gather_unigrams(self, gradient: Floats) -> None:
        """Sum the residuals of each unigram weight's tokens into gradient [K of unigrams]."""
        space, tokens = self.space, self.space.lattice.test_tokens
        space.workers.map(
            lambda first, last: gather_unigrams(
                first,
                last,
                self.unigram.tests,
                self.unigram.ptr,
                self.unigram.places,
                tokens.indptr,
                tokens.indices,
                space.residual,
                gradient,
            ),
            self._unigram_chunks,
        )

    def _sum_pairs(self) -> None:
        """Replace the potentials of each context by its expected minus observed pair counts."""
        space, lattice = self.space, self.space.lattice
        space.workers.map(
            lambda first, last: pair_sums(
                first,
                last,
                space.n_labels,
                self._spans,
                self._inner.indices,
                space.alpha,
                space.backward,
                self._sums,
            ),
            [(span, span + 1) for span in range(len(self._spans))],
        )
        space.workers.map(
            lambda first, last: context_residuals(
                first,
                last,
                space.n_labels,
                self._ctx_spans,
                self._sums,
                self._inner.indptr,
                self._inner.indices,
                self._starts.indptr,
                self._starts.indices,
                lattice.labels,
                lattice.token_weight,
                space.alpha,
                space.backward,
                self.psi,
            ),
            self._context_chunks,
        )

    def _gather_bigrams(self, gradient: Floats) -> None:
        """Sum the residuals of each bigram weight's contexts into gradient [K of bigrams]."""
        self.space.workers.map(
            lambda first, last: gather_bigrams(
                first,
                last,
                self.bigram.ptr,
                self.bigram.places,
                self._row_contexts.indptr,
                self._row_contexts.indices,
                self.psi,
                gradient,
            ),
            self._bigram_chunks,
        )

    def _observed_counts(self) -> Floats:
        """Empirical counts O of the working weights: minus the gradient at zero expectation."""
        space = self.space
        space.residual[:, :] = 0.0
        space.backward[:, :] = 0.0
        self.psi[:, :, :] = 0.0
        return -self._gradient(space.workers.map(self._scatter, space.sequence_chunks))
