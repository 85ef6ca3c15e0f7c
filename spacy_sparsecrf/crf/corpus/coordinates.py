"""Coordinates: the numbers of the potential weights of a corpus.

A weight is identified by its *coordinate*, an int64: feature * Y + y for a unigram weight mu[o, y];
after all of these, (feature * P + y') * Y + y for a bigram weight lam[o, y', y], where P = Y + 1
with a start label (y' = Y) and Y without. No array is as long as the number of potential weights.
"""

from typing import NamedTuple

import numpy as np

from .encoded import EncodedCorpus
from .numbering import Floats, Longs, Mask, concatenated_ranges

NO_COORDINATES = np.empty(0, np.int64)


def distinct(coordinates: Longs) -> Longs:
    """Return distinct coordinates, ascending; faster than `np.unique`, which uses a hash table."""
    # A stable sort merges sorted runs.
    ordered = np.sort(coordinates, kind="stable")
    is_new: Mask = np.ones(len(ordered), dtype=np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_new]


class Weights(NamedTuple):
    """Weights by coordinate. coordinates: [n] int64, ascending; values: [n] float64."""

    coordinates: Longs
    values: Floats


class Coordinates(NamedTuple):
    """The potential weights of features, see the module.

    n_labels: Y; n_unigram: number of unigram features, whose numbers precede those of the bigram
    features; has_start: whether pairs with the start label have weights.
    """

    n_labels: int
    n_unigram: int
    has_start: bool

    @classmethod
    def of(cls, corpus: EncodedCorpus, n_labels: int) -> "Coordinates":
        """Return the coordinates of a corpus."""
        return cls(n_labels, len(corpus.unigram_keys), corpus.start_label)

    @property
    def n_pairs(self) -> int:
        """Number of weights of a bigram feature, P Y."""
        return (self.n_labels + self.has_start) * self.n_labels

    @property
    def first_pair(self) -> int:
        """Number of unigram weights, the first coordinate of a bigram weight."""
        return self.n_unigram * self.n_labels

    def locate(self, coordinates: Longs) -> tuple[Longs, Longs]:
        """Return the feature and the position among its weights, [n] each, of coordinates [n]."""
        feature, label = np.divmod(coordinates, self.n_labels)
        number, pair = np.divmod(coordinates - self.first_pair, self.n_pairs)
        is_pair = coordinates >= self.first_pair
        return np.where(is_pair, self.n_unigram + number, feature), np.where(is_pair, pair, label)

    def at(self, feature: Longs, position: Longs) -> Longs:
        """Return the coordinates [n]: the inverse of `locate`."""
        pairs = self.first_pair + (feature - self.n_unigram) * self.n_pairs
        begin: Longs = np.where(feature >= self.n_unigram, pairs, feature * self.n_labels)
        return begin + position

    def encode(self, feature: Longs, previous: Longs, label: Longs) -> Longs:
        """Return the coordinates [n] of features with labels, and with previous labels if bigram.

        previous: [n], ignored for unigram features.
        """
        pair = previous * self.n_labels + label
        return self.at(feature, np.where(feature >= self.n_unigram, pair, label))

    def decode(self, coordinates: Longs) -> tuple[Longs, Longs, Longs]:
        """Return the feature, the previous label, -1 = none, and the label: inverse of `encode`."""
        feature, position = self.locate(coordinates)
        previous, label = np.divmod(position, self.n_labels)
        return feature, np.where(feature >= self.n_unigram, previous, -1), label

    def complete(self, features: Longs) -> Longs:
        """Return the coordinates of all weights of features [n], ascending."""
        starts = self.at(features, np.zeros_like(features))
        return concatenated_ranges(starts, self.widths(features))

    def widths(self, features: Longs) -> Longs:
        """Return the numbers of potential weights of features [n]."""
        return np.where(features >= self.n_unigram, self.n_pairs, self.n_labels)

    def split(self, coordinates: Longs) -> int:
        """Return the number of unigram weights among coordinates [n], ascending."""
        return int(np.searchsorted(coordinates, self.first_pair))
