"""Probabilities of predicted spans, and leaving out those that are not likely."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..spans import Spans as LabelRuns
from ..targets.span_target import SpanTarget

if TYPE_CHECKING:
    from ..decoding import Decoder, Source
    from ..targets.scheme import Spans
    from .prediction import Permitted, Predictions, Reader


def keep_likely(
    decoder: "Decoder",
    reader: "Reader",
    predictions: "Predictions",
    sources: Sequence[tuple["Source", "Permitted"]],
    threshold: float,
) -> NDArray[np.float64] | None:
    """Take spans that are less probable than the threshold out of predictions.

    sources: what the predictions were made from.
    RETURNS: [K] float64, the probabilities of the spans that are left; None without spans.
    """
    target, labels = reader.target, reader.labels
    if not isinstance(target, SpanTarget):
        return None
    spans = target.spans(predictions, labels)
    ids = np.concatenate(predictions)
    found, first = [np.empty(0)], 0
    for source, permitted in sources:
        last = first + source.n_tokens
        own = spans.where((spans.starts >= first) & (spans.starts < last))
        if len(own):
            runs = _label_runs(target, own, ids, labels, first)
            found.append(decoder.span_probability(source, runs, permitted))
        first = last
    probabilities = np.concatenate(found)
    likely = probabilities >= threshold
    predictions[:] = target.outside(predictions, labels, spans.where(~likely))
    kept: NDArray[np.float64] = probabilities[likely]
    return kept


def _label_runs(
    target: SpanTarget,
    spans: "Spans",
    ids: NDArray[np.int32],
    labels: Sequence[str],
    first: int,
) -> LabelRuns:
    """What the labels of spans are. first: token at which the source begins."""
    run_ptr = np.append(0, np.cumsum(spans.ends - spans.starts))
    after = target.endings(spans, labels)
    return LabelRuns(spans.starts - first, run_ptr, ids[spans.tokens()], after)
