"""Numbering of distinct features and rows, by first occurrence and by frequency.

A *row* is a few 64-bit numbers: the hashes of the features of a context, or a single feature.
"""

from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import Errors, SparseCRFError

# Arrays by their dtype, for annotations in all packages.
Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]
Singles: TypeAlias = NDArray[np.float32]
Hashes: TypeAlias = NDArray[np.uint64]
Longs: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]
Ints: TypeAlias = NDArray[np.int32]
Mask: TypeAlias = NDArray[np.bool_]

Runs: TypeAlias = list[tuple[int, int]]

# Hashes numbered at a time, so that the table grows with the number of distinct hashes.
_CHUNK = 1 << 20


def runs_of_tokens(offsets: Longs, n_tokens: int) -> Runs:
    """Divide sequences into runs of at most n_tokens tokens; a longer sequence is its own run.

    offsets: [S + 1], of sequences. RETURNS: bounds first:last of each run.
    """
    bounds = [0]
    while bounds[-1] < len(offsets) - 1:
        limit = offsets[bounds[-1]] + n_tokens
        end = int(np.searchsorted(offsets, limit, side="right")) - 1
        bounds.append(max(end, bounds[-1] + 1))
    return list(pairwise(bounds))


def concatenated_ranges(starts: Longs, lengths: Longs) -> Longs:
    """Concatenate the ranges starts[i]:starts[i] + lengths[i]."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    ranges: Longs = np.arange(total) + np.repeat(starts - (ends - lengths), lengths)
    return ranges


class RowIndex:
    """Numbering of distinct rows of 64-bit numbers by first occurrence, and their counts.

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
        from ..kernels.indexing import enter_all, number_rows

        numbers = np.empty(len(queries), np.int32)
        for begin in range(0, len(queries), _CHUNK):
            chunk = np.ascontiguousarray(queries[begin : begin + _CHUNK])
            most = self._n + len(chunk)
            if most > np.iinfo(np.int32).max:
                raise SparseCRFError(Errors.SC301.format(n=most))
            if most > len(self._rows):
                n = max(most, 2 * len(self._rows))
                self._rows, self._counts = grown(self._rows, n), grown(self._counts, n)
                self._slots = np.full(1 << (2 * len(self._rows) - 1).bit_length(), -1, np.int32)
                enter_all(self._slots, self._rows, self._n)
            self._n = number_rows(
                slots=self._slots,
                rows=self._rows,
                counts=self._counts,
                n_rows=self._n,
                queries=chunk,
                numbers=numbers[begin : begin + _CHUNK],
            )
        return numbers


def grown(array: Array, n: int) -> Array:
    """Return an array of n items that begins with the given ones; the others are 0."""
    longer = np.zeros((n, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def number_hashes(hashes: Hashes) -> tuple[Hashes, Ints, Longs]:
    """Find the distinct values of hashes, without sorting them.

    hashes: [n] uint64. RETURNS: keys [O] uint64, by first occurrence; the index of each hash among
    them, [n] int32; the count of each key, [O] int64. RAISES: SparseCRFError for too many keys.
    """
    index = RowIndex(1)
    numbers = index.add(hashes[:, None])
    return index.rows[:, 0], numbers, index.counts


def positions(chosen: NDArray[np.integer], n: int) -> Ints:
    """Return the position of each number below n among those chosen, -1 for others: [n] int32."""
    position = np.full(n, -1, np.int32)
    position[chosen] = np.arange(len(chosen), dtype=np.int32)
    return position


def number_features(hashes: Hashes) -> tuple[Hashes, Longs, Ints]:
    """Number the distinct non-zero hashes of a matrix, the most frequent first.

    Ties are common, because most features are rare. Numbering ties by first occurrence keeps the
    weights of neighbouring tokens close in memory.

    hashes: [R, P] uint64, 0 = no feature.
    RETURNS: keys [O] uint64, ties in frequency by first occurrence, row by row; and the rows as
        CSR: indptr [R + 1] int64, ids [nnz] int32.
    """
    present = hashes != 0
    keys, ids, counts = number_hashes(hashes[present])
    order = np.argsort(-counts, kind="stable")
    indptr = np.append(0, np.cumsum(present.sum(axis=1, dtype=np.int64)))
    return keys[order], indptr, positions(order, len(order))[ids]


def without_rare(hashes: Hashes, min_freq: int, n_tokens: Longs) -> Hashes:
    """Remove the features that occur at fewer than min_freq tokens.

    hashes: [R, P] uint64, the feature of each template in each row, 0 = none; n_tokens: [R] int64,
        tokens of a row.
    RETURNS: hashes, with 0 for removed features. Features conjoined with the label, and those
        conjoined with label pairs, are counted separately.
    """
    _, ids, _ = number_hashes(hashes.reshape(-1))
    counts = np.bincount(ids, np.repeat(n_tokens, hashes.shape[1]))
    rare = counts < min_freq
    return np.where(rare[ids.reshape(hashes.shape)], np.uint64(0), hashes)


def distinct_rows(rows: NDArray[np.integer]) -> tuple[Longs, Ints]:
    """Find the distinct rows of a matrix.

    rows: [R, P], any integers.
    RETURNS: the index of a representative of each distinct row, [C] int64, and the number of the
        representative of each row, [R] int32.
    """
    if rows.shape[1] == 0 or len(rows) == 0:
        return np.zeros(min(len(rows), 1), np.int64), np.zeros(len(rows), np.int32)
    as_bytes = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1])))
    _, representatives, inverse = np.unique(
        as_bytes.ravel(), return_index=True, return_inverse=True
    )
    return representatives.astype(np.int64), inverse.astype(np.int32).reshape(-1)


def find_keys(keys: NDArray[np.integer], wanted: NDArray[np.integer]) -> Longs:
    """Return the index [n] int64 of each wanted key [n] among distinct keys, -1 if absent."""
    order = np.argsort(keys)
    return np.append(order, -1)[find_ascending(keys[order], wanted)]


def find_ascending(keys: NDArray[np.integer], wanted: NDArray[np.integer]) -> Longs:
    """Return the same as `find_keys`, for ascending keys."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    position = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[position] == wanted, position, -1)
