"""Prediction: reading Docs, and the labels that `predict` passes to `set_annotations`.

Also the probabilities of predicted spans, and the removal of unlikely spans.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, cast, overload

import numpy as np
from spacy.tokens import Doc, Token

from ..corpus.numbering import Array, Floats, Ints, Longs, Mask, Singles
from ..corpus.readings import Division, Readings, kept_of
from ..decoding.chains import SpanEvents as LabelRuns
from ..errors import Errors, SparseCRFError
from ..features.featurizer import PlanFeaturizer
from ..features.naming import NameRecord
from ..features.tokens import Alone
from ..progress import watch_compilation
from ..targets.base import add_extension, ends_of
from ..targets.scheme import LabelledSpans
from ..targets.spans import SpanGroups, SpanTarget
from .annotating import Expected
from .settings import NotCopied, Setup

if TYPE_CHECKING:
    from ..decoding.decoder import Decoder, Source
    from ..model.model import CRFModel

Permitted = Mask | None


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
        found = super().__getitem__(index)
        if not isinstance(index, slice):
            return found
        found = Predictions(found)
        found.scores = None if self.scores is None else self.scores[index]
        found.of_spans = None if self.of_spans is None else self.of_spans[index]
        return found

    @property
    def span_scores(self) -> Floats | None:
        """[spans] float64, the probabilities of the spans of all Docs; or None."""
        return None if self.of_spans is None else np.concatenate([np.empty(0), *self.of_spans])


class Batch(NamedTuple):
    """The words of D Docs, as a component reads them: tokens that are no blanks.

    parts: observations or readings, by vocab, and masks of their permitted labels, or None.
    division: of the tokens of all Docs into words and blanks.
    """

    parts: list[tuple["Source", Permitted]]
    division: Division

    def words(self, arrays: Sequence[Array]) -> list[Array]:
        """Split arrays, whose rows are the words of all Docs in order, by Doc."""
        rows = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        return _split(rows, self.division.ends)

    def tokens(self, arrays: Sequence[Array], blank: Any) -> list[Array]:
        """Return the rows of all tokens, by Doc. blank: the value of tokens that are no words."""
        behind, kept = self.division.behind, self.division.kept
        if kept is None:
            return self.words(arrays)
        rows = np.concatenate(arrays)
        whole = np.full((behind[-1], *rows.shape[1:]), blank, rows.dtype)
        whole[kept] = rows
        return _split(whole, behind)


def _split(rows: Array, ends: Longs) -> list[Array]:
    if len(ends) == 1:
        return [rows]
    return [rows[first:last] for first, last in pairwise([0, *ends.tolist()])]


@dataclass
class Reader(NotCopied):
    """Reads Docs for a component.

    expected: the attributes that Docs should have; decoder: of the model.
    """

    setup: Setup
    model: "CRFModel"
    labels: tuple[str, ...]
    expected: Expected
    decoder: "Decoder"

    @cached_property
    def of_spans(self) -> bool:
        """Whether predictions have the probabilities of spans."""
        return self.setup.settings.decoding.scores or isinstance(self.setup.target, SpanGroups)

    @cached_property
    def by_span(self) -> bool:
        """Whether the probabilities of spans are computed."""
        own = self.setup.settings
        return self.of_spans or own.threshold > 0.0 or bool(own.decoding.thresholds)

    def batch(self, docs: Sequence[Doc], forced: bool, strict: bool = True) -> Batch:
        """Read Docs in parts by vocab, of which there are none without tokens.

        forced: whether to condition on existing annotation that is not overwritten; strict: whether
        masks forbid spans across empty lines.
        """
        setup = self.setup
        read, division = read_docs(setup, docs)
        if self.expected.shares and read and isinstance(setup.features, PlanFeaturizer):
            self.expected.check(setup.features.plan.watched, read)
        parts = [*self.decoder.completed(read)]
        permitted: Permitted = None
        if forced and parts:
            overwrite = setup.settings.overwrite
            permitted = setup.target.permitted(docs, self.labels, overwrite=overwrite)
        if permitted is not None and division.kept is not None:
            permitted = permitted[division.kept]
        if permitted is None and division.kept is None:
            return Batch([(part, None) for part in parts], division)
        masks: list[Permitted] = [permitted] * len(parts)
        if permitted is not None and len(parts) > 1:
            masks = [*np.split(permitted, np.cumsum([part.n_tokens for part in parts])[:-1])]
        if strict and division.kept is not None:
            masks = [self._apart(*each) for each in zip(parts, masks, strict=True)]
        return Batch([*zip(parts, masks, strict=True)], division)

    def viterbi(self, part: "Source", permitted: Permitted) -> Ints:
        """Find the best labels; see `Decoder`. No span crosses an empty line.

        The mask for that is slow, so it is used only if a span does.
        """
        labels, mask = self.decoder.viterbi(part, permitted), self._apart(part, permitted)
        if mask is permitted or mask is None or mask[np.arange(len(labels)), labels].all():
            return labels
        return self.decoder.viterbi(part, mask)

    def _apart(self, part: "Source", permitted: Permitted) -> Permitted:
        """Let no span go on behind an empty line, unless the words must have such labels."""
        apart = part.division.apart if isinstance(part, Readings) else ()
        if not len(apart) or not isinstance(self.setup.target, SpanTarget):
            return permitted
        begins = self.setup.target.valid_transitions(self.labels)[-1, :-1]  # a sequence
        shape = part.n_tokens, len(self.labels)
        mask = np.ones(shape, np.bool_) if permitted is None else permitted.copy()
        rows = mask[apart] & begins
        mask[apart] = np.where(rows.any(axis=1, keepdims=True), rows, mask[apart])
        return mask


def read_docs(
    setup: Setup, docs: Sequence[Doc], record: NameRecord | None = None, alone: Alone = None
) -> tuple[list[Any], Division]:
    """Read Docs, in parts by vocab, of which there are none without tokens.

    record: reads them instead of the features; alone: see `Alone`. RETURNS: readings, or the
    observations of a custom function; and the words of all Docs. RAISES: SparseCRFError for
    missing rows of observations.
    """
    features, mode, kept = setup.features, setup.settings.sequences, None
    parts: list[Any] = []
    if isinstance(features, PlanFeaturizer):
        read = features.readings if record is None else record.read
        parts = read(docs, mode, alone)
        if len(parts) == 1 and len(parts[0].division.ends) == len(docs):
            return parts, parts[0].division
        kept = kept_of(parts)
    elif any(map(len, docs)):
        parts.append(found := features(docs, mode))
        kept = found.kept
        n_read = sum(map(len, docs)) if kept is None else len(kept)
        if found.n_tokens != n_read:
            counts = {"n": found.n_tokens, "n_tokens": n_read}
            raise SparseCRFError(Errors.SC227.format(name=setup.name, **counts))
    behind = ends_of(docs)
    ends = behind if kept is None else kept.searchsorted(behind)
    return parts, Division(ends, behind, kept)


def make_decoder(setup: Setup, model: "CRFModel") -> "Decoder":
    """Create the decoder of a model; report if kernels have to be compiled. Imports numba."""
    from ..decoding.decoder import Decoder

    watch_compilation()
    own, valid = setup.settings.decoding, setup.transitions_of(model.labels)
    options = model, valid, own.temperature, own.preference(model.labels)
    if model.first is None:
        decoder = Decoder(*options)
    else:
        from .stack import StackedDecoder

        decoder = StackedDecoder(setup, *options)
    if not own.once:
        return decoder
    from ..decoding.once_decoder import OnceDecoder

    return OnceDecoder(decoder, setup.once(model.labels))


def predict(reader: Reader, docs: Sequence[Doc], forced: bool) -> Predictions:
    """Predict the labels of Docs with at least one token. forced: see `Reader.batch`."""
    decoding = reader.setup.settings.decoding
    method, with_scores = decoding.method, decoding.scores
    batch = reader.batch(docs, forced, strict=reader.by_span or method != "viterbi")
    if method == "viterbi" and not with_scores:
        predictions = Predictions(batch.words([reader.viterbi(*part) for part in batch.parts]))
    else:
        both = [reader.decoder.decode(part, method, mask) for part, mask in batch.parts]
        predictions = Predictions(batch.words([labels for labels, _ in both]))
        if with_scores:
            scores = [probabilities.astype(np.float32) for _, probabilities in both]
            predictions.scores = batch.tokens(scores, 1.0)
    if reader.by_span:
        found_spans = keep_likely(reader, predictions, batch)
        predictions.of_spans = found_spans if reader.of_spans else None
    if batch.division.kept is not None:
        predictions[:] = batch.tokens(predictions, reader.setup.target.blank(reader.labels))
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


def keep_likely(reader: Reader, predictions: Predictions, batch: Batch) -> list[Floats] | None:
    """Remove spans that are less probable than their threshold from predictions, in place.

    predictions: of words; batch: their input.
    RETURNS: [spans] float64 for each Doc, the probabilities of its remaining spans; None without a
        span target.
    """
    target, labels = reader.setup.target, reader.labels
    if not isinstance(target, SpanTarget):
        return None
    spans, probabilities = predicted_spans(reader, predictions, batch)
    settings = reader.setup.settings
    own_of = settings.decoding.thresholds
    if own_of or settings.threshold > 0.0:
        least = np.array([own_of.get(name, settings.threshold) for name in spans.names], np.float64)
        likely = probabilities >= least[spans.types]
        predictions[:] = target.outside(predictions, labels, spans.where(~likely))
        spans, probabilities = spans.where(likely), probabilities[likely]
    ends = np.cumsum([len(ids) for ids in predictions])
    return np.split(probabilities, np.searchsorted(spans.starts, ends[:-1]))


def predicted_spans(
    reader: Reader, label_ids: Sequence[Ints], batch: Batch
) -> tuple[LabelledSpans, Floats]:
    """Decode labels into spans, and compute their probabilities: [K] float64.

    label_ids: an array [words] for each Doc; batch: the input of their prediction.
    RETURNS: the spans, in words.
    """
    target, labels = cast("SpanTarget", reader.setup.target), reader.labels
    spans, ids = target.spans(label_ids, labels), np.concatenate(label_ids)
    found, first = [np.empty(0)], 0
    for source, permitted in batch.parts:
        last = first + source.n_tokens
        own = spans.where((spans.starts >= first) & (spans.starts < last))
        if len(own):
            run_ptr = np.append(0, np.cumsum(own.ends - own.starts))
            after = target.endings(own, labels)
            runs = LabelRuns(own.starts - first, run_ptr, ids[own.tokens()], after)
            found.append(reader.decoder.span_probability(source, runs, permitted))
        first = last
    return spans, np.concatenate(found)
