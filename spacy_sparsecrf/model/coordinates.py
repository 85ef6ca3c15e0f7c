"""Coordinates of weights and keys of a model, both ways."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..corpus.numbering import find_keys
from .model import CRFModel, WeightTable

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
Keys = NDArray[np.uint64]
# Arrays [n] of weights: feature hashes, previous labels, labels, values.
_Weights = tuple[Keys, Longs, Longs, NDArray[np.floating]]


@dataclass(frozen=True)
class WeightNames:
    """Mapping between the coordinates of weights (see `loss.chain`) and their hashes and labels.

    unigram_keys, bigram_keys: [O] uint64, distinct hashes of the features, index = feature id;
    labels: label names, index = label id; bounds: of clusters of labels, see `CRFModel`;
    start_label: whether pairs (start, y) exist; kind: of the model.
    """

    unigram_keys: Keys
    bigram_keys: Keys
    labels: tuple[str, ...]
    bounds: tuple[int, ...]
    start_label: bool
    kind: str

    def model(
        self,
        coordinates: Longs,
        theta: Floats,
        dtype: str,
        rest: CRFModel | None = None,
    ) -> CRFModel:
        """Return the model with the given weights.

        coordinates: [n] int64, ascending; theta: [n]; dtype: see `CRFModel`. Weights that
        underflow the dtype are dropped. rest: None, or a model without clusters, from which the
        weights of all features that are missing here are added.
        """
        n, n_outcomes = len(self.labels), len(self.labels) + max(0, len(self.bounds) - 1)
        split = len(self.unigram_keys) * n_outcomes
        unigram = coordinates < split
        pairs = coordinates[~unigram] - split
        values = theta.astype(dtype)
        feature, outcome = np.divmod(coordinates[unigram], n_outcomes)
        single = self.unigram_keys[feature], outcome, outcome, values[unigram]
        feature, pair = np.divmod(pairs, n * (n + self.start_label))
        double = self.bigram_keys[feature], pair // n, pair % n, values[~unigram]
        if rest is not None:
            single = self._joined(single, self.unigram_keys, rest.unigram, rest.labels)
            double = self._joined(double, self.bigram_keys, rest.bigram, rest.labels)
        unigrams = WeightTable.of(single[0], None, *single[2:])
        bigrams = WeightTable.of(*double)
        return CRFModel(self.labels, dtype, unigrams, bigrams, self.kind, self.bounds)

    def _joined(
        self, weights: _Weights, keys: Keys, table: WeightTable, labels: Sequence[str]
    ) -> _Weights:
        """Append a table's weights of features that are not in keys; labels: names of its ids."""
        features = np.repeat(table.keys, np.diff(table.indptr))
        new = find_keys(keys, features) < 0
        relabel = np.array([*map(self.labels.index, labels), len(self.labels)], np.int64)
        own = relabel[table.labels[new]]
        before = relabel[table.previous[new]] if len(table.previous) else own
        rest = features[new], before, own, table.values[new].astype(weights[-1].dtype)
        joined: Any = tuple(map(np.concatenate, zip(weights, rest, strict=True)))
        found: _Weights = joined
        return found

    def coordinates_of(self, model: CRFModel) -> tuple[Longs, Floats]:
        """Return coordinates and weights, [n] each, of a model's features and labels known here."""
        n = len(self.labels)
        here = {label: i for i, label in enumerate(self.labels)}
        relabel = np.array([here.get(label, -1) for label in model.labels], np.int64)
        n_outcomes = n + max(0, len(self.bounds) - 1)
        clusters = np.arange(n, n + model.n_outcomes - len(model.labels))
        if (model.labels, model.bounds) != (self.labels, self.bounds):
            # Clusters correspond only if labels and bounds are the same.
            clusters = np.full_like(clusters, -1)
        outcome = np.concatenate((relabel, clusters))[model.unigram.labels]
        tables = [(model.unigram, self.unigram_keys, 0, outcome, n_outcomes)]
        if self.kind != "maxent":
            start = n if self.start_label else -1
            previous = np.append(relabel, start)[model.bigram.previous]
            label = relabel[model.bigram.labels]
            pair = np.where((previous >= 0) & (label >= 0), previous * n + label, -1)
            base = len(self.unigram_keys) * n
            tables.append((model.bigram, self.bigram_keys, base, pair, n * (n + self.start_label)))
        coordinates, values = [], []
        for table, keys, base, within, width in tables:
            feature = np.repeat(find_keys(keys, table.keys), np.diff(table.indptr))
            known = (feature >= 0) & (within >= 0)
            coordinates.append(base + feature[known] * width + within[known])
            values.append(table.values[known].astype(np.float64))
        return np.concatenate(coordinates), np.concatenate(values)


def summed(*weights: tuple[Longs, Floats]) -> tuple[Longs, Floats]:
    """Sum weights by coordinate. RETURNS: distinct coordinates [n], ascending; sums [n]."""
    every, values = map(np.concatenate, zip(*weights, strict=True))
    coordinates, place = np.unique(every, return_inverse=True)
    sums: Floats = np.bincount(place, values, len(coordinates)).astype(np.float64)
    return coordinates, sums
