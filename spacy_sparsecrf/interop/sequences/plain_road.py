"""Prediction in the standard library alone."""

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from operator import mul
from typing import TYPE_CHECKING, Any, NamedTuple

from ...crf.decoding.once import Once
from ...portable import Bits, Chain, PairTable, Rows
from ..crfsuite_file import CrfsuiteModel
from .items import Numbered

if TYPE_CHECKING:
    from ...crf.decoding.posterior import Posterior
    from .scoring import CompiledRoad

MOST_STEPS = 100_000
"""Steps between states in a plain search for a path without repeated names, about .05 s."""
_WIDEST = 300.0
"""Largest difference of weights of label pairs whose exponentials are summed plainly."""
_LEAST, _MASKED = -9.0, -700.0
"""Weight of a label pair whose exponential is no rounding error beside 1; that of a mask."""
_FLOAT = struct.Struct("f")


class Factor(NamedTuple):
    """Exponentials of the scores of pairs with one label.

    common: of pairs without weight, or 0 if another one is so small that rounding would hide it;
    labels, differences: of pairs with another exponential, and its difference from the common one.
    """

    common: float
    labels: Sequence[int]
    differences: Sequence[float]


class SparsePairs(PairTable):
    """Scores of label pairs most of which have no weight: these are summed once."""

    @cached_property
    def _columns(self) -> list[Factor]:
        return [*map(self._factor, self.columns)]

    @cached_property
    def _rows(self) -> list[Factor]:
        return [*map(self._factor, self.rows[:-1])]

    def _factor(self, scores: Sequence[float]) -> Factor:
        common = math.exp(-self.top) if min(scores) > _LEAST else 0.0
        labels = [y for y, x in enumerate(scores) if (x if common else x - self.top > _MASKED)]
        return Factor(common, labels, [math.exp(scores[y] - self.top) - common for y in labels])

    def forward(self, alpha: Sequence[float]) -> list[float]:
        """Compute the sums of `alpha[i] * powers[i][j]` over all i."""
        return _products(self._columns, alpha)

    def backward(self, beta: Sequence[float]) -> list[float]:
        """Compute the sums of `powers[i][j] * beta[j]` over all j, for each label i."""
        return _products(self._rows, beta)


def _products(factors: list[Factor], vector: Sequence[float]) -> list[float]:
    total, of_label = sum(vector), vector.__getitem__
    return [
        common * total + sum(map(mul, differences, map(of_label, labels)))
        for common, labels, differences in factors
    ]


class PlainSequence(Chain):
    """The distribution of the label sequences of a sequence.

    compiled: loads the kernels, and returns the distribution by them, or None without them.
    """

    n_contexts = 1  # matrices of pairs that a search of states needs

    def __init__(
        self, scores: Rows, pairs: Sequence[PairTable], compiled: Callable[[], Any]
    ) -> None:
        super().__init__(scores, pairs)
        self._compiled = compiled

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def log_z(self) -> float:
        """The logarithm of the sum over all paths of exp(score)."""
        tops = (max(row) + pairs.top for row, pairs in zip(self.scores, self.pairs, strict=True))
        # The scale of a token: the exponential of its largest score is 1 / norm.
        return sum(tops) - sum(math.log(max(powers)) for powers in self.sums[2])

    def log_probability(self, labels: Sequence[int]) -> float:
        """Compute log p(y | x) of the labels of all tokens."""
        steps = zip(self.scores, self.pairs, (-1, *labels), labels, strict=False)
        score = sum(scores[y] + pairs.rows[previous][y] for scores, pairs, previous, y in steps)
        return min(score - self.log_z, 0.0)

    def relaxed_paths(self, bits: Bits, m: int) -> list[list[int]]:
        """Find the best path without repeated names; see `Posterior.relaxed_paths`."""
        is_long = len(self) * m * len(bits[-1]) ** 2 > MOST_STEPS
        compiled = self._compiled() if is_long else None
        return [self.relaxed(bits)] if compiled is None else compiled.relaxed_paths(bits, m)


class States(dict[int, dict[int, float]]):
    """The weights of attributes, by number and label; read once."""

    def __init__(self, weights: CrfsuiteModel) -> None:
        self._weights = weights

    def __missing__(self, number: int) -> dict[int, float]:
        states = self[number] = self._weights.states(number) if number > 0 else {}
        return states


class PlainRoad:
    """Predicts plainly. load: loads the kernels; returns the road by them, or None."""

    def __init__(
        self, weights: CrfsuiteModel, once: Once | None, load: "Callable[[], CompiledRoad | None]"
    ) -> None:
        self._best = PlainSequence.labels if once is None else once.best
        self._weights, self._states = weights, States(weights)
        self._load = load

    @cached_property
    def _pairs(self) -> SparsePairs:
        """The weights of transitions."""
        n = len(self._weights.labels)
        table = [[0.0] * n for _ in range(n + 1)]
        for previous, label, weight in self._weights.transitions():
            table[previous][label] += weight
        return SparsePairs(table)

    @cached_property
    def _is_wide(self) -> bool:
        return self._pairs.top - min(map(min, self._pairs.rows)) > _WIDEST

    def chain(self, read: Numbered) -> "PlainSequence | Posterior":
        """Return the distribution of the label sequences of one sequence."""
        if self._is_wide and (road := self._load()):
            return road.chain(read)
        [chain] = self._chains(read)
        return chain

    def labels(self, read: Numbered) -> Iterator[list[int]]:
        """Yield the most probable labels of each sequence."""
        return map(self._best, self._chains(read))

    def marginals(self, read: Numbered) -> Iterator[list[list[float]]]:
        """Yield p(y_t = y | x) of each sequence: [T, Y]."""
        return (chain.marginals() for chain in self._chains(read))

    def _chains(self, read: Numbered) -> Iterator[PlainSequence]:
        scores, begin = [], 0
        weights = [*map(self._states.__getitem__, read.numbers)]
        for k, value in read.values.items():
            (x,) = _FLOAT.unpack(_FLOAT.pack(value))  # as the kernels read it
            weights[k] = {label: x * weight for label, weight in weights[k].items()}
        for size in read.sizes:
            row = [0.0] * len(self._weights.labels)
            for states in filter(None, weights[begin : begin + size]):
                for label, weight in states.items():
                    row[label] += weight
            scores.append(row)
            begin += size

        def compiled() -> Any:
            road = self._load()
            return None if road is None else road.chain(read)

        for a, b in pairwise(read.ends):
            yield PlainSequence(scores[a:b], [self._pairs] * (b - a), compiled)
