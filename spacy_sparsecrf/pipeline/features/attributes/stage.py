"""Predictions of a first-stage model, for templates that read them (Krishnan & Manning 2006).

`first` is the predicted label of the token. `doc_majority` is the most frequent predicted label of
the same word elsewhere in the Doc. `doc_entity` is the most frequent type of entities or spans
elsewhere in the Doc with the same words as the token's own. Comparisons of words ignore case.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from spacy.attrs import LOWER  # type: ignore[import-not-found]

from ....crf.corpus.numbering import Ints, Longs
from .attribute import PythonAttribute, Values

DOC_ENTITY = "doc_entity"


class FirstSpans(NamedTuple):
    """Spans predicted by a first-stage model.

    starts, ends: [K] int64, first token and end of each span; types: [K] int64, indices of names;
    names: [T] uint64, values of types.
    """

    starts: Longs
    ends: Longs
    types: Longs
    names: Values


class FirstLabels(NamedTuple):
    """Predictions of a first-stage model for the N tokens of D Docs.

    labels: [N] int32, indices of names; names: [Y] uint64, values of labels; ends: [D] int64, end
    of each Doc, in tokens; spans: encoded by the labels, None if labels encode no spans.
    """

    labels: Ints
    names: Values
    ends: Longs
    spans: FirstSpans | None = None


@dataclass(frozen=True)
class Prediction(PythonAttribute):
    """An attribute whose values `stacking` inserts, in place of missing values."""

    has_one_text = False
    needs_labels = True

    def predicted(self, words: Values, first: FirstLabels) -> Values:
        """Return the values of N tokens. words: [N], ids of their words, in lower case."""
        raise NotImplementedError


@dataclass(frozen=True)
class PredictedLabel(Prediction):
    """The predicted label of the token."""

    NAMES = ("first",)

    def predicted(self, words: Values, first: FirstLabels) -> Values:
        """See `Prediction`."""
        return first.names[first.labels]


@dataclass(frozen=True)
class LabelElsewhere(Prediction):
    """The most frequent predicted label of the same word elsewhere in the Doc."""

    NAMES = ("doc_majority",)

    @property
    def stored(self) -> tuple[int, ...]:
        """See `Attribute.stored`."""
        return (LOWER,)

    def predicted(self, words: Values, first: FirstLabels) -> Values:
        """See `Prediction`."""
        lengths = np.diff(first.ends, prepend=0)
        distinct, numbers = np.unique(words, return_inverse=True)
        groups = np.repeat(np.arange(len(lengths)), lengths) * len(distinct) + numbers
        return _named(most_elsewhere(groups, first.labels.astype(np.int64)), first.names)


@dataclass(frozen=True)
class EntityElsewhere(Prediction):
    """The most frequent type of predicted spans elsewhere in the Doc with the same words."""

    NAMES = (DOC_ENTITY,)

    @property
    def stored(self) -> tuple[int, ...]:
        """See `Attribute.stored`."""
        return (LOWER,)

    def predicted(self, words: Values, first: FirstLabels) -> Values:
        """See `Prediction`."""
        values = np.zeros(len(words), dtype=np.uint64)
        spans = first.spans
        if spans is None:
            return values
        docs = np.searchsorted(first.ends, spans.starts, side="right").tolist()
        numbers: dict[object, int] = {}
        bounds = zip(docs, spans.starts.tolist(), spans.ends.tolist(), strict=True)
        keys = ((doc, words[start:end].tobytes()) for doc, start, end in bounds)
        groups = [numbers.setdefault(key, len(numbers)) for key in keys]
        types = _named(most_elsewhere(np.array(groups, dtype=np.int64), spans.types), spans.names)
        for start, end, name in zip(spans.starts, spans.ends, types, strict=True):
            values[start:end] = name
        return values


def _named(positions: Longs, names: Values) -> Values:
    """Return the values at positions, 0 for -1."""
    return np.append(names, np.uint64(0))[positions]


def most_elsewhere(groups: Longs, values: Longs) -> Longs:
    """Return the most frequent value among the other members of each member's group.

    groups, values: [M] int64, of members, from 0.
    RETURNS: [M] int64; ties give the lowest value, groups without other members -1.
    """
    n_values = int(values.max(initial=0)) + 1
    pairs, counts = np.unique(groups * n_values + values, return_counts=True)
    of_group, of_value = np.divmod(pairs, n_values)
    order = np.lexsort((of_value, -counts, of_group))
    of_group, of_value, counts = of_group[order], of_value[order], counts[order]
    # Two sentinels, so that a group with one value has a second value, of count 0.
    n = len(order)
    of_group, of_value = np.append(of_group, (-1, -1)), np.append(of_value, (-1, -1))
    counts = np.append(counts, (0, 0))
    best = np.searchsorted(of_group[:n], groups)
    second = np.where(of_group[best + 1] == groups, best + 1, n)
    left = counts[best] - (of_value[best] == values)
    tie = (left == counts[second]) & (of_value[second] < of_value[best])
    overtaken = (of_value[best] == values) & ((left < counts[second]) | tie)
    frequent = np.where(overtaken, of_value[second], of_value[best])
    return np.where((left == 0) & (counts[second] == 0), -1, frequent)
