"""Encoding of Examples: of the corpus in `initialize`, and of each update without a corpus."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import shake_128
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch

from ..corpus.builder import CorpusBuilder
from ..corpus.encoded import MISSING, EncodedCorpus, Observations
from ..errors import Errors, SparseCRFError
from ..features.coverage import Coverage
from ..features.word_labels import (
    WordCounts,
    WordLabelTable,
    count_word_labels,
    folds_of,
    learn_word_labels,
    sizes_of,
)
from ..progress import progress, track
from ..targets.base import Target
from ..targets.scheme import OUTSIDE
from ..targets.spans import SpanGroups, SpanTarget
from .annotating import observed_cut
from .data_checks import Gold, GoldCounts
from .settings import Features, Setup

if TYPE_CHECKING:
    from ..distributed.loss import Partition
    from ..features.featurizer import Featurizer
    from ..features.naming import NameRecord

BATCH_SIZE = 512  # Docs featurised at once: bounds the memory of hashes, at no cost


@dataclass
class EncodedExamples(GoldCounts):
    """The corpus of some examples, and their counts.

    labels: names of the labels; a gold label id is a position here.
    corpus: the encoded corpus, or None if no token has a gold label.
    docs: the position in the corpus after the last token of each Doc, and the beginning of its
        text; only if gold labels must be valid.
    partition: the workers that hold the sequences; `corpus` is then an index only; or None.
    """

    labels: tuple[str, ...] = ()
    corpus: EncodedCorpus | None = None
    docs: list[tuple[int, str]] = field(default_factory=list)
    partition: "Partition | None" = None

    def join(self, other: GoldCounts) -> None:
        """Add the counts of further examples, and the ends of their Docs."""
        if isinstance(other, EncodedExamples):
            self.docs += [(self.n_tokens + end, text) for end, text in other.docs]
        super().join(other)

    def record_of(self, own: "NameRecord") -> "NameRecord":
        """Return the record of feature names: `own` if the examples were read in this process."""
        return own

    def check(self, setup: Setup) -> None:
        """Check that there are examples, and that the target can write the labels.

        RAISES: SparseCRFError.
        """
        if not self.n_examples:
            raise SparseCRFError(Errors.SC217.format(name=setup.name))
        if not self.n_used:
            raise SparseCRFError(Errors.SC356)
        for label in self.labels:
            setup.target.check_label(label)
        if self.labels:
            setup.valid_transitions(self.labels)


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
        self._sets: dict[tuple[int, ...], int] = {}
        self._fixed = fixed
        self._unknown = unknown

    @property
    def is_fixed(self) -> bool:
        """Whether an unknown label is an error."""
        return self._fixed

    @property
    def names(self) -> list[str]:
        """The labels so far, by id."""
        return list(self._ids)

    def add(self, labels: Iterable[str]) -> None:
        """Add the labels of other parts of the corpus."""
        for label in labels:
            self._ids.setdefault(label, len(self._ids))

    def encode(self, gold: Gold, doc: Doc) -> list[int]:
        """Return the ids of the gold labels of a Doc's tokens; negative ids as in `EncodedCorpus`.

        gold: None, "" or () if a label is missing; a tuple if any of several labels may be right.
        RAISES: SparseCRFError for an unknown label if the labels are fixed.
        """
        return [self._encode(label, doc) if label else MISSING for label in gold]

    def _encode(self, label: str | tuple[str, ...], doc: Doc) -> int:
        if isinstance(label, tuple):
            ids = sorted({self._encode(each, doc) for each in label if each})
            if len(ids) > 1:
                return -2 - self._sets.setdefault(tuple(ids), len(self._sets))
            return ids[0] if ids else MISSING
        if label not in self._ids and self._fixed:
            values = {"label": label, "known": ", ".join(self._ids), "text": doc.text[:60]}
            raise SparseCRFError(self._unknown.format(name=self._name, **values))
        return self._ids.setdefault(label, len(self._ids))

    def final(
        self, gold: NDArray[np.int32], target: Target
    ) -> tuple[tuple[str, ...], NDArray[np.int32], NDArray[np.bool_]]:
        """Add the labels that the target requires, order all labels, and renumber gold labels.

        gold: [N] int32, of `encode`.
        RETURNS: the labels [Y] in their final order; gold with their final ids; and sets [Q, Y].
            A set of all labels counts as a missing label.
        """
        known = target.complete(tuple(self._ids))
        labels = known if self._fixed else tuple(sorted(known))
        position = {label: i for i, label in enumerate(labels)}
        # -1 maps to itself.
        final_ids = np.array([*(position[label] for label in self._ids), MISSING], np.int32)
        sets = np.zeros((len(self._sets), len(labels)), np.bool_)
        for ids, q in self._sets.items():
            sets[q, final_ids[list(ids)]] = True
        found = final_ids[np.maximum(gold, MISSING)]
        several = gold < MISSING
        is_full: NDArray[np.bool_] = np.all(sets, axis=1)
        found[several] = np.where(is_full[-2 - gold[several]], MISSING, gold[several])
        return labels, found, sets


class Job(NamedTuple):
    """The arguments to encode a corpus.

    setup: of the component; read: hashes its features; label_ids: maps labels to ids; nlp: the
    pipeline, or None; shards: file patterns of a partitioned corpus, empty if examples are given;
    upstream: pipes that annotate its Docs; coverage: counts values of attributes.
    """

    setup: Setup
    read: Features
    label_ids: LabelIds
    nlp: Language | None
    shards: Sequence[str]
    upstream: Sequence[Any]
    coverage: Coverage


class ReadCorpus(NamedTuple):
    """A corpus that a component has encoded.

    features: the features that read it; record: record of feature names, or None if features have
    no names; compiled: the corpus; coverage: counts of values of attributes.
    """

    features: Features
    record: "NameRecord | None"
    compiled: EncodedExamples
    coverage: Coverage

    @property
    def namer(self) -> "NameRecord | None":
        """The record of feature names, also if other processes have read the corpus."""
        return self.record and self.compiled.record_of(self.record)


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


def check_rows(name: str, found: Observations, n_tokens: int) -> None:
    """Raise SparseCRFError unless features of component `name` have a row for each token."""
    if found.n_tokens != n_tokens:
        raise SparseCRFError(Errors.SC227.format(name=name, n=found.n_tokens, n_tokens=n_tokens))


def checked(name: str, get_examples: Callable[[], Iterable[Example]]) -> Iterator[Example]:
    """Read the examples of component `name`, and check their type."""
    if not callable(get_examples):
        raise SparseCRFError(Errors.SC216.format(name=name, got=type(get_examples)))
    for example in get_examples():
        if not isinstance(example, Example):
            raise SparseCRFError(Errors.SC216.format(name=name, got=type(example)))
        yield example


def with_template_tree(setup: Setup, read: Features) -> Features:
    """Return a feature reader that also records parents of features, if there is a schedule.

    read: hashes the setup's features. RETURNS: `read` itself without a schedule.
    """
    features: Featurizer = setup.features  # type: ignore[assignment]
    stages = setup.settings.learning.stages
    if not stages:
        return read
    from ..features.template_hierarchy import TemplateHierarchy, TemplateTreeRecord

    return TemplateTreeRecord(
        read, features, TemplateHierarchy.of(features.parsed, features.templates, stages)
    )


def encode_corpus(
    examples: Iterable[Example], read: Features, setup: Setup, label_ids: LabelIds
) -> EncodedExamples:
    """Encode examples as arrays, in a single pass.

    examples: features and sequences are read from predicted Docs, gold labels and weights from
        reference Docs.
    read: hashes the observation features of Docs, in place of the setup's features.
    setup: of the component; label_ids: maps labels to ids.
    RAISES: SparseCRFError for an unknown gold label if labels are fixed, and for an invalid weight
        of a Doc.
    """
    reader = ExampleReader(read, setup, label_ids)
    reader.read_all(track(examples, "Reading corpus", "docs"))
    with progress("Encoding corpus"):
        return reader.compiled()


def reads_word_labels(setup: Setup) -> bool:
    """Return whether templates read the labels that words have in the training data."""
    from ..features.featurizer import Featurizer

    return isinstance(setup.features, Featurizer) and setup.features.reads_word_labels


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
    return [OUTSIDE if is_chosen else own for is_chosen, own in zip(chosen, labels, strict=True)]


class ExampleReader:
    """Reads examples in batches; see `encode_corpus` for the arguments.

    found: counts of the examples; builder: their sequences; waiting: instead, the tokens, if
    features read the labels of words, which are not known before all examples are read; else None.
    """

    def __init__(self, features: Features, setup: Setup, label_ids: LabelIds) -> None:
        self._features, self._setup, self._label_ids = features, setup, label_ids
        self.found, self.builder = EncodedExamples(), CorpusBuilder()
        # Without a corpus, the labels that words had in an earlier one are used.
        waits = reads_word_labels(setup) and features is not setup.features
        self.waiting: WaitingTokens | None = None
        if waits:
            self.waiting = WaitingTokens(cast("NameRecord", features), setup.features)

    def read_all(self, examples: Iterable[Example]) -> None:
        """Add examples."""
        for batch in minibatch(examples, BATCH_SIZE):  # type: ignore[no-untyped-call]
            self._read(batch)

    def _read(self, batch: Sequence[Example]) -> None:
        """Add a batch; Docs of weight 0 are left out."""
        name, settings = self._setup.name, self._setup.settings
        weights = [settings.learning.weight_of(name, example.reference) for example in batch]
        self.found.n_weighted += sum(settings.learning.has_weight(own.reference) for own in batch)
        used = list(compress(batch, weights))
        gold = [self._read_gold(example) for example in used]
        self.found.n_examples += len(batch)
        self.found.n_used += len(used)
        if isinstance(target := self._setup.target, SpanGroups):
            self.found.key = target.key
            self.found.n_unset += sum(target.key not in each.reference.spans for each in used)
        docs = [example.predicted for example in used]
        if any(map(len, docs)):
            labels, lengths = np.concatenate(gold), [*map(len, docs)]
            of_tokens = np.repeat([weight for weight in weights if weight], lengths)
            if self.waiting is not None:
                self.waiting.add(docs, settings.sequences, labels, of_tokens)
                return
            observations = self._features(docs, settings.sequences)
            check_rows(name, observations, sum(lengths))
            self.builder.add(
                observations, labels, _sequence_weights(observations.offsets, of_tokens)
            )

    def _read_gold(self, example: Example) -> NDArray[np.int32]:
        doc, target, found = example.predicted, self._setup.target, self.found
        learning, labels = self._setup.settings.learning, target.gold(example)
        if len(labels) != len(doc):
            counts = {"n": len(labels), "n_tokens": len(doc), "text": doc.text[:60]}
            raise SparseCRFError(Errors.SC226.format(name=self._setup.name, **counts))
        found.aligned.add(example, labels, target)
        if isinstance(target, SpanTarget) and self._setup.settings.sequences == "sents":
            found.aligned.add_cuts(doc, labels)
        if isinstance(target, SpanTarget) and learning.negative_rate and None in labels:
            share = learning.negative_rate, learning.negative_seed
            labels = with_negatives(labels, example, target, *share)
        gold = self._label_ids.encode(labels, doc)
        found.n_tokens += len(gold)
        if self._setup.settings.learning.constrained:
            found.docs.append((found.n_tokens, doc.text[:60]))
        cut = observed_cut(example)
        if cut is not None:
            found.cuts.add(cut)
        return np.array(gold, dtype=np.int32)

    def compiled(self) -> EncodedExamples:
        """Return the encoded examples."""
        waiting = self.waiting
        if waiting is not None and self.found.n_tokens:
            place = np.zeros(2, np.int64), waiting.sizes
            table = learn_word_labels([waiting.counts(self._label_ids.names, *place)])
            cast("Featurizer", self._setup.features).take_word_labels(table.classes)
            waiting.encode(self.builder, table, *place)
        found, number, target = self.found, self._label_ids.final, self._setup.target
        found.labels, _, sets = number(np.zeros(0, np.int32), target)
        found.n_missing = self.builder.relabel(lambda gold: number(gold, target)[1])
        if found.n_missing < found.n_tokens:
            corpus = self.builder.build(self._setup.settings.learning.min_freq)
            found.corpus = replace(corpus, sets=sets)
        return found


class WaitingTokens:
    """Tokens to encode once the labels of all words are known, because features read them.

    record: reads and keeps the tokens; features: hashes them. Arguments before, whole: see
    `word_labels.folds_of`.
    """

    def __init__(self, record: "NameRecord", features: Any) -> None:
        self._record, self._features = record, features
        self._labels: list[NDArray[np.int32]] = [np.zeros(0, np.int32)]
        self._weights: list[NDArray[np.float64]] = [np.zeros(0)]
        self._values: list[NDArray[np.float32]] = []

    def add(
        self,
        docs: Sequence[Doc],
        sequences: str,
        labels: NDArray[np.int32],
        weights: NDArray[np.float64],
    ) -> None:
        """Read some Docs. labels, weights: [n], of their tokens."""
        self._labels.append(labels)
        self._weights.append(weights)
        self._values += [own.values for own in self._record.read(docs, sequences)]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The numbers of Docs and of sequences: [2]."""
        return sizes_of(self._record.word_tokens)

    def counts(
        self, names: Sequence[str], before: NDArray[np.int64], whole: NDArray[np.int64]
    ) -> WordCounts:
        """Count the labels of words. names: of labels."""
        parts = self._record.word_tokens
        folds = folds_of(parts, before, whole)
        return count_word_labels(parts, np.concatenate(self._labels), names, folds)

    def encode(
        self,
        to: CorpusBuilder,
        table: WordLabelTable,
        before: NDArray[np.int64],
        whole: NDArray[np.int64],
    ) -> None:
        """Add all tokens to a corpus, with the labels of words that they read."""
        labels, weights = np.concatenate(self._labels), np.concatenate(self._weights)
        folds = folds_of(self._record.word_tokens, before, whole)
        self._record.insert_word_labels(table, folds)
        begin = 0
        for (readings, _), values in zip(self._record.parts(), self._values, strict=True):
            own = slice(begin, begin := begin + readings.n_tokens)
            observations = self._features.observe([readings._replace(values=values)])
            of_sequences = _sequence_weights(observations.offsets, weights[own])
            to.add(observations, labels[own], of_sequences)


def _sequence_weights(
    offsets: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the weights of sequences: [S] float64. weights: [N], of the Doc of each token."""
    lengths = np.diff(offsets)
    found = np.ones(len(lengths))
    found[lengths > 0] = weights[offsets[:-1][lengths > 0]]
    return found
