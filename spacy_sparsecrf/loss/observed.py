"""Observed coordinates: features with the gold labels, or label pairs, of their tokens."""

import numpy as np

from ..corpus.numbering import runs_of_tokens
from ..kernels.indexing import take
from ..kernels.layout import Csr
from .lattice import Lattice, Longs, Mask, set_numbers, set_table

# From this share of its weights on, a feature block is cheaper if full: it is added as a vector.
_WORTH_ALL = 0.25
# Features of tokens whose labels are collected at once.
_CHUNK = 1 << 20


def completed(coordinates: Longs, width: int) -> Longs:
    """Complete the feature blocks that have a share _WORTH_ALL or more of their `width` weights."""
    features, counts = np.unique(coordinates // width, return_counts=True)
    full = features[counts >= _WORTH_ALL * width]
    added = (full[:, None] * width + np.arange(width)).ravel()
    return distinct(np.concatenate((coordinates, added)))


def observed_unigrams(lattice: Lattice, n_labels: int) -> Longs:
    """Return coordinates feature * Y + y of features and gold labels of their tokens, ascending.

    A token with several possible labels counts for each of these labels. A token with a missing
    label counts for none.
    """
    table, found = set_table(lattice.sets, n_labels), [np.empty(0, np.int64)]
    members = _members(table)
    sets, sites = _site_sets(lattice, n_labels, len(table)), lattice.feature_sites
    for first, last in runs_of_tokens(sites.indptr, _CHUNK):
        bounds = sites.indptr[first : last + 1]
        feature = np.repeat(np.arange(first, last), np.diff(bounds))
        row, own = _expanded(sites.indices[bounds[0] : bounds[-1]].astype(np.int64), sets)
        feature, number = np.divmod(distinct(feature[row] * len(table) + own), len(table))
        # Set 0, a missing label, counts for no label.
        feature, number = feature[number > 0], number[number > 0]
        row, label = _expanded(number, members)
        found.append(distinct(feature[row] * n_labels + label))
    return np.concatenate(found)


def _site_sets(lattice: Lattice, n_labels: int, n_sets: int) -> Csr:
    """Return the numbers of the sets of gold labels of sites; n_sets: number of all sets."""
    numbers, bundles = set_numbers(lattice.gold, n_labels), lattice.bundle_tokens
    bundle = np.repeat(np.arange(lattice.n_bundles), np.diff(bundles.indptr))
    bundle, own = np.divmod(distinct(bundle * n_sets + numbers[bundles.indices]), n_sets)
    ends = np.searchsorted(bundle, np.arange(lattice.n_bundles + 1))
    indptr = np.append(np.arange(lattice.n_tokens), lattice.n_tokens + ends)
    return Csr(indptr, np.append(numbers, own).astype(np.int32))


def observed_values(lattice: Lattice, n_labels: int) -> Longs:
    """Return coordinates feature * Y + y of real values that are not 0 at a token with label y.

    Ascending; labels as in `observed_unigrams`.
    """
    features, table = lattice.value_features, set_table(lattice.sets, n_labels)
    found = np.zeros((len(table), len(features)), np.bool_)
    is_seen, numbers = lattice.values != 0.0, set_numbers(lattice.gold, n_labels)
    for number in np.unique(numbers).tolist():
        found[number] = is_seen[lattice.value_rows[numbers == number]].any(axis=0)
    # Set 0, a missing label, counts for no label.
    seen = found[1:].T.astype(np.float32) @ table[1:].astype(np.float32) > 0.0
    value, label = np.nonzero(seen)
    return features[value] * n_labels + label


def observed_bigrams(lattice: Lattice, n_labels: int) -> Longs:
    """Return coordinates (feature * P + y') * Y + y of features and observed pairs, ascending.

    A pair consists of two successive tokens without missing labels, or of the start label and the
    first token.
    """
    table = set_table(lattice.sets, n_labels)
    members, numbers = _members(table, start=n_labels), set_numbers(lattice.gold, n_labels)
    n_sets = len(table) + 1
    before = np.where(lattice.begins, len(table), np.append(0, numbers[:-1]))
    known = (numbers > 0) & (before > 0)
    keys = lattice.context[known].astype(np.int64) * n_sets + before[known]
    rest, number = np.divmod(distinct(keys * n_sets + numbers[known]), n_sets)
    context, before = np.divmod(rest, n_sets)
    row, label = _expanded(number, members)
    context, before = context[row], before[row]
    row, previous = _expanded(before, members)
    context, pair = context[row], previous * n_labels + label[row]
    features = take(lattice.ctx_features, context).indices.astype(np.int64)
    pair = np.repeat(pair, np.diff(lattice.ctx_features.indptr)[context])
    return distinct(features * n_labels * lattice.n_previous + pair)


def _members(table: Mask, start: int | None = None) -> Csr:
    """Return the labels of each set of a table [R, Y]; with `start`, append the set {start}."""
    labels = np.nonzero(table)[1]
    sizes = table.sum(axis=1)
    if start is not None:
        labels, sizes = np.append(labels, start), np.append(sizes, 1)
    indptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return Csr(indptr, labels.astype(np.int32))


def _expanded(numbers: Longs, members: Csr) -> tuple[Longs, Longs]:
    """Expand sets: return the index in `numbers` [n] and the label, for each label of each set."""
    found = take(members, numbers)
    row = np.repeat(np.arange(len(numbers)), np.diff(found.indptr))
    return row, found.indices.astype(np.int64)


def distinct(coordinates: Longs) -> Longs:
    """Return distinct coordinates, ascending; faster than `np.unique`, which uses a hash table."""
    # A stable sort merges sorted runs.
    ordered = np.sort(coordinates, kind="stable")
    first: Mask = np.ones(len(ordered), dtype=np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]
