"""Indexes: distinct rows, transposes and selections of CSR tables, sparse corrections.

A growing index numbers distinct rows by first occurrence. Each row has a linked list of numbers;
the lists grow in arrays that are only appended to.
"""

from typing import Any

import numpy as np

from .hashing import mix
from .layout import Csr, Floats, Ints
from .numba_support import inlined, kernel
from .small import fill

# The numbers of rows that keep theirs.
AS_NUMBERED: Ints = np.empty(0, np.int32)


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
def transpose(table: Csr, n_columns: int, number: Ints) -> Csr:
    """Transpose a pattern by counting; rows stay in their order inside each column.

    number: [R] int32, new number of each row, -1 to drop it; `AS_NUMBERED`: unchanged.
    """
    indptr, indices, is_same = table.indptr, table.indices, len(number) == 0
    col_ptr = np.zeros(n_columns + 1, np.int64)
    for row in range(len(indptr) - 1):
        for j in range(indptr[row], indptr[row + 1]):
            col_ptr[indices[j] + 1] += is_same or number[row] >= 0
    for o in range(n_columns):
        col_ptr[o + 1] += col_ptr[o]
    col_rows = np.empty(col_ptr[n_columns], np.int32)
    for row in range(len(indptr) - 1):
        new = np.int32(row) if is_same else number[row]
        if new >= 0:
            for j in range(indptr[row], indptr[row + 1]):
                o = indices[j]
                col_rows[col_ptr[o]] = new
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
    kept = 0
    for row in range(len(indptr) - 1):
        for j in range(indptr[row], indptr[row + 1]):
            kept += number[indices[j]] >= 0
        new_indptr[row + 1] = kept
    new_indices = np.empty(kept, np.int32)
    kept = 0
    for j in range(indptr[0], indptr[-1]):
        column = number[indices[j]]
        if column >= 0:
            new_indices[kept] = column
            kept += 1
    return Csr(new_indptr, new_indices)


@kernel(allocates=True)
def take(table: Csr, rows: Ints) -> Csr:
    """Return rows [n] int64 in the given order."""
    indptr, indices = table.indptr, table.indices
    new_indptr = np.zeros(len(rows) + 1, np.int64)
    for i, row in enumerate(rows):
        new_indptr[i + 1] = new_indptr[i] + indptr[row + 1] - indptr[row]
    new_indices = np.empty(new_indptr[-1], np.int32)
    for i, row in enumerate(rows):
        new_indices[new_indptr[i] : new_indptr[i + 1]] = indices[indptr[row] : indptr[row + 1]]
    return Csr(new_indptr, new_indices)


@kernel
def sum_columns(indptr: Ints, indices: Ints, weights: Floats, totals: Floats) -> None:
    """Add the weight of each row of a CSR pattern to the totals of its columns.

    weights: [R] float64; totals: [O] float64, added to.
    """
    for row in range(len(indptr) - 1):
        for j in range(indptr[row], indptr[row + 1]):
            totals[indices[j]] += weights[row]


@inlined
def _low_bit(word: np.uint64) -> int:
    """Return the position of the lowest bit that is set; word: not 0."""
    position = 0
    for shift in (32, 16, 8, 4, 2, 1):
        low = word & ((np.uint64(1) << np.uint64(shift)) - np.uint64(1))
        if low == np.uint64(0):
            word >>= np.uint64(shift)
            position += shift
    return position


@kernel
def count_places(
    row_ptr: Ints,
    rows: Ints,
    weight_ptr: Ints,
    places: Ints,
    seen: Ints,
    n_places: Ints,
    n_weights: Ints,
) -> None:
    """Count the distinct positions, and the weights, of the feature blocks of each context.

    row_ptr [C + 1] and rows: CSR, blocks of a context; weight_ptr: [R + 1] int64, weights of a
    block; places: [K] uint32, position of a weight; seen: [> largest position] int32, -1,
    workspace; n_places, n_weights: [C] int64, out.
    """
    for c in range(len(row_ptr) - 1):
        n_places[c], n_weights[c] = 0, 0
        for j in range(row_ptr[c], row_ptr[c + 1]):
            begin, end = weight_ptr[rows[j]], weight_ptr[rows[j] + 1]
            n_weights[c] += end - begin
            for k in range(begin, end):
                if seen[places[k]] != c:
                    seen[places[k]] = c
                    n_places[c] += 1


@kernel
def list_places(
    row_ptr: Ints,
    rows: Ints,
    weight_ptr: Ints,
    places: Ints,
    corr_ptr: Ints,
    bits: Ints,
    correction_of: Ints,
    corr_place: Ints,
    correction_ptr: Ints,
    correction_weights: Ints,
) -> None:
    """List the distinct positions of each context, ascending, and the weights of each.

    row_ptr, rows, weight_ptr, places: see `count_places`; corr_ptr: [C + 1] int64, corrections of a
    context; bits: [W] uint64, 0, a bit for each position, and correction_of: [64 W] int64,
    workspaces; corr_place: [E] int32, out; correction_ptr [E + 1] int64 and correction_weights
    int32: CSR, out, weights of a correction, by block.
    """
    one = np.uint64(1)
    fill(correction_ptr, 0, len(correction_ptr), 0)
    for c in range(len(row_ptr) - 1):
        for j in range(row_ptr[c], row_ptr[c + 1]):
            for k in range(weight_ptr[rows[j]], weight_ptr[rows[j] + 1]):
                place = np.int64(places[k])
                bits[place >> 6] |= one << np.uint64(place & 63)
        e = int(corr_ptr[c])
        if e == corr_ptr[c + 1]:
            continue
        for w in range(len(bits)):
            word = bits[w]
            while word != np.uint64(0):
                lowest = (w << 6) + _low_bit(word)
                corr_place[e] = lowest
                correction_of[lowest] = e
                e += 1
                word &= word - one
            bits[w] = np.uint64(0)
        for j in range(row_ptr[c], row_ptr[c + 1]):
            for k in range(weight_ptr[rows[j]], weight_ptr[rows[j] + 1]):
                correction_ptr[correction_of[places[k]] + 1] += 1
        begin = corr_ptr[c]
        for e in range(begin, corr_ptr[c + 1]):
            correction_ptr[e + 1] += correction_ptr[e]
        # `correction_of` becomes the index of the next weight of the position.
        for e in range(begin, corr_ptr[c + 1]):
            correction_of[corr_place[e]] = correction_ptr[e]
        for j in range(row_ptr[c], row_ptr[c + 1]):
            for k in range(weight_ptr[rows[j]], weight_ptr[rows[j] + 1]):
                correction_weights[correction_of[places[k]]] = k
                correction_of[places[k]] += 1
