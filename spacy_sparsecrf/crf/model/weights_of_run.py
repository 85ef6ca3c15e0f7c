"""Weights of a model at the coordinates of a training run."""

from typing import Any

import numpy as np

from ..corpus.coordinates import Weights
from ..corpus.numbering import Floats, Hashes, Longs, find_keys
from .model import CRFModel, WeightNames, WeightTable


def coordinates_of(names: WeightNames, model: CRFModel) -> Weights:
    """Return the weights of the model's features and labels with names, in any order."""
    n = len(names.labels)
    number_of = {label: i for i, label in enumerate(names.labels)}
    relabel = np.array([number_of.get(label, -1) for label in model.labels], np.int64)
    clusters = np.arange(n, n + model.n_outcomes - len(model.labels))
    if (model.labels, model.bounds) != (names.labels, names.bounds):
        # Clusters correspond only if labels and bounds are the same.
        clusters = np.full_like(clusters, -1)
    outcome = np.concatenate((relabel, clusters))[model.unigram.labels]
    coding, coordinates, values = names.coding, [], []

    def collect(table: WeightTable, feature: Longs, previous: Longs, label: Longs) -> None:
        named = np.flatnonzero((feature >= 0) & (previous >= 0) & (label >= 0))
        coordinates.append(coding.encode(feature[named], previous[named], label[named]))
        values.append(table.values[named].astype(np.float64))

    feature = _features_of(model.unigram, names.unigram_keys)
    collect(model.unigram, feature, np.zeros_like(outcome), outcome)
    if names.kind != "maxent":
        start = n if names.start_label else -1
        previous = np.append(relabel, start)[model.bigram.previous]
        feature = _features_of(model.bigram, names.bigram_keys)
        feature = np.where(feature >= 0, coding.n_unigram + feature, -1)
        collect(model.bigram, feature, previous, relabel[model.bigram.labels])
    return Weights(np.concatenate(coordinates), np.concatenate(values))


def _features_of(table: WeightTable, keys: Hashes) -> Longs:
    """Return the number of the feature of each weight [n] among keys, -1 for none."""
    return np.repeat(find_keys(keys, table.keys), np.diff(table.indptr))


def with_rest(names: WeightNames, model: CRFModel, rest: CRFModel) -> CRFModel:
    """Return a model with the weights of another one, the rest, of features without names.

    rest: without clusters; its labels are labels of the model.
    """
    relabel = np.array([*map(model.labels.index, rest.labels), len(model.labels)], np.int64)
    tables = []
    for keys, table, other in (
        (names.unigram_keys, model.unigram, rest.unigram),
        (names.bigram_keys, model.bigram, rest.bigram),
    ):
        features = np.repeat(table.keys, np.diff(table.indptr))
        others = np.repeat(other.keys, np.diff(other.indptr))
        new = find_keys(keys, others) < 0
        pairs: Any = None
        if other is rest.bigram:
            pairs = np.append(table.previous, relabel[other.previous[new]])
        labels: Any = np.append(table.labels, relabel[other.labels[new]])
        values = np.append(table.values, other.values[new]).astype(model.dtype)
        tables.append(WeightTable.of(np.append(features, others[new]), pairs, labels, values))
    unigram, bigram = tables
    return model.with_weights(unigram, bigram)


def summed(*weights: Weights) -> Weights:
    """Sum weights by coordinate; the coordinates of the sums are distinct and ascending."""
    every, values = map(np.concatenate, zip(*weights, strict=True))
    coordinates, number = np.unique(every, return_inverse=True)
    sums: Floats = np.bincount(number, values, len(coordinates)).astype(np.float64)
    return Weights(coordinates, sums)
