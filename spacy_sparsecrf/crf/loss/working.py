"""The chain loss on a working set of weights: value and gradient."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..corpus.coordinates import Coordinates
from ..corpus.numbering import Floats, Longs
from ..kernels import expectations
from ..kernels.layout import Columns, ContextBlocks, Sequences, Tables, Unigrams, Vectors
from ..kernels.pair_counts import count_gold_pairs
from ..parallel import Chunks, dot, each_with
from .context_layout import CostModel
from .feature_blocks import FeatureBlocks, by_site
from .pair_potentials import PairPotentials, sequential_order
from .protocols import WorkingLoss
from .value_weights import ValueWeights
from .workspace import Contents, Workspace

DerivedT = TypeVar("DerivedT")


class ChainWorkingLoss(WorkingLoss):
    """Value and gradient of the chain loss on a working set.

    workspace: arrays of tokens; coordinates: [K] int64, ascending; coding: what they stand for.
    """

    cost_model = CostModel

    def __init__(self, workspace: Workspace, coordinates: Longs, coding: Coordinates) -> None:
        lattice = workspace.lattice
        padded = workspace.padded
        self.coordinates = coordinates
        self._derived: dict[Any, Any] = {}
        self.space = workspace
        self.split = coding.split(coordinates)
        feature, position = coding.locate(coordinates)
        self.unigram = FeatureBlocks(
            feature[: self.split],
            position[: self.split],
            n_labels=coding.n_labels,
            padded=padded,
            n_features=lattice.n_features,
        )
        self.bigram = FeatureBlocks(
            feature[self.split :] - coding.n_unigram,
            position[self.split :],
            n_labels=coding.n_labels,
            padded=padded,
            n_features=len(lattice.feature_contexts.indptr) - 1,
        )
        sites = lattice.feature_sites
        self.site_blocks = by_site(workspace, self.unigram.features)
        self._bundles = lattice.token_bundles
        self.table = np.zeros((lattice.n_bundles, padded), workspace.dtype)
        self.columns = Columns(self.unigram.features, sites.indptr, sites.indices)
        # Only with real values: their weights.
        self.values: list[ValueWeights] = []
        if len(lattice.value_features):
            self.values.append(ValueWeights(workspace, self.unigram))
        self.pairs = PairPotentials(workspace, self.bigram, self.cost_model)
        n_sites = np.diff(sites.indptr)[self.unigram.features]
        self._row_chunks = self.unigram.chunks(n_sites, workspace.n_chunks)

    def derived(self, make: Callable[[Self], DerivedT]) -> DerivedT:
        """Return make(self), cached here because solvers store only settings and states."""
        if make not in self._derived:
            self._derived[make] = make(self)
        cached: DerivedT = self._derived[make]
        return cached

    def model_weights(self, theta: Floats) -> Floats:
        """Return the weights of the model [K] for weights theta [K] of a solver."""
        return theta

    @cached_property
    def tables(self) -> Tables:
        """All sequences, clamped lattices last, and the index of their weights."""
        lattice, contexts = self.space.lattice, self.pairs.contexts
        sequences = Sequences(
            self.space.n_labels,
            offsets=lattice.offsets,
            clamped=lattice.clamped,
            labels=lattice.labels,
            allowed=lattice.allowed,
            weights=lattice.weights,
            token_weight=lattice.token_weight,
            context=contexts.context,
        )
        blocks = ContextBlocks(lattice.context, contexts.blocks.indptr, contexts.blocks.indices)
        return Tables(
            sequences,
            unigrams=self._unigrams_of(0, lattice.n_tokens, len(self.site_blocks.indptr) - 1),
            contexts=contexts.arrays,
            bigrams=self.pairs.bigrams,
            context_blocks=blocks,
        )

    def _unigrams_of(self, begin: int, end: int, last: int) -> Unigrams:
        """Return the index of the unigram weights of tokens begin:end and sites begin:last."""
        return Unigrams(
            self.split,
            bundle_ptr=self._bundles.indptr[begin : end + 1],
            bundles=self._bundles.indices,
            table=self.table,
            site_ptr=self.site_blocks.indptr[begin : last + 1],
            site_blocks=self.site_blocks.indices,
            block_ptr=self.unigram.ptr,
            block_labels=self.unigram.places,
        )

    @cached_property
    def shards(self) -> list[Tables]:
        """The sequences of each shard, and the index of their weights."""
        sequences, tables = self.tables.sequences, []
        for shard in self.space.shards:
            begin, end = shard.begin, shard.end
            of_shard = sequences._replace(
                offsets=shard.offsets,
                clamped=sequences.clamped[shard.first : shard.last],
                labels=sequences.labels[begin:end],
                allowed=sequences.allowed[begin:end],
                weights=sequences.weights[shard.first : shard.last],
                token_weight=sequences.token_weight[begin:end],
                context=sequences.context[begin:end],
            )
            unigrams = self._unigrams_of(begin, end, end)
            tables.append(self.tables._replace(sequences=of_shard, unigrams=unigrams))
        return tables

    @cached_property
    def observed(self) -> Floats:
        """Observed counts O [K] of the weights: minus the gradient at zero expectation."""
        counts, space = np.zeros(len(self.coordinates)), self.space
        of_bundles = self._by_bundle(expectations.count_bundle_gold, self.tables.sequences)
        space.workers.map(
            expectations.count_gold,
            self._row_chunks,
            tables=self.tables,
            columns=self.columns,
            of_bundles=of_bundles,
            counts=counts[: self.split],
        )
        for values in self.values:
            values.count(counts)
        count_gold_pairs(self.tables, space.padded, counts[self.split :])
        return counts

    @cached_property
    def _gold(self) -> tuple[Longs, Floats]:
        """Weights with non-zero observed counts (few in a complete working set), and the counts."""
        counted = np.flatnonzero(self.observed)
        return counted, self.observed[counted]

    def value_and_grad(self, theta: Floats) -> tuple[float, Floats]:
        """Return the loss and its gradient E - O (Lavergne 2010, equations 3 and 4).

        theta: [K] float64, weights of `coordinates`.
        RETURNS: the value, infinite if all paths underflow in the precision of the workspace, and
            the gradient [K].
        """
        space, pairs = self.space, self.pairs
        counted, counts = self._gold
        weights = self.model_weights(theta)
        self.score_bundles(weights, self.table)
        for values in self.values:
            values.fill(weights)
        pairs.fill(theta[self.split :])
        gradient = np.empty(len(theta))
        pairs.sums.clear()
        for i in range(len(space.shards)):
            self.infer(theta, i)
            pairs.add_products(pairs.tokens[i], self.vectors(i), pairs.sums)
        self.sum_bundles()
        self.gather(gradient)
        for values in self.values:
            values.gradient(gradient)
        self._gather_pairs(gradient)
        value = dot(space.log_z, space.lattice.weights) - dot(weights[counted], counts)
        space.contents = Contents(self, theta.copy())
        if not np.isfinite(value):
            return np.inf, np.zeros_like(theta)
        return value, gradient

    def _gather_pairs(self, gradient: Floats) -> None:
        """Write the gradient of the bigram weights from the sums over shards into [K]."""
        pairs = self.pairs
        pairs.settle()
        pairs.gather(pairs.sums, gradient[self.split :])
        gradient[self.split :] -= self.observed[self.split :]

    def gradient_from(self, contents: Contents) -> Floats:
        """Return the gradient [K] at the point of another loss on a subset of these coordinates.

        contents: of the other loss, in the workspace, so that inference is not repeated.
        """
        other = contents.owner
        theta, gradient = np.zeros(len(self.coordinates)), np.empty(len(self.coordinates))
        theta[np.searchsorted(self.coordinates, other.coordinates)] = contents.theta
        pairs = self.pairs
        pairs.fill(theta[self.split :])
        pairs.sums.clear()
        for i in other.visit(contents.theta):
            pairs.add_products(pairs.tokens[i], self.vectors(i), pairs.sums)
        self.gather(gradient)
        self._gather_pairs(gradient)
        return gradient

    def marginals(self, theta: Floats) -> Contents:
        """Compute marginals and potentials at theta [K], unless the workspace contains them."""
        contents = self.space.contents
        if contents is None or not contents.are_of(self, theta):
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
        token_weight = space.lattice.token_weight
        of_bundles = self._by_bundle(expectations.bundle_curvature, token_weight, space.residual)
        space.workers.map(
            expectations.unigram_curvature,
            self._row_chunks,
            tables=self.tables,
            columns=self.columns,
            residual=space.residual,
            of_bundles=of_bundles,
            curvature=curvature[: self.split],
        )
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
        space, shard, residuals = self.space, self.space.shards[i], chunks is None
        chunks = space.chunks[i] if chunks is None else chunks
        batch = self.pairs.tokens[i].order if residuals else sequential_order(shard)
        for values in self.values:
            values.score(shard, chunks, space.vectors[1])
            batch = batch._replace(scored=True)
        vectors = self.vectors(i)
        scratch = np.empty((len(chunks), *vectors.scratch.shape), space.dtype)
        space.workers.map(
            expectations.infer_chunk,
            each_with(chunks, scratch),
            tables=self.shards[i],
            pairs=self.pairs.arrays,
            theta=theta,
            vectors=vectors,
            batch=batch,
            log_z=space.log_z[shard.first : shard.last],
            residuals=residuals,
        )

    def vectors(self, i: int) -> Vectors:
        """Return views of the workspace for the vectors of shard i."""
        space, shard = self.space, self.space.shards[i]
        alpha, backward = space.vectors
        return Vectors(
            alpha,
            backward,
            marginals=space.residual[shard.begin : shard.end],
            scales=space.scales,
            norms=space.norms,
            scratch=np.empty(self.pairs.potentials.psi.shape[1:], space.dtype),
        )

    def score_bundles(self, theta: Floats, table: NDArray[np.floating]) -> None:
        """Write the scores of bundles at theta [K] into a table [B, Yp]."""
        self.space.workers.map(
            expectations.score_bundles,
            self.space.bundle_chunks,
            n_labels=self.space.n_labels,
            unigrams=self.tables.unigrams,
            theta=theta,
            table=table,
        )

    def _by_bundle(self, kernel: Callable[..., None], *of_tokens: Any) -> Floats:
        """Return the sums [B, Yp] of a kernel over the tokens of bundles."""
        space, lattice = self.space, self.space.lattice
        sums = np.zeros((lattice.n_bundles, space.padded))
        space.workers.map(kernel, space.bundle_chunks, lattice.bundle_tokens, *of_tokens, sums)
        return sums

    def sum_bundles(self) -> None:
        """Sum the residuals of tokens by bundle."""
        space = self.space
        rows = np.zeros((len(space.bundle_chunks), space.padded))
        space.workers.map(
            expectations.sum_bundles,
            each_with(space.bundle_chunks, rows),
            bundle_tokens=space.lattice.bundle_tokens,
            residual=space.residual,
        )

    def gather(self, gradient: Floats) -> None:
        """Write the gradient [K] of unigram weights from the residuals, without real values."""
        space, chunks = self.space, self._row_chunks
        rows = np.zeros((len(chunks), space.padded))
        space.workers.map(
            expectations.gather_unigrams,
            each_with(chunks, rows),
            n_labels=space.n_labels,
            unigrams=self.tables.unigrams,
            columns=self.columns,
            residual=space.residual,
            gradient=gradient,
        )
