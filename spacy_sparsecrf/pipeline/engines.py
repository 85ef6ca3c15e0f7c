"""Where a training run computes: in the threads of this process, or in other processes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from spacy.language import Language
from spacy.training import Example

from ..corpus.arrays import Memory
from ..features.coverage import Coverage
from ..registry import crf_engines
from .compiling import Compiled, LabelIds, compile_corpus
from .settings import Features, Setup


class Job(NamedTuple):
    """What an engine is to compile.

    setup: of the component; read: what its features are read by; label_ids: numbers the labels;
    store: where the corpus is to be; nlp: the pipeline, or None; shards: patterns of files, none
    for the training corpus of the config; coverage: what features have read.
    """

    setup: Setup
    read: Features
    label_ids: LabelIds
    store: Memory
    nlp: Language | None
    shards: Sequence[str]
    coverage: Coverage


class Engine(Protocol):
    """What reads a corpus, and holds it while it is learnt from."""

    def compile(self, examples: Iterable[Example], job: Job) -> Compiled:
        """Read a corpus; examples: of it, which need not be looked at where it is in files."""
        ...


@crf_engines("spacy_sparsecrf.Threads.v1")
@dataclass(frozen=True)
class Threads:
    """The threads of this process, as many as the component's `n_threads` says."""

    def compile(self, examples: Iterable[Example], job: Job) -> Compiled:
        """Read the examples; see `compile_corpus`."""
        return compile_corpus(examples, job.read, job.setup, job.label_ids, job.store)
