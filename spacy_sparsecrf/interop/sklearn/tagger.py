"""The trained weights of an estimator: predictions, and their file."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import srsly
from numpy.typing import NDArray

from ...atomic_write import write_files
from ...corpus.encoded import MISSING
from ...errors import Errors, SparseCRFError
from ...model.model import CRFModel, WeightTable
from ...schema import reported_as
from .attributes import Numbered, Vocabulary, read_numbers
from .encoding import ALWAYS
from .labels import check_lengths

if TYPE_CHECKING:
    from ...decoding.decoder import Decoder, ScoredTokens
    from ...decoding.probabilities import Posterior

_BLOCK = 256  # sequences per batch of prediction


class WeightSummary(NamedTuple):
    """The non-zero weights, as `pycrfsuite.Tagger.info` returns them.

    transitions: by (label before, label), where the label before the first label is None;
    state_features: by (feature, label); header: counts; labels, attributes: their numbers as text;
    bigram_features: by (feature, label before, label).
    """

    transitions: dict[tuple[str | None, str], float]
    state_features: dict[tuple[str, str], float]
    header: dict[str, str]
    labels: dict[str, str]
    attributes: dict[str, str]
    bigram_features: dict[tuple[str, str | None, str], float]


class Tagger:
    """A trained model with the methods of `pycrfsuite.Tagger`.

    model: the non-zero weights, with the keys of `encoding`; attributes: features in the order of
    these keys; real: features with other values than 0 and 1 in training.
    """

    def __init__(
        self, model: CRFModel, attributes: Sequence[str], real: Sequence[str] = ()
    ) -> None:
        self.model, self.attributes, self.real = model, [*attributes], [*real]
        self._marginals: list[list[float]] = []

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the weights, without the decoder and the sequence that was set."""
        return Tagger, (self.model, self.attributes, self.real)

    @classmethod
    def of(
        cls,
        model: CRFModel,
        names: Mapping[int, str],
        always: int = ALWAYS,
        real: Sequence[str] = (),
    ) -> "Tagger":
        """Create a tagger of a model with other keys, renumbered to the features with weights.

        names: of features, by these keys; always: the key of transitions; others: see the class.
        """
        states, pairs = model.unigram, model.bigram
        is_named = pairs.keys != always
        known = np.union1d(states.keys, pairs.keys[is_named])
        numbers = [np.searchsorted(known, table.keys) + ALWAYS + 1 for table in (states, pairs)]
        numbers[1][~is_named] = ALWAYS
        unigram, bigram = map(_renumbered, (states, pairs), numbers)
        attributes = [names[key] for key in known.tolist()]
        kept = {*attributes}.intersection(real)
        model = CRFModel(model.labels, model.dtype, unigram, bigram, model.kind, model.bounds)
        return cls(model, attributes, [text for text in real if text in kept])

    # A sequence

    def set(self, xseq: Iterable[Any]) -> None:
        """Set the sequence for the other methods, and read its features."""
        [scored] = self._scored([xseq])
        self._set, self._marginals = self._decoder.posterior(scored), []

    def tag(self, xseq: Iterable[Any] | None = None) -> list[str]:
        """Return the most probable labels of a sequence; default: the sequence that was set."""
        if xseq is not None:
            self.set(xseq)
        names = self.model.labels
        return [names[y] for y in self._set.best().tolist()]

    def marginal(self, y: str, pos: int) -> float:
        """Compute p(y_pos = y | x) for the sequence that was set.

        RAISES: SparseCRFError for an unknown label or a position outside the sequence.
        """
        number = self._ids.get(y)
        if number is None or not -1 < pos < len(self._set):
            place = "labels" if number is None else f"{len(self._set)} tokens"
            raise SparseCRFError(Errors.SC819.format(label=y, position=pos, place=place))
        self._marginals = self._marginals or self._set.marginals().tolist()
        return self._marginals[pos][number]

    def probability(self, yseq: Sequence[str]) -> float:
        """Compute p(y | x) for labels of the sequence that was set; 0 with unknown labels.

        RAISES: SparseCRFError if x and y differ in length.
        """
        given = [self._ids.get(label, MISSING) for label in yseq]
        if MISSING in given or len(given) != len(self._set):
            check_lengths([len(self._set)], [given])
            return 0.0
        return math.exp(self._set.log_probabilities(np.array(given, np.int32))[0])

    def labels(self) -> list[str]:
        """Return the labels."""
        return [*self.model.labels]

    def info(self) -> WeightSummary:
        """Return the non-zero weights."""
        labels, before = self.model.labels, [*self.model.labels, None]
        texts = dict(enumerate(self.attributes, start=ALWAYS + 1))
        states = {
            (texts[key], labels[label]): float(weight)
            for (key, _, label), weight in self.model.unigram.entries()
        }
        pairs = [
            (key, (before[previous], labels[label]), float(weight))
            for (key, previous, label), weight in self.model.bigram.entries()
        ]
        transitions = {pair: weight for key, pair, weight in pairs if key == ALWAYS}
        bigrams = {(texts[key], *pair): weight for key, pair, weight in pairs if key != ALWAYS}
        header = {
            "num_features": str(len(states) + len(transitions)),
            "num_labels": str(len(labels)),
            "num_attrs": str(len(self.attributes)),
        }
        own, numbers = ({x: str(i) for i, x in enumerate(a)} for a in (labels, self.attributes))
        return WeightSummary(transitions, states, header, own, numbers, bigrams)

    @property
    def has_start(self) -> bool:
        """Whether pairs of the start label have weights."""
        return bool((self.model.bigram.previous == len(self.model.labels)).any())

    # Many sequences

    def predict(self, X: Iterable[Any]) -> list[list[str]]:
        """Return the most probable labels of each sequence."""
        names = self.model.labels
        return [[names[y] for y in ids] for ids in self._decoded(X, self._decoder.viterbi)]

    def predict_marginals(self, X: Iterable[Any]) -> list[list[dict[str, float]]]:
        """Compute p(y_t = y | x): for each sequence a list with one dict by label per token."""
        names, found = self.model.labels, self._decoded(X, self._decoder.marginals)
        return [[dict(zip(names, row, strict=True)) for row in rows] for rows in found]

    def _decoded(
        self, X: Iterable[Any], decode: "Callable[[ScoredTokens], NDArray[Any]]"
    ) -> Iterator[list[Any]]:
        """Yield what a method of the decoder returns for the tokens of each sequence."""
        for scored in self._scored(X):
            found = decode(scored).tolist()
            yield from (found[a:b] for a, b in pairwise(scored.offsets.tolist()))

    def log_probability(self, xseq: Iterable[Any], yseq: Sequence[str]) -> float:
        """Compute log p(y | x) of a sequence; -inf with unknown labels.

        RAISES: SparseCRFError if x and y differ in length.
        """
        given = np.array([self._ids.get(label, MISSING) for label in yseq], np.int32)
        [scored] = self._scored([xseq])
        check_lengths([scored.n_tokens], [given])
        if (given == MISSING).any():
            return -math.inf
        return float(self._decoder.log_probability(scored, given)[0])

    @cached_property
    def _decoder(self) -> "Decoder":
        from ...decoding.decoder import Decoder  # imports numba

        return Decoder(self.model)

    @cached_property
    def _ids(self) -> dict[str, int]:
        """The numbers of the labels."""
        return {label: number for number, label in enumerate(self.model.labels)}

    @cached_property
    def _set(self) -> "Posterior":
        """The sequence that was set; at first one without tokens."""
        self.set(())
        return self._set

    @cached_property
    def _scorer(self) -> "Callable[[Numbered], ScoredTokens]":
        from .scoring import Scorer  # imports numba

        return Scorer(self.model, len(self.attributes))

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary({text: number for number, text in enumerate(self.attributes, start=1)})

    def _scored(self, X: Iterable[Any]) -> "Iterator[ScoredTokens]":
        """Read and score sequences in batches."""
        todo, first = iter(X), 0
        while block := [*islice(todo, _BLOCK)]:
            yield self._scorer(read_numbers(block, self._vocabulary, first))
            first += len(block)


def _renumbered(table: WeightTable, keys: NDArray[np.int64]) -> WeightTable:
    """Return the table with other keys [O]."""
    own = np.repeat(keys.astype(np.uint64), np.diff(table.indptr))
    previous = table.previous if len(table.previous) else None
    return WeightTable.of(own, previous, table.labels, table.values)


def write_tagger(tagger: Tagger, path: Path) -> None:
    """Write a tagger to a file. RAISES: SparseCRFError if it cannot be written."""
    model, attributes, real = tagger.__reduce__()[1]
    values = {"model": model.to_bytes(), "attributes": attributes, "real": real}
    write_files(path.parent, {path.name: srsly.msgpack_dumps(values)}, "model_filename")


def read_tagger(path: Path) -> Tagger:
    """Read a file of `write_tagger`, or a model of CRFsuite. RAISES: SparseCRFError for others."""
    data = path.read_bytes()
    if data.startswith(b"lCRF"):
        from ..external_models import read_model  # imports spaCy

        found = read_model(path)
        always = len(found.features) - 1
        return Tagger.of(found.with_numbers("float32"), dict(enumerate(found.features)), always)
    with reported_as(Errors.SC631, (ValueError, LookupError, TypeError), path=path, program="CRF"):
        values = srsly.msgpack_loads(data)
        model, attributes = CRFModel().from_bytes(values["model"]), values["attributes"]
        keys = np.concatenate(model.keys)
        if len(keys) and not ALWAYS <= keys.min() <= keys.max() <= len(attributes) + ALWAYS:
            raise ValueError("features have no names")
        return Tagger(model, attributes, real=values["real"])
