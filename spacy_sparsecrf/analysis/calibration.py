"""Calibration of probabilities: reliability, a temperature, thresholds by label.

What is judged are predicted spans, or labels of tokens: with what probability each was predicted,
and whether it is right. Of a calibrated component, of those with probability p a share p is right.
The *expected calibration error* is by how much these shares differ, on average over bins.

A threshold is the least t with

    (w + 1) / (n + 1) <= 1 - precision,    w of the n spans of at least probability t being wrong:

the share of wrong ones that calibration data have together with one more span, a wrong one. Where a
new span is exchangeable with those, it is wrong with no larger probability, given that it is kept
(conformal risk control, Angelopoulos et al. 2024, of the loss 1[kept] (1[wrong] - 1 + precision)).
That t is chosen by the same data is not counted, which matters where they are few.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.training import Example
from spacy.util import minibatch

from ..errors import Errors, SparseCRFError
from ..pages.rendering import Page
from ..pipeline.component import SparseCRFPipe
from ..pipeline.encoding import BATCH_SIZE
from ..pipeline.prediction import Predictions
from ..pipeline.settings import DecodingSettings
from ..progress import track
from ..targets.spans import SpanTarget
from .error_analysis import one_of, spans_of

N_BINS = 10
# Temperatures that are tried, and how far from 0 and 1 probabilities are held in logarithms.
_TRIED = 2.0 ** (np.arange(-4, 9) / 4.0)
_LEAST = 1e-12

Floats = NDArray[np.float64]


class Bin(NamedTuple):
    """Predictions of about one probability: the lower bound, their number, means of both."""

    low: float
    n: int
    probability: float
    right: float


@dataclass(frozen=True)
class Reliability:
    """Bins that have predictions, and the expected calibration error."""

    bins: tuple[Bin, ...]
    error: float


@dataclass(frozen=True)
class Threshold:
    """The threshold of a label, and what it does to the data that it was found by.

    n, right: predicted spans, and the share that is right; value: of the threshold, 1 where none
    leads to the wanted precision; n_kept, right_kept: of the spans that are left.
    """

    label: str
    n: int
    right: float
    value: float
    n_kept: int
    right_kept: float


@dataclass(frozen=True)
class Calibration(Page):
    """The result of a calibration, see above.

    precision: that is wanted; n: predictions that were judged; temperature: 1 where none helps;
    before, after: reliability without and with it; thresholds: by label, none for tokens.
    """

    page: ClassVar[str] = "calibration.html"
    precision: float
    n: int
    temperature: float
    before: Reliability
    after: Reliability
    thresholds: tuple[Threshold, ...]

    def decoding(self, decoding: DecodingSettings) -> DecodingSettings:
        """Settings with the temperature and the thresholds."""
        thresholds = {each.label: each.value for each in self.thresholds}
        found = {"temperature": self.temperature, "thresholds": thresholds}
        return decoding.model_copy(update=found)


class _Judged(NamedTuple):
    """Predictions: labels; probabilities [n]; right [n] bool; halves [n] bool, by their Docs."""

    labels: list[str]
    probabilities: Floats
    right: NDArray[np.bool_]
    halves: NDArray[np.bool_]


def calibrate(
    pipe: SparseCRFPipe, examples: Iterable[Example], precision: float = 0.9
) -> Calibration:
    """Find a temperature and thresholds on gold annotation that was not learnt from.

    examples: predicted Docs as the component gets them; precision: wanted, between 0 and 1.
    The component stays as it is; see `Calibration.decoding`.
    RAISES: SparseCRFError where nothing is predicted, no token has a gold label, or there are
        several chains.
    """
    pipe.check_one_chain()
    if not 0.0 < precision < 1.0:
        raise SparseCRFError(Errors.SC642.format(value=precision))
    examples = list(examples)
    plain = _judge(pipe, examples, 1.0)
    if not plain.labels:
        raise SparseCRFError(Errors.SC640.format(name=pipe.name))
    temperature = 1.0 if pipe.model.kind == "graph" else _temperature(pipe, examples)
    judged = plain if temperature == 1.0 else _judge(pipe, examples, temperature)
    thresholds: list[Threshold] = []
    if isinstance(pipe.target, SpanTarget):
        names = np.array(judged.labels)
        for label in sorted(set(judged.labels)):
            own = names == label
            found = threshold_of(judged.probabilities[own], judged.right[own], 1.0 - precision)
            thresholds.append(Threshold(label, *found))
    before, after = (reliability(each.probabilities, each.right) for each in (plain, judged))
    counts = len(plain.labels), temperature
    return Calibration(precision, *counts, before, after, tuple(thresholds))


def reliability(probabilities: Floats, right: NDArray[np.bool_]) -> Reliability:
    """Compare probabilities [n] with shares of what is right, by bins of equal width."""
    number = np.minimum((probabilities * N_BINS).astype(np.int64), N_BINS - 1)
    bins, error = [], 0.0
    for i in np.unique(number):
        p, r = probabilities[number == i], right[number == i]
        bins.append(Bin(float(i) / N_BINS, len(p), float(p.mean()), float(r.mean())))
        error += abs(float(p.sum() - r.sum()))
    return Reliability(tuple(bins), error / max(1, len(probabilities)))


def threshold_of(
    probabilities: Floats, right: NDArray[np.bool_], most_wrong: float
) -> tuple[int, float, float, int, float]:
    """Find the threshold of a label, see above. RETURNS: the fields of `Threshold` but `label`."""
    order = np.argsort(-probabilities, kind="stable")
    p, wrong = probabilities[order], np.cumsum(~right[order])
    n = np.arange(1, len(p) + 1)
    # Spans of one probability are kept together.
    last = np.append(p[1:] < p[:-1], True)
    fits = np.flatnonzero(last & ((wrong + 1) / (n + 1) <= most_wrong))
    everything = len(p), float(right.mean())
    if not len(fits):
        return *everything, 1.0, 0, 1.0
    k = int(fits[-1])
    return *everything, float(p[k]), k + 1, 1.0 - float(wrong[k]) / (k + 1)


def _temperature(pipe: SparseCRFPipe, examples: Sequence[Example]) -> float:
    """The temperature of the highest likelihood of what is right, 1 where it does not help.

    It helps if that of either half of the Docs raises the likelihood of the other half.
    """
    losses = np.array([_losses(_judge(pipe, examples, float(t))) for t in _TRIED])
    plain = int(np.flatnonzero(_TRIED == 1.0)[0])
    for half in (0, 1):
        best = int(losses[:, half].argmin())
        if losses[best, 1 - half] >= losses[plain, 1 - half]:
            return 1.0
    return _lowest(np.log(_TRIED), losses.sum(axis=1))


def _losses(judged: _Judged) -> tuple[float, float]:
    """-log of the probability of what is right and wrong, of each half of the Docs."""
    p = np.clip(judged.probabilities, _LEAST, 1.0 - _LEAST)
    loss = -np.where(judged.right, np.log(p), np.log1p(-p))
    return float(loss[judged.halves].sum()), float(loss[~judged.halves].sum())


def _lowest(x: Floats, values: Floats) -> float:
    """Exp of where a parabola through the lowest of values [m] and its neighbours is lowest."""
    i = min(max(int(values.argmin()), 1), len(x) - 2)
    a, b, _ = np.polyfit(x[i - 1 : i + 2], values[i - 1 : i + 2], 2)
    return math.exp(-b / (2.0 * a)) if a > 0.0 else math.exp(x[int(values.argmin())])


def _judge(pipe: SparseCRFPipe, examples: Sequence[Example], temperature: float) -> _Judged:
    """Predict by a temperature, without thresholds, and compare with gold annotation."""
    labels: list[str] = []
    found: list[tuple[float, bool, bool]] = []
    is_even = False
    with _predicting(pipe, temperature):
        shown = track(examples, "Judging", "docs", len(examples))
        for batch in minibatch(shown, BATCH_SIZE):  # type: ignore[no-untyped-call]
            predictions = pipe.predict([example.predicted for example in batch])
            for judgements in _judgements(pipe, batch, predictions):
                is_even = not is_even
                labels += [label for label, *_ in judgements]
                found += [(p, right, is_even) for _, p, right in judgements]
    table = np.array(found, np.float64).reshape(-1, 3)
    return _Judged(labels, table[:, 0], table[:, 1] > 0.0, table[:, 2] > 0.0)


@contextmanager
def _predicting(pipe: SparseCRFPipe, temperature: float) -> Iterator[None]:
    """Let a component predict by a temperature, with probabilities, and everything."""
    before = pipe.settings
    changes = {"scores": True, "temperature": temperature, "thresholds": {}}
    own = before.decoding.model_copy(update=changes)
    try:
        pipe.predict_by(before.model_copy(update={"threshold": 0.0, "decoding": own}))
        yield
    finally:
        pipe.predict_by(before)


def _judgements(
    pipe: SparseCRFPipe, batch: Sequence[Example], predictions: Predictions
) -> Iterator[list[tuple[str, float, bool]]]:
    """Tell of each Doc the labels, probabilities and rightness of what is predicted.

    What has tokens without gold labels is left out.
    """
    assert predictions.scores is not None
    of_spans = iter(() if predictions.span_scores is None else predictions.span_scores.tolist())
    for example, ids, scores in zip(batch, predictions, predictions.scores, strict=True):
        predicted = [pipe.label_data[i] for i in ids.tolist()]
        gold = list(map(one_of, pipe.target.gold(example), predicted))
        golden, counted = map(set, spans_of(pipe, gold, predicted))
        if isinstance(pipe.target, SpanTarget):
            spans = pipe.target.spans([ids], pipe.label_data).named()
            probabilities = list(islice(of_spans, len(spans)))
        else:
            spans = [(t, t + 1, label) for t, label in enumerate(predicted)]
            probabilities = scores.tolist()
        both = zip(spans, probabilities, strict=True)
        yield [(span[2], p, span in golden) for span, p in both if span in counted]
