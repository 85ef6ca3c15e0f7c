"""Word attributes by the id of the word: each distinct word's string is looked at once.

Imports numba.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from spacy.strings import StringStore, get_string_id

from ..kernels.hashing import build_table, insert, lookup
from .attributes import AFFIX, EXPRESSION, NGRAMS, WORD, Ngrams, Value
from .expressions import Expression
from .parsing import Read

Reader: TypeAlias = Callable[[str], Value] | Ngrams
Ids: TypeAlias = NDArray[np.uint64]

MIN_ROWS = 1024  # for which there is room from the start
MAX_ROWS = 1_000_000  # distinct words; with 20 attributes 160 MB
MAX_BYTES = 2**28  # of values


def word_reader(read: Read, number: int, template: str) -> Reader:
    """The function of a word's string that an attribute is.

    number, template: the first template that reads it, for messages.
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
    """Values of word attributes, a row a word, found by the word's id in a hash table.

    readers: functions of a word's string. What they return is stored as spaCy's string id, the
        same in every process and 0 for "", or as the integer it is; 0 = no value. L columns: of
        n-grams as many as a word can have.
    max_rows: a batch with new words that would make the table longer empties it first.
    """

    def __init__(self, readers: Sequence[Reader], max_rows: int = MAX_ROWS) -> None:
        self.readers = tuple(readers)
        widths = [reader.width if isinstance(reader, Ngrams) else 1 for reader in self.readers]
        self._n_columns = sum(widths)
        self._max_rows = min(max_rows, MAX_BYTES // (8 * max(1, self._n_columns)))
        # Kernels release the GIL: without the lock a second thread could read a half-made table.
        self._lock = Lock()
        self._clear()

    def __len__(self) -> int:
        return self._n_rows

    def find(
        self, orths: Ids, strings: StringStore | Mapping[int, str]
    ) -> tuple[NDArray[np.int32], Ids, object]:
        """Find the rows of words, adding those that are new.

        orths: [N] uint64, ids of words.
        strings: knows the string of each of them.
        RETURNS: rows [N] int32, values [>= rows, L] uint64, and the lexicon: an object that is
            another one when rows no longer belong to the same words. Later calls leave all of
            them as they are.
        """
        rows = np.empty(len(orths), dtype=np.int32)
        with self._lock:
            if lookup(self._slots, self._keys, orths, rows):
                self._add(_distinct(orths[rows < 0]), orths, strings)
                lookup(self._slots, self._keys, orths, rows)
            return rows, self._values, self._lexicon

    def _clear(self) -> None:
        self._lexicon = object()
        self._n_rows = 0
        self._keys: Ids = np.empty(0, dtype=np.uint64)
        self._values: Ids = np.empty((0, self._n_columns), dtype=np.uint64)
        self._slots: NDArray[np.int32] = np.full(1, -1, dtype=np.int32)

    def _add(self, new: Ids, orths: Ids, strings: StringStore | Mapping[int, str]) -> None:
        """Append words; orths [N] are those of the batch, all needed if the table is emptied."""
        if self._n_rows and self._n_rows + len(new) > self._max_rows:
            self._clear()
            new = _distinct(orths)
        first, last = self._n_rows, self._n_rows + len(new)
        values = self._read([strings[orth] for orth in new.tolist()])
        if last > len(self._keys):
            self._reserve(max(last, min(max(2 * last, MIN_ROWS), self._max_rows)))
        self._keys[first:last] = new
        self._values[first:last] = values
        insert(self._slots, self._keys, first, last)
        self._n_rows = last

    def _reserve(self, n_rows: int) -> None:
        """Move to larger arrays; who still reads the old values is not disturbed."""
        keys = np.zeros(n_rows, dtype=np.uint64)
        values = np.zeros((n_rows, self._n_columns), dtype=np.uint64)
        keys[: self._n_rows] = self._keys[: self._n_rows]
        values[: self._n_rows] = self._values[: self._n_rows]
        self._keys, self._values = keys, values
        self._slots = build_table(keys[: self._n_rows], capacity=n_rows)

    def _read(self, texts: Sequence[str]) -> Ids:
        """Values [R, L] of R words, which are never empty: spaCy refuses empty tokens."""
        values: list[int] = []
        for text in texts:
            for reader in self.readers:
                if isinstance(reader, Ngrams):
                    found = reader(text)
                    values += map(get_string_id, found)
                    values += [0] * (reader.width - len(found))
                else:
                    values.append(get_string_id(reader(text)))
        return np.array(values, dtype=np.uint64).reshape(len(texts), self._n_columns)


def _distinct(orths: Ids) -> Ids:
    """Each id once; few are sooner told apart by Python than by numpy, which sorts."""
    return np.array([*dict.fromkeys(orths.tolist())], dtype=np.uint64)
