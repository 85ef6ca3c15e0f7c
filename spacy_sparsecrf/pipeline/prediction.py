"""Prediction: reading Docs, and the labels that `predict` passes to `set_annotations`.

Also the probabilities of predicted spans, and the removal of unlikely spans.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, cast, overload

import numpy as np
from spacy.tokens import Doc, Token

from ..crf.compilation import watch_compilation
from ..crf.corpus.numbering import Array, Floats, Ints, Longs, Mask, Singles
from ..crf.corpus.readings import Division, Readings, kept_of
from ..crf.decoding.chains import SpanEvents as LabelRuns
from ..errors import Errors, SparseCRFError
from .annotating import Expected
from .features.featurizer import PlanFeaturizer
from .features.naming import NameRecord
from .features.tokens import Alone
from .settings import DecodingSettings, NotCopied, Setup
from .targets.scheme import LabelledSpans
from .targets.spans import SpanGroups, SpanTarget
from .targets.target import add_extension, ends_of

if TYPE_CHECKING:
    from ..crf.decoding.answers import LabelDecoder
    from ..crf.decoding.sources import Source
    from ..crf.model.model import CRFModel
    from .stacking.first_stage import FirstStage


class Predictions(list[Ints]):
    """An array [tokens] int32 of label ids for each Doc, optionally with probabilities.

    Tokens that are no words have the label that the target gives to blanks, or -1.

    scores: an array [tokens] float32 for each Doc, the probability of each token's label; or None.
    of_spans: an array [spans] float64 for each Doc, the probabilities of its spans; or None.
    """

    scores: list[Singles] | None = None
    of_spans: list[Floats] | None = None

    @overload
    def __getitem__(self, index: SupportsIndex) -> Ints: ...
    @overload
    def __getitem__(self, index: slice) -> "Predictions": ...
    def __getitem__(self, index: Any) -> Any:
        """Return the labels of a Doc, or the predictions for a slice of the Docs."""
        labels = super().__getitem__(index)
        if not isinstance(index, slice):
            return labels
        part = Predictions(labels)
        part.scores = None if self.scores is None else self.scores[index]
        part.of_spans = None if self.of_spans is None else self.of_spans[index]
        return part

    @property
    def span_scores(self) -> Floats | None:
        """[spans] float64, the probabilities of the spans of all Docs; or None."""
        return None if self.of_spans is None else np.concatenate([np.empty(0), *self.of_spans])


class Batch(NamedTuple):
    """The words of D Docs, as a component reads them: tokens that are no blanks.

    parts: observations or readings, by vocab, and masks of their permitted labels, or None.
    division: of the tokens of all Docs into words and blanks.
    """

    parts: "list[tuple[Source, Mask | None]]"
    division: Division

    def words(self, arrays: Sequence[Array]) -> list[Array]:
        """Split arrays, whose rows are the words of all Docs in order, by Doc."""
        rows = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        return _split(rows, self.division.ends)

    def tokens(self, arrays: Sequence[Array], blank: Any) -> list[Array]:
        """Return the rows of all tokens, by Doc. blank: the value of tokens that are no words."""
        ends, words = self.division.behind, self.division.kept
        if words is None:
            return self.words(arrays)
        of_words = np.concatenate(arrays)
        of_tokens = np.full((ends[-1], *of_words.shape[1:]), blank, of_words.dtype)
        of_tokens[words] = of_words
        return _split(of_tokens, ends)


def _split(rows: Array, ends: Longs) -> list[Array]:
    if len(ends) == 1:
        return [rows]
    return [rows[begin:end] for begin, end in pairwise([0, *ends.tolist()])]


@dataclass
class DocPredictor(NotCopied):
    """Joins what reads Docs for a component, and the decoder of its model.

    expected: the attributes that Docs should have; decoder: of the model; first_stage: of a model
    whose templates read the predictions of another one.
    """

    setup: Setup
    model: "CRFModel"
    labels: tuple[str, ...]
    expected: Expected
    decoder: "LabelDecoder"
    first_stage: "FirstStage | None"

    @classmethod
    def of(
        cls, setup: Setup, model: "CRFModel", labels: tuple[str, ...], expected: Expected
    ) -> "DocPredictor":
        """Create the decoder of a model; report if kernels have to be compiled. Imports numba."""
        first_stage = None
        watch_compilation()
        valid = setup.transitions_of(model.labels)
        if model.first is not None:
            from .stacking.first_stage import FirstStage

            first_stage = FirstStage(setup, model.first, valid)
        return cls(
            setup=setup,
            model=model,
            labels=labels,
            expected=expected,
            decoder=_decoder(setup, model, valid),
            first_stage=first_stage,
        )

    def with_decoding(self, threshold: float, decoding: DecodingSettings) -> "DocPredictor":
        """Return one with other settings of decoding."""
        changes = {"threshold": threshold, "decoding": decoding}
        setup = self.setup._replace(settings=self.setup.settings.model_copy(update=changes))
        return DocPredictor.of(setup, self.model, labels=self.labels, expected=self.expected)

    @cached_property
    def of_spans(self) -> bool:
        """Whether predictions have the probabilities of spans."""
        return self.setup.settings.decoding.scores or isinstance(self.setup.target, SpanGroups)

    @cached_property
    def by_span(self) -> bool:
        """Whether the probabilities of spans are computed."""
        return self.of_spans or self.has_thresholds

    @cached_property
    def has_thresholds(self) -> bool:
        """Whether a prediction may be too improbable."""
        settings = self.setup.settings
        return settings.threshold > 0.0 or bool(settings.decoding.thresholds)

    def likely(self, labels: Ints, probabilities: Floats) -> Ints:
        """Return labels of tokens, with the outside label where one is too improbable.

        labels, probabilities: [N], of tokens. Spans are left to `keep_likely`.
        """
        target, settings = self.setup.target, self.setup.settings
        if isinstance(target, SpanTarget) or not self.has_thresholds:
            return labels
        by_label = settings.decoding.thresholds
        least = np.array([by_label.get(label, settings.threshold) for label in self.labels])
        outside = np.int32(self.labels.index(target.outside_label))
        return np.where(probabilities < least[labels], outside, labels)

    def predict(self, docs: Sequence[Doc], forced: bool) -> Predictions:
        """Predict the labels of Docs with at least one token. forced: see `batch`."""
        if self.setup.settings.sequences != "docs" and self.expected.cut:
            self.expected.check_cut(docs)
        try:  # entering a context takes as long as a kernel
            return predict(self, docs, forced)
        except MemoryError as error:
            raise SparseCRFError(Errors.SC224.format(name=self.setup.name)) from error

    @property
    def texts(self) -> Mapping[int, str]:
        """The texts of the values that `completed` may add, by string id."""
        return {} if self.first_stage is None else self.first_stage.texts

    def completed(self, parts: list[Any]) -> list[Any]:
        """Add the predictions of the first stage, if there is one, to readings."""
        stage = self.first_stage
        return parts if stage is None else [*map(stage.completed, parts)]

    def batch(self, docs: Sequence[Doc], forced: bool, strict: bool = True) -> Batch:
        """Read Docs in parts by vocab, of which there are none without tokens.

        forced: whether to condition on existing annotation that is not overwritten; strict: whether
        masks forbid spans across empty lines.
        """
        setup = self.setup
        parts, division = read_docs(setup, docs)
        if self.expected.shares and parts and isinstance(setup.features, PlanFeaturizer):
            self.expected.check(setup.features.plan.watched, parts)
        parts = self.completed(parts)
        permitted: Mask | None = None
        if forced and parts:
            overwrite = setup.settings.overwrite
            permitted = setup.target.permitted(docs, self.labels, overwrite=overwrite)
        if permitted is not None and division.kept is not None:
            permitted = permitted[division.kept]
        if permitted is None and division.kept is None:
            return Batch([(part, None) for part in parts], division)
        masks: list[Mask | None] = [permitted] * len(parts)
        if permitted is not None and len(parts) > 1:
            masks = [*np.split(permitted, np.cumsum([part.n_tokens for part in parts])[:-1])]
        if strict and division.kept is not None:
            masks = [self._apart(part, mask) for part, mask in zip(parts, masks, strict=True)]
        return Batch([*zip(parts, masks, strict=True)], division)

    def viterbi(self, part: "Source", permitted: Mask | None) -> Ints:
        """Find the best labels; see `Decoder`. No span crosses an empty line.

        The mask for that is slow, so it is used only if a span does.
        """
        labels, mask = self.decoder.viterbi(part, permitted), self._apart(part, permitted)
        if mask is permitted or mask is None or mask[np.arange(len(labels)), labels].all():
            return labels
        return self.decoder.viterbi(part, mask)

    def _apart(self, part: "Source", permitted: Mask | None) -> Mask | None:
        """Let no span go on behind an empty line, unless the words must have such labels."""
        apart = part.division.apart if isinstance(part, Readings) else ()
        if not len(apart) or not isinstance(self.setup.target, SpanTarget):
            return permitted
        begins = self.setup.target.valid_transitions(self.labels)[-1, :-1]  # a sequence
        shape = part.n_tokens, len(self.labels)
        mask = np.ones(shape, np.bool_) if permitted is None else permitted.copy()
        beginning = mask[apart] & begins
        mask[apart] = np.where(beginning.any(axis=1, keepdims=True), beginning, mask[apart])
        return mask


def read_docs(
    setup: Setup, docs: Sequence[Doc], record: NameRecord | None = None, alone: Alone = None
) -> tuple[list[Any], Division]:
    """Read Docs, in parts by vocab, of which there are none without tokens.

    record: reads them instead of the features; alone: see `Alone`. RETURNS: readings, or the
    observations of a custom function; and the words of all Docs. RAISES: SparseCRFError for
    missing rows of observations.
    """
    features, mode = setup.features, setup.settings.sequences
    words = None
    parts: list[Any] = []
    if isinstance(features, PlanFeaturizer):
        read = features.readings if record is None else record.read
        parts = read(docs, mode, alone)
        if len(parts) == 1 and len(parts[0].division.ends) == len(docs):
            return parts, parts[0].division
        words = kept_of(parts)
    elif any(map(len, docs)):
        observations = features(docs, mode)
        parts.append(observations)
        words = observations.kept
        n_words = sum(map(len, docs)) if words is None else len(words)
        if observations.n_tokens != n_words:
            message = Errors.SC227.format(
                name=setup.name, n=observations.n_tokens, n_tokens=n_words
            )
            raise SparseCRFError(message)
    behind = ends_of(docs)
    ends = behind if words is None else words.searchsorted(behind)
    return parts, Division(ends, behind, words)


def _decoder(setup: Setup, model: "CRFModel", valid: Mask | None) -> "LabelDecoder":
    """Create the decoder of a model. valid: transitions, see `Decoder`."""
    from ..crf.decoding.decoder import Decoder
    from ..crf.decoding.steps import Preference, Step, Temperature

    decoding = setup.settings.decoding
    favourite, weight = setup.preference(model.labels) or (0, 0.0)
    options: list[Step] = []
    if decoding.temperature != 1.0:
        options.append(Temperature(decoding.temperature))
    if weight:
        options.append(Preference(favourite, weight / decoding.temperature))
    decoder = Decoder(model, valid, favourite, options)
    if not decoding.once:
        return decoder
    from ..crf.decoding.once_decoder import OnceDecoder

    return OnceDecoder(decoder, setup.once(model.labels))


def no_predictions(n_docs: int, has_scores: bool) -> Predictions:
    """Return the predictions for Docs without tokens. has_scores: whether labels have them."""
    predictions = Predictions([np.zeros(0, np.int32)] * n_docs)
    predictions.scores = [np.zeros(0, np.float32)] * n_docs if has_scores else None
    return predictions


def predict(predictor: DocPredictor, docs: Sequence[Doc], forced: bool) -> Predictions:
    """Predict the labels of Docs with at least one token. forced: see `DocPredictor.batch`."""
    decoder, decoding = predictor.decoder, predictor.setup.settings.decoding
    method = decoding.method
    batch = predictor.batch(docs, forced, strict=predictor.by_span or method != "viterbi")
    is_limited = predictor.has_thresholds and not isinstance(predictor.setup.target, SpanTarget)
    if method == "viterbi" and not (decoding.scores or is_limited):
        ids = [predictor.viterbi(part, permitted) for part, permitted in batch.parts]
        predictions = Predictions(batch.words(ids))
    else:
        decoded = [decoder.decode(part, method, permitted) for part, permitted in batch.parts]
        predictions = Predictions(batch.words([predictor.likely(*pair) for pair in decoded]))
        if decoding.scores:
            scores = [probabilities.astype(np.float32) for _, probabilities in decoded]
            predictions.scores = batch.tokens(scores, 1.0)
    if predictor.by_span:
        of_spans = keep_likely(predictor, predictions, batch)
        predictions.of_spans = of_spans if predictor.of_spans else None
    if batch.division.kept is not None:
        predictions[:] = batch.tokens(predictions, predictor.setup.target.blank(predictor.labels))
    return predictions


def store_scores(name: str, docs: Sequence[Doc], scores: Sequence[Singles]) -> None:
    """Write the probabilities of labels to `token._.NAME_score`. scores: [tokens] for each Doc.

    spaCy keeps token extensions when it merges Docs, but not other contents of `user_data`.
    """
    extension = score_extension(name)
    add_extension(Token, extension)
    for doc, of_doc in zip(docs, scores, strict=True):
        for token, score in zip(doc, of_doc.tolist(), strict=True):
            token._.set(extension, score)


def score_extension(name: str) -> str:
    """Return the token extension for the probabilities of a component's labels."""
    return f"{name}_score"


def keep_likely(
    predictor: DocPredictor, predictions: Predictions, batch: Batch
) -> list[Floats] | None:
    """Remove spans that are less probable than their threshold from predictions, in place.

    predictions: of words; batch: their input.
    RETURNS: [spans] float64 for each Doc, the probabilities of its remaining spans; None without a
        span target.
    """
    target, settings = predictor.setup.target, predictor.setup.settings
    if not isinstance(target, SpanTarget):
        return None
    spans, probabilities = predicted_spans(predictor, predictions, batch)
    by_type = settings.decoding.thresholds
    if by_type or settings.threshold > 0.0:
        thresholds = [by_type.get(name, settings.threshold) for name in spans.names]
        are_likely = probabilities >= np.array(thresholds, np.float64)[spans.types]
        unlikely = spans.where(~are_likely)
        predictions[:] = target.outside(predictions, predictor.labels, unlikely)
        spans, probabilities = spans.where(are_likely), probabilities[are_likely]
    ends = np.cumsum([len(ids) for ids in predictions])
    return np.split(probabilities, np.searchsorted(spans.starts, ends[:-1]))


def predicted_spans(
    predictor: DocPredictor, label_ids: Sequence[Ints], batch: Batch
) -> tuple[LabelledSpans, Floats]:
    """Decode labels into spans, and compute their probabilities: [K] float64.

    label_ids: an array [words] for each Doc; batch: the input of their prediction.
    RETURNS: the spans, in words.
    """
    target, labels = cast("SpanTarget", predictor.setup.target), predictor.labels
    spans = target.spans(label_ids, labels)
    ids = np.concatenate(label_ids)
    probabilities = [np.empty(0)]
    begin = 0
    for source, permitted in batch.parts:
        end = begin + source.n_tokens
        in_part = spans.where((spans.starts >= begin) & (spans.starts < end))
        if len(in_part):
            runs = LabelRuns(
                starts=in_part.starts - begin,
                run_ptr=np.append(0, np.cumsum(in_part.ends - in_part.starts)),
                runs=ids[in_part.tokens()],
                after=target.endings(in_part, labels),
            )
            probabilities.append(predictor.decoder.span_probability(source, runs, permitted))
        begin = end
    return spans, np.concatenate(probabilities)
