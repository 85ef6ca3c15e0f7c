"""Encoding of Examples: of the corpus in `initialize`, and of each update without a corpus."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import shake_128
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch

from ..crf.corpus.builder import CorpusBuilder
from ..crf.corpus.encoded import MISSING, EncodedCorpus, Observations
from ..crf.corpus.numbering import Floats, Ints, Longs, Mask, Singles
from ..errors import Errors, SparseCRFError
from ..progress import Task
from .data_checks import DataChecks, Gold
from .features import word_labels
from .features.featurizer import PlanFeaturizer
from .features.naming import NameRecord
from .features.word_labels import WordCounts, WordLabelTable
from .prediction import read_docs
from .settings import Setup
from .targets.scheme import OUTSIDE
from .targets.spans import SpanTarget
from .targets.target import Not, Target

if TYPE_CHECKING:
    from ..distributed.partitioned_loss import Partition


BATCH_SIZE = 512  # Docs featurised at once: bounds the memory of hashes, at no cost


class EncodedExamples(NamedTuple):
    """The corpus of some examples.

    labels: names of the labels; a gold label id is a position here.
    corpus: the encoded corpus, or None if no token has a gold label.
    partition: the workers that hold the sequences; `corpus` is then an index only; or None.
    """

    labels: tuple[str, ...] = ()
    corpus: EncodedCorpus | None = None
    partition: "Partition | None" = None


class LabelIds:
    """Maps gold labels to ids; adds new labels unless the labels are fixed.

    name: of the component, for the error message.
    labels: known labels, in order.
    fixed: whether an unknown label is an error; otherwise the final labels are sorted.
    unknown: the message of that error.
    """

    def __init__(
        self, name: str, labels: Iterable[str], *, fixed: bool, unknown: str = Errors.SC206
    ) -> None:
        self._name = name
        self._ids = {label: i for i, label in enumerate(labels)}
        self._sets: dict[tuple[int, ...] | Not, int] = {}
        # Ids of gold labels, which may be missing, or several.
        self._gold: dict[Any, int] = {**self._ids, None: MISSING, "": MISSING}
        self._unknown = unknown
        self.is_fixed = fixed

    @property
    def names(self) -> list[str]:
        """The labels so far, by id."""
        return list(self._ids)

    def add(self, labels: Iterable[str]) -> None:
        """Add the labels of other parts of the corpus."""
        for label in labels:
            self._gold[label] = self._ids.setdefault(label, len(self._ids))

    def encode(self, gold: Gold, doc: Doc) -> Ints:
        """Return the ids of the gold labels of a Doc's tokens; negative ids as in `EncodedCorpus`.

        gold: None, "" or () if a label is missing; a tuple if any of several labels may be right,
            `Not` if all but some.
        RAISES: SparseCRFError for an unknown label if the labels are fixed.
        """
        number_of = self._gold
        for label in dict.fromkeys(gold):
            if label is not None and label not in number_of:
                number_of[label] = self._number(label, doc)
        return np.array([number_of[label] for label in gold], dtype=np.int32)

    def _number(self, label: str | tuple[str, ...] | Not, doc: Doc) -> int:
        """Return the id of a gold label, which may be new."""
        if isinstance(label, Not):
            return -2 - self._sets.setdefault(label, len(self._sets))
        if isinstance(label, tuple):
            ids = sorted({self._number(name, doc) for name in label if name})
            if len(ids) > 1:
                return -2 - self._sets.setdefault(tuple(ids), len(self._sets))
            return ids[0] if ids else MISSING
        if label not in self._ids and self.is_fixed:
            values = {"label": label, "known": ", ".join(self._ids), "text": doc.text[:60]}
            raise SparseCRFError(self._unknown.format(name=self._name, **values))
        return self._ids.setdefault(label, len(self._ids))

    def final(self, target: Target) -> tuple[tuple[str, ...], Ints, Mask]:
        """Add the labels that the target requires, order all labels, and number them.

        RETURNS: the labels [Y] in their final order; the final ids of gold labels, an array that
            their ids index, negative ones from its end; and sets [Q, Y]. A set of all labels, or
            of none, counts as a missing label, and a set of one as this label.
        """
        labels = target.complete(tuple(self._ids))
        if not self.is_fixed:
            labels = tuple(sorted(labels))
        position = dict(zip(labels, range(len(labels)), strict=True))
        final_ids = np.array([*map(position.__getitem__, self._ids)], np.int32)
        sets = np.zeros((len(self._sets), len(labels)), np.bool_)
        for allowed, q in self._sets.items():
            if isinstance(allowed, Not):
                sets[q] = [label not in allowed.labels for label in labels]
            else:
                sets[q, final_ids[list(allowed)]] = True
        is_missing = sets.all(axis=1) | ~sets.any(axis=1)
        of_sets = np.where(is_missing, MISSING, -2 - np.arange(len(sets)))
        is_one = sets.sum(axis=1) == 1
        of_sets[is_one] = sets[is_one].nonzero()[1]
        return labels, np.concatenate((final_ids, of_sets[::-1], [MISSING])).astype(np.int32), sets


class Job(NamedTuple):
    """The arguments to encode a corpus.

    setup: of the component; label_ids: maps labels to ids; checks: counts examples; record: reads
    the Docs, and names features later, or None; nlp: the pipeline, or None; shards: file patterns
    of a partitioned corpus, empty if examples are given; upstream: pipes that annotate its Docs;
    joins: whether short Docs may be joined.
    """

    setup: Setup
    label_ids: LabelIds
    checks: DataChecks
    record: NameRecord | None = None
    nlp: Language | None = None
    shards: Sequence[str] = ()
    upstream: Sequence[Any] = ()
    joins: bool = True


def make_label_ids(
    setup: Setup, given: Sequence[str] | None, added: Sequence[str], learnt: Sequence[str]
) -> LabelIds:
    """Create the label ids of a component.

    given: all labels, in order, or None; added: by `add_label`; learnt: labels of earlier weights.
    RAISES: SparseCRFError if given labels lack a learnt label, or are not non-empty strings.
    """
    name = setup.name
    if given is None:
        return LabelIds(name, dict.fromkeys([*added, *learnt]), fixed=False)
    check_strings(name, given)
    known = list(dict.fromkeys([*setup.target.complete(given), *added]))
    lost = [label for label in learnt if label not in known]
    if lost:
        raise SparseCRFError(Errors.SC208.format(name=name, labels=", ".join(lost)))
    return LabelIds(name, known, fixed=True)


def check_strings(name: str, labels: Iterable[object]) -> None:
    """Raise SparseCRFError for labels of component `name` that are not non-empty strings."""
    for label in labels:
        if not isinstance(label, str) or not label:
            raise SparseCRFError(Errors.SC212.format(name=name, label=label))


def labels_to_add(target: Target, label: str, labels: Sequence[str]) -> list[str]:
    """Return the new labels of tokens for a label, or a type of spans, that users add.

    labels: of the component. RAISES: SparseCRFError for a label that the target cannot write.
    """
    types = {*target.names_of(labels)}
    # B-cell is a type if there are others, and B-PER is a label if there is a type PER.
    is_label = isinstance(target, SpanTarget) and target.scheme.is_label(label)
    is_label = is_label and types.issuperset(target.names_of([label]) if types else ())
    needed = target.complete([label]) if is_label else target.labels_of(label)
    new = [name for name in dict.fromkeys(needed) if name not in labels]
    for name in new:
        target.check_label(name)
    return new


def encode_corpus(examples: Iterable[Example], job: Job) -> EncodedExamples:
    """Encode examples as arrays, in a single pass.

    examples: features and sequences are read from predicted Docs, gold labels and weights from
        reference Docs.
    RAISES: SparseCRFError for an unknown gold label if labels are fixed, and for an invalid weight
        of a Doc.
    """
    reader = ExampleReader(job)
    reader.read(Task("Reading corpus", "docs", items=examples))
    with Task("Encoding corpus"):
        return reader.encoded()


def reads_word_labels(setup: Setup) -> bool:
    """Return whether templates read the labels that words have in the training data."""
    return bool(getattr(setup.features, "reads_word_labels", False))


def record_of(setup: Setup) -> NameRecord | None:
    """Return a record of the readings of Docs, which can name features; None if not needed."""
    features: Any = setup.features
    reads = reads_word_labels(setup) or bool(getattr(features, "stacked", ()))
    keeps = reads or setup.settings.learning.store_feature_names
    return NameRecord.of(features) if keeps else None


def with_negatives(
    labels: Gold, example: Example, target: SpanTarget, rate: float, seed: int
) -> Gold:
    """Label a share of the unannotated tokens of a partly annotated Doc with "O".

    A hash of seed, words and position selects the tokens, so that the selection does not depend on
    the order of Docs or on threads. (Li, Liu & Shi 2021 draw new negatives in each pass.)
    labels: of the predicted tokens; rate: the share, from 0 to 1; seed: >= 0.
    """
    unknown = target.unknown(example)
    if unknown is None:
        return labels
    words = example.predicted.to_array("ORTH").astype("<u8").tobytes()
    stream = shake_128(seed.to_bytes(8 + seed.bit_length() // 8, "little") + words)
    draws = np.frombuffer(stream.digest(4 * len(unknown)), "<u4") < rate * 2.0**32
    chosen = (unknown & draws).tolist()
    return [
        OUTSIDE if is_chosen else label for is_chosen, label in zip(chosen, labels, strict=True)
    ]


class ExampleReader:
    """Reads examples in batches; job: see there.

    builder: the sequences. If features read the labels of words, which are not known before all
    examples are read, tokens wait in the record until `encode`; `waits` is then true.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self.builder = CorpusBuilder()
        # Without a record, the labels that words had in an earlier corpus are used.
        self.waits = job.record is not None and reads_word_labels(job.setup)
        self._record = cast("NameRecord", job.record)
        self._waiting: list[tuple[Ints, Floats | None, list[Singles]]] = []
        settings, reads_doc = job.setup.settings, bool(getattr(job.setup.features, "stacked", ()))
        # Weights are of a Doc and its labels, a second stage reads other tokens of a Doc, and the
        # labels of two Docs may not be valid in one sequence.
        learning = settings.learning
        alone = reads_doc or learning.doc_weight or learning.label_weights or learning.constrained
        self._joins = job.joins and settings.sequences == "docs" and not alone

    def read(self, examples: Iterable[Example]) -> None:
        """Add examples; Docs of weight 0 are left out."""
        checks, learning = self._job.checks, self._job.setup.settings.learning
        for batch in minibatch(examples, BATCH_SIZE):  # type: ignore[no-untyped-call]
            checks.n["examples"] += len(batch)
            weights = None
            if learning.doc_weight:
                weights = self._weights(batch)
                batch, weights = [*compress(batch, weights)], weights[weights > 0.0]
            gold = [*map(self._read_gold, batch)]
            docs = [example.predicted for example in batch]
            if any(map(len, docs)):
                of_tokens = None if weights is None else np.repeat(weights, [*map(len, docs)])
                self._add(docs, gold, of_tokens)

    def _add(self, docs: Sequence[Doc], gold: Sequence[Ints], weights: Floats | None) -> None:
        """Add the words of Docs; gold: labels of each; weights: [N], of all tokens."""
        setup, checks, labels = self._job.setup, self._job.checks, np.concatenate(gold)
        alone = None
        if self._joins:
            # The warm start skips a sequence if labels of words are missing.
            missing = [np.flatnonzero(ids < 0).tolist() for ids in gold]
            alone = {
                doc
                for doc, tokens in zip(docs, missing, strict=True)
                if not all(doc[i].is_space for i in tokens)
            }
        parts, division = read_docs(setup, docs, self._job.record, alone)
        if division.kept is not None:
            labels = labels[division.kept]
            weights = None if weights is None else weights[division.kept]
        checks.add_words(setup, docs, division.ends)
        features = setup.features
        if not isinstance(features, PlanFeaturizer):
            self._encode(parts[0], labels, weights)
            return
        checks.add_values(features.plan.watched, parts)
        if self.waits:
            self._waiting.append((labels, weights, [part.values for part in parts]))
        else:
            self._encode(features.observe(parts), labels, weights)

    def _encode(self, read: Observations, labels: Ints, weights: Floats | None) -> None:
        """Add observations; labels, weights: [N], of their tokens."""
        if weights is not None:
            # A sequence without tokens counts once.
            has_tokens, of_tokens = np.diff(read.offsets) > 0, weights
            weights = np.ones(len(has_tokens))
            weights[has_tokens] = of_tokens[read.offsets[:-1][has_tokens]]
        self.builder.add(read, labels, weights)

    def _weights(self, batch: Sequence[Example]) -> Floats:
        """Return the weights of Docs. RAISES: SparseCRFError if one is not a number >= 0."""
        name, attribute = self._job.setup.name, self._job.setup.settings.learning.doc_weight
        if not Doc.has_extension(attribute):
            raise SparseCRFError(Errors.SC354.format(name=name, attribute=attribute))
        is_set = Doc.get_extension(attribute)[2] is not None
        key: Any = ("._.", attribute, None, None)
        weights = []
        for example in batch:
            doc = example.reference
            value = doc._.get(attribute)
            is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
            if not is_number or not math.isfinite(value) or value < 0:
                values = {"name": name, "attribute": attribute, "value": value}
                raise SparseCRFError(Errors.SC355.format(**values, text=doc.text[:60]))
            self._job.checks.n["unweighted"] += not (is_set or key in doc.user_data)
            weights.append(float(value))
        return np.array(weights)

    def _read_gold(self, example: Example) -> Ints:
        """Return the gold label of each predicted token: [tokens] int32."""
        setup, doc = self._job.setup, example.predicted
        target, learning = setup.target, setup.settings.learning
        labels = target.gold(example)
        if len(labels) != len(doc):
            counts = {"n": len(labels), "n_tokens": len(doc), "text": doc.text[:60]}
            raise SparseCRFError(Errors.SC226.format(name=setup.name, **counts))
        self._job.checks.add(setup, example, labels)
        if isinstance(target, SpanTarget) and learning.negative_rate and None in labels:
            labels = with_negatives(
                labels,
                example,
                target,
                rate=learning.negative_rate,
                seed=learning.negative_seed,
            )
        return self._job.label_ids.encode(labels, doc)

    def encoded(self) -> EncodedExamples:
        """Return the encoded examples."""
        setup, checks = self._job.setup, self._job.checks
        if self._waiting:
            start = np.zeros(2, np.int64)
            table = word_labels.learn_word_labels([self.word_counts(start, self.sizes)])
            setup.features.take_word_labels(table.classes)  # type: ignore[attr-defined]
            self.encode(table, start, self.sizes)
        labels, numbers, sets = self._job.label_ids.final(setup.target)
        checks.n["missing"] = self.builder.relabel(numbers)
        if checks.n["missing"] == checks.n["tokens"]:
            return EncodedExamples(labels)
        corpus = self.builder.build(setup.settings.learning.min_freq)
        return EncodedExamples(labels, replace(corpus, sets=sets))

    # Tokens that wait. before, whole: see `word_labels.folds_of`

    @property
    def sizes(self) -> Longs:
        """The numbers of Docs and of sequences: [2]."""
        return word_labels.sizes_of(self._record.word_tokens)

    def word_counts(self, before: Longs, whole: Longs) -> WordCounts:
        """Count the labels of words."""
        parts, names = self._record.word_tokens, self._job.label_ids.names
        labels = np.concatenate([np.zeros(0, np.int32), *(ids for ids, *_ in self._waiting)])
        folds = word_labels.folds_of(parts, before, whole)
        return word_labels.count_word_labels(parts, labels, names, folds)

    def encode(self, table: WordLabelTable, before: Longs, whole: Longs) -> None:
        """Add the tokens, with the labels of words that they read."""
        record, features = self._record, self._job.setup.features
        assert isinstance(features, PlanFeaturizer)
        record.insert_word_labels(table, word_labels.folds_of(record.word_tokens, before, whole))
        parts = record.parts()
        for labels, weights, values in self._waiting:
            read = [next(parts)._replace(values=of_part) for of_part in values]
            self._encode(features.observe(read), labels, weights)
