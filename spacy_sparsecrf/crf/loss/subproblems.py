"""Sub-problems of a training run, and the global coordinates of their weights.

With labels in clusters (Goodman 2002, section 3; Goodman 2001), at each token

    p(y | x) = p(c | x) p(y | x, c),  c = cluster(y),
    p(c | x) ~ exp sum_o mu[o, Y + c],  p(y | x, c) ~ exp sum_o mu[o, y] over the labels y of c,

so that, with about sqrt(Y) clusters, no sum has more than about sqrt(Y) outcomes. The loss is a sum
of parts without common weights: one part for clusters, and one part for labels given their cluster
for each cluster size, so that each part has a fixed number of outcomes. In the latter, a feature of
the whole problem is a separate feature in each cluster.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...errors import Errors, SparseCRFError
from ..corpus.coordinates import Coordinates, Weights
from ..corpus.encoded import MAX_LABELS, EncodedCorpus
from ..corpus.numbering import Longs, find_keys, grown, positions
from ..kernels.indexing import take
from ..kernels.layout import Csr
from .per_token import tokens_as_corpus


class OutcomePart(NamedTuple):
    """A problem of choosing one of n_labels outcomes, given one of G cases.

    outcomes: [G, n_labels] int64, outcomes of the whole problem; names: [O'] int64, o * G + g:
    global feature and case of each feature; coding: of the whole problem, with outcomes as labels.
    """

    outcomes: Longs
    names: Longs
    coding: Coordinates

    @property
    def n_labels(self) -> int:
        """Number of outcomes."""
        return int(self.outcomes.shape[1])

    @property
    def local(self) -> Coordinates:
        """The potential weights of the part by coordinate."""
        return Coordinates(self.n_labels, len(self.names), has_start=False)

    def to_global(self, coordinates: Longs) -> Longs:
        """Return the global coordinates, [n] int64, of local coordinates."""
        number, label = self.local.locate(coordinates)
        feature, case = np.divmod(self.names[number], len(self.outcomes))
        return self.coding.at(feature, self.outcomes[case, label])

    def to_local(self, coordinates: Longs) -> Longs:
        """Return the local coordinates, [n] int64, of global ones; -1: of other parts."""
        position = positions(self.outcomes.ravel(), self.coding.n_labels).astype(np.int64)
        feature, outcome = self.coding.locate(coordinates)
        case, label = np.divmod(position[outcome], self.n_labels)
        number = find_keys(self.names, feature * len(self.outcomes) + case)
        return np.where((case >= 0) & (number >= 0), self.local.at(number, label), -1)

    def within(self, coordinates: Longs) -> Longs:
        """Return the local coordinates, [m] int64, of the global ones [n] of this part."""
        local = self.to_local(coordinates)
        return local[local >= 0]

    def local_weights(self, weights: Weights) -> Weights:
        """Return the weights of this part, by local coordinates."""
        local = self.to_local(weights.coordinates)
        order = np.argsort(local, kind="stable")[np.count_nonzero(local < 0) :]
        return Weights(local[order], weights.values[order])


def cluster_bounds(n_labels: int, n_clusters: int) -> tuple[int, ...]:
    """Cut the labels, in their order, into clusters whose sizes differ by at most one.

    Labels must be sorted, so that labels with a common prefix, which are often related, share a
    cluster.
    RETURNS: the first label of each cluster, and n_labels at the end.
    RAISES: SparseCRFError for a negative or too large number of clusters.
    """
    if not 0 < n_clusters <= min(n_labels, MAX_LABELS - n_labels):
        error = Errors.SC344.format(value=n_clusters, n_labels=n_labels, most=MAX_LABELS)
        raise SparseCRFError(error)
    return tuple(n_labels * c // n_clusters for c in range(n_clusters + 1))


def cluster_parts(
    corpus: EncodedCorpus, bounds: Sequence[int]
) -> list[tuple[OutcomePart, EncodedCorpus]]:
    """Return the parts of a maximum entropy model with labels in clusters, and their corpora.

    corpus: of tokens, see `local_corpus`; bounds: of clusters, see `cluster_bounds`. Clusters of
    one label have no part, and a feature has no weights in a cluster in which it does not occur.
    Tokens have one gold label: the probability of a set is not a product of the probabilities of a
    cluster and of a label.
    """
    limits = np.asarray(bounds, dtype=np.int64)
    starts, sizes = limits[:-1], np.diff(limits)
    n_clusters = len(sizes)
    n_labels = int(limits[-1])
    coding = Coordinates(n_labels + n_clusters, len(corpus.unigram_keys), corpus.start_label)
    cluster = np.searchsorted(limits, corpus.labels, side="right") - 1
    everything = np.arange(corpus.n_sequences)
    clusters = np.arange(n_labels, coding.n_labels)[None]
    parts = [
        _part(corpus, everything, 0 * cluster, labels=cluster, outcomes=clusters, coding=coding)
    ]
    for size in np.unique(sizes[sizes > 1]):
        chosen = np.flatnonzero(sizes == size)
        case = np.full(n_clusters, -1)
        case[chosen] = np.arange(len(chosen))
        tokens = np.flatnonzero(case[cluster] >= 0)
        if len(tokens):
            label = corpus.labels[tokens] - starts[cluster[tokens]]
            outcomes = starts[chosen][:, None] + np.arange(size)
            of_token = case[cluster[tokens]]
            parts.append(
                _part(corpus, tokens, of_token, labels=label, outcomes=outcomes, coding=coding)
            )
    return parts


def _part(
    corpus: EncodedCorpus,
    tokens: Longs,
    case: Longs,
    *,
    labels: Longs,
    outcomes: Longs,
    coding: Coordinates,
) -> tuple[OutcomePart, EncodedCorpus]:
    """Return the part of some tokens [n], given their cases [n] and their labels [n] there."""
    n_cases = len(outcomes)
    features = take(Csr(corpus.uni_indptr, corpus.uni_indices), tokens)
    name = features.indices.astype(np.int64) * n_cases
    name += np.repeat(case, np.diff(features.indptr))
    names, number, counts = np.unique(name, return_inverse=True, return_counts=True)
    # The most frequent first, as in every corpus.
    order = np.argsort(-counts, kind="stable")
    rank = positions(order, len(order))
    families = grown(corpus.families, len(corpus.unigram_keys))[names[order] // n_cases]
    of_part = tokens_as_corpus(
        replace(corpus, families=families),
        labels=labels.astype(np.int32),
        weights=corpus.weights[tokens],
        features=Csr(features.indptr, rank[number]),
        keys=corpus.unigram_keys[names[order] // n_cases],
    )
    return OutcomePart(outcomes, names[order], coding), of_part
