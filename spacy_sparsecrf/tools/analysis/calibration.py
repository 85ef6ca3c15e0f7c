"""Calibration of probabilities: reliability, a temperature, thresholds by label.

Predictions are spans, or labels of tokens. Each has a probability, and is right or wrong. If a
component is calibrated, a share p of the predictions with probability p is right. The *expected
calibration error* is the absolute difference of share and mean probability, averaged over bins.

For a given precision, the threshold is the least t with

    (w + 1) / (n + 1) <= 1 - precision,    w of the n spans of at least probability t being wrong,

or 0 if all predicted spans together have that precision. The left side is the share of wrong spans
after adding one wrong span to the data. A new span that is exchangeable with the spans of the data
and is kept is wrong with at most that probability (conformal risk control, Angelopoulos et al.
2024, with loss 1[kept] (1[wrong] - 1 + precision)). The bound ignores that t is chosen on the same
data, which matters if there are few spans. For the best F_beta, the threshold is the t with the
largest F_beta on the data.

A line search finds the weight of the outside label with the best F_beta of all spans (Minkov et al.
2006). A threshold only removes spans; a weight below 0 also adds spans.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Any, ClassVar, NamedTuple

import numpy as np
from spacy.training import Example
from spacy.util import minibatch

from ...crf.corpus.numbering import Floats, Mask
from ...errors import Errors, SparseCRFError, Warnings, warn
from ...pipeline.component import SparseCRFPipe
from ...pipeline.encoding import BATCH_SIZE
from ...pipeline.prediction import Predictions, no_predictions
from ...pipeline.settings import DecodingSettings
from ...pipeline.targets.spans import Span, SpanTarget
from ...progress import Task
from ..pages.rendering import Page
from .error_analysis import labels_of, spans_of

N_BINS = 10
# Temperatures to try, and the distance from 0 and 1 to which probabilities in logs are clamped.
_TRIED = 2.0 ** (np.arange(-4, 9) / 4.0)
_LEAST = 1e-12
# Step sizes of the line search for the weight of the outside label, and steps in each direction.
_STEPS = 0.5, 0.1, 0.02
_N_TRIED = 8, 4, 4


class Bin(NamedTuple):
    """A bin of predictions.

    Attributes
    ----------
    low : float
        Lower bound of the probabilities.
    n : int
        Number of predictions.
    probability : float
        Their mean probability.
    right : float
        The share that is right.

    Examples
    --------
    >>> Bin(0.9, 40, 0.95, 0.9).interval
    '0.9 to 1.0'
    """

    low: float
    n: int
    probability: float
    right: float

    @property
    def interval(self) -> str:
        """The interval of probabilities of the bin; "all" of all predictions."""
        return "all" if math.isnan(self.low) else f"{self.low:.1f} to {self.low + 1 / N_BINS:.1f}"


@dataclass(frozen=True)
class Reliability:
    """Reliability of probabilities: predictions in bins by probability.

    Attributes
    ----------
    bins : tuple of Bin
        The bins that are not empty.
    error : float
        The expected calibration error.

    Examples
    --------
    >>> Reliability((Bin(0.9, 40, 0.95, 0.9),), 0.05)
    Reliability(error=0.05)
    """

    bins: tuple[Bin, ...] = field(repr=False)
    error: float

    @property
    def overall(self) -> Bin:
        """All bins together."""
        counts = [x.n for x in self.bins]
        probability, right = np.average([x[2:] for x in self.bins], axis=0, weights=counts)
        return Bin(math.nan, sum(counts), probability=float(probability), right=float(right))


@dataclass(frozen=True)
class Threshold:
    """The threshold of a label, and its effect on the calibration data.

    Attributes
    ----------
    label : str
        The label.
    n_gold : int
        Number of gold spans.
    n : int
        Number of predicted spans.
    right : float
        The share of predicted spans that is right.
    value : float
        The threshold: 0 keeps all spans; 1 if no threshold reaches the precision.
    n_kept, right_kept : int, float
        Like `n` and `right`, for the spans that the threshold keeps.

    Examples
    --------
    >>> found = Threshold("CITY", 10, 10, 0.8, value=0.6, n_kept=8, right_kept=1.0)
    >>> [round(rate, 2) for rate in found.after]  # precision, recall, F1
    [1.0, 0.8, 0.89]
    """

    label: str
    n_gold: int
    n: int
    right: float
    value: float
    n_kept: int
    right_kept: float

    @property
    def before(self) -> tuple[float, float, float]:
        """Precision, recall and F1 of all predicted spans."""
        return _rates(self.n, self.right, self.n_gold)

    @property
    def after(self) -> tuple[float, float, float]:
        """Precision, recall and F1 of the spans that the threshold keeps."""
        return _rates(self.n_kept, self.right_kept, self.n_gold)


def _rates(n: int, right: float, n_gold: int) -> tuple[float, float, float]:
    """Return precision, nan if n = 0, recall and F1. n: number of predicted spans; right: share."""
    recall, total = n * right / max(1, n_gold), n + n_gold
    return right if n else math.nan, recall, 2.0 * n * right / max(1, total)


@dataclass(frozen=True)
class Calibration(Page):
    """The result of `calibrate`. Notebooks show it as a page.

    Attributes
    ----------
    precision, beta : float or None
        Requested for the thresholds.
    outside_weight : float
        Weight of the outside label in all of these predictions, tuned on request.
    n : int
        Number of predictions compared.
    temperature : float
        The temperature, 1 if none helps.
    before, after : Reliability
        Reliability without and with the temperature.
    thresholds : tuple of Threshold
        One for each label, with value 0 if neither was requested; empty without an outside label.
    n_gold : int
        Number of gold spans, also of labels that are never predicted.

    Examples
    --------
    >>> found = calibrate(pipe, examples)
    >>> found.n, found.after.error < found.before.error
    (6, True)
    """

    page: ClassVar[str] = "calibration.html"
    precision: float | None
    beta: float | None
    outside_weight: float
    n: int
    temperature: float
    before: Reliability
    after: Reliability
    thresholds: tuple[Threshold, ...] = field(repr=False)
    n_gold: int

    @property
    def has_thresholds(self) -> bool:
        """Whether thresholds were requested and there is an outside label."""
        return bool(self.thresholds) and (self.precision, self.beta) != (None, None)

    @property
    def overall(self) -> Threshold:
        """All labels together; the label is "", the threshold nan."""
        n = sum(x.n for x in self.thresholds)
        n_kept = sum(x.n_kept for x in self.thresholds)
        return Threshold(
            label="",
            n_gold=self.n_gold,
            n=n,
            right=sum(x.n * x.right for x in self.thresholds) / max(1, n),
            value=math.nan,
            n_kept=n_kept,
            right_kept=sum(x.n_kept * x.right_kept for x in self.thresholds) / max(1, n_kept),
        )

    def decoding(self, decoding: DecodingSettings) -> DecodingSettings:
        """Return settings with the temperature, the outside weight and requested thresholds.

        Parameters
        ----------
        decoding : DecodingSettings
            Settings of the component, `pipe.settings.decoding`.

        Returns
        -------
        DecodingSettings
            Changed settings; the given ones stay as they are.
        """
        changes: dict[str, Any] = {
            "temperature": self.temperature,
            "outside_weight": self.outside_weight,
        }
        if self.has_thresholds:
            changes["thresholds"] = {x.label: x.value for x in self.thresholds}
        return decoding.model_copy(update=changes)


class _Judged(NamedTuple):
    """Predictions: labels; probabilities [n]; right [n] bool; halves [n] bool, half of the Docs.

    gold: the number of gold spans of each label.
    """

    labels: list[str]
    probabilities: Floats
    right: Mask
    halves: Mask
    gold: Counter[str]


def calibrate(
    pipe: SparseCRFPipe,
    examples: Iterable[Example],
    precision: float | None = None,
    beta: float | None = None,
    outside_beta: float | None = None,
) -> Calibration:
    """Find a temperature, and on request thresholds, on gold annotation not used in training.

    The component is not changed; see `Calibration.decoding`.

    Parameters
    ----------
    pipe : SparseCRFPipe
        The component.
    examples : iterable of Example
        Examples whose predicted Docs have the annotation of earlier pipes.
    precision : float, optional
        Find thresholds that reach this precision, between 0 and 1.
    beta : float, optional
        Find thresholds with the best F_beta, above 0. Give at most one of the two.
    outside_beta : float, optional
        First find the weight of the outside label with the best F_beta, above 0.

    Returns
    -------
    Calibration
        The temperature, thresholds and their effects.

    Raises
    ------
    SparseCRFError
        If nothing is predicted, no token has a gold label, a precision or beta is out of
        range, or both are given.

    Examples
    --------
    >>> found = calibrate(pipe, examples, beta=1.0)
    >>> [(each.label, each.value) for each in found.thresholds]
    [('CITY', 0.0), ('PERSON', 0.0)]
    """
    _check_requests(pipe, precision=precision, beta=beta, outside=outside_beta)
    examples = list(examples)
    decoding = pipe.settings.decoding
    if outside_beta is not None:
        weight = _outside_weight(pipe, examples, outside_beta)
        decoding = decoding.model_copy(update={"outside_weight": weight})
    with Task("Comparing", "docs", (len(_TRIED) + 2) * len(examples)) as shown:

        def judge(temperature: float) -> _Judged:
            changed = decoding.model_copy(update={"temperature": temperature})
            return _judge(pipe, examples, changed, shown)

        plain = judge(1.0)
        if not plain.labels:
            raise SparseCRFError(Errors.SC640.format(name=pipe.name))
        temperature = _temperature(judge)
        judged = plain if temperature == 1.0 else judge(temperature)
    thresholds: list[Threshold] = []
    if pipe.target.outside_label:
        thresholds = _thresholds(judged, precision, beta)
        never = sorted({*judged.gold} - {*judged.labels})
        if never:
            types = ", ".join(f"{label} ({judged.gold[label]})" for label in never)
            warn(Warnings.SCW641.format(name=pipe.name, types=types))
    return Calibration(
        precision=precision,
        beta=beta,
        outside_weight=decoding.outside_weight,
        n=len(plain.labels),
        temperature=temperature,
        before=reliability(plain.probabilities, plain.right),
        after=reliability(judged.probabilities, judged.right),
        thresholds=tuple(thresholds),
        n_gold=judged.gold.total(),
    )


def _check_requests(pipe: SparseCRFPipe, **requests: float | None) -> None:
    """Check the arguments of `calibrate`. RAISES: SparseCRFError."""
    numbers = {key: value for key, value in requests.items() if value is not None}
    limits = {"precision": 1.0}
    fits = all(0.0 < value < limits.get(key, math.inf) for key, value in numbers.items())
    has_others = bool(pipe.target.outside_label)
    if not fits or (numbers and not has_others) or {"precision", "beta"} <= numbers.keys():
        raise SparseCRFError(Errors.SC644.format(name=pipe.name, **requests))


def _thresholds(judged: _Judged, precision: float | None, beta: float | None) -> list[Threshold]:
    """Find the threshold of each label that is predicted."""
    names = np.array(judged.labels)
    thresholds = []
    for label in sorted({*judged.labels}):
        has_label = names == label
        thresholds.append(
            threshold_of(
                label,
                judged.probabilities[has_label],
                right=judged.right[has_label],
                n_gold=judged.gold[label],
                precision=precision,
                beta=beta,
            )
        )
    return thresholds


def _outside_weight(pipe: SparseCRFPipe, examples: Sequence[Example], beta: float) -> float:
    """Find the weight of the outside label with the best F_beta; see `calibrate`."""
    with Task("Weighing", "docs", (2 * sum(_N_TRIED) + 1) * len(examples)) as shown:

        def f_beta(weight: float) -> float:
            changed = pipe.settings.decoding.model_copy(update={"outside_weight": weight})
            judged = _judge(pipe, examples, changed, shown)
            counted = len(judged.labels) + beta**2 * judged.gold.total()
            return (1.0 + beta**2) * int(judged.right.sum()) / max(1.0, counted)

        return best_weight(f_beta)


def best_weight(score: Callable[[float], float]) -> float:
    """Find the weight with the largest score on successively finer grids, 0 if none is better.

    Of equal scores, the weight nearest to the middle of its grid wins.
    """
    score = cache(score)
    best = 0.0
    for step, n in zip(_STEPS, _N_TRIED, strict=True):
        steps = sorted(range(n, -n - 1, -1), key=abs)
        best = max((round(best + i * step, 6) for i in steps), key=score)
    return best


def reliability(probabilities: Floats, right: Mask) -> Reliability:
    """Compare probabilities [n] with the share of right predictions, in bins of equal width."""
    number = np.minimum((probabilities * N_BINS).astype(np.int64), N_BINS - 1)
    bins = []
    error = 0.0
    for i in np.unique(number):
        p, are_right = probabilities[number == i], right[number == i]
        share = float(are_right.mean())
        bins.append(Bin(float(i) / N_BINS, len(p), probability=float(p.mean()), right=share))
        error += abs(float(p.sum() - are_right.sum()))
    return Reliability(tuple(bins), error / max(1, len(probabilities)))


def threshold_of(
    label: str,
    probabilities: Floats,
    *,
    right: Mask,
    n_gold: int,
    precision: float | None = None,
    beta: float | None = None,
) -> Threshold:
    """Find the threshold of a label, see the module's docstring; of equal ones, the lowest.

    F_beta = (1 + beta^2) r / (k + beta^2 n_gold), where r of the k kept spans are right. Without a
    precision or beta, all spans are kept.
    """
    order = np.argsort(-probabilities, kind="stable")
    p, wrong, n = probabilities[order], np.cumsum(1 - right[order]), len(order)
    counts = np.arange(1, n + 1)
    between = np.append(p[1:] < p[:-1], True)  # ties are kept or removed together
    if beta is not None:
        f = np.where(between, (counts - wrong) / (counts + beta**2 * n_gold), -1.0)
        fits = f == f.max()
    else:
        most_wrong = 1.0 if precision is None else 1.0 - precision
        fits = between & ((wrong + 1) / (counts + 1) <= most_wrong)
        fits[-1] |= wrong[-1] <= most_wrong * n
    k = int(counts[fits].max(initial=0))
    return Threshold(
        label,
        n_gold=n_gold,
        n=n,
        right=1.0 - float(wrong[-1]) / n,
        value=0.0 if k == n else float(p[k - 1]) if k else 1.0,
        n_kept=k,
        right_kept=1.0 - float(wrong[k - 1]) / k if k else 1.0,
    )


def _temperature(judge: Callable[[float], _Judged]) -> float:
    """Return the temperature with the highest likelihood of the outcomes, 1 if none helps.

    It helps if the best temperature of each half of the Docs raises the other half's likelihood.
    """
    losses = np.array([_losses(judge(float(t))) for t in _TRIED])
    plain = int(np.flatnonzero(_TRIED == 1.0)[0])
    for half in (0, 1):
        best = int(losses[:, half].argmin())
        if losses[best, 1 - half] >= losses[plain, 1 - half]:
            return 1.0
    return _lowest(np.log(_TRIED), losses.sum(axis=1))


def _losses(judged: _Judged) -> tuple[float, float]:
    """Return the log loss of the outcomes, right or wrong, for each half of the Docs."""
    p = np.clip(judged.probabilities, _LEAST, 1.0 - _LEAST)
    loss = -np.where(judged.right, np.log(p), np.log1p(-p))
    return float(loss[judged.halves].sum()), float(loss[~judged.halves].sum())


def _lowest(x: Floats, values: Floats) -> float:
    """Return exp of the minimum of a parabola through the lowest value [m] and its neighbours."""
    i = min(max(int(values.argmin()), 1), len(x) - 2)
    a, b, _ = np.polyfit(x[i - 1 : i + 2], values[i - 1 : i + 2], 2)
    return math.exp(-b / (2.0 * a)) if a > 0.0 else math.exp(x[int(values.argmin())])


def _judge(
    pipe: SparseCRFPipe, examples: Sequence[Example], decoding: DecodingSettings, shown: Task
) -> _Judged:
    """Predict with other settings of decoding, without thresholds, and compare with gold."""
    decoding = decoding.model_copy(update={"scores": True, "thresholds": {}})
    predictor = pipe.predictor().with_decoding(0.0, decoding)
    labels: list[str] = []
    outcomes: list[tuple[float, bool, bool]] = []
    counts: Counter[str] = Counter()
    is_even = False
    for batch in minibatch(examples, BATCH_SIZE):  # type: ignore[no-untyped-call]
        docs = [example.predicted for example in batch]
        has_tokens = any(map(len, docs))
        predictions = (
            predictor.predict(docs, forced=True) if has_tokens else no_predictions(len(docs), True)
        )
        shown.update(len(batch))
        for golden, judgements in _judgements(pipe, batch, predictions):
            is_even = not is_even
            counts.update(label for *_, label in golden)
            labels += [label for label, *_ in judgements]
            outcomes += [(p, right, is_even) for _, p, right in judgements]
    table = np.array(outcomes, np.float64).reshape(-1, 3)
    return _Judged(
        labels,
        probabilities=table[:, 0],
        right=table[:, 1] > 0.0,
        halves=table[:, 2] > 0.0,
        gold=counts,
    )


def _judgements(
    pipe: SparseCRFPipe, batch: Sequence[Example], predictions: Predictions
) -> Iterator[tuple[set[Span], list[tuple[str, float, bool]]]]:
    """Yield for each Doc the gold spans, and (label, probability, is right) of each prediction.

    Predictions on tokens without gold labels are ignored.
    """
    assert predictions.scores is not None
    of_spans = iter(() if predictions.span_scores is None else predictions.span_scores.tolist())
    for example, ids, scores in zip(batch, predictions, predictions.scores, strict=True):
        gold, predicted = labels_of(pipe, example, ids)
        golden, counted = map(set, spans_of(pipe, gold, predicted))
        if isinstance(pipe.target, SpanTarget):
            spans = pipe.target.spans([ids], pipe.label_data).named()
            probabilities = list(islice(of_spans, len(spans)))
        else:
            spans = [(t, t + 1, label) for t, label in enumerate(predicted)]
            probabilities = scores.tolist()
        yield (
            golden,
            [
                (span[2], p, span in golden)
                for span, p in zip(spans, probabilities, strict=True)
                if span in counted
            ],
        )
