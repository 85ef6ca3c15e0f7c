"""The decoder of a chain in logarithms: slow and obvious, the reference of kernels and plain road.

Their labels are the same, also if several paths have the best score.
"""

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from operator import add

Rows = Sequence[Sequence[float]]


class PlainChain:
    """The distribution of the label sequences of a chain.

    scores: [T, Y] of tokens; pairs: [T, Y + 1, Y] of label pairs, row Y: from the beginning.
    """

    def __init__(self, scores: Rows, pairs: Sequence[Rows]) -> None:
        self._scores = scores
        self._pairs = pairs

    def __len__(self) -> int:
        return len(self._scores)

    def labels(self) -> list[int]:
        """Find the most probable labels: argmax_y sum_t scores[t, y_t] + pairs[t, y_{t-1}, y_t].

        The lowest label wins a tie, of the last token first.
        """
        best: list[float] = []
        previous = []
        for scores, pairs in zip(self._scores, self._pairs, strict=True):
            if not best:
                best = [*map(add, scores, pairs[-1])]
                continue
            steps = [[*map(add, best, column)] for column in zip(*pairs[:-1], strict=True)]
            tops = [*map(max, steps)]
            previous.append([step.index(top) for step, top in zip(steps, tops, strict=True)])
            best = [*map(add, scores, tops)]
        path = [best.index(max(best))] if best else []
        for labels in reversed(previous):
            path.append(labels[path[-1]])
        return path[::-1]

    def marginals(self) -> list[list[float]]:
        """Compute p(y_t = y | x): [T, Y]."""
        ahead: list[float] = [0.0] * len(self._scores[0]) if self._scores else []
        beta = [ahead]
        for scores, pairs in zip(self._scores[:0:-1], self._pairs[:0:-1], strict=True):
            behind = [*map(add, scores, beta[-1])]
            beta.append([log_sum(map(add, row, behind)) for row in pairs[:-1]])
        # Sums of very large scores may round to more than log Z.
        return [
            [math.exp(min(a + b - self.log_z, 0.0)) for a, b in zip(alpha_t, beta_t, strict=True)]
            for alpha_t, beta_t in zip(self._alpha, reversed(beta), strict=False)
        ]

    def log_probability(self, labels: Sequence[int]) -> float:
        """Compute log p(y | x) of the labels [T]."""
        steps = zip(self._scores, self._pairs, (-1, *labels), labels, strict=False)
        score = sum(scores[y] + pairs[previous][y] for scores, pairs, previous, y in steps)
        return min(score - self.log_z, 0.0)

    @cached_property
    def log_z(self) -> float:
        """The logarithm of the sum over all paths of exp(score)."""
        return log_sum(self._alpha[-1]) if self._scores else 0.0

    @cached_property
    def _alpha(self) -> list[list[float]]:
        """The logarithms of the sums over paths up to a token with a label: [T][Y]."""
        alpha: list[list[float]] = []
        for scores, pairs in zip(self._scores, self._pairs, strict=True):
            sums = pairs[-1]
            if alpha:
                columns = zip(*pairs[:-1], strict=True)
                sums = [log_sum(map(add, alpha[-1], column)) for column in columns]
            alpha.append([*map(add, scores, sums)])
        return alpha


def log_sum(values: Iterable[float]) -> float:
    """Compute log sum_i exp(values[i])."""
    values = [*values]
    top = max(values)
    return top + math.log(sum(math.exp(value - top) for value in values))
