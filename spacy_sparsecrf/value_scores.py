"""Scores of real-valued features, in decoding.

Imports numba.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .corpus import places
from .kernels.values import value_scores
from .model import WeightTable

Floats = NDArray[np.float64]
Table = tuple[NDArray[np.int64], Floats]


class Valued(Protocol):
    """Observations or readings of N tokens with V real-valued features."""

    @property
    def values(self) -> NDArray[np.float32]:
        """[N, V]."""

    @property
    def value_keys(self) -> NDArray[np.uint64]:
        """[V], hashes of their names."""


class ValueScores:
    """The weights of real-valued features, as a dense table for those that have any.

    unigram: the model's unigram weights; padded: Yp, the length of a row of scores.
    """

    def __init__(self, unigram: WeightTable, padded: int) -> None:
        self._unigram = unigram
        self._padded = padded
        self._last: tuple[NDArray[np.uint64], Table] | None = None

    def add(self, source: Valued, scores: Floats) -> None:
        """Add the scores of N tokens to their scores, [N, Yp]."""
        keys = source.value_keys
        if not len(keys) or not len(scores):
            return
        last = self._last
        if last is None or last[0] is not keys:
            last = self._last = keys, self._table(keys)
        columns, table = last[1]
        if len(columns):
            n = len(scores)
            value_scores(0, n, source.values, np.arange(n), columns, table, True, scores)

    def _table(self, keys: NDArray[np.uint64]) -> Table:
        """The features [R] that have weights, and these, [R, Yp]."""
        found = places(self._unigram.keys, keys)
        columns = np.flatnonzero(found >= 0)
        table = np.zeros((len(columns), self._padded))
        for row, at in zip(table, found[columns], strict=True):
            own = slice(self._unigram.indptr[at], self._unigram.indptr[at + 1])
            row[self._unigram.labels[own]] = self._unigram.values[own]
        return columns, table
