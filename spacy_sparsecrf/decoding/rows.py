"""Scores of tokens from a model's weights: by hash, by value, and kept for words.

`ModelRows` finds the weights of tests by their hashes, `ValueScores` multiplies those of
real-valued features, and `WordSums` keeps the sums of what a word alone decides, so that its tests
are looked up once. Imports numba.
"""

from threading import Lock
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..corpus.encoded import find_keys
from ..corpus.readings import Readings, Templates
from ..kernels.layout import Tokens, Values
from ..kernels.rows import (
    RowTable,
    WordGroups,
    add_rows,
    add_words,
    admit_words,
    build_rows,
    find_entries,
    sum_groups,
)
from ..kernels.values import value_scores
from ..model.model import WeightTable

Entries: TypeAlias = NDArray[np.uint64]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int32]
# Features that have weights, and these weights.
ValueTable: TypeAlias = tuple[NDArray[np.int64], Floats]

MAX_BYTES = 2**26  # of kept sums; 2.2 KB a word with the default templates and 49 labels
MIN_WORDS = 256  # for which there is room from the start


class ModelRows:
    """The rows of a weight table in a hash table: a row is a test that has weights.

    table: the weights, sorted by test; padded: Yp, the length of a row of scores. arrays: what
    kernels take.
    """

    def __init__(self, table: WeightTable, padded: int) -> None:
        # Arrays of a loaded model are read-only, which would compile every kernel once more.
        bits, entries = build_rows(table.keys.copy(), table.indptr.copy())
        own = table.labels.astype(np.int32)
        if len(table.previous):
            own += table.previous.astype(np.int32) * padded
        self.arrays = RowTable(bits, entries, own, table.values.astype(np.float64))

    def find(self, hashes: NDArray[np.uint64]) -> Entries:
        """Find the entries of tests: [N, P] uint64, 0 where the model has no weight.

        hashes: [N, P] uint64, 0 = no test.
        """
        found = np.empty(hashes.shape, dtype=np.uint64)
        find_entries(hashes, self.arrays, found)
        return found

    def score(self, found: Entries, width: int) -> Floats:
        """Sum the weights of tests at their places: [N, width]. found: [N, P], of `find`."""
        scores = np.empty((len(found), width))
        add_rows(found, self.arrays, scores)
        return scores


class Valued(Protocol):
    """Observations or readings of N tokens with V real-valued features."""

    @property
    def values(self) -> NDArray[np.float32]:
        """[N, V]."""

    @property
    def value_keys(self) -> NDArray[np.uint64]:
        """[V], hashes of their names."""


class ValueScores:
    """The weights of real-valued features, as a dense table for those that have any.

    unigram: the model's unigram weights; padded: Yp, the length of a row of scores.
    """

    def __init__(self, unigram: WeightTable, padded: int) -> None:
        self._unigram = unigram
        self._padded = padded
        self._last: tuple[NDArray[np.uint64], ValueTable] | None = None

    def add(self, source: Valued, scores: Floats) -> None:
        """Add the scores of N tokens to their scores, [N, Yp]."""
        keys = source.value_keys
        if not len(keys) or not len(scores):
            return
        last = self._last
        if last is None or last[0] is not keys:
            last = self._last = keys, self._table(keys)
        columns, table = last[1]
        if len(columns):
            n = len(scores)
            features = Values(source.values, np.arange(n), columns)
            value_scores(0, n, features, table, True, scores)

    def _table(self, keys: NDArray[np.uint64]) -> ValueTable:
        """The features [R] that have weights, and these, [R, Yp]."""
        found = find_keys(self._unigram.keys, keys)
        columns = np.flatnonzero(found >= 0)
        table = np.zeros((len(columns), self._padded))
        for row, at in zip(table, found[columns], strict=True):
            own = slice(self._unigram.indptr[at], self._unigram.indptr[at + 1])
            row[self._unigram.labels[own]] = self._unigram.values[own]
        return columns, table


class WordSums:
    """Scores of tokens, by sums of the tests that read one word only.

    Such tests are taken together by the distance of the word: a token's scores are the sums that
    are kept for the words around it, plus the tests of words outside the sequence, of several words
    and of annotations. The order of summation does not depend on what is kept.

    rows: the model's unigram weights; templates: what tokens are tested for; padded: length Yp
    of a row of scores; max_bytes: a batch with new words that would take more empties the table
    first.
    """

    def __init__(
        self, rows: ModelRows, templates: Templates, padded: int, max_bytes: int = MAX_BYTES
    ) -> None:
        near, others = _by_distance(templates)
        order = [p for tests in near.values() for p in tests] + others
        self.templates = templates
        self._tests = templates.tests.select(order)
        sizes = [0, *map(len, near.values()), len(others)]
        offsets = np.array([*near], dtype=np.int64)
        self._groups = WordGroups(offsets, np.cumsum(sizes, dtype=np.int64))
        self._rows = rows
        self._shape = (len(near), padded)
        self._max_words = max_bytes // (8 * max(1, len(near)) * padded)
        self._lexicon: object = None
        # Kernels release the GIL: without the lock a second thread could read half-made sums.
        self._lock = Lock()
        self._clear(0)

    def __len__(self) -> int:
        return self._n_words

    def score(self, readings: Readings) -> Floats:
        """Score the labels of N tokens: [N, Yp]."""
        scores = np.empty((readings.n_tokens, self._shape[1]))
        with self._lock:
            slots, sums = self._admit(readings)
        plan, table = self._tests.plan, self._rows.arrays
        add_words(
            readings.tokens, slots, sums, self._groups, plan, table, self._new_tests(), scores
        )
        return scores

    def _new_tests(self) -> Entries:
        """A workspace for all tests of a token."""
        return np.empty(len(self._tests.seeds), dtype=np.uint64)

    def _clear(self, n_rows: int) -> None:
        """Forget all words; who still reads the old arrays is not disturbed."""
        self._n_words = 0
        self._slots: Ints = np.full(n_rows, -1, dtype=np.int32)
        self._sums: Floats = np.empty((0, *self._shape))

    def _admit(self, readings: Readings) -> tuple[Ints, Floats]:
        """Make sure that the sums of all words are kept. RETURNS: their slots [R], and the sums."""
        n_rows = len(readings.lexical)
        if self._lexicon is not readings.lexicon:
            self._clear(n_rows)
        elif len(self._slots) < n_rows:
            more = np.full(n_rows - len(self._slots), -1, dtype=np.int32)
            self._slots = np.concatenate([self._slots, more])
        # Whoever is interrupted here leaves no slots without sums behind.
        self._lexicon = None
        new = np.empty(readings.n_tokens, dtype=np.int32)
        n_new = admit_words(readings.words, self._slots, self._n_words, new)
        if self._n_words and self._n_words + n_new > self._max_words:
            self._clear(n_rows)
            n_new = admit_words(readings.words, self._slots, self._n_words, new)
        if n_new:
            self._add(new[:n_new], readings)
        self._lexicon = readings.lexicon
        return self._slots, self._sums

    def _add(self, new: Ints, readings: Readings) -> None:
        """Sum the tests of words that were given the next slots."""
        first, last = self._n_words, self._n_words + len(new)
        if last > len(self._sums):
            most = max(self._max_words, last)
            larger = np.empty((min(most, max(2 * last, MIN_WORDS)), *self._shape))
            larger[:first] = self._sums[:first]
            self._sums = larger
        # Their tests read no annotations, and go over no boundary.
        words = Tokens(np.zeros(1, np.int64), new, readings.lexical, readings.annotations)
        plan, table, sums = self._tests.plan, self._rows.arrays, self._sums[first:last]
        sum_groups(words, self._groups, plan, table, self._new_tests(), sums)
        self._n_words = last


def _by_distance(templates: Templates) -> tuple[dict[int, list[int]], list[int]]:
    """Divide the unigram tests into those of one word alone, by its distance, and all others."""
    tests, annotated = templates.tests, templates.tests.columns >= templates.n_lexical
    near: dict[int, list[int]] = {}
    others: list[int] = []
    for p in templates.unigram_columns.tolist():
        parts = slice(tests.part_ptr[p], tests.part_ptr[p + 1])
        offsets = set(tests.part_offsets[parts].tolist())
        anchored = tests.part_anchors[parts].any()
        if len(offsets) > 1 or anchored or annotated[parts].any():
            others.append(p)
        else:
            # A test without parts is the same for every word; the word at 0 is always there.
            near.setdefault(offsets.pop() if offsets else 0, []).append(p)
    return near, others
