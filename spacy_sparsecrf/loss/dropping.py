"""Tests whose weights are zero at the minimum whatever the others are, and need not be looked at.

The gradient of a weight is expected less observed counts, both of which lie between zero and the
weight of the tokens with its test: |dL/dw| <= W(o). Where W(o) <= l1, the weight is zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..corpus.encoded import NO_VALUES, EncodedCorpus, distinct_rows
from ..kernels.indexing import sum_columns
from .lattice import Csr
from .parts import Part, coordinates_of, places_of

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]


@dataclass(frozen=True)
class KeptPart(Part):
    """A problem without those of a part's tests that cannot have weights.

    part: with all tests; unigram, bigram: ids there of the tests kept, ascending.
    """

    part: Part
    unigram: Longs
    bigram: Longs

    def outer(self, coordinates: Longs) -> Longs:
        """Coordinates in the whole, [n] int64, of those in the part."""
        numbers = self.unigram, self.bigram
        widths, sizes = self._widths, (len(self.unigram), len(self.part.corpus.unigram_keys))
        return self.part.outer(_renumbered(coordinates, numbers, widths, *sizes))

    def inner(self, coordinates: Longs) -> Longs:
        """Coordinates in the part, [n] int64, of those in the whole; -1: of others, or dropped."""
        sizes = len(self.part.corpus.unigram_keys), len(self.unigram)
        whole = self.part.corpus
        numbers = (
            _inverse(self.unigram, len(whole.unigram_keys)),
            _inverse(self.bigram, len(whole.bigram_keys)),
        )
        found = self.part.inner(coordinates)
        kept = found >= 0
        found[kept] = _renumbered(found[kept], numbers, self._widths, *sizes)
        return found

    @property
    def _widths(self) -> tuple[int, int]:
        """Potential weights of a unigram test, and of a bigram test."""
        return self.n_labels, self.n_labels * (self.n_labels + int(self.corpus.start_label))


def without_idle_tests(part: Part, l1: float, known: Longs | None = None) -> Part:
    """Leave out the tests that cannot have weights other than zero at the minimum.

    known: [n] int64, coordinates in the whole whose tests are kept: those of first weights.
    RETURNS: the part itself where all tests are kept.
    """
    corpus = part.corpus
    unigram, bigram = _weights_of_tests(corpus)
    keep_unigram, keep_bigram = unigram > l1, bigram > l1
    # Real values are not bounded by counts.
    keep_unigram[corpus.value_tests] = True
    if known is not None:
        inner = part.inner(known)
        inner = inner[inner >= 0]
        n_unigram = len(corpus.unigram_keys) * part.n_labels
        pairs = part.n_labels * (part.n_labels + int(corpus.start_label))
        keep_unigram[inner[inner < n_unigram] // part.n_labels] = True
        keep_bigram[(inner[inner >= n_unigram] - n_unigram) // pairs] = True
    if keep_unigram.all() and keep_bigram.all():
        return part
    kept = np.flatnonzero(keep_unigram), np.flatnonzero(keep_bigram)
    return KeptPart(reduced(corpus, *kept), part.n_labels, part, *kept)


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


def reduced(corpus: EncodedCorpus, unigram: Longs, bigram: Longs) -> EncodedCorpus:
    """The corpus with some of its tests alone; contexts stay apart that are then the same.

    unigram, bigram: [n] int64 each, ids of the tests that are kept, ascending.
    """
    places = [
        _inverse(kept, len(keys)).astype(np.int32)
        for kept, keys in ((unigram, corpus.unigram_keys), (bigram, corpus.bigram_keys))
    ]
    tests = Csr(corpus.uni_indptr, corpus.uni_indices).selected(places[0], corpus.store)
    of_contexts = Csr(corpus.ctx_indptr, corpus.ctx_indices).selected(places[1])
    values = places[0][corpus.value_tests]
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
    representatives, context = distinct_rows(_as_matrix(contexts))
    kept = contexts.take(representatives)
    return replace(
        corpus,
        context=corpus.store.looked_up(context, corpus.context),
        ctx_indptr=kept.indptr,
        ctx_indices=kept.indices,
    )


def _as_matrix(table: Csr) -> NDArray[np.int32]:
    """A ragged table as a matrix, -1 where a row has ended."""
    lengths = np.diff(table.indptr)
    matrix = np.full((len(table), int(lengths.max(initial=0))), -1, np.int32)
    row = np.repeat(np.arange(len(table)), lengths)
    matrix[row, np.arange(len(table.indices)) - table.indptr[row]] = table.indices
    return matrix


def _inverse(kept: Longs, n: int) -> Longs:
    """The place [n] of each test among those kept, -1 where it is not."""
    number = np.full(n, -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    return number


def _renumbered(
    coordinates: Longs, numbers: Sequence[Longs], widths: tuple[int, int], old: int, new: int
) -> Longs:
    """Coordinates by another numbering of tests; -1 where it has none.

    numbers: of unigram and bigram tests, widths: weights of each; old, new: unigram tests.
    """
    test, place = places_of(coordinates, old, widths)
    unigram, bigram = numbers
    number = np.concatenate((unigram, np.where(bigram >= 0, new + bigram, -1)))[test]
    return np.where(number >= 0, coordinates_of(number, place, new, widths), -1)
