"""Training on a corpus that is partitioned among workers of a pool; see `distributed.loss`."""

from functools import cached_property
from itertools import chain, pairwise
from typing import Any

import numpy as np

from ..corpus.encoded import MISSING, EncodedCorpus
from ..corpus.gold import InvalidGoldError, InvalidTransition, find_invalid
from ..corpus.numbering import Array, Mask
from ..corpus.transform import sliced
from ..errors import Errors, SparseCRFError
from ..loss.size import Size
from ..parallel import Workers
from ..penalty import ElasticNet
from ..solvers.base import Floats, Longs
from ..solvers.warm_start import WarmStart
from ..training.checkpoint import digest
from ..training.run import Run
from ..training.training import Training
from .loss import Partition, PartitionedLoss, ShardLosses, ShardProblem

# The warm start uses the first sequences of the corpus, at least this many tokens.
BEGINNING = 1 << 22


class WorkerShard:
    """A worker's part of a run: sequences, and the methods that the pool calls.

    corpus: its sequences; shard_ptr: [n + 1], sequences of each shard; first: number of the first
    shard; beginning: first sequences of the whole corpus, for the worker that computes the warm
    start; else None; workers: threads to use.
    """

    corpus: EncodedCorpus
    shard_ptr: Longs
    first: int
    beginning: EncodedCorpus | None
    workers: Workers
    _problem: ShardProblem
    _losses: ShardLosses

    def begin(self, problem: ShardProblem) -> list[bool]:
        """Receive the problem, and expose the methods of `ShardLosses` as methods of the worker.

        RETURNS: for each shard whether its loss is convex.
        """
        self._problem = problem
        own = self.corpus, self.shard_ptr, self.first
        self._losses = ShardLosses(*own, problem, self.workers)
        for name in ("evaluate", "at_last", "candidates", "coordinates"):
            setattr(self, name, getattr(self._losses, name))
        return self._losses.are_convex()

    def digests(self) -> list[str]:
        """Return a digest of each shard."""
        shards = (sliced(self.corpus, *ends) for ends in pairwise(self.shard_ptr.tolist()))
        return [digest(*_identifying_arrays(shard)) for shard in shards]

    def find_invalid(self, valid: Mask) -> tuple[InvalidTransition | None, int, tuple[int, int]]:
        """Find the first invalid gold labels of the worker; see `corpus.gold.find_invalid`.

        RETURNS: them or None; the number of the token in its sequence, from 0; and the numbers of
            sequences and tokens of the worker.
        """
        found, offsets = find_invalid(self.corpus, valid), self.corpus.offsets
        number = 0 if found is None else found.token - int(offsets[found.sequence])
        return found, number, (len(offsets) - 1, int(offsets[-1]))

    def warm_start(
        self, start: WarmStart, penalty: ElasticNet, prior: tuple[Longs, Floats] | None
    ) -> tuple[Longs, Floats]:
        """Return initial weights from the beginning of the corpus; prior: see `ChainLoss`."""
        assert self.beginning is not None
        problem, corpus = self._problem, self._problem.corpus(self.beginning)
        only = problem.observed_only
        loss = problem.loss(corpus, self.workers, observed_only=only, prior=prior)
        return start(loss, penalty)


def _identifying_arrays(shard: EncodedCorpus) -> list[Array]:
    """Return the arrays of a shard that are the same on any worker, with label sets expanded."""
    index = "ctx_indptr", "ctx_indices", "unigram_keys", "families", "bigram_keys", "labels", "sets"
    several = shard.labels < MISSING
    sets = shard.sets[MISSING - 1 - shard.labels[several]]
    arrays = [array for name, array in shard.arrays.items() if name not in index]
    return [*arrays, np.maximum(shard.labels, MISSING - 1), sets]


class PartitionedTraining(Training):
    """Training run on a partitioned corpus; `corpus` has an index, and no sequences.

    partition: the workers with the sequences; other arguments: see `Training`.
    """

    def __init__(
        self, corpus: EncodedCorpus, *args: Any, partition: Partition, **options: Any
    ) -> None:
        self.partition, self._index = partition, corpus
        super().__init__(corpus, *args, **options)

    def _make_runs(self, whole: EncodedCorpus, known: Longs) -> tuple[list[None], list[Run]]:
        self.n_sequences = int(self.partition.shard_ptr[-1])
        n, problem = len(self._labels), self._problem
        given = problem.label_weights, problem.precision, problem.observed_only, problem.valid
        shared = ShardProblem(n, *given)
        if problem.valid is not None:
            self._check_gold(problem.valid)
        are_convex = [*chain.from_iterable(self.partition.ask("begin", shared, keep=True))]
        if not are_convex:
            raise SparseCRFError(Errors.SC356)
        sizes = whole.n_potential(n), len(whole.unigram_keys) * n
        args = are_convex, *sizes, problem.observed_only, self._origin
        loss: Any = PartitionedLoss(self.partition, *args)
        own = self._penalty, self._solver, self._warm_start
        run = Run(loss, *own, self.n_sequences)
        n_features = len(whole.unigram_keys) + len(whole.bigram_keys)
        self.size = Size(n_features, loss.n_potential, None, None)
        return [None], [run]

    def _check_gold(self, valid: Mask) -> None:
        """See `check_gold`; positions are those in the whole corpus."""
        n_sequences = n_tokens = 0
        for found, number, (sequences, tokens) in self.partition.ask("find_invalid", valid):
            if found is not None:
                place = found.sequence + n_sequences, found.token + n_tokens
                found = found._replace(sequence=place[0], token=place[1])
                raise InvalidGoldError(found, number, self._labels)
            n_sequences, n_tokens = n_sequences + sequences, n_tokens + tokens

    def close(self) -> None:
        """Release the workers."""
        super().close()
        self.partition.pool.close()

    @cached_property
    def _corpus_digest(self) -> str:
        of_shards = [each for of_worker in self.partition.ask("digests") for each in of_worker]
        shards = np.frombuffer("".join(of_shards).encode(), np.uint8)
        return digest(shards, *self._index.arrays.values())
