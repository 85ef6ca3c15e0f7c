"""Sub-problems of a training run, and the global coordinates of their weights.

With labels in clusters (Goodman 2002, section 3; Goodman 2001), at each token

    p(y | x) = p(c | x) p(y | x, c),  c = cluster(y),
    p(c | x) ~ exp sum_o mu[o, Y + c],  p(y | x, c) ~ exp sum_o mu[o, y] over the labels y of c,

so that, with about sqrt(Y) clusters, no sum has more than about sqrt(Y) outcomes. The loss is a sum
of parts without common weights: one part for clusters, and one part for labels given their cluster
for each cluster size, so that each part has a fixed number of outcomes. In the latter, a feature of
the whole problem is a separate feature in each cluster.

A sub-problem can also drop features, for example features whose weights are zero at every minimum
(see `corpus.transform`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..corpus.csr import Csr
from ..corpus.encoded import MAX_LABELS, EncodedCorpus
from ..corpus.numbering import find_ascending, find_keys, positions
from ..corpus.transform import reduced, weights_of_features
from ..errors import Errors, SparseCRFError
from .lattice import Floats, Longs, Mask
from .per_token import tokens_as_corpus


def places_of(coordinates: Longs, n_unigram: int, widths: tuple[int, int]) -> tuple[Longs, Longs]:
    """Return the feature (bigram after unigram features) and the position in its block: [n] each.

    coordinates: [n] int64, see `loss.chain`; n_unigram: number of unigram features; widths: weights
    of a unigram and of a bigram feature.
    """
    base = n_unigram * widths[0]
    single = np.divmod(coordinates, widths[0])
    pair = np.divmod(coordinates - base, widths[1])
    is_pair = coordinates >= base
    return np.where(is_pair, n_unigram + pair[0], single[0]), np.where(is_pair, pair[1], single[1])


def coordinates_of(feature: Longs, place: Longs, n_unigram: int, widths: tuple[int, int]) -> Longs:
    """Return coordinates: the inverse of `places_of`."""
    pair = n_unigram * widths[0] + (feature - n_unigram) * widths[1]
    found: Longs = np.where(feature >= n_unigram, pair, feature * widths[0]) + place
    return found


@dataclass(frozen=True)
class Part:
    """A whole problem, whose local coordinates are global.

    n_unigram: number of unigram features; widths: potential weights of a unigram feature, one for
    each label, and of a bigram feature.
    """

    n_unigram: int
    widths: tuple[int, int]

    @classmethod
    def of(cls, corpus: EncodedCorpus, n_labels: int) -> "Part":
        """Return the whole problem of a corpus."""
        widths = n_labels, n_labels * (n_labels + int(corpus.start_label))
        return cls(len(corpus.unigram_keys), widths)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.widths[0]

    def to_global(self, coordinates: Longs) -> Longs:
        """Return the global coordinates, [n] int64, of local coordinates."""
        return coordinates

    def to_local(self, coordinates: Longs) -> Longs:
        """Return the local coordinates, [n] int64, of global ones; -1: of other parts."""
        return coordinates

    def local_weights(self, coordinates: Longs, values: Floats) -> tuple[Longs, Floats]:
        """Return the local coordinates, ascending, and values of the weights [n] of this part."""
        inner = self.to_local(coordinates)
        kept = np.flatnonzero(inner >= 0)
        order = kept[np.argsort(inner[kept])]
        return inner[order], values[order]


@dataclass(frozen=True)
class OutcomePart(Part):
    """A problem of choosing one of n_labels outcomes, given one of G cases.

    outcomes: [G, n_labels] int64, outcomes of the whole problem; names: [O'] int64, o * G + g:
    global feature and case of each feature; n_outcomes: of the whole problem, where a weight has
    the coordinate o * n_outcomes + outcome.
    """

    outcomes: Longs
    names: Longs
    n_outcomes: int

    def to_global(self, coordinates: Longs) -> Longs:
        """Return the global coordinates, [n] int64, of local coordinates."""
        number, label = np.divmod(coordinates, self.n_labels)
        feature, case = np.divmod(self.names[number], len(self.outcomes))
        found: Longs = feature * self.n_outcomes + self.outcomes[case, label]
        return found

    def to_local(self, coordinates: Longs) -> Longs:
        """Return the local coordinates, [n] int64, of global ones; -1: of other parts."""
        place = positions(self.outcomes.ravel(), self.n_outcomes).astype(np.int64)
        feature, outcome = np.divmod(coordinates, self.n_outcomes)
        case, label = np.divmod(place[outcome], self.n_labels)
        number = find_keys(self.names, feature * len(self.outcomes) + case)
        return np.where((case >= 0) & (number >= 0), number * self.n_labels + label, -1)


def cluster_bounds(n_labels: int, n_clusters: int) -> tuple[int, ...]:
    """Cut the labels, in their order, into clusters whose sizes differ by at most one.

    Labels must be sorted, so that labels with a common prefix, which are often related, share a
    cluster. n_clusters: 0 for none.
    RETURNS: the first label of each cluster, and n_labels at the end; () for none.
    RAISES: SparseCRFError for a negative or too large number of clusters.
    """
    if n_clusters == 0:
        return ()
    if not 0 < n_clusters <= min(n_labels, MAX_LABELS - n_labels):
        error = Errors.SC344.format(value=n_clusters, n_labels=n_labels, most=MAX_LABELS)
        raise SparseCRFError(error)
    return tuple(n_labels * c // n_clusters for c in range(n_clusters + 1))


def cluster_parts(corpus: EncodedCorpus, bounds: Sequence[int]) -> list[tuple[Part, EncodedCorpus]]:
    """Return the parts of a maximum entropy model with labels in clusters, and their corpora.

    corpus: of tokens, see `local_corpus`; bounds: of clusters, see `cluster_bounds`. Clusters of
    one label have no part, and a feature has no weights in a cluster in which it does not occur.
    Tokens have one gold label: the probability of a set is not a product of the probabilities of a
    cluster and of a label.
    """
    limits = np.asarray(bounds, dtype=np.int64)
    starts, sizes = limits[:-1], np.diff(limits)
    n_clusters = len(sizes)
    n_outcomes = int(limits[-1]) + n_clusters
    cluster = np.searchsorted(limits, corpus.labels, side="right") - 1
    everything = np.arange(corpus.n_sequences)
    outcomes = np.arange(int(limits[-1]), n_outcomes)[None]
    parts = [_part(corpus, everything, 0 * cluster, cluster, outcomes, n_outcomes)]
    for size in np.unique(sizes[sizes > 1]):
        chosen = np.flatnonzero(sizes == size)
        case = np.full(n_clusters, -1)
        case[chosen] = np.arange(len(chosen))
        tokens = np.flatnonzero(case[cluster] >= 0)
        if len(tokens):
            label = corpus.labels[tokens] - starts[cluster[tokens]]
            outcomes = starts[chosen][:, None] + np.arange(size)
            of_token = case[cluster[tokens]]
            parts.append(_part(corpus, tokens, of_token, label, outcomes, n_outcomes))
    return parts


def _part(
    corpus: EncodedCorpus,
    tokens: Longs,
    case: Longs,
    labels: Longs,
    outcomes: Longs,
    n_outcomes: int,
) -> tuple[Part, EncodedCorpus]:
    """Return the part of some tokens [n], given their cases [n] and their labels [n] there."""
    n_cases, n_labels = outcomes.shape
    features = Csr(corpus.uni_indptr, corpus.uni_indices).take(tokens)
    name = features.indices.astype(np.int64) * n_cases
    name += np.repeat(case, np.diff(features.indptr))
    names, number, counts = np.unique(name, return_inverse=True, return_counts=True)
    # The most frequent first, as in every corpus.
    order = np.argsort(-counts, kind="stable")
    rank = positions(order, len(order))
    own = tokens_as_corpus(
        corpus,
        labels.astype(np.int32),
        corpus.weights[tokens],
        Csr(features.indptr, rank[number]),
        corpus.unigram_keys[names[order] // n_cases],
    )
    whole = Part.of(own, n_labels)
    part = OutcomePart(whole.n_unigram, whole.widths, outcomes, names[order], n_outcomes)
    return part, own


@dataclass(frozen=True)
class ReducedPart(Part):
    """A problem with a subset of the features of a part.

    whole: the part; features: [n] int64, the subset, ascending, bigram after unigram features.
    """

    whole: Part
    features: Longs

    @classmethod
    def of_features(cls, whole: Part, features: Longs) -> "ReducedPart":
        """Return the problem with a subset of the features of a part."""
        n_unigram = int(np.searchsorted(features, whole.n_unigram))
        return cls(n_unigram, whole.widths, whole, features)

    def to_global(self, coordinates: Longs) -> Longs:
        """Return the global coordinates, [n] int64, of local coordinates."""
        feature, place = places_of(coordinates, self.n_unigram, self.widths)
        there = self.features[feature], place, self.whole.n_unigram, self.widths
        return self.whole.to_global(coordinates_of(*there))

    def to_local(self, coordinates: Longs) -> Longs:
        """Return local coordinates, [n] int64, of global ones; -1: of another part, or dropped."""
        found = self.whole.to_local(coordinates)
        feature, place = places_of(found, self.whole.n_unigram, self.widths)
        own = find_ascending(self.features, feature)
        known = (found >= 0) & (own >= 0)
        return np.where(known, coordinates_of(own, place, self.n_unigram, self.widths), -1)


def permits(whole: Part, part: Part, limited: Longs, coordinates: Longs) -> Mask:
    """Return which coordinates [n] of a part may have weights: [n] bool.

    whole: the whole problem; limited: [m] int64, ascending, feature of the whole problem * Y + y:
    features listed there have weights for these labels y only, with any previous label.
    """
    n = whole.n_labels
    feature, place = places_of(part.to_global(coordinates), whole.n_unigram, whole.widths)
    bounds = np.searchsorted(limited, feature * n)
    # A sentinel after the last one.
    is_whole: Mask = np.append(limited, -1)[bounds] // n != feature
    return is_whole | (find_ascending(limited, feature * n + place % n) >= 0)


def without_idle_features(
    part: Part, corpus: EncodedCorpus, l1: float, known: Longs | None = None
) -> tuple[Part, EncodedCorpus]:
    """Remove the features whose weights must be zero at the minimum from a part and its corpus.

    known: [n] int64, global coordinates of initial weights, whose features are kept.
    """
    kept = np.concatenate(weights_of_features(corpus)) > l1
    # Counts do not bound the gradients of real values.
    kept[corpus.value_features] = True
    if known is not None:
        inner = part.to_local(known)
        kept[places_of(inner[inner >= 0], part.n_unigram, part.widths)[0]] = True
    if kept.all():
        return part, corpus
    features = np.flatnonzero(kept)
    return ReducedPart.of_features(part, features), reduced(corpus, features)
