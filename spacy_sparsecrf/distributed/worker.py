"""Workers that partition a corpus.

A worker reads its files, and returns the data from which the index is merged. It then receives the
index, encodes the sequences of its shards, and returns partial sums over them.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens.underscore import Underscore

from .. import compatible
from ..crf.corpus import index
from ..crf.corpus.encoded import MISSING, EncodedCorpus
from ..crf.corpus.numbering import Hashes, Ints, Longs, find_keys
from ..crf.corpus.transform import sliced
from ..crf.parallel import Workers
from ..pipeline.annotating import annotated
from ..pipeline.corpus_files import read_files
from ..pipeline.data_checks import DataChecks
from ..pipeline.encoding import ExampleReader, Job, LabelIds, record_of
from ..pipeline.facts import facts_of
from ..pipeline.features.naming import NameRecord
from ..pipeline.features.word_labels import WordCounts, WordLabelTable, merged_counts
from ..pipeline.settings import Setup
from ..progress import Task
from .partition import WorkerShard

_REAL_VALUES = "real-valued features ([components.NAME.features] vector or value(...))"


class Brief(NamedTuple):
    """The settings of a worker.

    language, vocab, tokenizer: of the pipeline that reads; setup: of the component; upstream: pipes
    that annotate its Docs; block: config of the corpus reader; files: of the whole corpus, in
    order; label_ids: of the labels known so far; extensions: of Docs, spans and tokens.
    """

    language: type[Language]
    vocab: Any
    tokenizer: Any
    setup: Setup
    upstream: Sequence[Any]
    block: dict[str, Any]
    files: list[Path]
    label_ids: LabelIds
    extensions: Any


class Survey(NamedTuple):
    """A worker's summary of the files that it has read.

    lengths: number of tokens of each sequence, [S], for each file; rows: distinct rows of features
    of pairs for each file; labels: that occur; checks: counts of examples and tokens; n_features:
    distinct features of each file, summed; start_label: see `EncodedCorpus`.
    """

    lengths: list[Longs]
    rows: list[index.ConjoinedRows]
    labels: list[str]
    checks: DataChecks
    n_features: int
    start_label: bool


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


class Worker(WorkerShard):
    """Reads files of a corpus, and computes on some of its sequences. brief: see `Brief`."""

    def __init__(self, brief: Brief) -> None:
        Underscore.load_state(brief.extensions)
        self._brief = brief
        self._nlp = brief.language(brief.vocab)
        self._nlp.tokenizer = brief.tokenizer
        self._label_ids = deepcopy(brief.label_ids)
        # By number of file. Tokens may wait for the labels of words.
        self._read: dict[int, tuple[ExampleReader, DataChecks]] = {}
        self._parts: dict[int, index.CorpusPart] = {}
        self._records: dict[int, NameRecord] = {}
        self._word_labels: tuple[WordLabelTable, Longs] | None = None
        self.workers = Workers(brief.setup.settings.n_threads)

    def sizes(self, first: int, last: int) -> Longs:
        """Read the files first:last. RETURNS: [F, 2], the `word_labels.sizes_of` each."""
        sizes = [self._reader(number).sizes for number in range(first, last)]
        return np.array(sizes, np.int64).reshape(-1, 2)

    def word_counts(self, first: int, last: int, starts: Longs) -> WordCounts:
        """Count the labels of words in the files first:last. starts: see `take_word_labels`."""
        waiting = [(starts[number], self._reader(number)) for number in range(first, last)]
        return merged_counts([reader.word_counts(start, starts[-1]) for start, reader in waiting])

    def take_word_labels(self, table: WordLabelTable, starts: Longs) -> None:
        """Receive the labels of words. starts: [F + 1, 2], sizes of the corpus before each file."""
        self._word_labels = table, starts

    def survey(self, first: int, last: int) -> Survey:
        """Read the files first:last."""
        checks = DataChecks()
        for number in range(first, last):
            checks.join(self._encode(number))
        parts = [self._parts[number] for number in range(first, last)]
        return Survey(
            [np.diff(part.sequences.offsets) for part in parts],
            [part.rows for part in parts],
            self._label_ids.names,
            checks,
            sum(len(part.features.keys) for part in parts),
            all(part.sequences.start_label for part in parts),
        )

    def _reader(self, number: int) -> ExampleReader:
        """Read a file, unless its tokens are waiting."""
        if number in self._read:
            return self._read[number][0]
        brief, setup = self._brief, self._brief.setup
        named = setup.settings.learning.store_feature_names
        record = record_of(setup)
        if record is not None and named:
            self._records[number] = record
        checks = DataChecks()
        reader = ExampleReader(Job(setup, self._label_ids, checks, record))
        examples = read_files(self._nlp, brief.block, brief.files[number : number + 1])
        examples = Task("Reading corpus", "docs", items=examples)
        reader.read(annotated(examples, brief.upstream) if brief.upstream else examples)
        self._read[number] = reader, checks
        return reader

    def _encode(self, number: int) -> DataChecks:
        """Encode a file. RETURNS: counts of its examples."""
        reader = self._reader(number)
        if reader.waits:
            assert self._word_labels is not None
            table, starts = self._word_labels
            reader.encode(table, starts[number], starts[-1])
        if len(reader.builder.value_keys):
            setup, files = self._brief.setup, self._brief.files
            facts = facts_of(setup, shards=files, engine=setup.engine, real_values=_REAL_VALUES)
            compatible.check(facts, setup.name)
        self._parts[number] = reader.builder.part()
        return self._read.pop(number)[1]

    def _part(self, number: int) -> index.CorpusPart:
        """Return a file's part; it is missing, and read, if the worker replaces a lost one."""
        if number not in self._parts:
            self._encode(number)
        return self._parts[number]

    def features(self, first: int, last: int, low: int, high: int) -> index.FeatureCounts:
        """Return the features of the files first:last with hashes from low to high, inclusive."""
        counts = [self._part(n).features.between(low, high, n) for n in range(first, last)]
        return index.merged_features(counts)

    def encode(self, plan: EncodingPlan, first: int, last: int) -> EncodedCorpus:
        """Return the sequences first:last of the whole corpus."""
        self._label_ids.add(plan.labels)
        corpora = []
        for number, (begin, end) in enumerate(pairwise(plan.starts.tolist())):
            low, high = max(first, begin), min(last, end)
            if low >= high:
                continue
            part = self._part(number)
            numbers = find_keys(plan.whole.unigram_keys, part.features.keys).astype(np.int32)
            of_file = part.encoded(plan.whole, numbers, plan.contexts[number])
            corpora.append(sliced(of_file, low - begin, high - begin))
        start_label = all(corpus.start_label for corpus in corpora)
        corpus = index.joined(plan.whole, corpora, start_label)
        target = self._brief.setup.target
        self._labels, final_ids, sets = self._label_ids.final(target)
        return replace(corpus, labels=final_ids[corpus.labels], sets=sets)

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
        self._parts.clear()
        return self._labels, int((self.corpus.labels == MISSING).sum())

    def names(self, keys: Hashes) -> dict[int, str]:
        """Return the names, by hash, of the features that occur in the files of this worker."""
        names: dict[int, str] = {}
        for record in self._records.values():
            nameless = [key for key in keys.tolist() if key not in names]
            names |= record.names(np.array(nameless, np.uint64))
        return names
