"""Functions of `sklearn_crfsuite.utils`."""

from collections.abc import Iterable
from itertools import chain
from typing import Any


def flatten(y: Iterable[Iterable[Any]]) -> list[Any]:
    """Return the labels of all sequences in one list."""
    return [*chain.from_iterable(y)]
