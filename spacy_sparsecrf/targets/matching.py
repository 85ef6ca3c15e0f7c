"""Comparison of predicted and gold spans: types of match, scores by label, confusions.

A label of a single token is a span of that token. The kinds of match are those of SemEval-2013 task
9.1 (Segura-Bedmar et al. 2013); a span counts as the best match among the spans that it overlaps:

    strict      the same tokens and label
    boundaries  the same tokens
    partial     1 for the same tokens, 1/2 for some of them
    type        the same label, and some of the same tokens
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .spans import Span

KINDS = ("strict", "boundaries", "partial", "type")
NONE = ""  # stands for the label of no span


@dataclass(frozen=True)
class Rates:
    """Precision, recall and their harmonic mean, from 0 to 1."""

    precision: float
    recall: float

    @property
    def f(self) -> float:
        """The harmonic mean, 0 where both are."""
        both = self.precision + self.recall
        return 2.0 * self.precision * self.recall / both if both else 0.0


@dataclass(frozen=True)
class Score:
    """Scores of a label.

    label: "" for all; n_gold, n_predicted: its spans; rates: by kind of match.
    """

    label: str
    n_gold: int
    n_predicted: int
    rates: dict[str, Rates]


class Pair(NamedTuple):
    """A gold span and the predicted one in its place; None where there is none."""

    gold: Span | None
    predicted: Span | None

    @property
    def labels(self) -> tuple[str, str]:
        """Both labels, "" for none."""
        gold, predicted = (NONE if span is None else span[2] for span in self)
        return gold, predicted

    @property
    def extent(self) -> tuple[int, int]:
        """The first token of both, and the one after the last."""
        spans = [span for span in self if span is not None]
        return min(span[0] for span in spans), max(span[1] for span in spans)

    @property
    def fault(self) -> str:
        """Name the fault of the predicted span in a word or two."""
        if self.gold is None or self.predicted is None:
            return "spurious" if self.gold is None else "missed"
        labels = "" if self.gold[2] == self.predicted[2] else "label"
        tokens = "" if self.gold[:2] == self.predicted[:2] else "boundaries"
        return " and ".join(filter(None, (labels, tokens)))


class Matches:
    """Counts how spans match, Doc by Doc. pairs: numbers of pairs by gold and predicted label."""

    def __init__(self) -> None:
        self.pairs: Counter[tuple[str, str]] = Counter()
        # By label: gold spans and then predicted ones, their number and the sums of their matches.
        self._sums: defaultdict[str, NDArray[np.float64]]
        self._sums = defaultdict(lambda: np.zeros((2, 1 + len(KINDS))))

    def add(self, gold: Sequence[Span], predicted: Sequence[Span]) -> list[Pair]:
        """Count spans of a Doc, which ascend and of either side do not overlap.

        RETURNS: the pairs, by their first token.
        """
        sides = gold, predicted
        best = [np.zeros((len(spans), len(KINDS))) for spans in sides]
        shared: list[tuple[int, int, int]] = []
        for g, p in _overlapping(gold, predicted):
            match = _match(gold[g], predicted[p])
            np.maximum(best[0][g], match, out=best[0][g])
            np.maximum(best[1][p], match, out=best[1][p])
            extent = min(gold[g][1], predicted[p][1]) - max(gold[g][0], predicted[p][0])
            shared.append((-extent, g, p))
        for side, (spans, of_spans) in enumerate(zip(sides, best, strict=True)):
            for (*_, label), own in zip(spans, of_spans, strict=True):
                self._sums[label][side, 0] += 1
                self._sums[label][side, 1:] += own
        found = _paired(gold, predicted, shared)
        self.pairs.update(pair.labels for pair in found)
        return found

    def scores(self) -> list[Score]:
        """The scores of all, and then of each label in alphabetical order."""
        total = sum(self._sums.values(), np.zeros((2, 1 + len(KINDS))))
        return [_score(NONE, total), *(_score(x, self._sums[x]) for x in sorted(self._sums))]


def _score(label: str, sums: NDArray[np.float64]) -> Score:
    (n_gold, *recalled), (n_predicted, *precise) = sums.tolist()
    shares = zip(KINDS, precise, recalled, strict=True)
    rates = {
        kind: Rates(p / n_predicted if n_predicted else 0.0, r / n_gold if n_gold else 0.0)
        for kind, p, r in shares
    }
    return Score(label, int(n_gold), int(n_predicted), rates)


def _match(gold: Span, predicted: Span) -> tuple[float, float, float, float]:
    """Return how far two overlapping spans match, by type of match."""
    same_tokens, same_label = gold[:2] == predicted[:2], gold[2] == predicted[2]
    return same_tokens and same_label, same_tokens, 1.0 if same_tokens else 0.5, same_label


def _overlapping(gold: Sequence[Span], predicted: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """Positions of spans with common tokens, ascending."""
    first = 0
    for g, (start, end, _) in enumerate(gold):
        while first < len(predicted) and predicted[first][1] <= start:
            first += 1
        p = first
        while p < len(predicted) and predicted[p][0] < end:
            yield g, p
            p += 1


def _paired(
    gold: Sequence[Span], predicted: Sequence[Span], shared: list[tuple[int, int, int]]
) -> list[Pair]:
    """Pair spans one to one, those first that share most tokens; the others stay alone."""
    of_gold: dict[int, int] = {}
    taken: set[int] = set()
    for _, g, p in sorted(shared):
        if g not in of_gold and p not in taken:
            of_gold[g] = p
            taken.add(p)
    found = [
        Pair(span, predicted[of_gold[g]] if g in of_gold else None) for g, span in enumerate(gold)
    ]
    found += [Pair(None, span) for p, span in enumerate(predicted) if p not in taken]
    return sorted(found, key=lambda pair: pair.extent)
