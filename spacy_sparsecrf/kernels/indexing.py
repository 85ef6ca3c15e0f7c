"""Growing indexes: distinct rows of numbers by the order of their arrival."""

from typing import Any

import numpy as np

from .compiled import inner, kernel
from .hashing import mix


@inner
def _hash_row(row: np.ndarray) -> np.uint64:
    """Scramble a row of 64-bit numbers."""
    h = np.uint64(0)
    for value in row:
        h = mix(h ^ value)
    return h


@inner
def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two rows have the same numbers."""
    for i in range(len(a)):  # noqa: SIM110 (numba has no generators in any())
        if a[i] != b[i]:
            return False
    return True


@kernel
def enter_all(slots: np.ndarray, rows: np.ndarray, n_rows: int) -> None:
    """Enter distinct rows into an empty table, by linear probing.

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
    slots: np.ndarray,
    rows: np.ndarray,
    counts: np.ndarray,
    n_rows: int,
    queries: np.ndarray,
    numbers: np.ndarray,
) -> int:
    """Number rows; those that are not known yet get the next numbers.

    slots: [C] int32, see `enter_all`, C >= 2 * (n_rows + Q), changed; rows: [>= n_rows + Q, W]
    uint64, by number, added to; counts: [>= n_rows + Q] int64, how often a row came, added to;
    queries: [Q, W] uint64; numbers: [Q] int32, out. RETURNS: how many rows are known now.
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
