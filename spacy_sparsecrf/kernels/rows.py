"""A model's rows by the hash of their test: made for queries of which most are absent.

A bitmap, small enough to stay in a near cache, tells most absent tests apart. An entry of the
table has the key and where the weights of its row are, so that a probe touches one cache line.
"""

import numpy as np

from .compiled import inner, kernel
from .hashing import mix

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_THREE = np.uint64(3)
_SEVEN = np.uint64(7)
# Bits of the mixed key that tell its place in the bitmap: others than those for its slot.
_HIGH = np.uint64(32)
_START = np.uint64(32)
_COUNT = np.uint64(0xFFFFFFFF)


def build_rows(keys: np.ndarray, row_ptr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Build the bitmap and the table of a model's rows.

    keys: [R] uint64, distinct, any values; row_ptr: [R + 1] int64, weights of a row, at least one
    and in all fewer than 2**32.
    RETURNS: bits [B] uint8, B a power of two, at least 16 bits a key; entries [C, 2] uint64, C a
    power of two and at least 2 R: key, and first weight << 32 | number of weights, 0 = free.
    """
    bits = np.zeros(1 << max(2 * len(keys) - 1, 7).bit_length(), dtype=np.uint8)
    entries = np.zeros((1 << max(2 * len(keys) - 1, 1).bit_length(), 2), dtype=np.uint64)
    enter_rows(bits, entries, keys, row_ptr)
    return bits, entries


@kernel
def enter_rows(
    bits: np.ndarray, entries: np.ndarray, keys: np.ndarray, row_ptr: np.ndarray
) -> None:
    """Enter keys into an empty bitmap and table, by linear probing; see `build_rows`."""
    mask = np.uint64(len(entries) - 1)
    bit_mask = np.uint64(8 * len(bits) - 1)
    for row in range(len(keys)):
        mixed = mix(keys[row])
        bit = (mixed >> _HIGH) & bit_mask
        bits[bit >> _THREE] |= np.uint8(_ONE << (bit & _SEVEN))
        slot = mixed & mask
        while entries[slot, 1] != _ZERO:
            slot = (slot + _ONE) & mask
        entries[slot, 0] = keys[row]
        count = np.uint64(row_ptr[row + 1] - row_ptr[row])
        entries[slot, 1] = (np.uint64(row_ptr[row]) << _START) | count


@inner
def may_have(bits: np.ndarray, query: np.uint64) -> int:
    """1 if a key may be in the table, 0 if it is not, or if it is 0: "no test"."""
    bit = (mix(query) >> _HIGH) & np.uint64(8 * len(bits) - 1)
    return 1 if query != _ZERO and (bits[bit >> _THREE] >> (bit & _SEVEN)) & _ONE else 0


@inner
def find_entry(entries: np.ndarray, query: np.uint64) -> np.uint64:
    """Find where the weights of a key are: first << 32 | number, 0 where the key is absent."""
    mask = np.uint64(len(entries) - 1)
    slot = mix(query) & mask
    while entries[slot, 1] != _ZERO and entries[slot, 0] != query:
        slot = (slot + _ONE) & mask
    entry: np.uint64 = entries[slot, 1]
    return entry


@inner
def add_row(
    entry: np.uint64, row_places: np.ndarray, values: np.ndarray, scores: np.ndarray
) -> None:
    """Add the weights of an entry at their places: scores[y] += mu[o, y].

    entry: of `find_entry`; row_places, values: [K], of weights; scores: [Yp] or [(Y + 1) * Yp].
    """
    first = np.int64(entry >> _START)
    for k in range(first, first + np.int64(entry & _COUNT)):
        scores[row_places[k]] += values[k]


@kernel
def find_entries(
    hashes: np.ndarray, bits: np.ndarray, entries: np.ndarray, found: np.ndarray
) -> None:
    """Find the entries of tests. hashes: [N, P] uint64, 0 = none; found: [N, P] uint64, out."""
    for n in range(len(hashes)):
        for p in range(hashes.shape[1]):
            found[n, p] = _ZERO
            if may_have(bits, hashes[n, p]):
                found[n, p] = find_entry(entries, hashes[n, p])


@kernel
def add_rows(
    found: np.ndarray, row_places: np.ndarray, values: np.ndarray, scores: np.ndarray
) -> None:
    """Score tokens, scores[n, y] = sum_o mu[o, y], or contexts: sum_o lam[o, y', y].

    found: [N, P] uint64, entries of tests; scores: [N, Yp] or [N, (Y + 1) * Yp] float64, out; the
    rest as in `add_row`.
    """
    scores[:, :] = 0.0
    for n in range(len(found)):
        for p in range(found.shape[1]):
            add_row(found[n, p], row_places, values, scores[n])
