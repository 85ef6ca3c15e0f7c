"""Where tests look: from the current token, from the first or from the last of its sequence."""

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

TOKEN, FIRST, BEHIND = range(3)  # from where an offset counts, see `Conjunctions`


class Placed(Protocol):
    """A test: where `absolute`, its offset is a place, 1 the first of the sequence, -1 the last."""

    @property
    def offset(self) -> int:
        """In tokens."""

    @property
    def absolute(self) -> bool:
        """Whether it does not count from the current token."""


def places_of(tests: Sequence[Placed]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets [K] of tests, and from where they count [K]."""
    places = [_place(test) for test in tests]
    offsets, anchors = np.array(places, dtype=np.int64).reshape(-1, 2).T.copy()
    return offsets, anchors


def _place(test: Placed) -> tuple[int, int]:
    if not test.absolute:
        return test.offset, TOKEN
    return (test.offset - 1, FIRST) if test.offset >= 0 else (test.offset, BEHIND)


def count_edges(tests: Iterable[Placed], boundaries: int | None) -> int:
    """How many distances from a sequence need values.

    boundaries: how many are told apart from each other and from all others, None for all.
    """
    furthest = max((abs(test.offset) for test in tests), default=0)
    return max(1, furthest if boundaries is None else min(furthest, boundaries + 1))
