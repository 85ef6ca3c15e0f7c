"""Word attributes by word id; the string of each distinct word is read only once.

Imports numba.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from spacy.strings import StringStore, get_string_id

from ...crf.corpus.blanks import MOST_BREAKS, count_lines
from ...crf.corpus.numbering import grown
from ...crf.kernels.hashing import build_table, insert, lookup
from .attributes.attribute import WordReader

Ids: TypeAlias = NDArray[np.uint64]

MIN_ROWS = 1024  # initial capacity
MAX_ROWS = 1_000_000  # distinct words; with 20 attributes 160 MB
MAX_BYTES = 2**28  # of values


class LexemeTable:
    """Values of word attributes, one row per word; a hash table maps word ids to rows.

    It is emptied before the new words of a batch would give it more than MAX_ROWS rows.

    readers: functions of a word's string. Strings are stored as spaCy's string ids, which are the
        same in every process and 0 for ""; integers are stored as they are; 0 = missing. The values
        have L columns.
    widths: number of columns of each reader; a reader of several columns returns several values.
    view: the text of a word that readers read; a word without any is a blank.
    """

    def __init__(
        self,
        readers: Sequence[WordReader],
        widths: Sequence[int],
        view: Callable[[str], str] = str,
    ) -> None:
        self.readers = tuple(readers)
        self.widths = tuple(widths)
        self._view = view
        self._n_columns = sum(widths)
        self._max_rows = min(MAX_ROWS, MAX_BYTES // (8 * max(1, self._n_columns)))
        # Kernels release the GIL: without the lock a second thread could read a half-made table.
        self._lock = Lock()
        self._clear()

    def __len__(self) -> int:
        return self._n_rows

    def find(
        self, values: Ids, strings: StringStore | Mapping[int, str]
    ) -> tuple[NDArray[np.int32], Ids, NDArray[np.uint8], object]:
        """Find the rows of words, adding those that are new.

        values: [N, A] uint64, ids of words in column 0.
        strings: the strings of all ids.
        RETURNS: rows [N] int32, values [>= rows, L] uint64, kinds [>= rows] uint8, see
            `crf.kernels.hashing.cut`, and the lexicon: an object that is replaced when rows are
            assigned to other words. Later calls do not change the values in the returned rows.
        """
        rows = np.empty(len(values), dtype=np.int32)
        with self._lock:
            if lookup(self._slots, self._keys, values, rows):
                orths = values[:, 0]
                self._add(dict.fromkeys(orths[rows < 0].tolist()), orths, strings)
                lookup(self._slots, self._keys, values, rows)
            return rows, self._values, self._kinds, self._lexicon

    def _clear(self) -> None:
        self._lexicon = object()
        self._n_rows = 0
        self._keys: Ids = np.empty(0, dtype=np.uint64)
        self._values: Ids = np.empty((0, self._n_columns), dtype=np.uint64)
        self._kinds: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)
        self._slots: NDArray[np.int32] = np.full(1, -1, dtype=np.int32)

    def _add(
        self, new: Collection[int], orths: Ids, strings: StringStore | Mapping[int, str]
    ) -> None:
        """Append new words; orths: [N], all words of the batch, read if the table is emptied."""
        if self._n_rows and self._n_rows + len(new) > self._max_rows:
            self._clear()
            new = dict.fromkeys(orths.tolist())
        begin = self._n_rows
        end = begin + len(new)
        texts = [self._view(strings[orth]) or " " for orth in new]
        values = self._read(texts)
        if end > len(self._keys):
            # Larger arrays: the old ones stay valid for threads that still read them.
            n_rows = max(end, min(max(2 * end, MIN_ROWS), self._max_rows))
            self._keys = grown(self._keys, n_rows)
            self._values = grown(self._values, n_rows)
            self._kinds = grown(self._kinds, n_rows)
            self._slots = build_table(self._keys[:begin], capacity=n_rows)
        self._keys[begin:end] = np.fromiter(new, np.uint64, len(new))
        self._values[begin:end] = values
        lines = [0 if text.strip() else count_lines(text) for text in texts]
        self._kinds[begin:end] = np.minimum(lines, MOST_BREAKS + 1)
        insert(self._slots, self._keys, begin, end)
        self._n_rows = end

    def _read(self, texts: Sequence[str]) -> Ids:
        """Return the values [R, L] of R words."""
        values = np.zeros((len(texts), self._n_columns), np.uint64)
        column = 0
        for reader, width in zip(self.readers, self.widths, strict=True):
            of_words: Any = map(reader, texts)
            if width == 1:
                values[:, column] = np.fromiter(map(get_string_id, of_words), np.uint64)
            else:
                for row, of_word in zip(values, of_words, strict=True):
                    row[column : column + len(of_word)] = [*map(get_string_id, of_word)]
            column += width
        return values
