"""Counts of the training tokens that have the annotations read by features.

The counts cover annotations of earlier pipes, span groups and extension attributes, but not
attributes of the word, phrases and vectors.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .featurizer import PlanFeaturizer
from .plan import TemplatePlan

_RARE = 0.5  # share of tokens with a value, below which an attribute is rare


class Coverage:
    """Counts of the tokens that have a value of each watched attribute.

    n_tokens: number of tokens seen; counts: number of tokens with a value, by attribute; values: at
    most two different values, by attribute.
    """

    def __init__(self) -> None:
        self.n_tokens = 0
        self.counts: Counter[str] = Counter()
        self.values: dict[str, set[int]] = {}

    def add(self, plan: TemplatePlan, annotations: NDArray[np.uint64]) -> None:
        """Count tokens. annotations: [N, A], by the plan's columns, 0 = missing."""
        self.n_tokens += len(annotations)
        for name, column in plan.watched.items():
            found = annotations[:, column][annotations[:, column] != 0]
            self.counts[name] += len(found)
            if len(found):
                self._add_values(name, {int(found.min()), int(found.max())})

    def join(self, other: "Coverage") -> None:
        """Add the counts of further tokens."""
        self.n_tokens += other.n_tokens
        # Counts of 0 are kept: they mark watched attributes.
        for name, count in other.counts.items():
            self.counts[name] += count
            self._add_values(name, other.values.get(name, set()))

    def _add_values(self, name: str, values: set[int]) -> None:
        both = self.values.get(name, set()) | values
        self.values[name] = {min(both), max(both)} if both else both

    @property
    def missing(self) -> list[str]:
        """The watched attributes without a value at any token."""
        return [name for name, count in self.counts.items() if not count and self.n_tokens]

    @property
    def rare(self) -> dict[str, float]:
        """The share of tokens with a value, for attributes that most tokens lack.

        Attributes of entities and spans are excluded, because few tokens are part of one, and so
        are flags: extension attributes with one value, which are false at the other tokens.
        """
        shares = {x: p for x, p in self.shares.items() if not x.startswith(("ent_", "span("))}
        flags = {x for x in shares if x.startswith("_.") and len(self.values[x]) == 1}
        return {x: p for x, p in shares.items() if p < _RARE and x not in flags}

    @property
    def shares(self) -> dict[str, float]:
        """The share of tokens with a value, for attributes that are not missing."""
        return {name: n / self.n_tokens for name, n in self.counts.items() if n}


@contextmanager
def counted(features: Any) -> Iterator[Coverage]:
    """Count the tokens that a featurizer reads in the body; custom featurizers are not counted."""
    coverage = Coverage()
    if not isinstance(features, PlanFeaturizer):
        yield coverage
        return
    features.watch = coverage.add
    try:
        yield coverage
    finally:
        features.watch = None
