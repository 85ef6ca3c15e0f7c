"""Engines of training runs: threads of this process, or other processes."""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Protocol

from spacy.training import Example

from ..parallel import LocalWorkerPool
from ..registry import crf_engines
from .add_ons import partitioning
from .encoding import EncodedExamples, Job, encode_corpus


class Engine(Protocol):
    """Reads a corpus, and holds it during training."""

    def compile(self, examples: Iterable[Example], job: Job) -> EncodedExamples:
        """Read a corpus; examples: of it, which need not be looked at where it is in files."""
        ...


@crf_engines("spacy_sparsecrf.Threads.v1")
@dataclass(frozen=True)
class Threads:
    """The threads of this process, as many as the component's `n_threads` says."""

    def compile(self, examples: Iterable[Example], job: Job) -> EncodedExamples:
        """Read the examples (see `encode_corpus`), or divide the corpus that is in shards.

        RAISES: SparseCRFError also for settings with which no corpus can be divided.
        """
        if not job.shards:
            return encode_corpus(examples, job.read, job.setup, job.label_ids, job.store)
        # A vocab of its own, as others have: ours learns no words, so that all that is saved is
        # the same bytes.
        n_threads = job.setup.settings.n_threads
        found: EncodedExamples = partitioning().divide(
            job, n_threads, lambda make: LocalWorkerPool(1, deepcopy(make))
        )
        return found
