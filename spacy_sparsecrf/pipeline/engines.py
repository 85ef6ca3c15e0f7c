"""Engines of training runs: threads of this process, or other processes."""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Protocol

from spacy.training import Example

from ..parallel import LocalWorkerPool
from ..registry import crf_engines
from .reader import EncodedExamples, Job, encode_corpus


class Engine(Protocol):
    """Reads a corpus, and holds it during training."""

    def compile(self, examples: Iterable[Example], job: Job) -> EncodedExamples:
        """Encode a corpus. examples: its Examples, may be ignored if the corpus is in files."""
        ...


@crf_engines("spacy_sparsecrf.Threads.v1")
@dataclass(frozen=True)
class Threads:
    """Trains in `n_threads` threads of this process, a setting of the component."""

    def compile(self, examples: Iterable[Example], job: Job) -> EncodedExamples:
        """Encode the examples (see `encode_corpus`), or a corpus in shards.

        RAISES: SparseCRFError also for settings that do not support shards.
        """
        if not job.shards:
            return encode_corpus(examples, job)
        from ..distributed.gathering import divide

        # The worker gets a copy of the vocab, as in other processes: this vocab learns no words, so
        # that saved files are identical.
        n_threads = job.setup.settings.n_threads
        return divide(job, n_threads, lambda make: LocalWorkerPool(1, deepcopy(make)))
