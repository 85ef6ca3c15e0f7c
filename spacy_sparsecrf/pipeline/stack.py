"""Two stages: templates of the second model read the predictions of a first-stage model.

The second model is trained on predictions as for new Docs: a model trained on the other folds
labels each fold of the corpus. Folds share the encoded corpus and differ in the weights of its
sequences. Prediction uses a first-stage model trained on all folds.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from ..corpus.builder import CorpusBuilder
from ..corpus.encoded import EncodedCorpus
from ..corpus.readings import Readings
from ..errors import Errors, SparseCRFError
from ..features.featurizer import Featurizer
from ..features.naming import NameRecord
from ..features.stacking import FirstLabels, FirstSpans, fill
from ..features.word_labels import folds_of_runs
from ..model.model import CRFModel
from ..progress import track
from ..targets.base import string_ids
from ..targets.spans import SpanTarget
from .prediction import make_decoder
from .settings import Setup

if TYPE_CHECKING:
    from ..decoding.decoder import Decoder
    from ..training.training import Training

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


def read_first(
    setup: Setup,
    labels: Sequence[str],
    first: "Decoder",
    parts: Sequence[Readings],
    docs: Sequence[Doc],
) -> Iterator[Readings]:
    """Add the predictions of a first-stage model to the readings of Docs.

    labels: of the component; first: decoder of the first-stage model; parts: the readings.
    """
    behind = np.cumsum([*map(len, docs)], dtype=np.int64)
    begin = 0
    for part in parts:
        end = begin + part.n_tokens
        ends = behind[(behind > begin) & (behind <= end)] - begin
        yield _filled(setup, labels, part, first.viterbi(part), ends)
        begin = end


def _filled(
    setup: Setup, labels: Sequence[str], readings: Readings, ids: Ints, ends: Longs
) -> Readings:
    """Add first-stage labels to readings, for templates. ends: [D], end (exclusive) of each Doc."""
    spans = None
    if isinstance(setup.target, SpanTarget):
        found = setup.target.scheme.decode(ids, ends, labels)
        spans = FirstSpans(found.starts, found.ends, found.types, string_ids(found.names))
    assert isinstance(setup.features, Featurizer)
    predicted = FirstLabels(ids, string_ids(labels), ends, spans)
    return fill(readings, setup.features.plan, predicted)


def texts_of_predictions(setup: Setup, labels: Sequence[str]) -> dict[int, str]:
    """Return the texts of all possible predictions of a first-stage model, by string id."""
    names = [*labels, *setup.target.names_of(labels)]
    return dict(zip(string_ids(names).tolist(), names, strict=True))


def learn_first(
    setup: Setup,
    record: NameRecord,
    corpus: EncodedCorpus,
    labels: Sequence[str],
    make: Callable[[EncodedCorpus], "Training"],
) -> tuple[EncodedCorpus, CRFModel]:
    """Train the first-stage model, and encode its predictions.

    record: readings of the corpus, to which predictions are added; make: begins a training run of a
    first-stage model.
    RETURNS: the corpus with all features, and the model.
    RAISES: SparseCRFError if there are fewer Docs than folds.
    """
    stack = setup.settings.learning.stack
    fold = _folds(setup, record, corpus)
    ids = np.empty(corpus.n_tokens, np.int32)
    valid = setup.valid_transitions(labels)
    for k in track(range(stack.folds + 1), "Learning first models", "models", stack.folds + 1):
        weights = np.where(fold == k, 0.0, corpus.weights)
        with make(replace(corpus, weights=weights)) as training:
            for _ in range(stack.steps):
                if training.step().converged:
                    break
            model = training.model()
        decoder = make_decoder(model, valid)
        for tokens, readings in _chosen(record, corpus, fold == k):
            ids[tokens] = decoder.viterbi(readings)
    slices = iter([part.tokens for part in _parts(record, corpus)])

    def predictions(readings: Readings, ends: Longs) -> Readings:
        return _filled(setup, labels, readings, ids[next(slices)], ends)

    record.refill(predictions, texts_of_predictions(setup, labels))
    return _encoded(setup, record, corpus), model


class _Part(NamedTuple):
    """Readings of some Docs of the corpus.

    readings: with real values; ends: [D], end (exclusive) of each Doc, from the first token of the
    part; tokens, sequences: positions in the corpus.
    """

    readings: Readings
    ends: Longs
    tokens: slice
    sequences: slice


def _parts(record: NameRecord, corpus: EncodedCorpus) -> Iterator[_Part]:
    """Yield the parts of a corpus, in order."""
    token = sequence = 0
    for readings, ends in record.parts():
        tokens = slice(token, token := token + readings.n_tokens)
        sequences = slice(sequence, sequence := sequence + len(readings.offsets) - 1)
        yield _Part(readings._replace(values=corpus.values[tokens]), ends, tokens, sequences)


def _folds(setup: Setup, record: NameRecord, corpus: EncodedCorpus) -> Longs:
    """Return the fold of each sequence: [S] int64. RAISES: SparseCRFError for too few Docs."""
    n_folds = setup.settings.learning.stack.folds
    behind = [part.tokens.start + part.ends for part in _parts(record, corpus)]
    ends = np.unique(np.concatenate(behind))
    docs = np.searchsorted(ends, corpus.offsets[:-1], side="right")
    if len(ends) < n_folds:
        raise SparseCRFError(Errors.SC414.format(name=setup.name, n=len(ends), folds=n_folds))
    return folds_of_runs(docs, len(ends), n_folds)


def _chosen(
    record: NameRecord, corpus: EncodedCorpus, chosen: NDArray[np.bool_]
) -> Iterator[tuple[slice, Readings]]:
    """Select sequences. chosen: [S] bool. YIELDS: tokens of the corpus, and their readings."""
    for readings, _, tokens, sequences in _parts(record, corpus):
        own = chosen[sequences]
        cuts = [0, *(np.flatnonzero(np.diff(own)) + 1).tolist(), len(own)]
        for first, last in pairwise(cuts):
            if own[first:last].any():
                begin, end = (tokens.start + int(readings.offsets[i]) for i in (first, last))
                yield slice(begin, end), readings.sequences(first, last)


def _encoded(setup: Setup, record: NameRecord, corpus: EncodedCorpus) -> EncodedCorpus:
    """Encode the corpus again, with the features that read the first-stage model."""
    assert isinstance(setup.features, Featurizer)
    builder = CorpusBuilder()
    for readings, _, tokens, sequences in _parts(record, corpus):
        observations = setup.features.observe([readings])
        builder.add(observations, corpus.labels[tokens], corpus.weights[sequences])
    return replace(builder.build(setup.settings.learning.min_freq), sets=corpus.sets)
