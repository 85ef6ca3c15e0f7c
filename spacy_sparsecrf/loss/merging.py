"""Tests that are true of the same tokens: one weight is learnt in place of theirs.

The loss depends on the sum s of the weights of m such tests alone, and among those with this sum
the elastic net is least where all are s / m, with m |s / m| l1 = |s| l1 and m (s / m)^2 l2 / 2 =
(l2 / m) s^2 / 2: the minimiser is that of one weight s with l2 / m, divided among the tests.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..corpus import EncodedCorpus
from ..kernels.layout import sum_columns
from ..penalty import ElasticNet, MergedNet
from .dropping import KeptPart, reduced
from .lattice import concatenated_ranges
from .parts import Part, coordinates_of, places_of

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

# Sums of so many random numbers, of 53 bits each, tell tests apart: that two different ones have
# the same sums has a probability of about 2^-100.
_N_SUMS = 2
_SEED = 0


@dataclass(frozen=True)
class MergedPart(KeptPart):
    """A problem of one of the part's tests each that are true of the same tokens.

    owners: of unigram and of bigram tests of the part, [U] and [B] int64: the place among the
    tests kept of the one that stands for them; counts: for how many tests each kept one stands.
    """

    owners: tuple[Longs, Longs]
    counts: tuple[Longs, Longs]

    @property
    def _numbers(self) -> tuple[Longs, Longs]:
        return self.owners

    def penalty(self, penalty: ElasticNet) -> ElasticNet:
        """What the penalty of the part's weights is for those that stand for several."""
        return MergedNet(penalty.l1, penalty.l2, self.shares)

    def shares(self, coordinates: Longs) -> Floats:
        """The share [n] of a weight that each of the tests gets for which it stands."""
        tests, _ = places_of(coordinates, len(self.unigram), self._widths)
        return 1.0 / np.concatenate(self.counts)[tests]

    def spread(self, coordinates: Longs, theta: Floats) -> tuple[Longs, Floats]:
        """Divide weights among the tests that they stand for.

        coordinates [n] int64, theta [n]: of the problem. RETURNS: those of the whole, ascending.
        """
        tests, place = places_of(coordinates, len(self.unigram), self._widths)
        owners = np.concatenate((self.owners[0], len(self.unigram) + self.owners[1]))
        order, counts = np.argsort(owners, kind="stable"), np.concatenate(self.counts)
        n = counts[tests]
        source = np.repeat(np.arange(len(tests)), n)
        copies = order[concatenated_ranges((np.cumsum(counts) - counts)[tests], n)]
        own = coordinates_of(copies, place[source], len(self.owners[0]), self._widths)
        found = self.part.outer(own)
        ascending = np.argsort(found, kind="stable")
        return found[ascending], (theta / n)[source][ascending]


def merged(part: Part) -> Part:
    """Merge the tests of a part that are true of the same tokens.

    part: without `permits`. RETURNS: the part itself where there are none.
    """
    corpus = part.corpus
    unigram, bigram = map(_classes, _sums_of_tests(corpus))
    kept, owners, counts = zip(unigram, bigram, strict=True)
    if all((count == 1).all() for count in counts):
        return part
    return MergedPart(reduced(corpus, *kept), part.n_labels, part, kept[0], kept[1], owners, counts)


def _classes(sums: Floats) -> tuple[Longs, Longs, Longs]:
    """Classes of equal columns of sums [_N_SUMS + 1, n].

    RETURNS: the first of each class, ascending; the class of each column; columns of each class.
    """
    _, first, owner, count = np.unique(
        sums, axis=1, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[owner.ravel()], count[order]


def _sums_of_tests(corpus: EncodedCorpus) -> tuple[Floats, Floats]:
    """For each unigram and each bigram test sums that tell of which tokens it is true."""
    rng = np.random.default_rng(_SEED)
    unigram = np.zeros((_N_SUMS + 1, len(corpus.unigram_keys)))
    bigram = np.zeros((_N_SUMS + 1, len(corpus.bigram_keys)))
    for first, last in corpus.store.runs(corpus.offsets):
        begin, end = corpus.offsets[first], corpus.offsets[last]
        for sums in unigram[:_N_SUMS]:
            rows = corpus.uni_indptr[begin : end + 1]
            sum_columns(rows, corpus.uni_indices, rng.random(end - begin), sums)
        corpus.store.release()
    for sums in bigram[:_N_SUMS]:
        of_context = rng.random(len(corpus.ctx_indptr) - 1)
        sum_columns(corpus.ctx_indptr, corpus.ctx_indices, of_context, sums)
    # Tests of real values are like no others.
    unigram[-1, corpus.value_tests] = 1 + np.arange(len(corpus.value_tests))
    return unigram, bigram
