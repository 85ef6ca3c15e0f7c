"""The chain loss of a corpus whose shards are distributed among workers (see `loss.tree`).

Each shard is evaluated separately: its sums are a pure function of its sequences and the weights. A
worker returns the sums of its maximal subtrees, which are added over the rest of the tree. Results
are bit-identical for any number of workers.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import chain, count, pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..corpus.encoded import EncodedCorpus
from ..corpus.numbering import Hashes, find_ascending
from ..corpus.transform import reduced, sliced, weighted, with_distinct_contexts
from ..loss.chain import ChainLoss, FullLoss, Violators, largest, places_of
from ..loss.lattice import Floats, Longs, Mask
from ..loss.observed import distinct
from ..loss.tree import maximal_subtrees, sum_over_tree
from ..loss.working import OffsetLoss, WorkingLoss
from ..loss.workspace import LIMITS, Limits
from ..parallel import WorkerPool, Workers
from ..penalty import ElasticNet

ResultT = TypeVar("ResultT")

# First shard of each node of the tree, and its sum.
Partials = list[tuple[int, Floats]]

# A partial gradient is rounded: it is compared to slightly less than its share of the threshold.
_ROUNDED = 1.0 - 1e-9
# Shards are small, and workers process several at a time: each is cut into few chunks.
_OF_SHARD = LIMITS._replace(n_chunks=2)
# Working losses that a worker keeps: before and after a screening.
_KEPT = 2


class ShardProblem(NamedTuple):
    """Settings of the loss. label_weights: [Y], None = 1; all others: see `ChainLoss`."""

    n_labels: int
    label_weights: Floats | None
    precision: str
    observed_only: bool
    valid: Mask | None

    def corpus(self, corpus: EncodedCorpus) -> EncodedCorpus:
        """Return the sequences with their weights."""
        return corpus if self.label_weights is None else weighted(corpus, self.label_weights)

    def loss(
        self, corpus: EncodedCorpus, workers: Workers, limits: Limits = LIMITS, **options: Any
    ) -> ChainLoss:
        """Return the loss of sequences. options: further arguments of `ChainLoss`."""
        given = self.n_labels, workers, self.precision
        return ChainLoss(corpus, *given, valid=self.valid, limits=limits, **options)


class _Weights(NamedTuple):
    """Working weights of a shard. places: [k], indices in the whole working set; found: the last
    evaluation: weights, value and gradient.
    """

    working: WorkingLoss
    places: Longs
    found: list[tuple[Floats, float, Floats]]

    def evaluate(self, theta: Floats) -> tuple[float, Floats]:
        """Return the value and the gradient [k] at weights [K]; the workspace keeps marginals."""
        own = theta[self.places]
        contents = self.working.space.contents
        if not (self.found and contents is not None and contents.are_of(self.working, own)):
            self.found[:] = [(own, *self.working.value_and_grad(own))]
        return self.found[0][1:]

    def gradient_at(self, last: "_Weights", theta: Floats) -> Floats:
        """Return the gradient [k] at the last evaluation of other weights, a subset of these.

        last: the other weights; theta: values of their whole working set. Their marginals are kept.
        """
        last.evaluate(theta)
        return self.working.gradient_from(last.working.marginals(theta[last.places]))

    def curvature_at(self, last: "_Weights", theta: Floats) -> Floats:
        """Return the shard's term of the curvature [k] at the last evaluation of other weights.

        Of pairs, the observed counts, to which the gradient of all shards is added. last, theta:
        see `gradient_at`.
        """
        last.evaluate(theta)
        return self.working.curvature(np.zeros(len(self.places)))


class _ShardLoss:
    """The loss of a shard, on the features that occur in it. number: of the shard."""

    def __init__(
        self, number: int, corpus: EncodedCorpus, problem: ShardProblem, workers: Workers
    ) -> None:
        self.number = number
        used = np.isin(np.arange(len(corpus.ctx_indptr) - 1), corpus.context)
        features = corpus.ctx_indices[np.repeat(used, np.diff(corpus.ctx_indptr))]
        pairs = np.unique(features).astype(np.int64) + len(corpus.unigram_keys)
        unigram, widths = np.unique(corpus.uni_indices), corpus.widths(problem.n_labels)
        self._features = np.concatenate((unigram.astype(np.int64), pairs))
        self._own, self._whole = (len(unigram), widths), (len(corpus.unigram_keys), widths)
        own = with_distinct_contexts(reduced(corpus, self._features))
        self.loss = problem.loss(own, workers, _OF_SHARD)

    def to_global(self, coordinates: Longs) -> Longs:
        """Return the coordinates [n] in the whole corpus of weights of the shard."""
        feature, place = places_of(coordinates, *self._own)
        return _coordinates_of(self._features[feature], place, *self._whole)

    def restrict(self, coordinates: Longs) -> _Weights:
        """Return the loss on those of the weights [K] that occur in the shard."""
        feature, place = places_of(coordinates, *self._whole)
        feature = find_ascending(self._features, feature)
        places = np.flatnonzero(feature >= 0)
        inner = _coordinates_of(feature[places], place[places], *self._own)
        return _Weights(self.loss.restrict(inner), places, [])


def _coordinates_of(feature: Longs, place: Longs, n_unigram: int, widths: tuple[int, int]) -> Longs:
    """Return coordinates: the inverse of `places_of`."""
    pair = n_unigram * widths[0] + (feature - n_unigram) * widths[1]
    found: Longs = np.where(feature >= n_unigram, pair, feature * widths[0]) + place
    return found


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
        first: int,
        problem: ShardProblem,
        workers: Workers,
    ) -> None:
        own = problem.corpus(corpus)
        self._workers = workers
        self._nodes = maximal_subtrees(first, first + len(shard_ptr) - 1)
        shards = [sliced(own, *shard_ptr[i : i + 2]) for i in range(len(shard_ptr) - 1)]
        share = max(1, workers.n_threads // max(1, len(shards)))
        self._shards = [
            _ShardLoss(first + i, shard, problem, Workers(share))
            for i, shard in enumerate(shards)
            if shard.with_labels()[0].any()
        ]
        self._kept: OrderedDict[int, list[_Weights]] = OrderedDict()

    def are_convex(self) -> list[bool]:
        """Return for each shard whether its loss is convex."""
        return [shard.loss.is_convex for shard in self._shards]

    def _of_each(self, function: Callable[[int], ResultT]) -> list[ResultT]:
        """Call a function for the index of each shard, in parallel."""
        chunks = list(pairwise(range(len(self._shards) + 1)))
        return self._workers.map(lambda place, _: function(place), chunks)

    def _weights(self, number: int, coordinates: Longs) -> list[_Weights]:
        if number not in self._kept:
            while len(self._kept) >= _KEPT:
                self._kept.popitem(last=False)
            self._kept[number] = self._of_each(lambda i: self._shards[i].restrict(coordinates))
        self._kept.move_to_end(number)
        return self._kept[number]

    def _summed(self, places: list[Longs], values: list[Floats], n: int) -> Partials:
        """Return the sums [n] of the nodes over shards with gold labels.

        places, values: of each shard, indices of the sums and its terms there.
        """
        numbers = [shard.number for shard in self._shards]

        def sums(i: int) -> Floats:
            found = np.zeros(n)
            found[places[i]] = values[i]
            return found

        totals = {
            begin: sum_over_tree((n, sums(i)) for i, n in enumerate(numbers) if begin <= n < end)
            for begin, end in self._nodes
        }
        return [(begin, total) for begin, total in totals.items() if total is not None]

    def evaluate(self, number: int, coordinates: Longs, theta: Floats) -> Partials:
        """Return sums of the gradient [K] and, last, the value; number: of the working set."""
        all_of = self._weights(number, coordinates)
        results = self._of_each(lambda i: all_of[i].evaluate(theta))
        places = [np.append(each.places, -1) for each in all_of]
        values = [np.append(gradient, value) for value, gradient in results]
        return self._summed(places, values, len(theta) + 1)

    def at_last(self, method: str, *args: Any) -> Partials:
        """Return sums [K] at the last evaluation of other weights. No shard is evaluated again.

        method: of `_Weights`, which returns the terms of a shard; args: number and coordinates [K]
        of a working set, those of the other weights, and their values.
        """
        own, last, theta = args[:2], args[2:4], args[4]
        before, all_of = self._weights(*last), self._weights(*own)
        terms = self._of_each(lambda i: getattr(all_of[i], method)(before[i], theta))
        return self._summed([each.places for each in all_of], terms, len(own[1]))

    def candidates(self, number: int, coordinates: Longs, theta: Floats, threshold: float) -> Longs:
        """Return coordinates of potential weights whose gradient in a shard exceeds a threshold."""
        all_of = self._weights(number, coordinates)

        def beyond(i: int) -> Longs:
            shard, weights = self._shards[i], all_of[i]
            own = weights.working, theta[weights.places], threshold, shard.loss.n_potential
            return shard.loss.screen(*own)[0]

        return self._united(beyond)

    def coordinates(self, which: str) -> Longs:
        """Return the coordinates of all shards. which: the method of `ChainLoss` for a shard's."""
        return self._united(lambda i: getattr(self._shards[i].loss, which)())

    def _united(self, own: Callable[[int], Longs]) -> Longs:
        """Return coordinates in the whole corpus, ascending. own: those of a shard, by index."""
        found = self._of_each(lambda i: self._shards[i].to_global(own(i)))
        return distinct(np.concatenate([np.empty(0, np.int64), *found]))


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
        return {key: name for own in self.ask("names", keys) for key, name in own.items()}


class PartitionedWorkingLoss(OffsetLoss):
    """Value and gradient of the loss on a working set; see `WorkingLoss`.

    loss: the full problem; coordinates: [K] int64, ascending; origin: [K] float64, weights of the
    prior, to which solvers' weights are added, or [0].
    """

    is_divided = True

    def __init__(self, loss: "PartitionedLoss", coordinates: Longs, origin: Floats) -> None:
        self.coordinates, self.origin, self._loss = coordinates, origin, loss
        # Workers cache the working set by a unique number.
        self.named = next(loss.numbers), loss.partition.pool.share(coordinates)

    def args(self, weights: Floats) -> tuple[Any, ...]:
        """Return the arguments that send weights [K] of the model to workers."""
        return *self.named, self._loss.partition.pool.share(weights)

    def value_and_grad(self, theta: Floats) -> tuple[float, Floats]:
        """Return the loss and its gradient; see `WorkingLoss.value_and_grad`."""
        weights = self.model_weights(theta)
        self._loss.evaluated = self, weights
        sums = self._loss.partition.summed("evaluate", *self.args(weights))
        if not np.isfinite(sums[-1]):
            return np.inf, np.zeros_like(theta)
        return float(sums[-1]), sums[:-1]

    def gradient_at(self, last: "PartitionedWorkingLoss", weights: Floats) -> Floats:
        """Return the gradient at the last evaluation of a loss on a subset of the weights."""
        self._loss.evaluated = last, weights
        return self._at_last("gradient_at")

    def curvature(self, gradient: Floats) -> Floats:
        """Approximate the diagonal of the Hessian; see `WorkingLoss.curvature`."""
        found, pairs = self._at_last("curvature_at"), self.coordinates >= self._loss.n_unigram
        found[pairs] = np.maximum(found[pairs] + gradient[pairs], 0.0)
        return found

    def _at_last(self, method: str) -> Floats:
        """Return sums over shards at the last evaluation; method: of `_Weights`."""
        assert self._loss.evaluated is not None
        last, weights = self._loss.evaluated
        return self._loss.partition.summed("at_last", method, *self.named, *last.args(weights))


class PartitionedLoss(FullLoss):
    """The full problem: restricts the loss to working sets, and screens; see `ChainLoss`.

    partition: the workers with the sequences; are_convex: for each shard whether its loss is;
    n_potential: number of potential weights; n_unigram: of these, of unigram weights, which come
    first; observed_only, prior: see `ChainLoss`.
    """

    def __init__(
        self,
        partition: Partition,
        are_convex: list[bool],
        n_potential: int,
        n_unigram: int,
        observed_only: bool,
        prior: tuple[Longs, Floats] | None,
    ) -> None:
        self.partition, self.n_potential, self.prior = partition, n_potential, prior
        self.n_unigram = n_unigram
        if observed_only:
            self.candidates = self._coordinates("observed_coordinates")
            self.n_potential = len(self.candidates)
        self.is_convex = all(are_convex)
        self.numbers: Iterator[int] = count()
        # The loss that was evaluated last, and the weights.
        self.evaluated: tuple[PartitionedWorkingLoss, Floats] | None = None

    def _coordinates(self, which: str) -> Longs:
        return self.with_prior(distinct(np.concatenate(self.partition.ask("coordinates", which))))

    def descent_coordinates(self) -> Longs:
        """Return the coordinates of all shards; see `ChainLoss.descent_coordinates`."""
        if self.candidates is not None:
            return self.candidates
        return self._coordinates("descent_coordinates")

    def first_weights(
        self, start: Callable[..., tuple[Longs, Floats]], penalty: ElasticNet
    ) -> tuple[Longs, Floats]:
        """Return the weights of the warm start, which the first worker computes."""
        args = start, penalty, self.prior
        found: tuple[Longs, Floats] = self.partition.pool.ask("warm_start", [args])[0]
        return found

    def restrict(self, coordinates: Longs, stochastic: bool = False) -> PartitionedWorkingLoss:
        """Return the loss as a function of some weights; all others are zero."""
        return PartitionedWorkingLoss(self, coordinates, self.origin_at(coordinates))

    def screen(
        self, working: PartitionedWorkingLoss, theta: Floats, threshold: float, limit: int
    ) -> Violators:
        """Find the potential weights whose loss gradient exceeds a threshold; see `ChainLoss`.

        If a sum over shards exceeds the threshold, the gradient of some shard exceeds its share. So
        shards first report coordinates above their share, whose gradients are then summed.
        """
        share = threshold * _ROUNDED / (len(self.partition.shard_ptr) - 1)
        weights = working.model_weights(theta)
        found = self.partition.ask("candidates", *working.args(weights), share)
        allowed = np.concatenate(found)
        if self.candidates is not None:
            allowed = allowed[find_ascending(self.candidates, allowed) >= 0]
        wanted = distinct(np.concatenate([working.coordinates, allowed]))
        gradient = self.restrict(wanted).gradient_at(working, weights)
        beyond = np.abs(gradient) > threshold
        return largest(wanted[beyond], gradient[beyond], threshold, limit)
