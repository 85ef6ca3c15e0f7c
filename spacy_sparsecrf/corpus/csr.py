"""Ragged tables of numbers."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Longs: TypeAlias = NDArray[np.int64]
Ints: TypeAlias = NDArray[np.int32]


@dataclass(frozen=True)
class Csr:
    """A ragged table: row r holds indices[indptr[r]:indptr[r + 1]].

    indptr: [R + 1] int64; indices: [nnz] int32.
    """

    indptr: Longs
    indices: Ints

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def take(self, rows: Longs) -> "Csr":
        """Return rows in the given order; nothing is copied if these are all rows in order."""
        if len(rows) == len(self) and np.array_equal(rows, np.arange(len(self))):
            return self
        lengths = np.diff(self.indptr)[rows]
        entries = concatenated_ranges(self.indptr[:-1][rows], lengths)
        indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        return Csr(indptr, self.indices[entries])

    def selected(self, number: Ints) -> "Csr":
        """Select and renumber columns; number: [O], -1 to drop."""
        from ..kernels.indexing import select

        indptr, indices = np.empty_like(self.indptr), np.empty(len(self.indices), np.int32)
        kept = select(self.indptr, self.indices, number, indptr, indices)
        # In place, without a copy; no view of the array exists.
        indices.resize(kept, refcheck=False)
        return Csr(indptr, indices)

    def padded(self) -> Ints:
        """Return the rows as a matrix of indices plus 1, padded with 0."""
        lengths = np.diff(self.indptr)
        matrix = np.zeros((len(self), int(lengths.max(initial=0))), dtype=np.int32)
        row = np.repeat(np.arange(len(self)), lengths)
        matrix[row, np.arange(len(self.indices)) - self.indptr[row]] = self.indices + 1
        return matrix

    def transposed(self, n_columns: int, number: Ints | None = None) -> "Csr":
        """Return the transposed table: the rows of each column, in their order.

        number: [R] int32, new number of each row, -1 to drop it; default: unchanged.
        """
        from ..kernels.indexing import transpose

        number = np.arange(len(self), dtype=np.int32) if number is None else number
        col_ptr = np.zeros(n_columns + 1, dtype=np.int64)
        col_rows = np.empty(int(np.diff(self.indptr) @ (number >= 0)), dtype=np.int32)
        transpose(self.indptr, self.indices, number, col_ptr, col_rows)
        return Csr(col_ptr, col_rows)


def concatenated_ranges(starts: Longs, lengths: Longs) -> Longs:
    """Concatenate the ranges starts[i]:starts[i] + lengths[i]."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    ranges: Longs = np.arange(total) + np.repeat(starts - (ends - lengths), lengths)
    return ranges
