"""Weights of a model at the coordinates of a training run."""

from typing import Any

import numpy as np

from ..corpus.numbering import Floats, Longs, find_keys
from .model import CRFModel, WeightNames, WeightTable


def coordinates_of(names: WeightNames, model: CRFModel) -> tuple[Longs, Floats]:
    """Return coordinates and weights, [n] each, of the model's features and labels with names."""
    n = len(names.labels)
    here = {label: i for i, label in enumerate(names.labels)}
    relabel = np.array([here.get(label, -1) for label in model.labels], np.int64)
    n_outcomes = n + max(0, len(names.bounds) - 1)
    clusters = np.arange(n, n + model.n_outcomes - len(model.labels))
    if (model.labels, model.bounds) != (names.labels, names.bounds):
        # Clusters correspond only if labels and bounds are the same.
        clusters = np.full_like(clusters, -1)
    outcome = np.concatenate((relabel, clusters))[model.unigram.labels]
    tables = [(model.unigram, names.unigram_keys, 0, outcome, n_outcomes)]
    if names.kind != "maxent":
        start = n if names.start_label else -1
        previous = np.append(relabel, start)[model.bigram.previous]
        label = relabel[model.bigram.labels]
        pair = np.where((previous >= 0) & (label >= 0), previous * n + label, -1)
        base = len(names.unigram_keys) * n
        tables.append((model.bigram, names.bigram_keys, base, pair, n * (n + names.start_label)))
    coordinates, values = [], []
    for table, keys, base, within, width in tables:
        feature = np.repeat(find_keys(keys, table.keys), np.diff(table.indptr))
        known = (feature >= 0) & (within >= 0)
        coordinates.append(base + feature[known] * width + within[known])
        values.append(table.values[known].astype(np.float64))
    return np.concatenate(coordinates), np.concatenate(values)


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
        features, others = (np.repeat(each.keys, np.diff(each.indptr)) for each in (table, other))
        new = find_keys(keys, others) < 0
        pairs: Any = None
        if other is rest.bigram:
            pairs = np.append(table.previous, relabel[other.previous[new]])
        labels: Any = np.append(table.labels, relabel[other.labels[new]])
        values = np.append(table.values, other.values[new]).astype(model.dtype)
        tables.append(WeightTable.of(np.append(features, others[new]), pairs, labels, values))
    unigram, bigram = tables
    return CRFModel(model.labels, model.dtype, unigram, bigram, model.kind, model.bounds)


def summed(*weights: tuple[Longs, Floats]) -> tuple[Longs, Floats]:
    """Sum weights by coordinate. RETURNS: distinct coordinates [n], ascending; sums [n]."""
    every, values = map(np.concatenate, zip(*weights, strict=True))
    coordinates, place = np.unique(every, return_inverse=True)
    sums: Floats = np.bincount(place, values, len(coordinates)).astype(np.float64)
    return coordinates, sums
