"""Workers that partition a corpus.

A worker reads its files, and returns the data from which the index is merged. It then receives the
index, encodes the sequences of its shards, and returns partial sums over them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens.underscore import Underscore

from ..corpus import index
from ..corpus.encoded import MISSING, EncodedCorpus
from ..corpus.numbering import Hashes, Ints, Longs
from ..corpus.transform import sliced
from ..features.coverage import Coverage, counted
from ..features.naming import NameRecord
from ..parallel import Workers
from ..pipeline.annotating import annotated_by
from ..pipeline.corpus_files import read_files
from ..pipeline.reader import EncodedExamples, LabelIds, read_part
from ..pipeline.settings import Setup
from ..progress import track
from .training import WorkerShard


class Brief(NamedTuple):
    """The settings of a worker.

    language, vocab, tokenizer: of the pipeline that reads; setup: of the component; upstream: pipes
    that annotate its Docs; block: config of the corpus reader; files: of the whole corpus, in
    order; labels, fixed: see `LabelIds`; extensions: of Docs, spans and tokens; named: whether to
    record feature names.
    """

    language: type[Language]
    vocab: Any
    tokenizer: Any
    setup: Setup
    upstream: Sequence[Any]
    block: dict[str, Any]
    files: list[Path]
    labels: list[str]
    fixed: bool
    extensions: Any
    named: bool


@dataclass
class Survey:
    """A worker's summary of the files that it has read.

    lengths: number of tokens of each sequence, [S], for each file; rows: distinct rows of features
    of pairs for each file, None if it has no tokens; labels: that occur; compiled: counts of
    examples and tokens; coverage: of attributes that features read; n_features: distinct features
    of each file, summed; start_label: see `EncodedCorpus`.
    """

    lengths: list[Longs] = field(default_factory=list)
    rows: list[index.ConjoinedRows | None] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    compiled: EncodedExamples = field(default_factory=EncodedExamples)
    coverage: Coverage = field(default_factory=Coverage)
    n_features: int = 0
    start_label: bool = True


class EncodingPlan(NamedTuple):
    """Data that all workers need to encode sequences.

    labels: of the whole corpus, in any order; whole: its index; contexts: contexts of the rows of
    each file; starts: [F + 1] int64, first sequence of each file; shard_ptr: [L + 1] int64, first
    sequence of each shard.
    """

    labels: list[str]
    whole: index.Index
    contexts: list[Ints]
    starts: Longs
    shard_ptr: Longs


class _File(NamedTuple):
    part: index.CorpusPart | None
    record: NameRecord | None


class Worker(WorkerShard):
    """Reads files of a corpus, and computes on some of its sequences. brief: see `Brief`."""

    def __init__(self, brief: Brief) -> None:
        Underscore.load_state(brief.extensions)
        self._brief = brief
        self._nlp = brief.language(brief.vocab)
        self._nlp.tokenizer = brief.tokenizer
        self._label_ids = LabelIds(brief.setup.name, brief.labels, fixed=brief.fixed)
        self._files: dict[int, _File] = {}
        self.workers = Workers(brief.setup.settings.n_threads)

    def survey(self, first: int, last: int) -> Survey:
        """Read the files first:last."""
        survey = Survey()
        with counted(self._brief.setup.features) as survey.coverage:
            for number in range(first, last):
                survey.compiled.join(self._read(number))
                part = self._files[number].part
                lengths = np.zeros(0, np.int64) if part is None else part.lengths
                survey.lengths.append(lengths)
                survey.rows.append(None if part is None else part.rows)
                if part is not None:
                    survey.n_features += len(part.features.keys)
                    survey.start_label = part.start_label
        survey.labels = self._label_ids.names
        return survey

    def _read(self, number: int) -> EncodedExamples:
        brief, setup = self._brief, self._brief.setup
        record = NameRecord.of(setup.features) if brief.named else None
        examples = read_files(self._nlp, brief.block, brief.files[number : number + 1])
        examples = annotated_by(brief.upstream, track(examples, "Reading corpus", "docs"))
        found, part = read_part(examples, record or setup.features, setup, self._label_ids)
        self._files[number] = _File(part, record)
        return found

    def features(self, first: int, last: int, low: int, high: int) -> index.FeatureCounts:
        """Return the features of the files first:last with hashes from low to high, inclusive.

        Files that are missing, because a worker was replaced after its survey, are read here.
        """
        for number in range(first, last):
            if number not in self._files:
                self._read(number)
        parts = [(number, self._files[number].part) for number in range(first, last)]
        features = [part.features.of_part(number) for number, part in parts if part is not None]
        return index.merged_features([own.between(low, high) for own in features])

    def encode(self, plan: EncodingPlan, first: int, last: int) -> EncodedCorpus:
        """Return the sequences first:last of the whole corpus; missing files are read."""
        self._label_ids.add(plan.labels)
        found = []
        for number, (begin, end) in enumerate(pairwise(plan.starts.tolist())):
            low, high = max(first, begin), min(last, end)
            if low >= high:
                continue
            if number not in self._files or self._files[number].part is None:
                self._read(number)
            part = self._files[number].part
            assert part is not None
            whole = part.encoded(plan.whole, plan.contexts[number])
            found.append(sliced(whole, low - begin, high - begin))
        corpus = index.joined(found) if found else index.without_sequences(plan.whole)
        target = self._brief.setup.target
        self._labels, labels, sets = self._label_ids.final(corpus.labels, target)
        return replace(corpus, labels=labels, sets=sets)

    def load(
        self, plan: EncodingPlan, first: int, last: int, n: int
    ) -> tuple[tuple[str, ...], int]:
        """Encode the sequences of the shards first:last.

        n: number of first sequences of the corpus to encode too. RETURNS: the labels of the whole
        corpus, and the number of tokens of the shards without a gold label.
        """
        self.first, self.shard_ptr = first, plan.shard_ptr[first : last + 1]
        self.corpus = self.encode(plan, *self.shard_ptr[[0, -1]].tolist())
        self.shard_ptr = self.shard_ptr - self.shard_ptr[0]
        self.beginning = self.encode(plan, 0, n) if n else None
        for number, file in self._files.items():
            self._files[number] = file._replace(part=None)
        return self._labels, int((self.corpus.labels == MISSING).sum())

    def names(self, keys: Hashes) -> dict[int, str]:
        """Return the names, by hash, of the features that occur in the files of this worker."""
        found: dict[int, str] = {}
        for file in self._files.values():
            if file.record is not None:
                wanted = [key for key in keys.tolist() if key not in found]
                found |= file.record.names(np.array(wanted, np.uint64))
        return found
