"""Observed coordinates: features with the gold labels, or label pairs, of their tokens."""

import numpy as np

from ..corpus.coordinates import Coordinates, distinct
from ..corpus.numbering import Longs, Mask, runs_of_tokens
from ..corpus.ragged import pointers, row_numbers
from ..kernels.indexing import take
from ..kernels.layout import Csr
from .lattice import Lattice, set_numbers, set_table

# From this share of its weights on, a feature block is cheaper if full: it is added as a vector.
_WORTH_ALL = 0.25
# Features of tokens whose labels are collected at once.
_CHUNK = 1 << 20


def completed(coordinates: Longs, coding: Coordinates) -> Longs:
    """Complete the feature blocks that have a share _WORTH_ALL or more of their weights."""
    features, counts = np.unique(coding.locate(coordinates)[0], return_counts=True)
    dense = features[counts >= _WORTH_ALL * coding.widths(features)]
    return distinct(np.concatenate((coordinates, coding.complete(dense))))


def observed_unigrams(lattice: Lattice, coding: Coordinates) -> Longs:
    """Return coordinates of unigram features and gold labels of their tokens, ascending.

    A token with several possible labels counts for each of these labels. A token with a missing
    label counts for none.
    """
    table, observed = set_table(lattice.sets, coding.n_labels), [np.empty(0, np.int64)]
    members = _members(table)
    sets, sites = _site_sets(lattice, coding.n_labels, len(table)), lattice.feature_sites
    for first, last in runs_of_tokens(sites.indptr, _CHUNK):
        bounds = sites.indptr[first : last + 1]
        feature = first + row_numbers(bounds)
        row, number = _expanded(sites.indices[bounds[0] : bounds[-1]].astype(np.int64), sets)
        feature, number = np.divmod(distinct(feature[row] * len(table) + number), len(table))
        # Set 0, a missing label, counts for no label.
        feature, number = feature[number > 0], number[number > 0]
        row, label = _expanded(number, members)
        observed.append(distinct(coding.at(feature[row], label)))
    return np.concatenate(observed)


def _site_sets(lattice: Lattice, n_labels: int, n_sets: int) -> Csr:
    """Return the numbers of the sets of gold labels of sites; n_sets: number of all sets."""
    numbers, bundles = set_numbers(lattice.gold, n_labels), lattice.bundle_tokens
    bundle = row_numbers(bundles.indptr)
    bundle, number = np.divmod(distinct(bundle * n_sets + numbers[bundles.indices]), n_sets)
    ends = np.searchsorted(bundle, np.arange(lattice.n_bundles + 1))
    indptr = np.append(np.arange(lattice.n_tokens), lattice.n_tokens + ends)
    return Csr(indptr, np.append(numbers, number).astype(np.int32))


def observed_values(lattice: Lattice, coding: Coordinates) -> Longs:
    """Return coordinates of real values that are not 0 at a token with a label, ascending.

    Labels as in `observed_unigrams`.
    """
    features, table = lattice.value_features, set_table(lattice.sets, coding.n_labels)
    with_set = np.zeros((len(table), len(features)), np.bool_)
    is_seen, numbers = lattice.values != 0.0, set_numbers(lattice.gold, coding.n_labels)
    for number in np.unique(numbers).tolist():
        with_set[number] = is_seen[lattice.value_rows[numbers == number]].any(axis=0)
    # Set 0, a missing label, counts for no label.
    with_label = with_set[1:].T.astype(np.float32) @ table[1:].astype(np.float32) > 0.0
    value, label = np.nonzero(with_label)
    return coding.at(features[value], label)


def observed_bigrams(lattice: Lattice, coding: Coordinates) -> Longs:
    """Return coordinates of bigram features and observed pairs, ascending.

    A pair consists of two successive tokens without missing labels, or of the start label and the
    first token.
    """
    n_labels = coding.n_labels
    table = set_table(lattice.sets, n_labels)
    members, numbers = _members(table, start=n_labels), set_numbers(lattice.gold, n_labels)
    n_sets = len(table) + 1
    previous_number = np.where(lattice.begins, len(table), np.append(0, numbers[:-1]))
    is_pair = (numbers > 0) & (previous_number > 0)
    keys = lattice.context[is_pair].astype(np.int64) * n_sets + previous_number[is_pair]
    keys, number = np.divmod(distinct(keys * n_sets + numbers[is_pair]), n_sets)
    context, previous_number = np.divmod(keys, n_sets)
    row, label = _expanded(number, members)
    context, previous_number = context[row], previous_number[row]
    row, previous = _expanded(previous_number, members)
    context, label = context[row], label[row]
    features = coding.n_unigram + take(lattice.ctx_features, context).indices.astype(np.int64)
    n_features = np.diff(lattice.ctx_features.indptr)[context]
    previous, label = np.repeat(previous, n_features), np.repeat(label, n_features)
    return distinct(coding.encode(features, previous, label))


def _members(table: Mask, start: int | None = None) -> Csr:
    """Return the labels of each set of a table [R, Y]; with `start`, append the set {start}."""
    labels = np.nonzero(table)[1]
    sizes = table.sum(axis=1)
    if start is not None:
        labels, sizes = np.append(labels, start), np.append(sizes, 1)
    return Csr(pointers(sizes), labels.astype(np.int32))


def _expanded(numbers: Longs, members: Csr) -> tuple[Longs, Longs]:
    """Expand sets: return the index in `numbers` [n] and the label, for each label of each set."""
    labels = take(members, numbers)
    return row_numbers(labels.indptr), labels.indices.astype(np.int64)
