"""The chain loss of a corpus whose shards are distributed among workers (see `distributed.tree`).

Each shard is evaluated separately: its sums are a pure function of its sequences and the weights. A
worker returns the sums of its maximal subtrees, which are added over the rest of the tree. Results
are bit-identical for any number of workers.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import chain, count, pairwise
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from ..crf.corpus.coordinates import NO_COORDINATES, Coordinates, Weights, distinct
from ..crf.corpus.encoded import EncodedCorpus
from ..crf.corpus.numbering import Array, Floats, Hashes, Longs, Mask, find_ascending
from ..crf.corpus.transform import reduced, sliced, weighted, with_distinct_contexts
from ..crf.loss.chain_loss import ChainLoss, largest
from ..crf.loss.protocols import ExampleLoss, Loss, Violators, Which, WorkingLoss
from ..crf.loss.size import Size
from ..crf.loss.working import ChainWorkingLoss
from ..crf.loss.workspace import LIMITS, Limits
from ..crf.parallel import WorkerPool, Workers
from ..crf.penalty import ElasticNet
from .tree import maximal_subtrees, sum_over_tree

ResultT = TypeVar("ResultT")

# First shard of each node of the tree, and its sum.
Partials = list[tuple[int, Floats]]

# A partial gradient is rounded: it is compared to slightly less than its share of the threshold.
_ROUNDED = 1.0 - 1e-9
# Shards are small, and workers process several at a time: each is cut into few chunks.
_OF_SHARD = LIMITS._replace(n_chunks=2)
# Working losses that a worker keeps: before and after a screening.
_CACHED = 2


class ShardProblem(NamedTuple):
    """Settings of the loss. label_weights: [Y], None = 1; all others: see `ChainLoss`."""

    n_labels: int
    label_weights: Floats | None
    precision: str
    valid: Mask | None

    def corpus(self, corpus: EncodedCorpus) -> EncodedCorpus:
        """Return the sequences with their weights."""
        return corpus if self.label_weights is None else weighted(corpus, self.label_weights)

    def loss(self, corpus: EncodedCorpus, workers: Workers, limits: Limits = LIMITS) -> ChainLoss:
        """Return the loss of sequences."""
        return ChainLoss(
            corpus,
            self.n_labels,
            workers,
            precision=self.precision,
            valid=self.valid,
            limits=limits,
        )


class _Evaluation(NamedTuple):
    """The value and the gradient [k] of a shard at weights theta [k]."""

    theta: Floats
    value: float
    gradient: Floats


class _ShardWeights:
    """Working weights of a shard. indices: [k], in the whole working set."""

    def __init__(self, working: ChainWorkingLoss, indices: Longs) -> None:
        self.working = working
        self.indices = indices
        self._evaluation: _Evaluation | None = None

    def evaluate(self, theta: Floats) -> _Evaluation:
        """Return the value and the gradient [k] at weights [K]; the workspace keeps marginals."""
        of_shard = theta[self.indices]
        contents = self.working.space.contents
        is_current = contents is not None and contents.are_of(self.working, of_shard)
        if self._evaluation is None or not is_current:
            value, gradient = self.working.value_and_grad(of_shard)
            self._evaluation = _Evaluation(of_shard, value, gradient)
        return self._evaluation

    def gradient_at(self, evaluated: "_ShardWeights", theta: Floats) -> Floats:
        """Return the gradient [k] at the last evaluation of other weights, a subset of these.

        evaluated: the other weights; theta: values of their whole working set. Their marginals are
        kept.
        """
        evaluated.evaluate(theta)
        contents = evaluated.working.marginals(theta[evaluated.indices])
        return self.working.gradient_from(contents)

    def curvature_at(self, evaluated: "_ShardWeights", theta: Floats) -> Floats:
        """Return the shard's term of the curvature [k] at the last evaluation of other weights.

        Of pairs, the observed counts, to which the gradient of all shards is added. evaluated,
        theta: see `gradient_at`.
        """
        evaluated.evaluate(theta)
        return self.working.curvature(np.zeros(len(self.indices)))


# Terms [k] of a shard's weights at the last evaluation of other ones; see `gradient_at`.
TermsAt = Callable[[_ShardWeights, _ShardWeights, Floats], Floats]


class _ShardLoss:
    """The loss of a shard, on the features that occur in it. number: of the shard."""

    def __init__(
        self, number: int, corpus: EncodedCorpus, problem: ShardProblem, workers: Workers
    ) -> None:
        self.number = number
        is_used = np.isin(np.arange(len(corpus.ctx_indptr) - 1), corpus.context)
        features = corpus.ctx_indices[np.repeat(is_used, np.diff(corpus.ctx_indptr))]
        pairs = np.unique(features).astype(np.int64) + len(corpus.unigram_keys)
        unigrams = np.unique(corpus.uni_indices).astype(np.int64)
        self._features = np.concatenate((unigrams, pairs))
        self._coding = Coordinates.of(corpus, problem.n_labels)
        of_shard = with_distinct_contexts(reduced(corpus, self._features))
        self.loss = problem.loss(of_shard, workers, _OF_SHARD)

    def to_global(self, coordinates: Longs) -> Longs:
        """Return the coordinates [n] in the whole corpus of weights of the shard."""
        feature, position = self.loss.coding.locate(coordinates)
        return self._coding.at(self._features[feature], position)

    def restrict(self, coordinates: Longs) -> _ShardWeights:
        """Return the loss on those of the weights [K] that occur in the shard."""
        feature, position = self._coding.locate(coordinates)
        feature = find_ascending(self._features, feature)
        indices = np.flatnonzero(feature >= 0)
        local = self.loss.coding.at(feature[indices], position[indices])
        return _ShardWeights(self.loss.restrict(local), indices)


class ShardLosses:
    """The losses of a worker's shards.

    corpus: its sequences; shard_ptr: [n + 1], the sequences of each shard; first: number of the
    first shard; workers: threads, one for a shard at a time, or several if there are more threads
    than shards. Shards without a gold label contribute nothing.
    """

    def __init__(
        self,
        corpus: EncodedCorpus,
        shard_ptr: Longs,
        *,
        first: int,
        problem: ShardProblem,
        workers: Workers,
    ) -> None:
        corpus = problem.corpus(corpus)
        self._workers = workers
        self._nodes = maximal_subtrees(first, first + len(shard_ptr) - 1)
        shards = [sliced(corpus, begin, end) for begin, end in pairwise(shard_ptr.tolist())]
        share = max(1, workers.n_threads // max(1, len(shards)))
        self._shards = [
            _ShardLoss(first + i, shard, problem, Workers(share))
            for i, shard in enumerate(shards)
            if shard.with_labels()[0].any()
        ]
        self._cache: OrderedDict[int, list[_ShardWeights]] = OrderedDict()

    def are_convex(self) -> list[bool]:
        """Return for each shard whether its loss is convex."""
        return [shard.loss.is_convex for shard in self._shards]

    def _of_each(self, function: Callable[[int], ResultT]) -> list[ResultT]:
        """Call a function for the index of each shard, in parallel."""
        chunks = list(pairwise(range(len(self._shards) + 1)))
        return self._workers.map(lambda i, _: function(i), chunks)

    def _weights(self, working_set: "WorkingSet") -> list[_ShardWeights]:
        number, coordinates = working_set
        if number not in self._cache:
            while len(self._cache) >= _CACHED:
                self._cache.popitem(last=False)
            self._cache[number] = self._of_each(lambda i: self._shards[i].restrict(coordinates))
        self._cache.move_to_end(number)
        return self._cache[number]

    def _summed(self, indices: list[Longs], terms: list[Floats], n: int) -> Partials:
        """Return the sums [n] of the nodes over shards with gold labels.

        indices, terms: of each shard, indices of the sums and its terms there.
        """
        numbers = [shard.number for shard in self._shards]

        def expanded(i: int) -> Floats:
            sums = np.zeros(n)
            sums[indices[i]] = terms[i]
            return sums

        totals = {
            begin: sum_over_tree(
                (number, expanded(i)) for i, number in enumerate(numbers) if begin <= number < end
            )
            for begin, end in self._nodes
        }
        return [(begin, total) for begin, total in totals.items() if total is not None]

    def evaluate(self, working_set: "WorkingSet", theta: Floats) -> Partials:
        """Return sums of the gradient [K] and, last, the value, at theta [K]."""
        of_shards = self._weights(working_set)
        evaluations = self._of_each(lambda i: of_shards[i].evaluate(theta))
        indices = [np.append(weights.indices, -1) for weights in of_shards]
        terms = [np.append(of_shard.gradient, of_shard.value) for of_shard in evaluations]
        return self._summed(indices, terms, len(theta) + 1)

    def terms_at(
        self,
        terms_of: TermsAt,
        working_set: "WorkingSet",
        evaluated: "WorkingSet",
        theta: Floats,
    ) -> Partials:
        """Return sums [K] at the last evaluation of other weights. No shard is evaluated again.

        terms_of: the terms of a shard; evaluated, theta: the other weights, and their values.
        """
        of_evaluated, of_shards = self._weights(evaluated), self._weights(working_set)
        terms = self._of_each(lambda i: terms_of(of_shards[i], of_evaluated[i], theta))
        indices = [weights.indices for weights in of_shards]
        return self._summed(indices, terms, len(working_set.coordinates))

    def violating(self, working_set: "WorkingSet", theta: Floats, threshold: float) -> Longs:
        """Return coordinates of potential weights whose gradient in a shard exceeds a threshold."""
        of_shards = self._weights(working_set)

        def beyond(i: int) -> Longs:
            loss, weights = self._shards[i].loss, of_shards[i]
            inner = theta[weights.indices]
            return loss.screen(weights.working, inner, threshold, loss.n_potential).coordinates

        return self._united(beyond)

    def coordinates(self, which: Which) -> Longs:
        """Return the coordinates of all shards; see `Loss.coordinates`."""
        return self._united(lambda i: self._shards[i].loss.coordinates(which))

    def _united(self, of_shard: Callable[[int], Longs]) -> Longs:
        """Return coordinates in the whole corpus, ascending. of_shard: those of a shard."""
        united = self._of_each(lambda i: self._shards[i].to_global(of_shard(i)))
        return distinct(np.concatenate([NO_COORDINATES, *united]))


class WorkingSet(NamedTuple):
    """Coordinates [K] int64, ascending, and a unique number, by which workers cache them."""

    number: int
    coordinates: Longs


class Partition(NamedTuple):
    """The workers of a corpus, and the shards of each.

    pool: of the workers; shard_ptr: [L + 1] int64, the sequences of shards; bounds: the shards
    first:last of each worker.
    """

    pool: WorkerPool
    shard_ptr: Longs
    bounds: list[tuple[int, int]]

    def ask(self, method: str, *args: Any, keep: bool = False) -> list[Any]:
        """Call a method of all workers with the same arguments; see `WorkerPool.ask`."""
        return self.pool.ask(method, [args] * len(self.pool), keep=keep)

    def summed(self, method: str, *args: Any) -> Floats:
        """Sum the results of workers over the tree; at least one shard has gold labels."""
        sums = sum_over_tree(chain.from_iterable(self.ask(method, *args)))
        assert sums is not None
        return sums

    def names(self, keys: Hashes) -> dict[int, str]:
        """Return the names of features, by hash; see `NameRecord`."""
        named: dict[int, str] = {}
        for of_worker in self.ask("names", keys):
            named |= of_worker
        return named


class PartitionedWorkingLoss(WorkingLoss):
    """Value and gradient of the loss on a working set; see `WorkingLoss`.

    loss: the full problem; coordinates: [K] int64, ascending.
    """

    def __init__(self, loss: "PartitionedLoss", coordinates: Longs) -> None:
        self.coordinates, self._loss = coordinates, loss
        self.shared = loss.partition.pool.share(WorkingSet(next(loss.numbers), coordinates))

    def value_and_grad(self, theta: Floats) -> tuple[float, Floats]:
        """Return the loss and its gradient; see `WorkingLoss.value_and_grad`."""
        self._loss.evaluated = self, theta
        partition = self._loss.partition
        sums = partition.summed("evaluate", self.shared, partition.pool.share(theta))
        if not np.isfinite(sums[-1]):
            return np.inf, np.zeros_like(theta)
        return float(sums[-1]), sums[:-1]

    def gradient_at(self, evaluated: "PartitionedWorkingLoss", theta: Floats) -> Floats:
        """Return the gradient at the last evaluation of a loss on a subset of the weights."""
        self._loss.evaluated = evaluated, theta
        return self._at_evaluated(_ShardWeights.gradient_at)

    def curvature(self, gradient: Floats) -> Floats:
        """Approximate the diagonal of the Hessian; see `WorkingLoss.curvature`."""
        curvature = self._at_evaluated(_ShardWeights.curvature_at)
        is_pair = self.coordinates >= self._loss.coding.first_pair
        # The sum of a single worker is an array of another process, which is not writable.
        return np.where(is_pair, np.maximum(curvature + gradient, 0.0), curvature)

    def _at_evaluated(self, terms_of: TermsAt) -> Floats:
        """Return sums over shards at the last evaluation; terms_of: the terms of a shard."""
        assert self._loss.evaluated is not None
        evaluated, theta = self._loss.evaluated
        partition = self._loss.partition
        weights = partition.pool.share(theta)
        return partition.summed("terms_at", terms_of, self.shared, evaluated.shared, weights)


class PartitionedLoss(Loss):
    """The full problem: restricts the loss to working sets, and screens; see `ChainLoss`.

    partition: the workers with the sequences; index: corpus without sequences; n_labels: Y;
    is_convex: whether the loss of each shard is.
    """

    has_examples = False

    def __init__(
        self, partition: Partition, index: EncodedCorpus, n_labels: int, *, is_convex: bool
    ) -> None:
        self.partition, self._index = partition, index
        self.coding = Coordinates.of(index, n_labels)
        self.n_potential = index.n_potential(n_labels)
        self.n_sequences = int(partition.shard_ptr[-1])
        self.is_convex = is_convex
        self.numbers: Iterator[int] = count()
        # The loss that was evaluated last, and the weights.
        self.evaluated: tuple[PartitionedWorkingLoss, Floats] | None = None

    @property
    def arrays(self) -> list[Array]:
        """Arrays that identify the corpus: a digest of each shard, and the index."""
        digests: list[str] = [*chain.from_iterable(self.partition.ask("digests"))]
        shards = np.frombuffer("".join(digests).encode(), np.uint8)
        return [shards, *self._index.arrays.values()]

    def size(self, l1: float, history: int = 0, n_potential: int | None = None) -> Size:
        """Return the size without the memory, which workers need; see `Loss.size`."""
        n_features = len(self._index.unigram_keys) + len(self._index.bigram_keys)
        n_potential = self.n_potential if n_potential is None else n_potential
        return Size(n_features, n_potential, n_observed=None, n_bytes=None)

    def close(self) -> None:
        """Release the workers."""
        self.partition.pool.close()

    def coordinates(self, which: Which, known: Longs = NO_COORDINATES) -> Longs:
        """Return the coordinates of all shards; see `Loss.coordinates`."""
        if which == "all":
            return np.arange(self.n_potential, dtype=np.int64)
        return distinct(np.concatenate([known, *self.partition.ask("coordinates", which)]))

    def first_weights(
        self, start: Callable[[Loss, ElasticNet], Weights], penalty: ElasticNet
    ) -> Weights:
        """Return the weights of the warm start, which the first worker computes."""
        (weights,) = self.partition.pool.ask("warm_start", [(start, penalty)])
        return cast("Weights", weights)

    def restrict(self, coordinates: Longs) -> PartitionedWorkingLoss:
        """Return the loss as a function of some weights; all others are zero."""
        return PartitionedWorkingLoss(self, coordinates)

    def by_example(self, coordinates: Longs, origin: Floats | None = None) -> ExampleLoss:
        """Not possible: workers have the examples."""
        raise NotImplementedError

    def screen(
        self, working: WorkingLoss, theta: Floats, threshold: float, limit: int
    ) -> Violators:
        """Find the potential weights whose loss gradient exceeds a threshold; see `ChainLoss`.

        If a sum over shards exceeds the threshold, the gradient of some shard exceeds its share. So
        shards first report coordinates above their share, whose gradients are then summed.
        """
        assert isinstance(working, PartitionedWorkingLoss)
        partition = self.partition
        share = threshold * _ROUNDED / (len(partition.shard_ptr) - 1)
        weights = partition.pool.share(theta)
        violating = partition.ask("violating", working.shared, weights, share)
        wanted = distinct(np.concatenate([working.coordinates, *violating]))
        gradient = self.restrict(wanted).gradient_at(working, theta)
        beyond = np.abs(gradient) > threshold
        return largest(wanted[beyond], gradient[beyond], threshold, limit)
