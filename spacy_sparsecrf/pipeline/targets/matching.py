"""Comparison of predicted and gold spans: types of match, scores by label, confusions.

A label of a single token counts as a span of that token. The types of match follow SemEval-2013
task 9.1 (Segura-Bedmar et al. 2013). Each span gets its best match among overlapping spans:

    strict      the same tokens and label
    boundaries  the same tokens
    partial     1 for the same tokens, 1/2 for any other overlap
    type        the same label, and any overlap
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .spans import Span

KINDS = ("strict", "boundaries", "partial", "type")
NONE = ""  # label of a missing span


@dataclass(frozen=True)
class Rates:
    """Precision, recall and their harmonic mean.

    Attributes
    ----------
    precision, recall : float
        From 0 to 1.

    Examples
    --------
    >>> round(Rates(precision=0.5, recall=1.0).f, 3)
    0.667
    """

    precision: float
    recall: float

    @property
    def f(self) -> float:
        """The harmonic mean; 0 if precision and recall are 0."""
        total = self.precision + self.recall
        return 2.0 * self.precision * self.recall / total if total else 0.0


@dataclass(frozen=True)
class Score:
    """Scores of a label.

    Attributes
    ----------
    label : str
        The label, "" for all labels.
    n_gold, n_predicted : int
        Number of gold and of predicted spans.
    rates : dict of str to Rates
        Precision, recall and F by type of match: "strict", "boundaries", "partial" and "type".

    Examples
    --------
    >>> from spacy_sparsecrf.tools.analysis.error_analysis import find_mistakes
    >>> score = find_mistakes(pipe, examples).scores[0]
    >>> score.n_gold, score.rates["strict"].f
    (6, 1.0)
    """

    label: str
    n_gold: int
    n_predicted: int
    rates: dict[str, Rates]


class Group(NamedTuple):
    """Gold and predicted spans that are connected by overlaps; both ascending.

    A group is correct, or one error: two predicted spans in one gold span are a single error.
    """

    gold: tuple[Span, ...]
    predicted: tuple[Span, ...]

    @property
    def main(self) -> tuple[Span | None, Span | None]:
        """The gold and predicted span with the largest overlap, of several the first."""
        if not self.gold or not self.predicted:
            return next(iter(self.gold), None), next(iter(self.predicted), None)
        pairs = product(self.gold, self.predicted)
        return max(pairs, key=lambda pair: min(x[1] for x in pair) - max(x[0] for x in pair))

    @property
    def labels(self) -> tuple[str, str]:
        """The gold and the predicted label of `main`; "" for a missing span."""
        gold, predicted = (NONE if span is None else span[2] for span in self.main)
        return gold, predicted

    @property
    def extent(self) -> tuple[int, int]:
        """The first token and the end (exclusive) of the tokens that the spans cover."""
        spans = self.gold + self.predicted
        return min(span[0] for span in spans), max(span[1] for span in spans)

    @property
    def fault(self) -> str:
        """The error: "spurious", "missed", "label", "boundaries", "label and boundaries" or ""."""
        gold, predicted = self.main
        if gold is None or predicted is None:
            return "spurious" if gold is None else "missed"
        labels = "" if gold[2] == predicted[2] else "label"
        tokens = "" if gold[:2] == predicted[:2] else "boundaries"
        return " and ".join(filter(None, (labels, tokens)))


class Matches:
    """Counts matches of spans, Doc by Doc. pairs: number of groups by gold and predicted label."""

    def __init__(self) -> None:
        self.pairs: Counter[tuple[str, str]] = Counter()
        # By label: a row each for gold and predicted spans, with their number and sums of matches.
        self._sums = defaultdict[str, NDArray[np.float64]](lambda: np.zeros((2, 1 + len(KINDS))))

    def add(self, gold: Sequence[Span], predicted: Sequence[Span]) -> list[Group]:
        """Count the spans of a Doc.

        gold, predicted: each ascending and without overlaps. RETURNS: the groups, by first token.
        """
        sides = gold, predicted
        best = [np.zeros((len(spans), len(KINDS))) for spans in sides]
        for g, p in _overlapping(gold, predicted):
            same_tokens, same_label = gold[g][:2] == predicted[p][:2], gold[g][2] == predicted[p][2]
            strict, partial = same_tokens and same_label, 1.0 if same_tokens else 0.5
            of_pair = strict, same_tokens, partial, same_label
            np.maximum(best[0][g], of_pair, out=best[0][g])
            np.maximum(best[1][p], of_pair, out=best[1][p])
        for side, (spans, of_spans) in enumerate(zip(sides, best, strict=True)):
            for (*_, label), match in zip(spans, of_spans, strict=True):
                self._sums[label][side, 0] += 1
                self._sums[label][side, 1:] += match
        groups = _grouped(gold, predicted)
        self.pairs.update(group.labels for group in groups)
        return groups

    def scores(self) -> list[Score]:
        """Return the scores of all spans, then of each label by the number of gold spans."""
        total = sum(self._sums.values(), np.zeros((2, 1 + len(KINDS))))
        labels = sorted(self._sums, key=lambda label: (-self._sums[label][0, 0], label))
        return [_score(NONE, total), *(_score(x, self._sums[x]) for x in labels)]


def _score(label: str, sums: NDArray[np.float64]) -> Score:
    (n_gold, *recalled), (n_predicted, *precise) = sums.tolist()
    shares = zip(KINDS, precise, recalled, strict=True)
    rates = {
        kind: Rates(p / n_predicted if n_predicted else 0.0, r / n_gold if n_gold else 0.0)
        for kind, p, r in shares
    }
    return Score(label, int(n_gold), int(n_predicted), rates)


def _overlapping(gold: Sequence[Span], predicted: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """Yield the positions of overlapping gold and predicted spans, in ascending order."""
    n_passed = 0
    for g, (start, end, _) in enumerate(gold):
        while n_passed < len(predicted) and predicted[n_passed][1] <= start:
            n_passed += 1
        p = n_passed
        while p < len(predicted) and predicted[p][0] < end:
            yield g, p
            p += 1


def _grouped(gold: Sequence[Span], predicted: Sequence[Span]) -> list[Group]:
    """Return the groups of spans that are connected by overlaps."""
    groups: list[tuple[list[Span], list[Span]]] = []
    end = 0
    sides = [(span, side) for side, spans in enumerate((gold, predicted)) for span in spans]
    for span, side in sorted(sides, key=lambda span_and_side: span_and_side[0][0]):
        if not groups or span[0] >= end:
            groups.append(([], []))
        groups[-1][side].append(span)
        end = max(end, span[1])
    return [Group(tuple(gold), tuple(predicted)) for gold, predicted in groups]
