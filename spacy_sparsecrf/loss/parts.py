"""Problems into which a training run falls, and what their weights are called in the whole.

With labels in clusters (Goodman 2002, section 3; Goodman 2001), at each token

    p(y | x) = p(c | x) p(y | x, c),  c = cluster(y),
    p(c | x) ~ exp sum_o mu[o, Y + c],  p(y | x, c) ~ exp sum_o mu[o, y] over the labels y of c,

so that no sum is over more than about sqrt(Y) outcomes where there are so many clusters. The loss
is a sum of parts that share no weights: one of the clusters, and one of the labels given their
cluster, which falls apart further by the size of the clusters, so that each part has a fixed number
of outcomes. In it a test of the whole, in tokens of one cluster, is a test of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..corpus.encoded import MAX_LABELS, EncodedCorpus, find_keys
from ..errors import Errors, SparseCRFError
from .lattice import Csr, Longs, Mask
from .local import tokens_as_corpus


def places_of(coordinates: Longs, n_unigram: int, widths: tuple[int, int]) -> tuple[Longs, Longs]:
    """The test, bigram tests after unigram tests, and the place among its weights: [n] each.

    coordinates: [n] int64, see `loss.chain`; n_unigram: number of unigram tests; widths: weights of
    a unigram and of a bigram test.
    """
    base = n_unigram * widths[0]
    single = np.divmod(coordinates, widths[0])
    pair = np.divmod(coordinates - base, widths[1])
    is_pair = coordinates >= base
    return np.where(is_pair, n_unigram + pair[0], single[0]), np.where(is_pair, pair[1], single[1])


def coordinates_of(test: Longs, place: Longs, n_unigram: int, widths: tuple[int, int]) -> Longs:
    """The inverse of `places_of`."""
    pair = n_unigram * widths[0] + (test - n_unigram) * widths[1]
    found: Longs = np.where(test >= n_unigram, pair, test * widths[0]) + place
    return found


@dataclass(frozen=True)
class Part:
    """A whole problem, whose weights are called what they are.

    corpus: what the part learns from; n_labels: of the corpus.
    """

    corpus: EncodedCorpus
    n_labels: int

    @property
    def widths(self) -> tuple[int, int]:
        """Potential weights of a unigram test, and of a bigram test."""
        return self.n_labels, self.n_labels * (self.n_labels + int(self.corpus.start_label))

    @property
    def permits(self) -> Callable[[Longs], Mask] | None:
        """Tells which coordinates [n] may have weights: [n] bool; None: all of them."""
        return None

    def outer(self, coordinates: Longs) -> Longs:
        """Coordinates in the whole, [n] int64, of those in the part."""
        return coordinates

    def inner(self, coordinates: Longs) -> Longs:
        """Coordinates in the part, [n] int64, of those in the whole; -1: of other parts."""
        return coordinates


@dataclass(frozen=True)
class OutcomePart(Part):
    """A problem of some of the outcomes, in cases of equally many: given the case, one of them.

    outcomes: [G, n_labels] int64, outcomes of the whole; names: [O'] int64, o * G + g: test of the
    whole and case of each test; n_outcomes: of the whole: a weight there has the coordinate
    o * n_outcomes + outcome.
    """

    outcomes: Longs
    names: Longs
    n_outcomes: int

    def outer(self, coordinates: Longs) -> Longs:
        """Coordinates in the whole, [n] int64, of those in the part."""
        number, label = np.divmod(coordinates, self.n_labels)
        test, case = np.divmod(self.names[number], len(self.outcomes))
        found: Longs = test * self.n_outcomes + self.outcomes[case, label]
        return found

    def inner(self, coordinates: Longs) -> Longs:
        """Coordinates in the part, [n] int64, of those in the whole; -1: of other parts."""
        place = np.full(self.n_outcomes, -1, dtype=np.int64)
        place[self.outcomes.ravel()] = np.arange(self.outcomes.size)
        test, outcome = np.divmod(coordinates, self.n_outcomes)
        case, label = np.divmod(place[outcome], self.n_labels)
        number = find_keys(self.names, test * len(self.outcomes) + case)
        return np.where((case >= 0) & (number >= 0), number * self.n_labels + label, -1)


def cluster_bounds(n_labels: int, n_clusters: int) -> tuple[int, ...]:
    """Cut the labels, in their order, into clusters whose sizes differ by at most one.

    Of sorted labels those come together that begin alike, as labels of many classes mostly do.
    n_clusters: 0 for none.
    RETURNS: the first label of each cluster, and n_labels at the end; () for none.
    RAISES: SparseCRFError for less than 0 clusters, more than labels, or more than have a number.
    """
    if n_clusters == 0:
        return ()
    if not 0 < n_clusters <= min(n_labels, MAX_LABELS - n_labels):
        error = Errors.SC344.format(value=n_clusters, n_labels=n_labels, most=MAX_LABELS)
        raise SparseCRFError(error)
    return tuple(n_labels * c // n_clusters for c in range(n_clusters + 1))


def cluster_parts(corpus: EncodedCorpus, bounds: Sequence[int]) -> list[Part]:
    """The parts of a maximum entropy model with labels in clusters.

    corpus: of tokens, see `local_corpus`; bounds: of clusters, see `cluster_bounds`. Clusters of
    one label leave nothing to learn about it; and a test none in a cluster where it never occurs.
    RAISES: SparseCRFError where a token may have several gold labels: their probability is no
    product of a cluster's and a label's.
    """
    n_ambiguous = int((corpus.labels < 0).sum())
    if n_ambiguous:
        raise SparseCRFError(Errors.SC360.format(n=n_ambiguous))
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
) -> Part:
    """The part of some tokens [n], given their cases [n] and their labels [n] within these."""
    n_cases, n_labels = outcomes.shape
    tests = Csr(corpus.uni_indptr, corpus.uni_indices).take(tokens)
    name = tests.indices.astype(np.int64) * n_cases
    name += np.repeat(case, np.diff(tests.indptr))
    names, number, counts = np.unique(name, return_inverse=True, return_counts=True)
    # The most frequent first, as in every corpus.
    order = np.argsort(-counts, kind="stable")
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    own = tokens_as_corpus(
        corpus,
        labels.astype(np.int32),
        corpus.weights[tokens],
        Csr(tests.indptr, rank[number]),
        corpus.unigram_keys[names[order] // n_cases],
    )
    return OutcomePart(own, n_labels, outcomes, names[order], n_outcomes)
