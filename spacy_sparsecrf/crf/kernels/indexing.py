"""Indexes: distinct rows, transposes and selections of CSR tables, bundles of features.

A growing index numbers distinct rows by first occurrence. Each row has a linked list of numbers;
the lists grow in arrays that are only appended to.
"""

from typing import Any

import numpy as np

from .hashing import mix
from .layout import Csr, Floats, Ints
from .numba_support import inlined, kernel
from .small import position


@inlined
def _hash_row(row: Ints) -> np.uint64:
    """Hash a row of 64-bit numbers."""
    h = np.uint64(0)
    for value in row:
        h = mix(h ^ value)
    return h


@inlined
def _same(a: Ints, b: Ints) -> bool:
    """Return whether two rows are equal."""
    for i in range(len(a)):  # noqa: SIM110 (numba has no generators in any())
        if a[i] != b[i]:
            return False
    return True


@kernel
def enter_all(slots: Ints, rows: Ints, n_rows: int) -> None:
    """Insert distinct rows into an empty table, by linear probing.

    slots: [C] int32, all -1, C a power of two >= 2 * n_rows; rows: [>= n_rows, W] uint64.
    """
    mask = np.uint64(len(slots) - 1)
    for i in range(n_rows):
        slot = _hash_row(rows[i]) & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = i


@kernel
def number_rows(
    slots: Ints, rows: Ints, counts: Ints, n_rows: int, queries: Ints, numbers: Ints
) -> int:
    """Number rows by an index; new rows get the next numbers.

    slots: [C] int32, see `enter_all`, C >= 2 * (n_rows + Q), changed; rows: [>= n_rows + Q, W]
    uint64, by number, appended to; counts: [>= n_rows + Q] int64, count of a row, added to;
    queries: [Q, W] uint64; numbers: [Q] int32, out. RETURNS: the new number of rows.
    """
    mask = np.uint64(len(slots) - 1)
    for q in range(len(queries)):
        query = queries[q]
        slot = _hash_row(query) & mask
        number: Any = np.int64(slots[slot])
        while number >= 0 and not _same(rows[number], query):
            slot = (slot + np.uint64(1)) & mask
            number = np.int64(slots[slot])
        if number < 0:
            number = n_rows
            slots[slot] = number
            for i in range(len(query)):
                rows[number, i] = query[i]
            n_rows += 1
        numbers[q] = number
        counts[number] += 1
    return n_rows


@kernel(allocates=True)
def transpose(table: Csr, n_columns: int) -> Csr:
    """Transpose a pattern by counting; rows are ascending inside each column."""
    indptr, indices = table.indptr, table.indices
    col_ptr = np.zeros(n_columns + 1, np.int64)
    for j in range(indptr[0], indptr[-1]):
        col_ptr[indices[j] + 1] += 1
    for o in range(n_columns):
        col_ptr[o + 1] += col_ptr[o]
    col_rows = np.empty(col_ptr[n_columns], np.int32)
    for row in range(len(indptr) - 1):
        for j in range(indptr[row], indptr[row + 1]):
            o = indices[j]
            col_rows[col_ptr[o]] = row
            col_ptr[o] += 1
    for o in range(n_columns, 0, -1):
        col_ptr[o] = col_ptr[o - 1]
    col_ptr[0] = 0
    return Csr(col_ptr, col_rows)


@kernel(allocates=True)
def select(table: Csr, number: Ints) -> Csr:
    """Renumber the columns of a pattern; number: [O] int32, -1 to drop a column."""
    indptr, indices = table.indptr, table.indices
    new_indptr = np.zeros(len(indptr), np.int64)
    n_entries = 0
    for row in range(len(indptr) - 1):
        for j in range(indptr[row], indptr[row + 1]):
            n_entries += number[indices[j]] >= 0
        new_indptr[row + 1] = n_entries
    new_indices = np.empty(n_entries, np.int32)
    n_entries = 0
    for j in range(indptr[0], indptr[-1]):
        column = number[indices[j]]
        if column >= 0:
            new_indices[n_entries] = column
            n_entries += 1
    return Csr(new_indptr, new_indices)


@kernel
def enter_rows(first: int, last: int, rows: Ints, table: Csr, ptr: Ints, entered: Ints) -> None:
    """Count, or enter, rows of a pattern in the columns first:last of its transpose.

    The caller counts, allocates, and enters. Chunks of columns are independent of each other.
    rows: [n], of the table, whose columns are ascending; ptr: [columns] int64, in and out, a count,
    or the next position of a column in `entered`; entered: int32, out, positions among `rows` of
    the rows of a column, or [0] to count.
    """
    for i in range(len(rows)):
        columns = table.indices[table.indptr[rows[i]] : table.indptr[rows[i] + 1]]
        for j in range(position(columns, first), len(columns)):
            column = columns[j]
            if column >= last:
                break
            if len(entered):
                entered[ptr[column]] = i
            ptr[column] += 1


@kernel(allocates=True)
def hash_runs(features: Csr, families: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Hash the runs of several features of one family at each token.

    features: of tokens; families: [O] uint8, 0 for none.
    RETURNS: [N + 1] int64, runs of each token; [n] int64 each, bounds of a run among the features
    of all tokens; [n] uint64, hashes.
    """
    indptr, indices, n = features.indptr, features.indices, 0
    ptr, most = np.zeros(len(indptr), np.int64), len(indices) // 2
    begins, ends = np.empty(most, np.int64), np.empty(most, np.int64)
    hashes = np.empty(most, np.uint64)
    for t in range(len(indptr) - 1):
        end = indptr[t]
        while end < indptr[t + 1]:
            begin, family, h = end, families[indices[end]], np.uint64(0)
            while end < indptr[t + 1] and families[indices[end]] == family:
                h = mix(h ^ np.uint64(indices[end] + 1))
                end += 1
            if family > 0 and end - begin > 1:
                begins[n], ends[n], hashes[n] = begin, end, h
                n += 1
        ptr[t + 1] = n
    return ptr, begins[:n], ends[:n], hashes[:n]


@kernel(allocates=True)
def take(table: Csr, rows: Ints) -> Csr:
    """Return rows [n] int64 in the given order."""
    indptr, indices = table.indptr, table.indices
    new_indptr = np.zeros(len(rows) + 1, np.int64)
    for i, row in enumerate(rows):
        new_indptr[i + 1] = new_indptr[i] + indptr[row + 1] - indptr[row]
    new_indices = np.empty(new_indptr[-1], np.int32)
    n = 0
    for row in rows:  # numba takes seconds to compile an assignment to a slice
        for j in range(indptr[row], indptr[row + 1]):
            new_indices[n] = indices[j]
            n += 1
    return Csr(new_indptr, new_indices)


@kernel
def sum_columns(indptr: Ints, indices: Ints, weights: Floats, totals: Floats) -> None:
    """Add the weight of each row of a CSR pattern to the totals of its columns.

    weights: [R] float64; totals: [O] float64, added to.
    """
    for row in range(len(indptr) - 1):
        for j in range(indptr[row], indptr[row + 1]):
            totals[indices[j]] += weights[row]
