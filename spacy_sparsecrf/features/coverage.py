"""Checks that annotations which features read are set, in training and in prediction.

The checks cover annotations of earlier pipes, span groups and extension attributes, but not
attributes of the word, phrases and vectors.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..corpus.readings import Readings
from .featurizer import PlanFeaturizer
from .plan import TemplatePlan

_RARE = 0.5  # share of tokens: fewer than this have a value of an attribute that is mostly missing
_CHANCE = 1e-6
"""How likely tokens without a value are, taken as independent, from which nothing is amiss."""


class Coverage:
    """Counts the tokens that have a value of each watched attribute.

    n_tokens: number of tokens seen; counts: of them with a value, by attribute.
    """

    def __init__(self) -> None:
        self.n_tokens = 0
        self.counts: Counter[str] = Counter()

    def add(self, plan: TemplatePlan, annotations: NDArray[np.uint64]) -> None:
        """Count tokens. annotations: [N, A], by the plan's columns, 0 = missing."""
        self.n_tokens += len(annotations)
        for name, column in plan.watched.items():
            self.counts[name] += int(np.count_nonzero(annotations[:, column]))

    def join(self, other: "Coverage") -> None:
        """Add the counts of further tokens."""
        self.n_tokens += other.n_tokens
        # A count of 0 marks an attribute that is watched.
        for name, count in other.counts.items():
            self.counts[name] += count

    @property
    def missing(self) -> list[str]:
        """The attributes that no token has."""
        return [name for name, count in self.counts.items() if not count and self.n_tokens]

    @property
    def rare(self) -> dict[str, float]:
        """The share of tokens that have a value of each attribute that most tokens lack.

        Entities and spans have few tokens by nature, and are left out.
        """
        shares = self.shares.items()
        return {x: p for x, p in shares if p < _RARE and not x.startswith(("ent_", "span("))}

    @property
    def shares(self) -> dict[str, float]:
        """The share of tokens that have a value of each other attribute."""
        return {name: n / self.n_tokens for name, n in self.counts.items() if n}


@contextmanager
def counted(features: Any) -> Iterator[Coverage]:
    """Count the tokens that features read meanwhile: none if they are of another kind than ours."""
    coverage = Coverage()
    if not isinstance(features, PlanFeaturizer):
        yield coverage
        return
    features.watch = coverage.add
    try:
        yield coverage
    finally:
        features.watch = None


def find_missing(
    features: Any, parts: Sequence[Any], shares: Mapping[str, float]
) -> tuple[list[str], int]:
    """Find attributes that no token has of a batch, although tokens had it in training.

    An attribute that few tokens had is missing only where many tokens have none.

    parts: what features read of the batch; shares: of training tokens, see `Coverage`.
    RETURNS: the attributes, and if there are any the number of tokens of the batch.
    """
    ours = isinstance(features, PlanFeaturizer)
    if not ours or not all(isinstance(part, Readings) for part in parts):
        return [], 0
    columns = features.plan.watched
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
    """Return whether any token has a value; checks the first one first, as it mostly has."""
    return bool(annotations[0, column] or annotations[:, column].any())
