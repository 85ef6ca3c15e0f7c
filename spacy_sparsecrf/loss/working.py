"""The chain loss as a function of working weights: value and gradient."""

from collections.abc import Callable, Iterator
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
from .walks import Walk, in_sequence
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
        self.unigram = Rows(coordinates[: self.split], n_labels, 1, padded, lattice.n_tests)
        self.bigram = Rows(
            coordinates[self.split :] - n_unigram,
            n_labels,
            lattice.n_previous,
            padded,
            len(lattice.test_contexts),
        )
        n_tokens = workspace.test_counts[self.unigram.tests]
        # Stochastic descent moves its weights too often for a copy of them.
        self.heads = Heads(workspace, self.unigram, 0 * n_tokens if stochastic else n_tokens)
        self.token_rows = self.unigram.of(lattice.tests, len(self.heads), store=lattice.store)
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
        space.alpha[:, :] = 0.0
        space.backward[:, :] = 0.0
        self.pairs.clear()

        def run(i: int) -> list[Floats]:
            space.residual_of(space.blocks[i])[:, :] = 0.0
            return space.workers.map(self._scatterer(i), space.chunks[i])

        return -self._summed(run)

    @cached_property
    def _gold(self) -> tuple[Longs, Floats]:
        """Which weights have empirical counts, few where all potential weights work; the counts."""
        places = np.flatnonzero(self.observed)
        return places, self.observed[places]

    def value_and_grad(self, theta: Floats) -> tuple[float, Floats]:
        """The loss and its gradient E - O (Lavergne 2010, equations 3 and 4).

        theta: [K] float64, weights of `coordinates`.
        RETURNS: the value, infinite where no path has a positive probability in the workspace's
            precision, and the gradient [K].
        """
        space = self.space
        places, counts = self._gold
        self.heads.fill(theta)
        self.values.fill(theta)
        self.pairs.fill(theta[self.split :])
        gradient = self._summed(lambda i: self.infer(theta, i))
        value = dot(space.log_z, space.lattice.weights) - dot(theta[places], counts)
        # So many weights are never screened; a copy would take a tenth of the time.
        kept = len(theta) <= _MAX_KEPT or space.by_block
        space.holder, self._evaluated = self, theta.copy() if kept else None
        if not np.isfinite(value):
            return np.inf, np.zeros_like(theta)
        return value, gradient

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
        curvature = np.zeros(len(self.coordinates))
        space = self.space
        parts = space.holder.visit(space.holder._evaluated) if space.by_block else (0,)
        for i in parts:
            self._add_curvature(i, curvature[: self.split])
        self.values.curvature(curvature)
        # Only now: counting clears the marginals.
        expected = gradient[self.split :] + self.observed[self.split :]
        curvature[self.split :] = np.maximum(expected, 0.0)
        return curvature

    def _add_curvature(self, i: int, curvature: Floats) -> None:
        """Add the tokens of part i of the corpus to the curvature of the unigram weights."""
        space, lattice = self.space, self.space.lattice
        columns, tokens = space.columns[i].of(self.unigram.tests), space.columns[i].tokens
        begin, end = 0, lattice.n_tokens
        if space.by_block:
            begin, end = space.blocks[i].begin, space.blocks[i].end
        space.workers.map(
            lambda first, last: unigram_curvature(
                first,
                last,
                columns,
                self.unigram.ptr,
                self.unigram.places,
                tokens.indptr,
                tokens.indices,
                lattice.labels[begin:end],
                lattice.token_weight[begin:end],
                space.residual,
                curvature,
            ),
            self._row_chunks,
        )

    def visit(self, theta: Floats, vectors: bool = False) -> Iterator[int]:
        """Visit the blocks, each with its residuals at the point evaluated last in the workspace.

        theta: [K], that point; vectors: whether its forward and backward vectors, of which the
        workspace holds those of one block at a time, are to be there too.
        """
        space = self.space
        again = len(space.blocks) > 1 and (vectors or space.by_block)
        for i in range(len(space.blocks)):
            if again:
                self.infer(theta, i)
            yield i
            space.lattice.store.release()
        # Inference has left marginals of this very point.
        space.holder = self

    def infer(self, theta: Floats, i: int) -> list[Floats]:
        """Forward-backward of block i; leaves residuals in the workspace.

        RETURNS: of each chunk the sums of residuals of the heads, [H, Yp].
        """
        space, block, scatter = self.space, self.space.blocks[i], self._scatterer(i)
        walk = self.pairs.walks[i]

        def run(first: int, last: int) -> Floats:
            self._infer_chunk(theta, block, walk, first, last)
            return scatter(first, last)

        return space.workers.map(run, space.chunks[i])

    def infer_chunks(self, theta: Floats, i: int, chunks: Chunks) -> None:
        """Forward-backward of block i, over chunks of its sequences only; leaves marginals."""
        block, walk = self.space.blocks[i], in_sequence(self.space.blocks[i])
        self.space.workers.map(
            lambda first, last: self._infer_chunk(theta, block, walk, first, last), chunks
        )

    def _infer_chunk(self, theta: Floats, block: Block, walk: Walk, first: int, last: int) -> None:
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
            space.residual_of(block),
            space.log_z[block.first : block.last],
            walk.order,
            walk.together,
            space.scales,
            np.empty(pairs.psi.shape[1:], space.dtype),
            scored,
        )

    def _scatterer(self, i: int) -> Callable[[int, int], Floats]:
        """What subtracts gold labels and sums the heads' residuals of sequences of block i."""
        space, lattice, block = self.space, self.space.lattice, self.space.blocks[i]
        begin, end = block.begin, block.end
        residual = space.residual_of(block)

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

    def _summed(self, run: Callable[[int], list[Floats]]) -> Floats:
        """The gradient [K] from what `run` leaves of each block; it returns what `infer` does."""
        space = self.space
        gradient, sums = np.zeros(len(self.coordinates)), np.zeros(self.heads.table.shape)
        self.pairs.begin_sums()
        for i in range(len(space.blocks)):
            for part in run(i):
                sums += part
            self.pairs.add_block(i)
            if space.by_block:
                self._gather_unigrams(i, gradient[: self.split])
            space.lattice.store.release()
        if not space.by_block:
            self._gather_unigrams(0, gradient[: self.split])
        gradient[: self.heads.n_weights] = self.heads.gradient(sums)
        self.values.gradient(gradient)
        self.pairs.finish(gradient[self.split :])
        return gradient

    def _gather_unigrams(self, i: int, gradient: Floats) -> None:
        """Add the residuals of part i of the corpus to weights that are not heads'."""
        space, tokens = self.space, self.space.columns[i].tokens
        columns = space.columns[i].of(self.unigram.tests)
        space.workers.map(
            lambda first, last: gather_unigrams(
                first,
                last,
                space.n_labels,
                columns,
                self.unigram.ptr,
                self.unigram.places,
                tokens.indptr,
                tokens.indices,
                space.residual,
                gradient,
            ),
            self._tail_chunks,
        )
