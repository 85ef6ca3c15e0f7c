"""Products of the chain loss's Hessian with vectors."""

from copy import copy
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..kernels.expectations import gather_unigrams, scatter_heads
from ..kernels.hessian import tangents, weighted_betas
from ..parallel import Chunks
from .hessian_pairs import PairSlopes
from .lattice import Block

if TYPE_CHECKING:
    from .working import WorkingLoss

Floats = NDArray[np.float64]
Vectors = NDArray[np.floating]
Triple = tuple[Vectors, Vectors, Vectors]


class HessianProduct:
    """The Hessian of a working loss, without a penalty, times vectors (Tsuboi 2011, section 3).

    (H v)_k = sum over tokens and pairs of f_k(i, j) P(i, j) (A + V + u + B - E(Phi).v), see
    `tangents`; a product takes no exp where the marginals are stored. What is stored are three
    vectors a token, from which pair marginals are products: alpha, backward and beta.

    working: the loss (not stochastic); stored: of how many sequences the vectors are
        kept, the first in the lattice's order, -1 for all; the others run forward-backward again
        for each product.
    passes: evaluations and products so far.
    """

    def __init__(self, working: "WorkingLoss", stored: int = -1) -> None:
        self._working = working
        space = working.space
        n = len(space.lattice.weights)
        self._n_stored = n if stored < 0 else min(stored, n)
        self._pairs = PairSlopes(working.pairs)
        # The same heads, with a table of the direction's weights.
        self._heads = copy(working.heads)
        self._heads.table = np.zeros_like(working.heads.table)
        self._values = working.values.twin()
        n_tokens = np.diff(space.lattice.test_tokens.indptr)[working.unigram.tests]
        self._tail_chunks = working.unigram.chunks(n_tokens, len(working.heads))
        kept = (int(space.lattice.offsets[self._n_stored]), space.padded)
        self._kept = tuple(np.zeros(kept, space.dtype) for _ in range(3))
        self._beta, self._forward_change, self._backward_change = (
            np.zeros_like(space.alpha) for _ in range(3)
        )
        self._theta: Floats = np.zeros(len(working.coordinates))
        self.passes = 0.0

    def prepare(self, theta: Floats, *, evaluated: bool = False) -> None:
        """Take the Hessian at theta [K] float64, where the loss is finite.

        evaluated: whether that is the point where the loss was evaluated last; otherwise it
            is evaluated there, as one more pass. Residuals of theta are left in the workspace.
        """
        working, space = self._working, self._working.space
        self.passes += 0.0 if evaluated else 1.0
        # A run that was resumed holds nothing yet.
        if not evaluated or space.holder is not working:
            working.prepare_screening(theta)
        for i, block in enumerate(space.blocks):
            if len(space.blocks) > 1:
                # The workspace holds one block at a time.
                working.infer(theta, i)
            n = block.end - block.begin
            self._recover_betas(block, space.chunks[i])
            vectors = space.alpha[:n], space.backward[:n], self._beta[:n]
            self._pairs.count(i, *vectors[:2])
            for kept, vector in zip(self._kept, vectors, strict=True):
                part = kept[block.begin : block.end]
                part[:, :] = vector[: len(part)]
        self._theta = theta.copy()
        # What is evaluated from now on overwrites potentials.
        space.holder = self

    def product(self, vector: Floats) -> Floats:
        """H v of a vector [K] float64, [K]; prepares again where the loss was evaluated since."""
        working, space = self._working, self._working.space
        self.passes += 1.0
        if space.holder is not self:
            space.holder = None
            self.prepare(self._theta)
        self._heads.fill(vector)
        self._values.fill(vector)
        self._pairs.turn(vector[working.split :])
        sums = np.zeros(self._heads.table.shape)
        for i, block in enumerate(space.blocks):
            n = block.end - block.begin
            vectors = self._vectors(i)
            for part in self._run(vector, block, vectors, i):
                sums += part
            changes = self._forward_change[:n], self._backward_change[:n]
            self._pairs.add(i, vectors[:2], changes)
        result = np.zeros(len(vector))
        result[: self._heads.n_weights] = self._heads.gradient(sums)
        self._gather(result[: working.split])
        self._values.gradient(result)
        self._pairs.finish(result[working.split :])
        return result

    def _vectors(self, i: int) -> Triple:
        """Alpha, backward and beta of block i, [tokens, Yp] each: stored, or run again."""
        working, space = self._working, self._working.space
        block = space.blocks[i]
        if block.last <= self._n_stored:
            alpha, backward, beta = (kept[block.begin : block.end] for kept in self._kept)
            return alpha, backward, beta
        n = block.end - block.begin
        own = space.alpha[:n], space.backward[:n], self._beta[:n]
        for kept, vector in zip(self._kept, own, strict=True):
            part = kept[block.begin : block.end]
            vector[: len(part)] = part
        stored = max(0, self._n_stored - block.first)
        chunks = [(max(first, stored), last) for first, last in space.chunks[i] if last > stored]
        working.infer_chunks(self._theta, i, chunks)
        self._recover_betas(block, chunks)
        return own

    def _recover_betas(self, block: Block, chunks: Chunks) -> None:
        """Fill beta of chunks of the block's sequences from what the workspace has."""
        space, pairs, contexts = self._working.space, self._pairs, self._pairs.contexts
        space.workers.map(
            lambda first, last: weighted_betas(
                first,
                last,
                space.n_labels,
                block.offsets,
                space.lattice.weights[block.first : block.last],
                contexts.context[block.begin : block.end],
                contexts.matrix_of,
                pairs.psi,
                contexts.constant,
                contexts.ent_ptr,
                contexts.ent_start,
                contexts.ent_previous,
                contexts.ent_label,
                pairs.ent_change,
                pairs.rewritten,
                space.backward,
                self._beta,
                np.empty(pairs.psi.shape[1:], space.dtype),
            ),
            chunks,
        )

    def _run(self, vector: Floats, block: Block, vectors: Triple, i: int) -> list[Floats]:
        """Run the recursions over block i.

        RETURNS: of each chunk the sums of the marginals' derivatives of the heads, [H, Yp].
        """
        working, space, lattice = self._working, self._working.space, self._working.space.lattice
        pairs, contexts, begin, end = self._pairs, self._pairs.contexts, block.begin, block.end
        changed = space.residual[begin:end]

        def run(first: int, last: int) -> Floats:
            tokens = int(block.offsets[first]), int(block.offsets[last])
            scored = self._values.score(begin, *tokens, changed)
            tangents(
                first,
                last,
                space.n_labels,
                block.offsets,
                lattice.weights[block.first : block.last],
                self._heads.tokens.indptr[begin : end + 1],
                self._heads.tokens.indices,
                self._heads.table,
                working.token_rows.indptr[begin : end + 1],
                working.token_rows.indices,
                working.unigram.ptr,
                working.unigram.places,
                vector[: working.split],
                contexts.context[begin:end],
                contexts.matrix_of,
                pairs.psi,
                pairs.slope,
                contexts.constant,
                contexts.ent_ptr,
                contexts.ent_start,
                contexts.ent_previous,
                contexts.ent_label,
                pairs.ent_change,
                pairs.ent_slope,
                pairs.rewritten,
                *vectors,
                self._forward_change,
                self._backward_change,
                changed,
                np.empty(space.padded, space.dtype),
                np.empty(pairs.psi.shape[1:], space.dtype),
                scored,
            )
            sums = np.zeros(self._heads.table.shape)
            scatter_heads(
                block.offsets[first],
                block.offsets[last],
                self._heads.tokens.indptr[begin : end + 1],
                self._heads.tokens.indices,
                changed,
                sums,
            )
            return sums

        return space.workers.map(run, space.chunks[i])

    def _gather(self, result: Floats) -> None:
        """Sum the marginals' derivatives over the tokens of weights that are not heads'."""
        unigram, space = self._working.unigram, self._working.space
        tokens = space.lattice.test_tokens
        space.workers.map(
            lambda first, last: gather_unigrams(
                first,
                last,
                space.n_labels,
                unigram.tests,
                unigram.ptr,
                unigram.places,
                tokens.indptr,
                tokens.indices,
                space.residual,
                result,
            ),
            self._tail_chunks,
        )
