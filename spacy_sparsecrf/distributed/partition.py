"""Training on a corpus that is partitioned among workers of a pool; see `partitioned_loss`."""

from collections.abc import Callable, Sequence
from itertools import chain, pairwise

import numpy as np

from ..crf.corpus.coordinates import Weights
from ..crf.corpus.encoded import MISSING, EncodedCorpus
from ..crf.corpus.gold import InvalidGoldError, InvalidTransition, find_invalid
from ..crf.corpus.numbering import Array, Longs, Mask
from ..crf.corpus.transform import sliced
from ..crf.loss.protocols import Loss
from ..crf.parallel import Workers
from ..crf.penalty import ElasticNet
from ..crf.training.checkpoint import digest
from ..crf.training.training import Problem
from ..errors import Errors, SparseCRFError
from .partitioned_loss import Partition, PartitionedLoss, ShardLosses, ShardProblem

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
        self._losses = ShardLosses(
            self.corpus,
            self.shard_ptr,
            first=self.first,
            problem=problem,
            workers=self.workers,
        )
        for name in ("evaluate", "terms_at", "violating", "coordinates"):
            setattr(self, name, getattr(self._losses, name))
        return self._losses.are_convex()

    def digests(self) -> list[str]:
        """Return a digest of each shard."""
        shards = (sliced(self.corpus, *ends) for ends in pairwise(self.shard_ptr.tolist()))
        return [digest(*_identifying_arrays(shard)) for shard in shards]

    def find_invalid(self, valid: Mask) -> tuple[InvalidTransition | None, int, tuple[int, int]]:
        """Find the first invalid gold labels of the worker; see `crf.corpus.gold.find_invalid`.

        RETURNS: them or None; the number of the token in its sequence, from 0; and the numbers of
            sequences and tokens of the worker.
        """
        invalid, offsets = find_invalid(self.corpus, valid), self.corpus.offsets
        number = 0 if invalid is None else invalid.token - int(offsets[invalid.sequence])
        return invalid, number, (len(offsets) - 1, int(offsets[-1]))

    def warm_start(
        self, start: Callable[[Loss, ElasticNet], Weights], penalty: ElasticNet
    ) -> Weights:
        """Return initial weights from the beginning of the corpus."""
        assert self.beginning is not None
        problem = self._problem
        return start(problem.loss(problem.corpus(self.beginning), self.workers), penalty)


def _identifying_arrays(shard: EncodedCorpus) -> list[Array]:
    """Return the arrays of a shard that are the same on any worker, with label sets expanded."""
    index = "ctx_indptr", "ctx_indices", "unigram_keys", "families", "bigram_keys", "labels", "sets"
    several = shard.labels < MISSING
    sets = shard.sets[MISSING - 1 - shard.labels[several]]
    arrays = [array for name, array in shard.arrays.items() if name not in index]
    return [*arrays, np.maximum(shard.labels, MISSING - 1), sets]


def partitioned_loss(
    partition: Partition, labels: Sequence[str], problem: Problem, index: EncodedCorpus
) -> PartitionedLoss:
    """Return the loss of the sequences of workers, for `Training`.

    partition: the workers; labels: label strings by id; problem: the loss; index: of the whole
    corpus, without sequences.
    RAISES: SparseCRFError for invalid gold labels, and if no sequence with gold labels has weight.
    """
    if problem.valid is not None:
        _check_gold(partition, labels, problem.valid)
    shared = ShardProblem(
        len(labels),
        label_weights=problem.label_weights,
        precision=problem.precision,
        valid=problem.valid,
    )
    are_convex = [*chain.from_iterable(partition.ask("begin", shared, keep=True))]
    if not are_convex:
        raise SparseCRFError(Errors.SC356)
    return PartitionedLoss(partition, index, len(labels), is_convex=all(are_convex))


def _check_gold(partition: Partition, labels: Sequence[str], valid: Mask) -> None:
    """See `check_gold`; positions are those in the whole corpus."""
    n_sequences = n_tokens = 0
    for invalid, number, (sequences, tokens) in partition.ask("find_invalid", valid):
        if invalid is not None:
            invalid = invalid._replace(
                sequence=invalid.sequence + n_sequences, token=invalid.token + n_tokens
            )
            raise InvalidGoldError(invalid, number, labels)
        n_sequences += sequences
        n_tokens += tokens
