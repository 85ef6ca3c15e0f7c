"""Engines of training runs: threads of this process, or other processes."""

from copy import deepcopy
from dataclasses import dataclass
from typing import ClassVar, Protocol

from ..crf.parallel import WorkerPool
from ..registry import crf_engines
from .encoding import EncodedExamples, Job


class Engine(Protocol):
    """Reads a corpus in files, and holds it during training.

    divides: whether it reads the files of [training] train_corpus even if no shards are given.
    """

    divides: ClassVar[bool]

    def compile(self, job: Job) -> EncodedExamples:
        """Divide a corpus in files among workers, which encode and keep their parts."""
        ...


@crf_engines("spacy_sparsecrf.Threads.v1")
@dataclass(frozen=True)
class Threads:
    """Trains in `n_threads` threads of this process, a setting of the component."""

    divides: ClassVar[bool] = False

    def compile(self, job: Job) -> EncodedExamples:
        """Encode a corpus in shards. RAISES: SparseCRFError also for settings without shards."""
        from ..distributed.gathering import divide

        # The worker gets a copy of the vocab, as in other processes: this vocab learns no words, so
        # that saved files are identical.
        n_threads = job.setup.settings.n_threads
        return divide(job, n_threads, lambda make: WorkerPool(1, deepcopy(make)))
