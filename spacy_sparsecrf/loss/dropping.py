"""Problems of some of a corpus's tests: all others are as if they were not there.

Among others those without tests whose weights are zero at the minimum whatever the others are: the
gradient of a weight is expected less observed counts, both of which lie between zero and the weight
of the tokens with its test, |dL/dw| <= W(o). Where W(o) <= l1, the weight is zero.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..corpus.encoded import NO_VALUES, EncodedCorpus, distinct_rows
from ..kernels.indexing import sum_columns
from .lattice import Csr, Floats, Ints, Longs, Mask
from .parts import Part, coordinates_of, places_of


@dataclass(frozen=True)
class ReducedPart(Part):
    """The problem of some of a part's tests.

    whole: with all tests; tests: [n] int64, those that are there, ascending, bigram tests being
    counted after all unigram tests; with_labels: [n] int64, ascending, test of the whole * Y + y:
    tests that are there have weights with these labels y only, and any y' before.
    """

    whole: Part
    tests: Longs
    with_labels: Longs = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def _n_unigram(self) -> tuple[int, int]:
        """Unigram tests of the whole, and of those that are there."""
        n = len(self.whole.corpus.unigram_keys)
        return n, int(np.searchsorted(self.tests, n))

    @property
    def permits(self) -> Callable[[Longs], Mask] | None:
        """Tells which coordinates [n] may have weights: [n] bool; None: all of them."""
        return self._has if len(self.with_labels) else None

    def _has(self, coordinates: Longs) -> Mask:
        own, place = places_of(coordinates, self._n_unigram[1], self.whole.widths)
        test = self.tests[own]
        bounds = np.searchsorted(self.with_labels, test * self.n_labels)
        # Behind the last there is none.
        known = np.append(self.with_labels, -1)
        whole: Mask = known[bounds] // self.n_labels != test
        pair = test * self.n_labels + place % self.n_labels
        whole |= known[np.searchsorted(self.with_labels, pair)] == pair
        return whole

    def outer(self, coordinates: Longs) -> Longs:
        """Coordinates in the whole, [n] int64, of those in the part."""
        (n_all, n_own), widths = self._n_unigram, self.whole.widths
        test, place = places_of(coordinates, n_own, widths)
        return self.whole.outer(coordinates_of(self.tests[test], place, n_all, widths))

    def inner(self, coordinates: Longs) -> Longs:
        """Coordinates in the part, [n] int64, of those in the whole; -1: of others, or dropped."""
        (n_all, n_own), widths = self._n_unigram, self.whole.widths
        found = self.whole.inner(coordinates)
        test, place = places_of(found, n_all, widths)
        own = np.searchsorted(self.tests, test)
        known = (found >= 0) & (np.append(self.tests, -1)[own] == test)
        return np.where(known, coordinates_of(own, place, n_own, widths), -1)


def without_idle_tests(part: Part, l1: float, known: Longs | None = None) -> Part:
    """Leave out the tests that cannot have weights other than zero at the minimum.

    known: [n] int64, coordinates in the whole whose tests are kept: those of first weights.
    RETURNS: the part itself where all tests are kept.
    """
    corpus, n_unigram = part.corpus, len(part.corpus.unigram_keys)
    kept = np.concatenate(_weights_of_tests(corpus)) > l1
    # Real values are not bounded by counts.
    kept[corpus.value_tests] = True
    if known is not None:
        inner = part.inner(known)
        kept[places_of(inner[inner >= 0], n_unigram, part.widths)[0]] = True
    if kept.all():
        return part
    tests = np.flatnonzero(kept)
    return ReducedPart(reduced(corpus, tests), part.n_labels, part, tests)


def _weights_of_tests(corpus: EncodedCorpus) -> tuple[Floats, Floats]:
    """The weight of the tokens of each unigram and bigram test, where gold labels are known."""
    unigram, bigram = np.zeros(len(corpus.unigram_keys)), np.zeros(len(corpus.bigram_keys))
    by_context = np.zeros(len(corpus.ctx_indptr) - 1)
    known, _ = corpus.with_labels()
    weights, lengths = np.where(known, corpus.weights, 0.0), np.diff(corpus.offsets)
    for first, last in corpus.store.runs(corpus.offsets):
        begin, end = corpus.offsets[first], corpus.offsets[last]
        by_token = np.repeat(weights[first:last], lengths[first:last])
        sum_columns(corpus.uni_indptr[begin : end + 1], corpus.uni_indices, by_token, unigram)
        own = np.arange(end - begin + 1)
        sum_columns(own, corpus.context[begin:end], by_token, by_context)
        corpus.store.release()
    sum_columns(corpus.ctx_indptr, corpus.ctx_indices, by_context, bigram)
    return unigram, bigram


def reduced(corpus: EncodedCorpus, kept: Longs) -> EncodedCorpus:
    """The corpus with some of its tests alone; contexts stay apart that are then the same.

    kept: [n] int64, tests, ascending, bigram tests being counted after all unigram tests.
    """
    split = np.searchsorted(kept, len(corpus.unigram_keys))
    unigram, bigram = kept[:split], kept[split:] - len(corpus.unigram_keys)
    number = _numbers(unigram, len(corpus.unigram_keys))
    tests = Csr(corpus.uni_indptr, corpus.uni_indices).selected(number, corpus.store)
    of_bigram = _numbers(bigram, len(corpus.bigram_keys))
    of_contexts = Csr(corpus.ctx_indptr, corpus.ctx_indices).selected(of_bigram)
    values = number[corpus.value_tests]
    return replace(
        corpus,
        uni_indptr=tests.indptr,
        uni_indices=tests.indices,
        ctx_indptr=of_contexts.indptr,
        ctx_indices=of_contexts.indices,
        unigram_keys=corpus.unigram_keys[unigram],
        bigram_keys=corpus.bigram_keys[bigram],
        values=_selected_values(corpus, values >= 0),
        value_tests=values[values >= 0].astype(np.int64),
    )


def _selected_values(corpus: EncodedCorpus, kept: NDArray[np.bool_]) -> NDArray[np.float32]:
    """The values of some real-valued features; kept: [V] bool."""
    if kept.all():
        return corpus.values
    if not kept.any():
        return NO_VALUES
    store = corpus.store
    found = store.zeros((corpus.n_tokens, int(kept.sum())), np.float32)
    for first, last in store.ranges(corpus.n_tokens):
        found[first:last] = corpus.values[first:last, kept]
        store.release()
    return found


def with_distinct_contexts(corpus: EncodedCorpus) -> EncodedCorpus:
    """The corpus with one context in place of those that have the same tests."""
    contexts = Csr(corpus.ctx_indptr, corpus.ctx_indices)
    representatives, context = distinct_rows(contexts.padded())
    kept = contexts.take(representatives)
    return replace(
        corpus,
        context=corpus.store.looked_up(context, corpus.context),
        ctx_indptr=kept.indptr,
        ctx_indices=kept.indices,
    )


def _numbers(kept: Longs, n: int) -> Ints:
    """The number [n] of each test among those kept, -1 where it is not."""
    number = np.full(n, -1, dtype=np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    return number
