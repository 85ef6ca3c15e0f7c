"""Scores of tokens from a model's weights: by feature hash, by value, and cached by word.

`ModelRows` looks up the weights of features by hash, `ValueScores` adds real-valued features times
their weights, and `WordScores` caches sums over the features that depend on one word only, so that
they are looked up once. Imports numba.
"""

from collections.abc import Callable
from threading import Lock, local
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..corpus.encoded import Observations
from ..corpus.numbering import Floats, Ints, Longs, find_keys, grown
from ..corpus.readings import Readings, Templates
from ..kernels import model_lookup
from ..kernels.layout import SharedPairs, Tokens, Values, search_all
from ..kernels.model_lookup import KeptSums, LookupSpace, RowTable, WordGroups
from ..kernels.numba_support import bind
from ..kernels.values import value_scores
from ..model.model import WeightTable

Entries: TypeAlias = NDArray[np.uint64]
# Features with weights, and their weights.
ValueTable: TypeAlias = tuple[Longs, Floats]

MAX_BYTES = 2**26  # of cached sums
MIN_ROWS = 1024  # minimum number of rows allocated for cached sums
KEPT_TOKENS = 2048  # largest number of tokens for which a thread keeps workspaces


class ModelRows:
    """A hash table of the feature blocks of a model.

    table: the weights, sorted by feature; padded: Yp, the length of a row of scores; arrays: the
    hash table, as an argument of kernels.
    """

    def __init__(self, table: WeightTable, padded: int) -> None:
        own = table.labels.astype(np.int32)
        if len(table.previous):
            own += table.previous.astype(np.int32) * padded
        found = model_lookup.build_rows(table.keys, table.indptr)
        self.arrays = RowTable(*found, own, table.values.astype(np.float64))

    def find(self, hashes: NDArray[np.uint64]) -> Entries:
        """Find the entries of features: [N, P] uint64, 0 for features without weights.

        hashes: [N, P] uint64, 0 = no feature.
        """
        found = np.empty(hashes.shape, dtype=np.uint64)
        model_lookup.find_entries(hashes, self.arrays, found)
        return found

    def score(self, found: Entries, width: int) -> Floats:
        """Sum the weights of features by position: [N, width]. found: [N, P], of `find`."""
        scores = np.empty((len(found), width))
        model_lookup.add_rows(found, self.arrays, scores)
        return scores


def dense_rows(table: WeightTable, keys: NDArray[np.uint64], padded: int, width: int) -> ValueTable:
    """Find the features with weights: [R] int64, positions in keys; their weights: [R, width].

    padded: Yp; width: Yp, or (Y + 1) * Yp for pairs.
    """
    found = find_keys(table.keys, keys)
    columns = np.flatnonzero(found >= 0)
    dense = np.zeros((len(columns), width))
    for row, at in zip(dense, found[columns], strict=True):
        own = slice(table.indptr[at], table.indptr[at + 1])
        places = table.labels[own].astype(np.int64)
        if len(table.previous):
            places += table.previous[own].astype(np.int64) * padded
        row[places] = table.values[own]
    return columns, dense


class ValueScores:
    """Scores of real-valued features, from a dense table of their weights.

    unigram: the model's unigram weights; padded: Yp, the length of a row of scores.
    """

    def __init__(self, unigram: WeightTable, padded: int) -> None:
        self._unigram = unigram
        self._padded = padded
        self._last: tuple[NDArray[np.uint64], ValueTable] | None = None

    def add(self, source: Observations | Readings, scores: Floats) -> None:
        """Add the scores of real-valued features to the scores of N tokens, [N, Yp]."""
        keys = source.value_keys
        if not len(keys) or not len(scores):
            return
        last = self._last
        if last is None or last[0] is not keys:
            table = dense_rows(self._unigram, keys, self._padded, self._padded)
            last = self._last = keys, table
        columns, dense = last[1]
        if len(columns):
            n = len(scores)
            features = Values(source.values, np.arange(n), columns)
            value_scores(0, n, features, dense, True, scores)


class WordScores:
    """Scores of tokens, with cached sums over the features that read one word only.

    These features are grouped by the offset of the word. The scores of a token are the cached sums
    for the words around it, plus the weights of features of words outside the sequence, of several
    words and of annotations. The order of summation does not depend on the contents of the cache.
    Scoring is thread-safe: entries that a thread may read do not change, new ones are added.

    rows: the model's unigram weights; templates: templates of the features; padded: Yp, the length
    of a row of scores. The cache is emptied first if the new words of a batch would make it longer
    than MAX_BYTES.
    """

    def __init__(self, rows: ModelRows, templates: Templates, padded: int) -> None:
        near, others = _by_distance(templates)
        order = [p for features in near.values() for p in features] + others
        self.templates = templates
        sizes = [0, *map(len, near.values()), len(others)]
        groups = WordGroups(np.array([*near], np.int64), np.cumsum(sizes, dtype=np.int64))
        self._model = groups, templates.conjunctions.select(order).plan, rows.arrays
        self._n_groups, self._shape = len(near), (len(order), padded)
        self._max_rows = MAX_BYTES // (8 * padded)
        nothing = np.zeros((1, 1, padded)), np.zeros((1, padded)), np.zeros(padded)
        self._no_pairs = SharedPairs(0, *nothing, search_all(0))
        # The lexicon of the cached words, their sums, and the number of rows in use.
        self._kept: tuple[object, KeptSums, int] = None, self._empty(0), 1
        self._lock = Lock()
        self._workspaces = local()
        # The kernels, bound to the types of their arguments, which are the same in each call.
        self._code: Callable[..., bool] | None = None
        self._sum: Callable[..., int] | None = None

    def __len__(self) -> int:
        return self._kept[2] - 1

    def score(self, readings: Readings) -> Floats:
        """Score the labels of N tokens: [N, Yp]."""
        scores = np.empty((len(readings.words), self._shape[1]))
        space, _ = self._space(_longest(readings))
        self._run(readings, self._no_pairs, space, scores, np.empty(0, dtype=np.int32))
        return scores

    def label(self, readings: Readings, pairs: SharedPairs) -> Ints:
        """Find the best labels of N tokens: [N]."""
        labels = np.empty(len(readings.words), dtype=np.int32)
        self._run(readings, pairs, *self._space(_longest(readings)), labels)
        return labels

    def _run(
        self,
        readings: Readings,
        pairs: SharedPairs,
        space: LookupSpace,
        scores: Floats,
        labels: Ints,
    ) -> None:
        """Run the kernel; if the sums of some words are not cached, add them and run it again."""
        lexicon, known, _ = self._kept
        tokens = Tokens(readings.offsets, readings.words, readings.lexical, readings.annotations)
        rest = *self._model, pairs, space, scores, labels
        if self._code is None:
            self._code = bind(model_lookup.score_words, tokens, known, *rest)
        same = lexicon is readings.lexicon and len(known.rows) >= len(readings.lexical)
        if not same or not self._code(tokens, known, *rest):
            self._code(tokens, self._admit(readings), *rest)

    def _space(self, n: int) -> tuple[LookupSpace, Floats]:
        """Return workspaces for n tokens and for scores; a thread keeps small ones."""
        kept: tuple[LookupSpace, Floats] | None = getattr(self._workspaces, "kept", None)
        if kept is None or len(kept[1]) < n:
            (n_features, padded), size = self._shape, max(n, KEPT_TOKENS)
            features = np.empty((size, n_features), dtype=np.uint64)
            counts, context = np.empty(size, dtype=np.int64), np.zeros(size, dtype=np.int32)
            space = LookupSpace(features, counts, context, np.empty(padded))
            kept = space, np.empty((size, padded))
            if size == KEPT_TOKENS:
                self._workspaces.kept = kept
        return kept

    def _empty(self, n_words: int) -> KeptSums:
        """Return an empty cache with new arrays; other threads may still read the old arrays."""
        rows = np.full((n_words, max(1, self._n_groups)), -1, dtype=np.int32)
        return KeptSums(rows, np.zeros((1, self._shape[1])))

    def _admit(self, readings: Readings) -> KeptSums:
        """Cache the sums of all words of the readings, and return the cache."""
        with self._lock:
            lexicon, known, n_rows = self._kept
            n_words = len(readings.lexical)
            if lexicon is not readings.lexicon:
                known, n_rows = self._empty(n_words), 1
            elif len(known.rows) < n_words:
                more = self._empty(n_words - len(known.rows)).rows
                known = known._replace(rows=np.concatenate([known.rows, more]))
            new = _unknown(readings, known)
            if n_rows > 1 and n_rows + len(new) * self._n_groups > self._max_rows:
                known, n_rows = self._empty(n_words), 1
                new = _unknown(readings, known)
            known = self._grown(known, n_rows + len(new) * self._n_groups)
            # Features of single words read no annotations and cross no boundary.
            words = Tokens(np.zeros(1, np.int64), new, readings.lexical, readings.annotations)
            found = np.zeros((len(new), known.rows.shape[1]), dtype=np.int32)
            space, _ = self._space(len(new))
            arguments = words, *self._model, space, n_rows, found, known.sums
            self._sum = self._sum or bind(model_lookup.sum_groups, *arguments)
            n_rows = self._sum(*arguments)
            self._kept = readings.lexicon, known, n_rows
            # Last, so that other threads, also after an interruption, find complete rows or none.
            known.rows[new] = found
            return known

    def _grown(self, known: KeptSums, most: int) -> KeptSums:
        """Copy the cache to larger arrays if it has no room for `most` rows."""
        if most <= len(known.sums):
            return known
        size = min(max(2 * most, MIN_ROWS), max(self._max_rows, most))
        return KeptSums(known.rows.copy(), grown(known.sums, size))


def _longest(readings: Readings) -> int:
    """Return the number of tokens of the longest sequence, or of all sequences if it is small."""
    n = len(readings.words)
    return n if n <= KEPT_TOKENS else int(np.diff(readings.offsets).max())


def _unknown(readings: Readings, known: KeptSums) -> Ints:
    """Return the words whose sums are not cached, each once."""
    words = readings.words[known.rows[readings.words, 0] < 0]
    return np.array([*dict.fromkeys(words.tolist())], dtype=np.int32)


def _by_distance(templates: Templates) -> tuple[dict[int, list[int]], list[int]]:
    """Divide the unigram templates: templates of one word alone, by its offset, and all others."""
    features = templates.conjunctions
    annotated = features.columns >= templates.n_lexical
    near: dict[int, list[int]] = {}
    others: list[int] = []
    for p in templates.unigram_columns.tolist():
        parts = slice(features.part_ptr[p], features.part_ptr[p + 1])
        offsets = set(features.part_offsets[parts].tolist())
        anchored = features.part_anchors[parts].any()
        if len(offsets) > 1 or anchored or annotated[parts].any():
            others.append(p)
        else:
            # A feature without attributes is the same for all words; the word at 0 always exists.
            near.setdefault(offsets.pop() if offsets else 0, []).append(p)
    return near, others
