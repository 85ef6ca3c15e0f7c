"""The problem of some of a corpus's tests: all others are as if they were not there."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .parts import Part, coordinates_of, places_of

Longs = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class AdmittedPart(Part):
    """The problem of the tests that are admitted.

    tests: [U' + B'] int64, their numbers in the whole, ascending; n_unigram: U of the whole;
    n_outcomes, n_pairs: weights of a unigram and of a bigram test; with_labels: [n] int64,
    ascending, test of the whole * Y + y: tests that are there have weights with these labels y
    only, and any y' before. Coordinates: see `loss.chain`.
    """

    tests: Longs
    n_unigram: int
    n_outcomes: int
    n_pairs: int
    with_labels: Longs

    @property
    def _split(self) -> int:
        return int(np.searchsorted(self.tests, self.n_unigram))

    @property
    def _widths(self) -> tuple[int, int]:
        return self.n_outcomes, self.n_pairs

    @property
    def permits(self) -> Callable[[Longs], Mask] | None:
        """Tells which coordinates [n] may have weights: [n] bool; None: all of them."""
        return self._has if len(self.with_labels) else None

    def _has(self, coordinates: Longs) -> Mask:
        own, place = places_of(coordinates, self._split, self._widths)
        test = self.tests[own]
        bounds = np.searchsorted(self.with_labels, test * self.n_labels)
        # Behind the last there is none.
        known = np.append(self.with_labels, -1)
        whole: Mask = known[bounds] // self.n_labels != test
        pair = test * self.n_labels + place % self.n_labels
        whole |= known[np.searchsorted(self.with_labels, pair)] == pair
        return whole

    def outer(self, coordinates: Longs) -> Longs:
        """Coordinates in the whole, [n] int64, of those in the part."""
        test, place = places_of(coordinates, self._split, self._widths)
        return coordinates_of(self.tests[test], place, self.n_unigram, self._widths)

    def inner(self, coordinates: Longs) -> Longs:
        """Coordinates in the part, [n] int64, of those in the whole; -1: not admitted."""
        test, place = places_of(coordinates, self.n_unigram, self._widths)
        own = np.searchsorted(self.tests, test)
        known = np.append(self.tests, -1)[own] == test
        return np.where(known, coordinates_of(own, place, self._split, self._widths), -1)
