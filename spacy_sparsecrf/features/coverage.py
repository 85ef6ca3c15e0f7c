"""Whether annotations that features read are there: in training, and then in prediction.

Watched are attributes that come from elsewhere: annotations of earlier pipes, span groups and
extension attributes. Those of the word, phrases and vectors are not.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..corpus.readings import Readings
from .featurizer import Featurizer
from .patterns.featurizer import PatternFeaturizer
from .plan import Plan

_CHANCE = 1e-6
"""How likely tokens without a value are, taken as independent, from which nothing is amiss."""


class Coverage:
    """Counts the tokens that have a value of each watched attribute.

    n_tokens: number of tokens seen.
    """

    def __init__(self) -> None:
        self.n_tokens = 0
        self._counts: Counter[str] = Counter()

    def add(self, plan: Plan, annotations: NDArray[np.uint64]) -> None:
        """Count tokens. annotations: [N, A], by the plan's columns, 0 = missing."""
        self.n_tokens += len(annotations)
        for name, column in plan.watched.items():
            self._counts[name] += int(np.count_nonzero(annotations[:, column]))

    @property
    def missing(self) -> list[str]:
        """The attributes that no token has."""
        return [name for name, count in self._counts.items() if not count and self.n_tokens]

    @property
    def shares(self) -> dict[str, float]:
        """The share of tokens that have a value of each other attribute."""
        counts = self._counts.items()
        return {name: count / self.n_tokens for name, count in counts if count}


@contextmanager
def counted(features: Any) -> Iterator[Coverage]:
    """Count the tokens that features read meanwhile: none if they are of another kind than ours.

    RAISES: SparseCRFError for patterns that cannot be read.
    """
    coverage, featurizer = Coverage(), _featurizer(features)
    if featurizer is None:
        yield coverage
        return
    featurizer.watch = coverage.add
    try:
        yield coverage
    finally:
        featurizer.watch = None


def find_missing(
    features: Any, parts: Sequence[Any], shares: Mapping[str, float]
) -> tuple[list[str], int]:
    """Find attributes that no token has of a batch, although tokens had it in training.

    An attribute that few tokens had is missing only where many tokens have none.

    parts: what features read of the batch; shares: of training tokens, see `Coverage`.
    RETURNS: the attributes, and if there are any the number of tokens of the batch.
    """
    featurizer = _featurizer(features)
    if featurizer is None or not all(isinstance(part, Readings) for part in parts):
        return [], 0
    columns = featurizer.plan.watched
    absent = [
        name
        for name in shares
        if name in columns and not any(_has(part.annotations, columns[name]) for part in parts)
    ]
    if not absent:
        return [], 0
    n_tokens = sum(part.n_tokens for part in parts)
    return [name for name in absent if (1.0 - shares[name]) ** n_tokens < _CHANCE], n_tokens


def _has(annotations: NDArray[np.uint64], column: int) -> bool:
    """Whether any token has a value; mostly the first has, which is looked at in no time."""
    return bool(annotations[0, column] or annotations[:, column].any())


def _featurizer(features: Any) -> Featurizer | None:
    """What reads the values of features; None for features of another kind."""
    if isinstance(features, PatternFeaturizer):
        return features.featurizer
    return features if isinstance(features, Featurizer) else None
