"""Examples -> encoded corpus: what a batch solver reads, once, in `initialize`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
import tqdm
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import minibatch

from ..corpus.arrays import MEMORY, Memory
from ..corpus.encoded import MISSING, EncodedCorpus, Observations
from ..corpus.files import Builder, corpus_builder
from ..errors import Errors, SparseCRFError
from ..targets.base import Target
from .alignment import AlignmentCount
from .settings import Features, Setup
from .upstream import observed_cut

BATCH_SIZE = 512  # Docs featurised at once: bounds the memory of hashes, costs nothing
BAR_DELAY = 3.0  # seconds before a progress bar appears


@dataclass(frozen=True)
class Compiled:
    """What reading the examples yields.

    labels: names of the labels; a gold label id is a position here.
    corpus: the encoded corpus, or None where no token has a gold label.
    n_examples, n_used: Docs, and those of them with a weight.
    n_tokens, n_missing: tokens of the latter, and those of them without a gold label.
    cut: how the Docs were cut, see `observed_cut`; None where Docs differ or do not tell.
    docs: the place in the corpus after the last token of each Doc, and the beginning of its text;
        only where gold labels have to be legal.
    aligned: how many gold labels the predicted tokens have got.
    """

    labels: tuple[str, ...]
    corpus: EncodedCorpus | None
    n_examples: int
    n_used: int
    n_tokens: int
    n_missing: int
    cut: str | None
    docs: list[tuple[int, str]]
    aligned: AlignmentCount

    def check(self, setup: Setup) -> None:
        """Check that there is something to learn, and that the target can write the labels.

        RAISES: SparseCRFError.
        """
        if not self.n_examples:
            raise SparseCRFError(Errors.SC217.format(name=setup.name))
        if not self.n_used:
            raise SparseCRFError(Errors.SC356)
        for label in self.labels:
            setup.target.check_label(label)
        if self.labels:
            setup.legal(self.labels)


class LabelIds:
    """Numbers gold labels; grows with them unless the labels are fixed.

    name: of the component, for the error message.
    labels: known labels, in order.
    fixed: whether a label that is not known is an error; otherwise labels end up sorted.
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

    def encode(self, gold: Iterable[str | tuple[str, ...] | None], doc: Doc) -> list[int]:
        """Number the gold labels of a Doc's tokens; below 0 as in `EncodedCorpus`.

        gold: None, "" or () where a label is missing; a tuple where it is any of several.
        RAISES: SparseCRFError for an unknown label if the labels are fixed.
        """
        return [
            self._encode_set(label, doc)
            if isinstance(label, tuple)
            else self._encode_one(label, doc)
            if label
            else MISSING
            for label in gold
        ]

    def _encode_set(self, labels: tuple[str, ...], doc: Doc) -> int:
        ids = sorted({self._encode_one(label, doc) for label in labels if label})
        if len(ids) > 1:
            return -2 - self._sets.setdefault(tuple(ids), len(self._sets))
        return ids[0] if ids else MISSING

    def _encode_one(self, label: str, doc: Doc) -> int:
        if label not in self._ids and self._fixed:
            error = self._unknown.format(
                name=self._name, label=label, known=", ".join(self._ids), text=doc.text[:60]
            )
            raise SparseCRFError(error)
        return self._ids.setdefault(label, len(self._ids))

    def final(
        self, gold: NDArray[np.int32], target: Target
    ) -> tuple[tuple[str, ...], NDArray[np.int32], NDArray[np.bool_]]:
        """Order the labels, and those that the target needs besides.

        gold: [N] int32, of `encode`.
        RETURNS: the labels [Y] in their final order; gold with their final ids; and sets [Q, Y].
            Any of all labels is the same as a missing one.
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


def make_label_ids(
    name: str,
    target: Target,
    given: Sequence[str] | None,
    added: Sequence[str],
    learnt: Sequence[str],
) -> LabelIds:
    """Prepare the numbering of labels.

    name: of the component; given: all labels, in order, or None; added: by `add_label`;
    learnt: of earlier weights.
    RAISES: SparseCRFError if labels are given, but not all that were learnt, or something else
        than non-empty strings.
    """
    if given is None:
        return LabelIds(name, dict.fromkeys([*added, *learnt]), fixed=False)
    check_strings(name, given)
    known = list(dict.fromkeys([*target.complete(given), *added]))
    lost = [label for label in learnt if label not in known]
    if lost:
        raise SparseCRFError(Errors.SC208.format(name=name, labels=", ".join(lost)))
    return LabelIds(name, known, fixed=True)


def check_strings(name: str, labels: Iterable[object]) -> None:
    """Raise SparseCRFError for labels of component `name` that are not non-empty strings."""
    for label in labels:
        if not isinstance(label, str) or not label:
            raise SparseCRFError(Errors.SC212.format(name=name, label=label))


def checked(name: str, get_examples: Callable[[], Iterable[Example]]) -> Iterator[Example]:
    """Read the examples of component `name`, checking that they are some."""
    if not callable(get_examples):
        raise SparseCRFError(Errors.SC216.format(name=name, got=type(get_examples)))
    for example in get_examples():
        if not isinstance(example, Example):
            raise SparseCRFError(Errors.SC216.format(name=name, got=type(example)))
        yield example


def compile_corpus(
    examples: Iterable[Example],
    read: Features,
    setup: Setup,
    label_ids: LabelIds,
    store: Memory = MEMORY,
) -> Compiled:
    """Read examples once into arrays.

    examples: predicted Docs are featurised and cut, gold labels and weights read from references.
    read: hashes the observation tests of Docs, in place of the setup's features.
    setup: of the component.
    label_ids: numbers the labels.
    store: where the corpus is to be.
    RAISES: SparseCRFError for a gold label outside fixed labels, for a bad weight of a Doc, and
        where files cannot be written.
    """
    with corpus_builder(store) as builder:
        reader = _Reader(read, setup, label_ids, builder)
        for batch in minibatch(_with_bar(examples), BATCH_SIZE):  # type: ignore[no-untyped-call]
            reader.read(batch)
        return reader.compiled()


class _Reader:
    """Reads examples a batch at a time; see `compile_corpus`."""

    def __init__(
        self, features: Features, setup: Setup, label_ids: LabelIds, builder: Builder
    ) -> None:
        self._features, self._target = features, setup.target
        self._sequences = setup.settings.sequences
        self._learning, self._name = setup.learning, setup.name
        self._label_ids = label_ids
        self._builder = builder
        self._cuts: set[str | None] = set()
        self._docs: list[tuple[int, str]] = []
        self._aligned = AlignmentCount()
        self._n_examples = self._n_used = self._n_tokens = 0

    def read(self, batch: Sequence[Example]) -> None:
        """Add a batch; Docs of weight 0 are left out."""
        self._n_examples += len(batch)
        weights = [self._learning.weight_of(self._name, example.reference) for example in batch]
        used = list(compress(batch, weights))
        gold = [self._read_gold(example) for example in used]
        self._n_used += len(used)
        docs = [example.predicted for example in used]
        if any(map(len, docs)):
            found = self._features(docs, self._sequences)
            own = _sequence_weights(found, docs, [weight for weight in weights if weight])
            self._builder.add(found, np.concatenate(gold), own)

    def _read_gold(self, example: Example) -> NDArray[np.int32]:
        doc = example.predicted
        labels = self._target.gold(example)
        gold = self._label_ids.encode(labels, doc)
        self._aligned.add(example, labels, self._target)
        self._cuts.add(observed_cut(example))
        self._n_tokens += len(gold)
        if self._learning.constrained:
            self._docs.append((self._n_tokens, doc.text[:60]))
        return np.array(gold, dtype=np.int32)

    def compiled(self) -> Compiled:
        """What has been read."""
        nothing = np.zeros(0, np.int32)
        labels, _, sets = self._label_ids.final(nothing, self._target)
        n_missing = self._builder.relabel(lambda gold: self._label_ids.final(gold, self._target)[1])
        corpus = None
        if n_missing < self._n_tokens:
            corpus = replace(self._builder.build(self._learning.min_freq), sets=sets)
        self._cuts.discard(None)
        cut = self._cuts.pop() if len(self._cuts) == 1 else None
        counts = self._n_examples, self._n_used, self._n_tokens, n_missing
        return Compiled(labels, corpus, *counts, cut, self._docs, self._aligned)


def _sequence_weights(
    observations: Observations, docs: Sequence[Doc], weights: Sequence[float]
) -> NDArray[np.float64]:
    """The weights of the Docs of sequences: [S] float64."""
    doc = np.repeat(np.arange(len(docs)), [len(doc) for doc in docs])
    lengths = np.diff(observations.offsets)
    found = np.ones(len(lengths))
    begins = observations.offsets[:-1][lengths > 0]
    found[lengths > 0] = np.asarray(weights, dtype=np.float64)[doc[begins]]
    return found


def _with_bar(examples: Iterable[Example]) -> Iterator[Example]:
    """Show progress on a terminal where reading takes long."""
    yield from tqdm.tqdm(
        examples,
        desc="Reading corpus",
        unit=" docs",
        delay=BAR_DELAY,
        disable=None,
        leave=False,
    )
