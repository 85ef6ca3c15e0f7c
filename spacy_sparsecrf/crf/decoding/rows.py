"""Scores of tokens from a model's weights: by feature hash, by value, and cached by word.

`ModelRows` looks up the weights of features by hash, `ValueScores` adds real-valued features times
their weights, and `WordScores` caches sums over the features that depend on one word only, so that
they are looked up once. Imports numba.
"""

from threading import Lock, local
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..corpus.encoded import Observations
from ..corpus.numbering import Floats, Ints, Longs, find_keys, grown
from ..corpus.readings import Readings, Templates
from ..kernels import model_lookup
from ..kernels.layout import SharedPairs, Tokens, Values, search_all
from ..kernels.model_lookup import KeptSums, LookupSpace, RowTable, WordGroups
from ..kernels.numba_support import Bound
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
        columns = table.labels.astype(np.int32)
        if len(table.previous):
            columns += table.previous.astype(np.int32) * padded
        hashes = model_lookup.build_rows(table.keys, table.indptr)
        self.arrays = RowTable(*hashes, columns, table.values.astype(np.float64))

    def find(self, hashes: NDArray[np.uint64]) -> Entries:
        """Find the entries of features: [N, P] uint64, 0 for features without weights.

        hashes: [N, P] uint64, 0 = no feature.
        """
        entries = np.empty(hashes.shape, dtype=np.uint64)
        model_lookup.find_entries(hashes, self.arrays, entries)
        return entries

    def score(self, entries: Entries, width: int) -> Floats:
        """Sum the weights of features by position: [N, width]. entries: [N, P], of `find`."""
        scores = np.empty((len(entries), width))
        model_lookup.add_rows(entries, self.arrays, scores)
        return scores


def dense_rows(table: WeightTable, keys: NDArray[np.uint64], padded: int, width: int) -> ValueTable:
    """Find the features with weights: [R] int64, positions in keys; their weights: [R, width].

    padded: Yp; width: Yp, or (Y + 1) * Yp for pairs.
    """
    features = find_keys(table.keys, keys)
    columns = np.flatnonzero(features >= 0)
    dense = np.zeros((len(columns), width))
    for row, feature in zip(dense, features[columns], strict=True):
        weights = slice(table.indptr[feature], table.indptr[feature + 1])
        positions = table.labels[weights].astype(np.int64)
        if len(table.previous):
            positions += table.previous[weights].astype(np.int64) * padded
        row[positions] = table.values[weights]
    return columns, dense


class ValueScores:
    """Scores of real-valued features, from a dense table of their weights.

    unigram: the model's unigram weights; padded: Yp, the length of a row of scores.
    """

    def __init__(self, unigram: WeightTable, padded: int) -> None:
        self._unigram = unigram
        self._padded = padded
        # Features with real values, and the table of their weights.
        self._cached: tuple[NDArray[np.uint64], ValueTable] | None = None

    def add(self, source: Observations | Readings, scores: Floats) -> None:
        """Add the scores of real-valued features to the scores of N tokens, [N, Yp]."""
        keys = source.value_keys
        if not len(keys) or not len(scores):
            return
        cached = self._cached
        if cached is None or cached[0] is not keys:
            table = dense_rows(self._unigram, keys, self._padded, self._padded)
            cached = self._cached = keys, table
        columns, dense = cached[1]
        if len(columns):
            n = len(scores)
            features = Values(source.values, np.arange(n), columns)
            value_scores(first=0, last=n, features=features, table=dense, add=True, scores=scores)


class WordCache(NamedTuple):
    """Cached sums of words: their lexicon, the sums, and the number of rows in use."""

    lexicon: object
    sums: KeptSums
    n_rows: int


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
        self.templates = templates
        near, others = _by_distance(templates)
        order = [p for columns in near.values() for p in columns] + others
        sizes = [0, *map(len, near.values()), len(others)]
        groups = WordGroups(np.array([*near], np.int64), np.cumsum(sizes, dtype=np.int64))
        self._model = groups, templates.conjunctions.select(order).plan, rows.arrays
        self._n_groups, self._shape = len(near), (len(order), padded)
        self._max_rows = MAX_BYTES // (8 * padded)
        self._no_pairs = SharedPairs(
            n_labels=0,
            pairs=np.zeros((1, 1, padded)),
            slack=np.zeros((1, padded)),
            closing=np.zeros(padded),
            search=search_all(0),
        )
        self._cache = WordCache(None, self._empty(0), 1)
        self._lock = Lock()
        self._workspaces = local()
        # The types of their arguments are the same in each call.
        self._score_words = Bound(model_lookup.score_words)
        self._sum_groups = Bound(model_lookup.sum_groups)

    def __len__(self) -> int:
        return self._cache.n_rows - 1

    def score(self, readings: Readings) -> Floats:
        """Score the labels of N tokens: [N, Yp]."""
        scores = np.empty((len(readings.words), self._shape[1]))
        no_labels = np.empty(0, dtype=np.int32)
        space, _ = self._space(_longest(readings))
        self._run(readings, self._no_pairs, space=space, scores=scores, labels=no_labels)
        return scores

    def label(self, readings: Readings, pairs: SharedPairs) -> Ints:
        """Find the best labels of N tokens: [N]."""
        labels = np.empty(len(readings.words), dtype=np.int32)
        space, scores = self._space(_longest(readings))
        self._run(readings, pairs, space=space, scores=scores, labels=labels)
        return labels

    def _run(
        self,
        readings: Readings,
        pairs: SharedPairs,
        *,
        space: LookupSpace,
        scores: Floats,
        labels: Ints,
    ) -> None:
        """Run the kernel; if the sums of some words are not cached, add them and run it again."""
        cache = self._cache
        sums = cache.sums
        is_current = cache.lexicon is readings.lexicon and len(sums.rows) >= len(readings.lexical)
        tokens = Tokens(readings.offsets, readings.words, readings.lexical, readings.annotations)
        groups, plan, rows = self._model
        score_words = self._score_words.code or self._score_words
        while not is_current or not score_words(
            tokens, sums, groups, plan, rows, pairs, space, scores, labels
        ):
            sums = self._admit(readings)
            is_current = True

    def _space(self, n: int) -> tuple[LookupSpace, Floats]:
        """Return workspaces for n tokens and for scores; a thread keeps small ones."""
        spaces: tuple[LookupSpace, Floats] | None = getattr(self._workspaces, "spaces", None)
        if spaces is None or len(spaces[1]) < n:
            n_features, padded = self._shape
            size = max(n, KEPT_TOKENS)
            space = LookupSpace(
                features=np.empty((size, n_features), dtype=np.uint64),
                counts=np.empty(size, dtype=np.int64),
                context=np.zeros(size, dtype=np.int32),
                best=np.empty(padded),
            )
            spaces = space, np.empty((size, padded))
            if size == KEPT_TOKENS:
                self._workspaces.spaces = spaces
        return spaces

    def _empty(self, n_words: int) -> KeptSums:
        """Return an empty cache with new arrays; other threads may still read the old arrays."""
        rows = np.full((n_words, max(1, self._n_groups)), -1, dtype=np.int32)
        return KeptSums(rows, np.zeros((1, self._shape[1])))

    def _admit(self, readings: Readings) -> KeptSums:
        """Cache the sums of all words of the readings, and return them."""
        with self._lock:
            lexicon, sums, n_rows = self._cache
            n_words = len(readings.lexical)
            if lexicon is not readings.lexicon:
                sums, n_rows = self._empty(n_words), 1
            elif len(sums.rows) < n_words:
                added = self._empty(n_words - len(sums.rows)).rows
                sums = sums._replace(rows=np.concatenate([sums.rows, added]))
            new_words = _without_sums(readings, sums)
            if n_rows > 1 and n_rows + len(new_words) * self._n_groups > self._max_rows:
                sums, n_rows = self._empty(n_words), 1
                new_words = _without_sums(readings, sums)
            n_needed = n_rows + len(new_words) * self._n_groups
            if n_needed > len(sums.sums):
                size = min(max(2 * n_needed, MIN_ROWS), max(self._max_rows, n_needed))
                sums = KeptSums(sums.rows.copy(), grown(sums.sums, size))
            # Features of single words read no annotations and cross no boundary.
            words = Tokens(np.zeros(1, np.int64), new_words, readings.lexical, readings.annotations)
            new_rows = np.zeros((len(new_words), sums.rows.shape[1]), dtype=np.int32)
            space, _ = self._space(len(new_words))
            groups, plan, rows = self._model
            sum_groups = self._sum_groups.code or self._sum_groups
            n_rows = sum_groups(words, groups, plan, rows, space, n_rows, new_rows, sums.sums)
            self._cache = WordCache(readings.lexicon, sums, n_rows)
            # Last, so that other threads, also after an interruption, find complete rows or none.
            sums.rows[new_words] = new_rows
            return sums


def _longest(readings: Readings) -> int:
    """Return the number of tokens of the longest sequence, or of all sequences if it is small."""
    n = len(readings.words)
    return n if n <= KEPT_TOKENS else int(np.diff(readings.offsets).max())


def _without_sums(readings: Readings, sums: KeptSums) -> Ints:
    """Return the words whose sums are not cached, each once."""
    words = readings.words[sums.rows[readings.words, 0] < 0]
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
