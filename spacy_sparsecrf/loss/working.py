"""The chain loss as a function of working weights: value and gradient."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..kernels.curvature import unigram_curvature
from ..kernels.expectations import gather_unigrams, scatter_heads, subtract_gold
from ..kernels.forward_backward import forward_backward
from ..parallel import Chunks
from ..vectors import dot
from .heads import Heads
from .lattice import Block
from .pairs import PairPotentials
from .rows import Rows
from .values import ValueWeights
from .workspace import Workspace

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

# Weights of which a copy is kept, to know where marginals were evaluated.
_MAX_KEPT = 1 << 22


class WorkingLoss:
    """Value and gradient of the loss at working weights.

    coordinates: [K] int64, ascending (see `chain`); n_unigram: how many potential coordinates
    are unigram weights; stochastic: whether it serves a stochastic solver.
    """

    def __init__(
        self, workspace: Workspace, coordinates: Longs, n_unigram: int, stochastic: bool
    ) -> None:
        lattice = workspace.lattice
        n_labels, padded = workspace.n_labels, workspace.padded
        self.coordinates = coordinates
        self.space = workspace
        self.split = int(np.searchsorted(coordinates, n_unigram))
        self.unigram = Rows(
            coordinates[: self.split], n_labels, 1, padded, len(lattice.test_tokens)
        )
        self.bigram = Rows(
            coordinates[self.split :] - n_unigram,
            n_labels,
            lattice.n_previous,
            padded,
            len(lattice.test_contexts),
        )
        n_tokens = np.diff(lattice.test_tokens.indptr)[self.unigram.tests]
        # Stochastic descent moves its weights too often for a copy of them.
        self.heads = Heads(workspace, self.unigram, 0 * n_tokens if stochastic else n_tokens)
        self.token_rows = self.unigram.of(lattice.tests, len(self.heads))
        self.values = ValueWeights(workspace, self.unigram)
        self.pairs = PairPotentials(workspace, self.bigram, stochastic)
        self._row_chunks = self.unigram.chunks(n_tokens)
        self._tail_chunks = self.unigram.chunks(n_tokens, len(self.heads))
        self._evaluated: Floats | None = None

    @cached_property
    def observed(self) -> Floats:
        """Empirical counts O of the working weights: minus the gradient at zero expectation."""
        space = self.space
        space.holder = None
        space.residual[:, :] = 0.0
        space.alpha[:, :] = 0.0
        space.backward[:, :] = 0.0
        self.pairs.clear()
        sums = np.zeros(self.heads.table.shape)
        self.pairs.begin_sums()
        for i in range(len(space.blocks)):
            for part in space.workers.map(self._scatterer(i), space.chunks[i]):
                sums += part
            self.pairs.add_block(i)
        return -self._gradient(sums)

    def value_and_grad(self, theta: Floats) -> tuple[float, Floats]:
        """The loss and its gradient E - O (Lavergne 2010, equations 3 and 4).

        theta: [K] float64, weights of `coordinates`.
        RETURNS: the value, infinite where no path has a positive probability in the workspace's
            precision, and the gradient [K].
        """
        space = self.space
        observed = self.observed
        sums = np.zeros(self.heads.table.shape)
        self.heads.fill(theta)
        self.values.fill(theta)
        self.pairs.begin_sums()
        self.pairs.fill(theta[self.split :])
        for i in range(len(space.blocks)):
            for part in self.infer(theta, i):
                sums += part
            self.pairs.add_block(i)
        value = dot(space.log_z, space.lattice.weights) - dot(theta, observed)
        # So many weights are never screened; a copy would take a tenth of the time.
        kept = len(theta) <= _MAX_KEPT
        space.holder, self._evaluated = self, theta.copy() if kept else None
        if not np.isfinite(value):
            return np.inf, np.zeros_like(theta)
        return value, self._gradient(sums)

    def prepare_screening(self, theta: Floats) -> None:
        """Leave marginals and potentials at theta in the workspace."""
        known = self._evaluated if self.space.holder is self else None
        if known is None or not np.array_equal(theta, known):
            self.value_and_grad(theta)

    def curvature(self, gradient: Floats) -> Floats:
        """About the diagonal of the Hessian, where marginals are in the workspace.

        Of a unigram weight sum_t p (1 - p), of a bigram weight its expected count, which is no
        less: tokens count as if they were independent.

        gradient: [K] float64, of the loss at the point where marginals were evaluated last, on
        these coordinates or others. RETURNS: [K] float64, >= 0.
        """
        space, tokens = self.space, self.space.lattice.test_tokens
        curvature = np.empty(len(self.coordinates))
        space.workers.map(
            lambda first, last: unigram_curvature(
                first,
                last,
                self.unigram.tests,
                self.unigram.ptr,
                self.unigram.places,
                tokens.indptr,
                tokens.indices,
                space.lattice.labels,
                space.lattice.token_weight,
                space.residual,
                curvature[: self.split],
            ),
            self._row_chunks,
        )
        self.values.curvature(curvature)
        # Only now: counting clears the marginals.
        expected = gradient[self.split :] + self.observed[self.split :]
        curvature[self.split :] = np.maximum(expected, 0.0)
        return curvature

    def infer(self, theta: Floats, i: int) -> list[Floats]:
        """Forward-backward of block i; leaves residuals in the workspace.

        RETURNS: of each chunk the sums of residuals of the heads, [H, Yp].
        """
        space, block, scatter = self.space, self.space.blocks[i], self._scatterer(i)

        def run(first: int, last: int) -> Floats:
            self._infer_chunk(theta, block, first, last)
            return scatter(first, last)

        return space.workers.map(run, space.chunks[i])

    def infer_chunks(self, theta: Floats, i: int, chunks: Chunks) -> None:
        """Forward-backward of block i, over chunks of its sequences only; leaves marginals."""
        block = self.space.blocks[i]
        self.space.workers.map(
            lambda first, last: self._infer_chunk(theta, block, first, last), chunks
        )

    def _infer_chunk(self, theta: Floats, block: Block, first: int, last: int) -> None:
        space, lattice = self.space, self.space.lattice
        pairs, contexts = self.pairs, self.pairs.contexts
        begin, end = block.begin, block.end
        tokens = int(block.offsets[first]), int(block.offsets[last])
        scored = self.values.score(begin, *tokens, space.backward)
        forward_backward(
            first,
            last,
            space.n_labels,
            block.offsets,
            lattice.weights[block.first : block.last],
            lattice.allowed[begin:end],
            self.heads.tokens.indptr[begin : end + 1],
            self.heads.tokens.indices,
            self.heads.table,
            self.token_rows.indptr[begin : end + 1],
            self.token_rows.indices,
            self.unigram.ptr,
            self.unigram.places,
            theta[: self.split],
            contexts.context[begin:end],
            contexts.matrix_of,
            pairs.psi,
            pairs.psi_shift,
            contexts.constant,
            contexts.ent_ptr,
            contexts.ent_start,
            contexts.ent_previous,
            contexts.ent_label,
            pairs.ent_change,
            pairs.rewritten,
            space.alpha,
            space.backward,
            space.residual[begin:end],
            space.log_z[block.first : block.last],
            np.empty(space.padded, space.dtype),
            np.empty(pairs.psi.shape[1:], space.dtype),
            scored,
        )

    def _scatterer(self, i: int) -> Callable[[int, int], Floats]:
        """What subtracts gold labels and sums the heads' residuals of sequences of block i."""
        space, lattice, block = self.space, self.space.lattice, self.space.blocks[i]
        begin, end = block.begin, block.end
        residual = space.residual[begin:end]

        def scatter(first: int, last: int) -> Floats:
            subtract_gold(
                first,
                last,
                block.offsets,
                lattice.weights[block.first : block.last],
                lattice.labels[begin:end],
                residual,
            )
            sums = np.zeros(self.heads.table.shape)
            scatter_heads(
                block.offsets[first],
                block.offsets[last],
                self.heads.tokens.indptr[begin : end + 1],
                self.heads.tokens.indices,
                residual,
                sums,
            )
            return sums

        return scatter

    def _gradient(self, sums: Floats) -> Floats:
        """The gradient [K] from the heads' sums of residuals and what the workspace has."""
        gradient = np.zeros(len(self.coordinates))
        gradient[: self.heads.n_weights] = self.heads.gradient(sums)
        self._gather_unigrams(gradient[: self.split])
        self.values.gradient(gradient)
        self.pairs.finish(gradient[self.split :])
        return gradient

    def _gather_unigrams(self, gradient: Floats) -> None:
        """Sum the residuals of the tokens of weights that are not heads' into gradient."""
        space, tokens = self.space, self.space.lattice.test_tokens
        space.workers.map(
            lambda first, last: gather_unigrams(
                first,
                last,
                space.n_labels,
                self.unigram.tests,
                self.unigram.ptr,
                self.unigram.places,
                tokens.indptr,
                tokens.indices,
                space.residual,
                gradient,
            ),
            self._tail_chunks,
        )
