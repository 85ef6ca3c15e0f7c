"""Products of the chain loss's Hessian with vectors."""

from copy import copy

import numpy as np
from numpy.typing import NDArray

from ..corpus.numbering import Floats
from ..kernels.hessian import differentiate_chunk, recover_chunk
from ..kernels.layout import Tangents, Vectors
from ..kernels.pair_counts import settle_changes
from ..kernels.pairs import slope_corrections, slope_matrices
from ..parallel import Chunks, each_with
from .pair_potentials import PairPotentials, PairSums
from .protocols import CurvedLoss
from .working import ChainWorkingLoss
from .workspace import Contents


class _PairSlopes:
    """Derivatives of pair potentials and of expected pair counts along a direction.

    pairs: the potentials. slopes: derivatives along the direction set last, in the precision of
    the workspace.
    """

    def __init__(self, pairs: PairPotentials) -> None:
        self._pairs = pairs
        self.slopes = pairs.new_slopes(pairs.space.dtype)
        self._counts = PairSums.zeros(pairs.potentials)
        self._changes = PairSums.zeros(pairs.potentials)

    def set_direction(self, direction: Floats) -> None:
        """Evaluate the slopes along a direction [K] of the bigram weights, and clear the sums."""
        pairs, workers = self._pairs, self._pairs.space.workers
        workers.map(
            slope_matrices,
            pairs.matrix_chunks,
            n_labels=pairs.space.n_labels,
            bigrams=pairs.bigrams,
            direction=direction,
            slopes=self.slopes,
        )
        workers.map(
            slope_corrections,
            pairs.context_chunks,
            pairs=pairs.arrays,
            bigrams=pairs.bigrams,
            direction=direction,
            slopes=self.slopes,
        )
        self._changes.clear()

    def count(self, i: int, vectors: Vectors) -> None:
        """Add the outer products of the vectors of shard i to the sums that slopes multiply.

        The first shard clears the sums of the previous point.
        """
        if i == 0:
            self._counts.clear()
        self._pairs.add_products(self._pairs.tokens[i], vectors, self._counts)

    def add(self, i: int, vectors: Vectors, tangents: Tangents) -> None:
        """Add the outer products of the vectors of shard i with their changes."""
        tokens = self._pairs.tokens[i]
        forward = vectors._replace(alpha=tangents.forward_change)
        backward = vectors._replace(backward=tangents.backward_change)
        # Nothing changes before the first token.
        self._pairs.add_products(tokens.without_starts(), forward, self._changes)
        self._pairs.add_products(tokens, backward, self._changes)

    def finish(self, product: Floats) -> None:
        """Write the Hessian product [K] of the bigram weights, gathered from the sums."""
        pairs = self._pairs
        pairs.space.workers.map(
            settle_changes,
            pairs.settle_chunks,
            pairs=pairs.arrays,
            of_matrix=pairs.matrix_contexts,
            slopes=self.slopes,
            counts=self._counts.by_matrix,
            corr_counts=self._counts.by_correction,
            total=self._changes.by_matrix,
            sums=self._changes.by_correction,
        )
        pairs.gather(self._changes, product)


class HessianProduct:
    """Products of a working loss's Hessian, without penalty, with vectors (Tsuboi 2011, section 3).

    (H v)_k = sum over tokens and pairs of f_k(i, j) P(i, j) (A + V + u + B - E(Phi).v), see
    `kernels.tangents`. Three vectors per token are stored: alpha, backward and beta. Pair marginals
    are products of them, so that a Hessian product of stored sequences computes no exp.

    working: the loss; stored: number of sequences whose vectors are stored, in the order of the
        lattice, -1 for all; each product repeats forward-backward for the others.
    passes: number of evaluations and products so far.
    """

    def __init__(self, working: ChainWorkingLoss, stored: int = -1) -> None:
        self._working = working
        space = working.space
        n = len(space.lattice.weights)
        self._n_stored = n if stored < 0 else min(stored, n)
        self._pairs = _PairSlopes(working.pairs)
        # The same weights, with separate tables for directions.
        self._table = np.zeros_like(working.table)
        self._values = [*map(copy, working.values)]
        for values in self._values:
            values.table = np.zeros_like(values.table)
        shape = (int(space.lattice.offsets[self._n_stored]), space.padded)
        self._stored = tuple(np.zeros(shape, space.dtype) for _ in range(3))
        self._beta, self._forward_change, self._backward_change = (
            np.zeros_like(space.vectors[0]) for _ in range(3)
        )
        self._theta: Floats = np.zeros(len(working.coordinates))
        self.passes = 0.0

    def prepare(self, theta: Floats, *, evaluated: bool = False) -> None:
        """Set the point theta [K] float64 of the Hessian; the loss must be finite there.

        evaluated: whether the last evaluation of the loss was at theta; otherwise the loss is
            evaluated, which is a pass. Afterwards, the workspace has the residuals of theta.
        """
        working, space = self._working, self._working.space
        self.passes += 0.0 if evaluated else 1.0
        # The workspace of a resumed run is empty.
        contents = space.contents
        if not evaluated or contents is None or contents.owner is not working:
            working.marginals(theta)
        for i in range(len(space.shards)):
            if len(space.shards) > 1:
                # The workspace contains one shard at a time.
                working.infer(theta, i)
            self._recover_betas(i, space.chunks[i])
            vectors = working.vectors(i)
            self._pairs.count(i, vectors)
            self._store(i, vectors)
        self._theta = theta.copy()
        # Later evaluations overwrite the potentials.
        space.contents = Contents(self, self._theta)

    def product(self, vector: Floats) -> Floats:
        """Return H v [K] of a vector [K] float64; after an evaluation, `prepare` is repeated."""
        working, space = self._working, self._working.space
        self.passes += 1.0
        contents = space.contents
        if contents is None or not contents.are_of(self, self._theta):
            self.prepare(self._theta)
        working.score_bundles(vector, self._table)
        for values in self._values:
            values.fill(vector)
        self._pairs.set_direction(vector[working.split :])
        product = np.zeros(len(vector))
        for i in range(len(space.shards)):
            vectors, beta = self._vectors(i)
            tangents = Tangents(
                beta,
                forward_change=self._forward_change,
                backward_change=self._backward_change,
                marginal_change=vectors.marginals,
            )
            self._differentiate(i, vector, vectors, tangents)
            self._pairs.add(i, vectors, tangents)
        working.sum_bundles()
        working.gather(product)
        for values in self._values:
            values.gradient(product)
        self._pairs.finish(product[working.split :])
        return product

    def _store(self, i: int, vectors: Vectors) -> None:
        """Copy the vectors of shard i from the workspace, for the sequences that are stored."""
        shard = self._working.space.shards[i]
        written = vectors.alpha, vectors.backward, self._beta
        for stored, vector in zip(self._stored, written, strict=True):
            of_shard = stored[shard.begin : shard.end]
            of_shard[:, :] = vector[: len(of_shard)]

    def _vectors(self, i: int) -> tuple[Vectors, NDArray[np.floating]]:
        """Return the vectors of shard i, and beta [tokens, Yp], stored or recomputed."""
        working, space = self._working, self._working.space
        shard, vectors = space.shards[i], working.vectors(i)
        alpha, backward, beta = (stored[shard.begin : shard.end] for stored in self._stored)
        if shard.last <= self._n_stored:
            return vectors._replace(alpha=alpha, backward=backward), beta
        n_stored, n = max(0, self._n_stored - shard.first), len(alpha)
        vectors.alpha[:n], vectors.backward[:n], self._beta[:n] = alpha, backward, beta
        chunks = [(max(s, n_stored), end) for s, end in space.chunks[i] if end > n_stored]
        working.infer(self._theta, i, chunks)
        self._recover_betas(i, chunks)
        return vectors, self._beta

    def _recover_betas(self, i: int, chunks: Chunks) -> None:
        """Compute beta of chunks of sequences of shard i from the vectors in the workspace."""
        working, space = self._working, self._working.space
        vectors = working.vectors(i)
        scratch = np.empty((len(chunks), *vectors.scratch.shape), space.dtype)
        space.workers.map(
            recover_chunk,
            each_with(chunks, scratch),
            sequences=working.shards[i].sequences,
            pairs=working.pairs.arrays,
            vectors=vectors,
            beta=self._beta,
        )

    def _differentiate(self, i: int, vector: Floats, vectors: Vectors, tangents: Tangents) -> None:
        """Run the recursions over shard i; `marginal_change` replaces its residuals."""
        working, space = self._working, self._working.space
        tables, chunks = working.shards[i], space.chunks[i]
        tables = tables._replace(unigrams=tables.unigrams._replace(table=self._table))
        for values in self._values:
            values.score(space.shards[i], chunks, tangents.marginal_change)
        scratch = np.empty((len(chunks), *vectors.scratch.shape), space.dtype)
        space.workers.map(
            differentiate_chunk,
            each_with(chunks, scratch),
            tables=tables,
            pairs=working.pairs.arrays,
            direction=vector,
            slopes=self._pairs.slopes,
            vectors=vectors,
            tangents=tangents,
            scored=len(self._values) > 0,
        )


class CurvedChainLoss(ChainWorkingLoss, CurvedLoss):
    """The chain loss on a working set, with products of its Hessian."""

    def products(self, stored: int = -1) -> HessianProduct:
        """Return products of the Hessian with vectors; see `CurvedLoss.products`."""
        return HessianProduct(self, stored)
