"""Numbers of distinct tests and rows: by arrival, by frequency, and as they are.

A *row* is a few numbers of 64 bits: the hashes of the tests of a context, or one test alone.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors, SparseCRFError
from .arrays import Array

Hashes: TypeAlias = NDArray[np.uint64]
Longs: TypeAlias = NDArray[np.int64]
Ints: TypeAlias = NDArray[np.int32]

# Hashes that are numbered at a time: what is known of them grows as they arrive.
_CHUNK = 1 << 20


class RowIndex:
    """Numbers distinct rows of 64-bit numbers by arrival, and counts them.

    width: numbers in a row. rows: [C, width] uint64, counts: [C] int64, by number.
    """

    def __init__(self, width: int) -> None:
        self._n = 0
        self._rows: Hashes = np.zeros((0, width), np.uint64)
        self._counts: Longs = np.zeros(0, np.int64)
        self._slots: Ints = np.full(2, -1, np.int32)

    @property
    def rows(self) -> Hashes:
        """[C, width] uint64, by number."""
        return self._rows[: self._n]

    @property
    def counts(self) -> Longs:
        """[C] int64, by number."""
        return self._counts[: self._n]

    def add(self, queries: Hashes) -> Ints:
        """Number rows: [n] int32. queries: [n, width]. RAISES: SparseCRFError for too many."""
        numbers = np.empty(len(queries), np.int32)
        for first in range(0, len(queries), _CHUNK):
            chunk = slice(first, first + _CHUNK)
            self._add(np.ascontiguousarray(queries[chunk]), numbers[chunk])
        return numbers

    def _add(self, queries: Hashes, numbers: Ints) -> None:
        """Number a few rows. numbers: [n], out."""
        from ..kernels.indexing import enter_all, number_rows

        most = self._n + len(queries)
        if most > np.iinfo(np.int32).max:
            raise SparseCRFError(Errors.SC301.format(n=most))
        if most > len(self._rows):
            capacity = max(most, 2 * self._n)
            self._rows = _longer(self._rows, capacity)
            self._counts = _longer(self._counts, capacity)
            self._slots = np.full(1 << (2 * capacity - 1).bit_length(), -1, np.int32)
            enter_all(self._slots, self._rows, self._n)
        arguments = self._slots, self._rows, self._counts, self._n
        self._n = number_rows(*arguments, queries, numbers)


def _longer(array: Array, n: int) -> Array:
    longer = np.zeros((n, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def distinct(hashes: Hashes) -> tuple[Hashes, Ints, Longs]:
    """Find the distinct values of hashes, without sorting them.

    hashes: [n] uint64. RETURNS: keys [O] uint64, by arrival; the position among them of each hash,
    [n] int32; how often each key is there, [O] int64. RAISES: SparseCRFError for too many keys.
    """
    index = RowIndex(1)
    numbers = index.add(hashes[:, None])
    return index.rows[:, 0], numbers, index.counts


def inverted(order: Longs) -> Ints:
    """The position of each number in an order of 0, 1, ...: [n] int32."""
    positions = np.empty(len(order), np.int32)
    positions[order] = np.arange(len(order), dtype=np.int32)
    return positions


def number_tests(hashes: Hashes) -> tuple[Hashes, Longs, Ints]:
    """Number the distinct non-zero hashes of a matrix, the most frequent first.

    Most tests are rare. As those of equal frequency are numbered by arrival, what neighbouring
    tokens have of them lies together in memory, too.

    hashes: [R, P] uint64, 0 = no test.
    RETURNS: keys [O] uint64, those of equal frequency by arrival, row by row, and the rows as CSR:
        indptr [R + 1] int64, ids [nnz] int32.
    """
    present = hashes != 0
    keys, ids, counts = distinct(hashes[present])
    order = np.argsort(-counts, kind="stable")
    indptr = np.append(0, np.cumsum(present.sum(axis=1, dtype=np.int64)))
    return keys[order], indptr, inverted(order)[ids]


def by_hash(keys: Hashes, ids: Ints) -> Longs:
    """An order of tests, the most frequent first, in which those of equal frequency ascend.

    keys: [O] uint64; ids: [nnz], all occurrences.
    """
    return np.lexsort((keys, -np.bincount(ids, minlength=len(keys))))


def by_frequency(tests: RowIndex, min_freq: int) -> tuple[Longs, Ints]:
    """The tests that are not rare in their final order, and the final number of each, or -1.

    Order and ties are those of `number_tests`.
    """
    order = np.argsort(-tests.counts, kind="stable")
    order = order[: int((tests.counts >= min_freq).sum())]
    number = np.full(len(tests.counts), -1, np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    return order, number


def without_rare(hashes: Hashes, min_freq: int, n_tokens: Longs | None = None) -> Hashes:
    """Remove the tests that occur at fewer than min_freq tokens.

    hashes: [R, P] uint64, the test of each template in each row, 0 = no test; n_tokens: [R] int64,
        tokens that have a row, by default one each.
    RETURNS: hashes, with 0 in the place of those tests. Tests conjoined with the label are counted
        apart from those conjoined with pairs of labels: each at the tokens where it is conjoined.
    """
    if min_freq <= 1:
        return hashes
    _, ids, counts = distinct(hashes.reshape(-1))
    if n_tokens is not None:
        counts = np.bincount(ids, np.repeat(n_tokens, hashes.shape[1]), minlength=len(counts))
    rare = counts < min_freq
    return np.where(rare[ids.reshape(hashes.shape)], np.uint64(0), hashes)


def distinct_rows(rows: NDArray[np.integer]) -> tuple[Longs, Ints]:
    """Find the distinct rows of a matrix.

    rows: [R, P], any integers.
    RETURNS: index of a representative of each distinct row [C] int64, and of each row the
        number of its representative [R] int32.
    """
    if rows.shape[1] == 0 or len(rows) == 0:
        return np.zeros(min(len(rows), 1), np.int64), np.zeros(len(rows), np.int32)
    as_bytes = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1])))
    _, first, inverse = np.unique(as_bytes.ravel(), return_index=True, return_inverse=True)
    return first.astype(np.int64), inverse.astype(np.int32).reshape(-1)


def find_keys(keys: NDArray[np.integer], wanted: NDArray[np.integer]) -> Longs:
    """Position [n] int64 of each wanted key [n] among distinct keys, -1 where it is not there."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(keys)
    position = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    return np.where(keys[position] == wanted, position, -1)
