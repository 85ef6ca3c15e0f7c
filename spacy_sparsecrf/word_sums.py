"""Kept sums of the weights that a word alone decides: its tests are looked up once.

Imports numba.
"""

from threading import Lock

import numpy as np
from numpy.typing import NDArray

from .kernels.scoring import add_words, admit_words, sum_groups
from .model_rows import ModelRows
from .readings import Readings, Templates

MAX_BYTES = 2**26  # of kept sums; 2.2 KB a word with the default templates and 49 labels
MIN_WORDS = 256  # for which there is room from the start

Floats = NDArray[np.float64]
Places = NDArray[np.int32]


class WordSums:
    """Scores of tokens, by sums of the tests that read one word only.

    Such tests are grouped by the distance of the word: a token's scores are the sums that are
    kept for the words around it, plus the tests of words outside the sequence, of several words
    and of annotations. The order of summation does not depend on what is kept.

    rows: the model's unigram weights; templates: what tokens are tested for; padded: length Yp
    of a row of scores; max_bytes: a batch with new words that would take more empties the table
    first.
    """

    def __init__(
        self, rows: ModelRows, templates: Templates, padded: int, max_bytes: int = MAX_BYTES
    ) -> None:
        groups, others = _group(templates)
        order = [p for tests in groups.values() for p in tests] + others
        self.templates = templates
        self._tests = templates.tests.select(order)
        self._offsets = np.array([*groups], dtype=np.int64)
        sizes = [0, *map(len, groups.values()), len(others)]
        self._ptr = np.cumsum(sizes, dtype=np.int64)
        self._rows = rows
        self._shape = (len(groups), padded)
        self._max_words = max_bytes // (8 * max(1, len(groups)) * padded)
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
            places, sums = self._admit(readings)
        add_words(
            readings.offsets,
            places,
            sums,
            self._offsets,
            self._ptr,
            readings.words,
            readings.lexical,
            readings.annotations,
            *self._tests.arrays,
            *self._rows.arrays,
            np.empty(len(self._tests.seeds), dtype=np.uint64),
            scores,
        )
        return scores

    def _clear(self, n_rows: int) -> None:
        """Forget all words; who still reads the old arrays is not disturbed."""
        self._n_words = 0
        self._places: Places = np.full(n_rows, -1, dtype=np.int32)
        self._sums: Floats = np.empty((0, *self._shape))

    def _admit(self, readings: Readings) -> tuple[Places, Floats]:
        """Make sure that the sums of all words are kept. RETURNS: their places, and the sums."""
        n_rows = len(readings.lexical)
        if self._lexicon is not readings.lexicon:
            self._clear(n_rows)
        elif len(self._places) < n_rows:
            more = np.full(n_rows - len(self._places), -1, dtype=np.int32)
            self._places = np.concatenate([self._places, more])
        # Whoever is interrupted here leaves no places without sums behind.
        self._lexicon = None
        new = np.empty(readings.n_tokens, dtype=np.int32)
        n_new = admit_words(readings.words, self._places, self._n_words, new)
        if self._n_words and self._n_words + n_new > self._max_words:
            self._clear(n_rows)
            n_new = admit_words(readings.words, self._places, self._n_words, new)
        if n_new:
            self._add(new[:n_new], readings)
        self._lexicon = readings.lexicon
        return self._places, self._sums

    def _add(self, new: NDArray[np.int32], readings: Readings) -> None:
        """Sum the tests of words that were given the next places."""
        first, last = self._n_words, self._n_words + len(new)
        if last > len(self._sums):
            most = max(self._max_words, last)
            larger = np.empty((min(most, max(2 * last, MIN_WORDS)), *self._shape))
            larger[:first] = self._sums[:first]
            self._sums = larger
        sum_groups(
            self._offsets,
            self._ptr,
            new,
            readings.lexical,
            readings.annotations,
            *self._tests.arrays,
            *self._rows.arrays,
            self._sums[first:last],
        )
        self._n_words = last


def _group(templates: Templates) -> tuple[dict[int, list[int]], list[int]]:
    """Divide the unigram tests into those of one word alone, by its distance, and all others."""
    tests, annotated = templates.tests, templates.tests.columns >= templates.n_lexical
    groups: dict[int, list[int]] = {}
    others: list[int] = []
    for p in templates.unigram_columns.tolist():
        parts = slice(tests.part_ptr[p], tests.part_ptr[p + 1])
        offsets = set(tests.part_offsets[parts].tolist())
        anchored = tests.part_anchors[parts].any()
        if len(offsets) > 1 or anchored or annotated[parts].any():
            others.append(p)
        else:
            # A test without parts is the same for every word; the word at 0 is always there.
            groups.setdefault(offsets.pop() if offsets else 0, []).append(p)
    return groups, others
