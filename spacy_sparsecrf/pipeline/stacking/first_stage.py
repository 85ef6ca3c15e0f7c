"""Two stages: templates of the second model read the predictions of a first-stage model.

The second model is trained on predictions as for new Docs: a model trained on the other folds
labels each fold of the corpus. Folds share the encoded corpus and differ in the weights of its
sequences. Prediction uses a first-stage model trained on all folds.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...crf.corpus.builder import CorpusBuilder
from ...crf.corpus.encoded import EncodedCorpus
from ...crf.corpus.numbering import Ints, Mask
from ...crf.corpus.readings import Readings
from ...crf.decoding.decoder import Decoder
from ...crf.model.model import CRFModel
from ...errors import Errors, SparseCRFError
from ...progress import Task
from ..features.attributes.stage import FirstLabels, FirstSpans
from ..features.featurizer import Featurizer
from ..features.naming import NameRecord
from ..features.word_labels import folds_of_docs
from ..settings import Setup, StackSettings
from ..targets.spans import SpanTarget
from ..targets.target import string_ids
from .filling import fill

if TYPE_CHECKING:
    from ...crf.training.training import Training


class FirstStage:
    """Adds the predictions of a first-stage model to readings, for templates of the second one.

    setup: of the component; model: of the first stage; valid: transitions, as for `Decoder`;
    texts: of all possible predictions, by string id.
    """

    def __init__(self, setup: Setup, model: CRFModel, valid: Mask | None) -> None:
        self._setup = setup
        self._labels = model.labels
        self._decoder = Decoder(model, valid)
        self.texts = texts_of_predictions(setup, model.labels)

    def completed(self, readings: Readings) -> Readings:
        """Return readings with the predictions."""
        return _filled(self._setup, self._labels, readings, self._decoder.viterbi(readings))


def _filled(setup: Setup, labels: Sequence[str], readings: Readings, ids: Ints) -> Readings:
    """Add first-stage labels to readings, for templates."""
    spans = None
    ends = readings.division.ends
    if isinstance(setup.target, SpanTarget):
        predicted = setup.target.scheme.decode(ids, ends, labels)
        spans = FirstSpans(
            starts=predicted.starts,
            ends=predicted.ends,
            types=predicted.types,
            names=string_ids(predicted.names),
        )
    assert isinstance(setup.features, Featurizer)
    first_labels = FirstLabels(ids, string_ids((*labels,)), ends=ends, spans=spans)
    return fill(readings, setup.features.plan, first_labels)


def texts_of_predictions(setup: Setup, labels: Sequence[str]) -> dict[int, str]:
    """Return the texts of all possible predictions of a first-stage model, by string id."""
    names = *labels, *setup.target.names_of(labels)
    return dict(zip(string_ids(names).tolist(), names, strict=True))


def stacked(
    setup: Setup,
    stack: StackSettings,
    record: NameRecord,
    corpus: EncodedCorpus,
    train: Callable[[EncodedCorpus], "Training"],
) -> tuple[EncodedCorpus, CRFModel]:
    """Train the first-stage model, and encode its predictions.

    record: readings of the corpus, to which predictions are added; train: begins a training run of
    a first-stage model.
    RETURNS: the corpus with all features, and the model.
    RAISES: SparseCRFError if there are fewer Docs than folds.
    """
    words = record.word_tokens
    n_docs, fold = folds_of_docs(words, stack.folds)
    if n_docs < stack.folds:
        raise SparseCRFError(Errors.SC414.format(name=setup.name, n=n_docs, folds=stack.folds))
    ends = np.cumsum([len(part.orths) for part in words])
    ids = np.empty(len(fold), np.int32)
    values = np.split(corpus.values, ends[:-1])
    # A sequence without tokens at the end has no fold.
    of_sequence = np.append(fold, -1)[corpus.offsets[:-1]]
    n_models = stack.folds + 1
    for k in Task("Learning first models", "models", n_models, range(n_models)):
        weights = np.where(of_sequence == k, 0.0, corpus.weights)
        model = _trained(train(replace(corpus, weights=weights)), stack.steps)
        if k < stack.folds:
            decoder = Decoder(model, setup.transitions_of(model.labels))
            of_model = np.concatenate([decoder.viterbi(part) for part in record.readings(values)])
            ids[fold == k] = of_model[fold == k]
    of_parts = iter(np.split(ids, ends[:-1]))

    def predictions(readings: Readings) -> Readings:
        return _filled(setup, model.labels, readings, next(of_parts))

    record.refill(predictions, texts_of_predictions(setup, model.labels))
    builder = CorpusBuilder()
    labels = iter(np.split(corpus.labels, ends[:-1]))
    begin = 0
    assert isinstance(setup.features, Featurizer)
    for part in record.readings(values):
        end = begin + len(part.offsets) - 1
        builder.add(setup.features.observe([part]), next(labels), corpus.weights[begin:end])
        begin = end
    encoded = builder.build(setup.settings.learning.min_freq)
    return replace(encoded, sets=corpus.sets), model


def _trained(training: "Training", steps: int) -> CRFModel:
    """Train a first-stage model for at most `steps` outer iterations."""
    with closing(training):
        for _ in range(steps):
            if training.step().end:
                break
        return training.model()
