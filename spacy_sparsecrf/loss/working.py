"""The chain loss as a function of working weights: value and gradient."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from ..kernels.expectations import (
    count_gold,
    gather_unigrams,
    head_curvature,
    infer_chunk,
    unigram_curvature,
)
from ..kernels.layout import (
    BatchOrder,
    Columns,
    ContextRows,
    Sequences,
    Tables,
    TokensBy,
    Unigrams,
    Vectors,
)
from ..kernels.pair_counts import count_gold_pairs
from ..parallel import Chunks, dot
from .lattice import Floats, Longs
from .pairs import PairPotentials
from .weights import FeatureBlocks, Heads, OriginHeads, ValueWeights
from .workspace import Contents, Spares, Workspace, in_sequence

DerivedT = TypeVar("DerivedT")

# Weights of which a copy is kept, to know where marginals were evaluated.
_MAX_KEPT = 1 << 22


class Shifted:
    """A loss whose solvers move what is added to an origin, [K] float64, or [0] for zero.

    is_divided: whether others have the sequences.
    """

    is_divided = False
    origin: Floats

    def model_weights(self, theta: Floats) -> Floats:
        """The weights of the model, [K], where a solver is at theta [K]."""
        return theta + self.origin if len(self.origin) else theta


class WorkingLoss(Shifted):
    """Value and gradient of the loss at working weights.

    coordinates: [K] int64, ascending (see `chain`); n_unigram: how many potential coordinates
    are unigram weights; stochastic: whether it serves a stochastic solver; origin: [K] float64 w0,
    None for zeros: all weights that solvers move are v, and those of the model w0 + v.
    """

    def __init__(
        self,
        workspace: Workspace,
        coordinates: Longs,
        n_unigram: int,
        stochastic: bool,
        origin: Floats | None = None,
    ) -> None:
        lattice = workspace.lattice
        n_labels, padded = workspace.n_labels, workspace.padded
        self.coordinates, self._stochastic = coordinates, stochastic
        self.origin = np.empty(0) if origin is None else origin
        self._derived: dict[Any, Any] = {}
        self._gradients = Spares(len(coordinates))
        self.space = workspace
        self.split = int(np.searchsorted(coordinates, n_unigram))
        self.unigram = FeatureBlocks(
            coordinates[: self.split], n_labels, 1, padded, lattice.n_tests
        )
        pairs, n_tests = coordinates[self.split :] - n_unigram, len(lattice.test_contexts)
        self.bigram = FeatureBlocks(pairs, n_labels, lattice.n_previous, padded, n_tests)
        n_tokens = workspace.test_counts[self.unigram.tests]
        # Stochastic descent moves its weights too often for a copy of them.
        self.heads = Heads(workspace, self.unigram, 0 * n_tokens if stochastic else n_tokens)
        if stochastic and len(self.origin):
            self.heads = OriginHeads(workspace, self.unigram, self.origin[: self.split])
        self.token_rows = self.unigram.of(lattice.tests, self.heads.n_rows, store=lattice.store)
        self.values = ValueWeights(workspace, self.unigram)
        of_pairs = self.origin[self.split :]
        self.pairs = PairPotentials(workspace, self.bigram, stochastic, of_pairs)
        n_chunks = workspace.limits.n_chunks
        self._row_chunks = self.unigram.chunks(n_tokens, n_chunks)
        self._tail_chunks = self.unigram.chunks(n_tokens, n_chunks, self.heads.n_rows)

    @property
    def n_examples(self) -> int:
        """Number of sequences with gold labels."""
        return self.space.lattice.n_examples

    def derived(self, make: "Callable[[WorkingLoss], DerivedT]") -> DerivedT:
        """What a solver makes of the loss, made once: it has nothing but settings and states."""
        if make not in self._derived:
            self._derived[make] = make(self)
        found: DerivedT = self._derived[make]
        return found

    @cached_property
    def tables(self) -> Tables:
        """All sequences, constrained copies last, and where the weights of their tokens are."""
        lattice, pairs = self.space.lattice, self.pairs
        sequences = Sequences(
            self.space.n_labels,
            lattice.offsets,
            lattice.copies,
            lattice.labels,
            lattice.allowed,
            lattice.weights,
            lattice.token_weight,
            pairs.contexts.context,
        )
        unigrams = self._unigrams_of(0, lattice.n_tokens)
        rows = self.bigram.of(lattice.ctx_tests)
        context_rows = ContextRows(lattice.context, rows.indptr, rows.indices)
        return Tables(sequences, unigrams, pairs.contexts.arrays, pairs.bigrams, context_rows)

    def _unigrams_of(self, begin: int, end: int) -> Unigrams:
        """Where the unigram weights of tokens begin:end are."""
        return Unigrams(
            self.split,
            self.heads.tokens.indptr[begin : end + 1],
            self.heads.tokens.indices,
            self.heads.table,
            self.token_rows.indptr[begin : end + 1],
            self.token_rows.indices,
            self.unigram.ptr,
            self.unigram.places,
        )

    def shard(self, i: int) -> Tables:
        """The sequences of shard i, and where the unigram weights of its tokens are."""
        shard, whole = self.space.shards[i], self.tables.sequences
        begin, end = shard.begin, shard.end
        own = whole._replace(
            offsets=shard.offsets,
            copies=whole.copies[shard.first : shard.last],
            labels=whole.labels[begin:end],
            allowed=whole.allowed[begin:end],
            weights=whole.weights[shard.first : shard.last],
            token_weight=whole.token_weight[begin:end],
            context=whole.context[begin:end],
        )
        return self.tables._replace(sequences=own, unigrams=self._unigrams_of(begin, end))

    def _columns(self, i: int) -> Columns:
        """The tokens of rows in section i of the corpus."""
        columns = self.space.columns[i]
        tokens = columns.tokens
        return Columns(columns.of(self.unigram.tests), tokens.indptr, tokens.indices)

    def _section(self, i: int) -> Tables:
        """The sequences of section i of the corpus: of a shard where it is in files, else all."""
        return self.shard(i) if self.space.by_shard else self.tables

    @cached_property
    def observed(self) -> Floats:
        """Empirical counts O [K] of the working weights: minus the gradient at no expectation."""
        counts, space = np.zeros(len(self.coordinates)), self.space
        for i in range(len(space.columns)):
            section = self._section(i), self._columns(i), counts[: self.split]
            space.workers.map(count_gold, self._row_chunks, *section)
            space.lattice.store.release()
        self.values.count(counts)
        count_gold_pairs(self.tables, space.padded, counts[self.split :])
        return counts

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
        weights = self.model_weights(theta)
        self.heads.fill(weights)
        self.values.fill(weights)
        self.pairs.fill(theta[self.split :])
        gradient = self._infer_all(theta)
        value = dot(space.log_z, space.lattice.weights) - dot(weights[places], counts)
        # So many weights are never screened; a copy would take a tenth of the time.
        kept = len(theta) <= _MAX_KEPT or space.by_shard
        space.contents = Contents(self, theta.copy() if kept else None)
        if not np.isfinite(value):
            return np.inf, np.zeros_like(theta)
        return value, gradient

    def gradient_there(self, contents: Contents) -> Floats:
        """The gradient [K] at the weights at which another loss was evaluated, all of them ours.

        contents: the other's, which are in the workspace: nothing is inferred again.
        """
        other, space = contents.owner, self.space
        theta, gradient = np.zeros(len(self.coordinates)), np.empty(len(self.coordinates))
        theta[np.searchsorted(self.coordinates, other.coordinates)] = contents.theta
        self.pairs.fill(theta[self.split :])
        self.pairs.begin_sums()
        for i in other.visit(contents.theta, vectors=True):
            self.pairs.add_shard(i, self.shard(i).sequences, self.vectors(i))
        self._gather_rows(0, gradient, self._row_chunks)
        shards = (self.shard(i).sequences for i in range(len(space.shards)))
        self.pairs.finish(shards, gradient[self.split :])
        return gradient

    def marginals(self, theta: Floats) -> Contents:
        """Leave marginals and potentials at theta [K] in the workspace, if they are not there."""
        contents = self.space.contents
        if contents is None or not contents.are_of(self, theta):
            self.value_and_grad(theta)
            contents = self.space.contents = Contents(self, theta)
        return contents

    def curvature(self, gradient: Floats) -> Floats:
        """About the diagonal of the Hessian, where marginals are in the workspace.

        Of a unigram weight sum_t p (1 - p), of a bigram weight its expected count, which is no
        less: tokens count as if they were independent.

        gradient: [K] float64, of the loss at the point where marginals were evaluated last, on
        these coordinates or others. RETURNS: [K] float64, >= 0.
        """
        curvature, space = np.zeros(len(self.coordinates)), self.space
        sections: Iterable[int] = (0,)
        if space.by_shard and space.contents is not None:
            sections = space.contents.visit()
        sums = np.zeros(self.heads.table.shape)
        for i in sections:
            section = self._section(i), self._columns(i), space.residual, curvature[: self.split]
            space.workers.map(unigram_curvature, self._tail_chunks, *section)
            for shard in (i,) if space.by_shard else range(len(space.shards)):
                for of_chunk in self._head_curvature(shard):
                    sums += of_chunk
        curvature[: self.heads.n_weights] = self.heads.gradient(sums)
        self.values.curvature(curvature)
        expected = gradient[self.split :] + self.observed[self.split :]
        curvature[self.split :] = np.maximum(expected, 0.0)
        return curvature

    def _head_curvature(self, i: int) -> list[Floats]:
        """Of each chunk of shard i the variances of labels, summed by head: [H, Yp]."""
        space, tables = self.space, self.shard(i)
        residual = space.residual_of(space.shards[i])

        def run(first: int, last: int) -> Floats:
            sums, row = np.zeros(self.heads.table.shape), np.zeros(space.padded)
            head_curvature(first, last, tables.sequences, tables.unigrams, residual, row, sums)
            return sums

        return space.workers.map(run, space.chunks[i])

    def visit(self, theta: Floats, vectors: bool = False) -> Iterator[int]:
        """Visit the shards, each with its residuals at the point evaluated last in the workspace.

        theta: [K], that point; vectors: whether its forward and backward vectors, of which the
        workspace holds those of one shard at a time, are to be there too.
        """
        space = self.space
        again = len(space.shards) > 1 and (vectors or space.by_shard)
        for i in range(len(space.shards)):
            if again:
                self.infer(theta, i)
            yield i
            space.lattice.store.release()
        # Inference has left marginals of this very point.
        space.contents = Contents(self, theta)

    def infer(self, theta: Floats, i: int) -> list[Floats]:
        """Infer shard i, in an order that reads matrices seldom; leaves residuals.

        RETURNS: of each chunk the sums of residuals of the heads, [H, Yp].
        """
        return self._infer(theta, i, self.pairs.walks[i], self.space.chunks[i], True)

    def infer_chunks(self, theta: Floats, i: int, chunks: Chunks) -> None:
        """Infer only these chunks of the sequences of shard i; leaves marginals."""
        whole = chunks == self.space.chunks[i]
        walk = self.pairs.walks[i] if whole else in_sequence(self.space.shards[i])
        self._infer(theta, i, walk, chunks, False)

    def vectors(self, i: int) -> Vectors:
        """What inference writes of shard i, in the workspace."""
        space = self.space
        shard, psi = space.shards[i], self.pairs.potentials.psi
        scratch = np.empty(psi.shape[1:], space.dtype)
        marginals = space.residual_of(shard)
        return Vectors(space.alpha, space.backward, marginals, space.scales, space.norms, scratch)

    @property
    def is_bounded(self) -> bool:
        """Whether a gradient is expected less observed counts, by which it is bounded."""
        return True

    def pair_terms(self, i: int, tokens: TokensBy) -> Iterator[tuple[TokensBy, Vectors, bool]]:
        """What gradients of pairs are sums of, products alpha_{t-1} (x) backward_t, of shard i.

        tokens: of the shard, by context.
        YIELDS: tokens, vectors, and whether gold pairs are to be subtracted.
        """
        yield tokens, self.vectors(i), True

    def _infer(
        self, theta: Floats, i: int, walk: BatchOrder, chunks: Chunks, residuals: bool
    ) -> list[Floats]:
        space, shard = self.space, self.space.shards[i]
        tables, pairs = self.shard(i), self.pairs.arrays
        vectors, log_z = self.vectors(i), space.log_z[shard.first : shard.last]
        walk = walk._replace(scored=len(self.values) > 0)
        # For a stochastic solver the origin is in the heads.
        theta = theta if self._stochastic else self.model_weights(theta)

        def run(first: int, last: int) -> Floats:
            tokens = int(shard.offsets[first]), int(shard.offsets[last])
            self.values.score(shard.begin, *tokens, space.backward)
            sums = np.zeros(self.heads.table.shape)
            # Of its own, as chunks run beside each other.
            own = vectors._replace(scratch=np.empty_like(vectors.scratch))
            run_of = first, last, tables, pairs, theta, own, walk
            infer_chunk(*run_of, log_z, residuals, sums)
            return sums

        return space.workers.map(run, chunks)

    def _infer_all(self, theta: Floats) -> Floats:
        """Infer all shards, and return the gradient [K]."""
        space = self.space
        gradient, sums = self._gradients.take(), np.zeros(self.heads.table.shape)
        self.pairs.begin_sums()
        for i in range(len(space.shards)):
            for of_chunk in self.infer(theta, i):
                sums += of_chunk
            self.pairs.add_shard(i, self.shard(i).sequences, self.vectors(i))
            if space.by_shard:
                self.gather(i, gradient)
            space.lattice.store.release()
        if not space.by_shard:
            self.gather(0, gradient)
        gradient[: self.heads.n_weights] = self.heads.gradient(sums)
        self.values.gradient(gradient)
        shards = (self.shard(i).sequences for i in range(len(space.shards)))
        self.pairs.finish(shards, gradient[self.split :])
        return gradient

    def gather(self, i: int, gradient: Floats) -> None:
        """Add the residuals of section i of the corpus to the gradient [K] of unigram weights.

        Those of heads, and of values, are left out. The first section overwrites what is there.
        """
        self._gather_rows(i, gradient, self._tail_chunks)

    def _gather_rows(self, i: int, gradient: Floats, chunks: Chunks) -> None:
        """The same for chunks of rows, whether or not they are heads."""
        space = self.space
        given = space.n_labels, self.tables.unigrams, self._columns(i), space.residual
        space.workers.map(
            lambda first, last: gather_unigrams(
                first, last, *given, np.zeros(space.padded), i > 0, gradient
            ),
            chunks,
        )
