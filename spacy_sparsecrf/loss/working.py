"""The chain loss on a working set of weights: value and gradient."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..kernels import expectations
from ..kernels.layout import Columns, ContextBlocks, Sequences, Tables, Unigrams, Vectors
from ..kernels.pair_counts import count_gold_pairs
from ..parallel import Chunks, dot, each_with
from .lattice import Floats, Longs
from .pairs import PairPotentials, sequential_order
from .values import ValueWeights
from .weights import FeatureBlocks, by_site, origin_of_tokens
from .workspace import Contents, Workspace

DerivedT = TypeVar("DerivedT")


class OffsetLoss:
    """A loss in the offset of the weights from an origin, [K] float64, or [0] for zero.

    is_divided: whether the sequences are partitioned among workers.
    """

    is_divided = False
    origin: Floats

    def model_weights(self, theta: Floats) -> Floats:
        """Return the weights of the model, [K], for weights theta [K] of a solver."""
        return theta + self.origin if len(self.origin) else theta


class WorkingLoss(OffsetLoss):
    """Value and gradient of the loss on a working set.

    coordinates: [K] int64, ascending (see `chain`); n_unigram: number of potential unigram weights;
    stochastic: whether for a stochastic solver; origin: [K] float64 w0, [0] for zeros: solvers
    optimise v, and the weights of the model are w0 + v.
    """

    def __init__(
        self,
        workspace: Workspace,
        coordinates: Longs,
        n_unigram: int,
        stochastic: bool,
        origin: Floats,
    ) -> None:
        lattice = workspace.lattice
        n_labels, padded = workspace.n_labels, workspace.padded
        self.coordinates, self._stochastic, self.origin = coordinates, stochastic, origin
        self._derived: dict[Any, Any] = {}
        self.space = workspace
        self.split = int(np.searchsorted(coordinates, n_unigram))
        self.unigram = FeatureBlocks(
            coordinates[: self.split], n_labels, 1, padded, lattice.n_features
        )
        n_features = len(lattice.feature_contexts.indptr) - 1
        pairs = coordinates[self.split :] - n_unigram
        self.bigram = FeatureBlocks(pairs, n_labels, lattice.n_previous, padded, n_features)
        sites = lattice.feature_sites
        self.site_blocks = by_site(workspace, self.unigram.features)
        self._bundles = lattice.token_bundles
        self.table = np.zeros((lattice.n_bundles, padded), workspace.dtype)
        if stochastic:
            self.site_blocks = lattice.by_token(self.site_blocks)
            origin = self.model_weights(np.zeros(len(coordinates)))[: self.split]
            self._bundles, self.table = origin_of_tokens(workspace, self.unigram, origin)
        self.columns = Columns(self.unigram.features, sites.indptr, sites.indices)
        # Only with real values: their weights.
        self.values: list[ValueWeights] = []
        if len(lattice.value_features):
            self.values.append(ValueWeights(workspace, self.unigram))
        of_pairs = self.origin[self.split :]
        self.pairs = PairPotentials(workspace, self.bigram, stochastic, of_pairs)
        n_chunks = workspace.limits.n_chunks
        n_sites = np.diff(sites.indptr)[self.unigram.features]
        self._row_chunks = self.unigram.chunks(n_sites, n_chunks)

    @property
    def n_examples(self) -> int:
        """Number of sequences with gold labels."""
        return self.space.lattice.n_examples

    def derived(self, make: "Callable[[WorkingLoss], DerivedT]") -> DerivedT:
        """Return make(self), cached here because solvers store only settings and states."""
        if make not in self._derived:
            self._derived[make] = make(self)
        found: DerivedT = self._derived[make]
        return found

    @cached_property
    def tables(self) -> Tables:
        """All sequences, clamped lattices last, and the index of their weights."""
        lattice, pairs = self.space.lattice, self.pairs
        sequences = Sequences(
            self.space.n_labels,
            lattice.offsets,
            lattice.clamped,
            lattice.labels,
            lattice.allowed,
            lattice.weights,
            lattice.token_weight,
            pairs.contexts.context,
        )
        unigrams = self._unigrams_of(0, lattice.n_tokens, len(self.site_blocks.indptr) - 1)
        blocks = pairs.contexts.blocks
        context_blocks = ContextBlocks(lattice.context, blocks.indptr, blocks.indices)
        return Tables(sequences, unigrams, pairs.contexts.arrays, pairs.bigrams, context_blocks)

    def _unigrams_of(self, begin: int, end: int, last: int) -> Unigrams:
        """Return the index of the unigram weights of tokens begin:end and sites begin:last."""
        return Unigrams(
            self.split,
            self._bundles.indptr[begin : end + 1],
            self._bundles.indices,
            self.table,
            self.site_blocks.indptr[begin : last + 1],
            self.site_blocks.indices,
            self.unigram.ptr,
            self.unigram.places,
        )

    @cached_property
    def shards(self) -> list[Tables]:
        """The sequences of each shard, and the index of their weights."""
        found, whole = [], self.tables.sequences
        for shard in self.space.shards:
            begin, end = shard.begin, shard.end
            own = whole._replace(
                offsets=shard.offsets,
                clamped=whole.clamped[shard.first : shard.last],
                labels=whole.labels[begin:end],
                allowed=whole.allowed[begin:end],
                weights=whole.weights[shard.first : shard.last],
                token_weight=whole.token_weight[begin:end],
                context=whole.context[begin:end],
            )
            unigrams = self._unigrams_of(begin, end, end)
            found.append(self.tables._replace(sequences=own, unigrams=unigrams))
        return found

    @cached_property
    def observed(self) -> Floats:
        """Observed counts O [K] of the weights: minus the gradient at zero expectation."""
        counts, space = np.zeros(len(self.coordinates)), self.space
        of_bundles = self._by_bundle(expectations.count_bundle_gold, self.tables.sequences)
        args = self.tables, self.columns, of_bundles, counts[: self.split]
        space.workers.map(expectations.count_gold, self._row_chunks, *args)
        for values in self.values:
            values.count(counts)
        count_gold_pairs(self.tables, space.padded, counts[self.split :])
        return counts

    @cached_property
    def _gold(self) -> tuple[Longs, Floats]:
        """Weights with non-zero observed counts (few in a complete working set), and the counts."""
        places = np.flatnonzero(self.observed)
        return places, self.observed[places]

    def value_and_grad(self, theta: Floats) -> tuple[float, Floats]:
        """Return the loss and its gradient E - O (Lavergne 2010, equations 3 and 4).

        theta: [K] float64, weights of `coordinates`.
        RETURNS: the value, infinite if all paths underflow in the precision of the workspace, and
            the gradient [K].
        """
        space, pairs = self.space, self.pairs
        places, counts = self._gold
        weights = self.model_weights(theta)
        self.score_bundles(weights, self.table)
        for values in self.values:
            values.fill(weights)
        pairs.fill(theta[self.split :])
        gradient = np.empty(len(theta))
        pairs.begin_sums()
        for i in range(len(space.shards)):
            self.infer(theta, i)
            pairs.add_products(pairs.tokens[i], self.vectors(i), *pairs.sums)
        self.sum_bundles()
        self.gather(gradient)
        for values in self.values:
            values.gradient(gradient)
        pairs.settle()
        pairs.gather(*pairs.sums, gradient[self.split :])
        gradient[self.split :] -= self.observed[self.split :]
        value = dot(space.log_z, space.lattice.weights) - dot(weights[places], counts)
        space.contents = Contents(self, theta.copy())
        if not np.isfinite(value):
            return np.inf, np.zeros_like(theta)
        return value, gradient

    def gradient_from(self, contents: Contents) -> Floats:
        """Return the gradient [K] at the point of another loss on a subset of these coordinates.

        contents: of the other loss, in the workspace, so that inference is not repeated.
        """
        other = contents.owner
        theta, gradient = np.zeros(len(self.coordinates)), np.empty(len(self.coordinates))
        theta[np.searchsorted(self.coordinates, other.coordinates)] = contents.theta
        pairs = self.pairs
        pairs.fill(theta[self.split :])
        pairs.begin_sums()
        for i in other.visit(contents.theta):
            pairs.add_products(pairs.tokens[i], self.vectors(i), *pairs.sums)
        self.gather(gradient)
        pairs.settle()
        pairs.gather(*pairs.sums, gradient[self.split :])
        gradient[self.split :] -= self.observed[self.split :]
        return gradient

    def marginals(self, theta: Floats) -> Contents:
        """Compute marginals and potentials at theta [K], unless the workspace contains them."""
        contents = self.space.contents
        if contents is None or contents.owner is not self or not (contents.theta == theta).all():
            self.value_and_grad(theta)
            contents = self.space.contents = Contents(self, theta)
        return contents

    def curvature(self, gradient: Floats) -> Floats:
        """Approximate the diagonal of the Hessian from the marginals in the workspace.

        As if tokens were independent: sum_t p (1 - p) for a unigram weight; for a bigram weight its
        expected count, an upper bound.

        gradient: [K] float64, at the point where marginals were evaluated last, by this loss or
        another. RETURNS: [K] float64, >= 0.
        """
        curvature, space = np.zeros(len(self.coordinates)), self.space
        weights = space.lattice.token_weight
        of_bundles = self._by_bundle(expectations.bundle_curvature, weights, space.residual)
        args = self.tables, self.columns, space.residual, of_bundles, curvature[: self.split]
        space.workers.map(expectations.unigram_curvature, self._row_chunks, *args)
        for values in self.values:
            values.curvature(curvature)
        expected = gradient[self.split :] + self.observed[self.split :]
        curvature[self.split :] = np.maximum(expected, 0.0)
        return curvature

    def visit(self, theta: Floats) -> Iterator[int]:
        """Iterate over the shards, with their forward and backward vectors in the workspace.

        theta: [K], the last point; the workspace contains the vectors of one shard at a time.
        """
        space = self.space
        for i in range(len(space.shards)):
            if len(space.shards) > 1:
                self.infer(theta, i)
            yield i
        # The workspace contains marginals of this point.
        space.contents = Contents(self, theta)

    def infer(self, theta: Floats, i: int, chunks: Chunks | None = None) -> None:
        """Infer shard i in interleaved batches, and compute residuals.

        chunks: of sequences of the shard, whose marginals are computed instead.
        """
        space, shard, whole = self.space, self.space.shards[i], chunks is None
        chunks = space.chunks[i] if chunks is None else chunks
        batch = self.pairs.tokens[i].order if whole else sequential_order(shard)
        for values in self.values:
            values.score(shard, chunks, space.vectors[1])
            batch = batch._replace(scored=True)
        # For a stochastic solver, the table contains the origin.
        theta = theta if self._stochastic else self.model_weights(theta)
        vectors = self.vectors(i)
        scratch = np.empty((len(chunks), *vectors.scratch.shape), space.dtype)
        log_z = space.log_z[shard.first : shard.last]
        args = self.shards[i], self.pairs.arrays, theta, vectors, batch, log_z, whole
        space.workers.map(expectations.infer_chunk, each_with(chunks, scratch), *args)

    def vectors(self, i: int) -> Vectors:
        """Return views of the workspace for the vectors of shard i."""
        space, shard = self.space, self.space.shards[i]
        scratch = np.empty(self.pairs.potentials.psi.shape[1:], space.dtype)
        marginals = space.residual[shard.begin : shard.end]
        alpha, backward = space.vectors
        return Vectors(alpha, backward, marginals, space.scales, space.norms, scratch)

    def score_bundles(self, theta: Floats, table: NDArray[np.floating]) -> None:
        """Write the scores of bundles at theta [K] into a table [B, Yp]; not if stochastic."""
        if not self._stochastic:
            space = self.space
            args = space.n_labels, self.tables.unigrams, theta, table
            space.workers.map(expectations.score_bundles, space.bundle_chunks, *args)

    def _by_bundle(self, kernel: Callable[..., None], *args: Any) -> Floats:
        """Return the sums [B, Yp] of a kernel over the tokens of bundles."""
        space, lattice = self.space, self.space.lattice
        sums = np.zeros((lattice.n_bundles, space.padded))
        space.workers.map(kernel, space.bundle_chunks, lattice.bundle_tokens, *args, sums)
        return sums

    def sum_bundles(self) -> None:
        """Sum the residuals of tokens by bundle."""
        space = self.space
        rows = np.zeros((len(space.bundle_chunks), space.padded))
        args = space.lattice.bundle_tokens, space.residual
        space.workers.map(expectations.sum_bundles, each_with(space.bundle_chunks, rows), *args)

    def gather(self, gradient: Floats) -> None:
        """Write the gradient [K] of unigram weights from the residuals, without real values."""
        space, chunks = self.space, self._row_chunks
        args = space.n_labels, self.tables.unigrams, self.columns, space.residual, gradient
        rows = np.zeros((len(chunks), space.padded))
        space.workers.map(expectations.gather_unigrams, each_with(chunks, rows), *args)
