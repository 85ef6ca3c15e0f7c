"""Word attributes by word id; the string of each distinct word is read only once.

Imports numba.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from spacy.strings import StringStore, get_string_id

from ..corpus.numbering import grown
from ..corpus.words import MOST_BREAKS, count_lines
from ..kernels.hashing import build_table, insert, lookup
from .attributes.expressions import Expression
from .attributes.words import AFFIX, EXPRESSION, NGRAMS, WORD, Ngrams, Value
from .cursor import Read

Reader: TypeAlias = Callable[[str], Value] | Ngrams
Ids: TypeAlias = NDArray[np.uint64]

MIN_ROWS = 1024  # initial capacity
MAX_ROWS = 1_000_000  # distinct words; with 20 attributes 160 MB
MAX_BYTES = 2**28  # of values


def word_reader(read: Read, number: int, template: str) -> Reader:
    """Return the reader of a word attribute, a function of the word's string.

    number, template: position and text of the first template that reads it, for messages.
    """
    if read.name in AFFIX:
        return partial(AFFIX[read.name], read.length)
    if read.name in EXPRESSION:
        text = read.name == "match"
        return Expression(read.argument, text=text, number=number, template=template)
    if read.name == NGRAMS:
        return Ngrams(read.length, read.longest, read.argument)
    return WORD[read.name]


class LexemeTable:
    """Values of word attributes, one row per word; a hash table maps word ids to rows.

    It is emptied before the new words of a batch would give it more than MAX_ROWS rows.

    readers: functions of a word's string. Strings are stored as spaCy's string ids, which are the
        same in every process and 0 for ""; integers are stored as they are; 0 = missing. The values
        have L columns: one per reader, and for n-grams the maximum number of n-grams of a word.
    view: the text of a word that readers read; a word without any is a blank.
    """

    def __init__(self, readers: Sequence[Reader], view: Callable[[str], str] = str) -> None:
        self.readers, self._view = tuple(readers), view
        widths = [reader.width if isinstance(reader, Ngrams) else 1 for reader in self.readers]
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
            `kernels.hashing.cut`, and the lexicon: an object that is replaced when rows are
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
        first, last = self._n_rows, self._n_rows + len(new)
        texts = [self._view(strings[orth]) or " " for orth in new]
        values = self._read(texts)
        if last > len(self._keys):
            self._reserve(max(last, min(max(2 * last, MIN_ROWS), self._max_rows)))
        self._keys[first:last] = np.fromiter(new, np.uint64, len(new))
        self._values[first:last] = values
        lines = [0 if text.strip() else count_lines(text) for text in texts]
        self._kinds[first:last] = np.minimum(lines, MOST_BREAKS + 1)
        insert(self._slots, self._keys, first, last)
        self._n_rows = last

    def _reserve(self, n_rows: int) -> None:
        """Move to larger arrays; the old arrays stay valid for threads that still read them."""
        self._keys, self._values = grown(self._keys, n_rows), grown(self._values, n_rows)
        self._kinds = grown(self._kinds, n_rows)
        self._slots = build_table(self._keys[: self._n_rows], capacity=n_rows)

    def _read(self, texts: Sequence[str]) -> Ids:
        """Return the values [R, L] of R words."""
        values, first = np.zeros((len(texts), self._n_columns), np.uint64), 0
        for reader in self.readers:
            if isinstance(reader, Ngrams):
                for row, found in zip(values, map(reader, texts), strict=True):
                    row[first : first + len(found)] = [*map(get_string_id, found)]
                first += reader.width
            else:
                values[:, first] = np.fromiter(map(get_string_id, map(reader, texts)), np.uint64)
                first += 1
        return values
