"""64-bit hashes of tests, and a hash table from 64-bit keys to their positions."""

import numpy as np

from .compiled import inner, kernel

# Values that stand for tokens outside the sequence, mixed with the distance from it.
_BEFORE = np.uint64(0x9E3779B97F4A7C15)
_AFTER = np.uint64(0xC2B2AE3D27D4EB4F)
# Instead of the hash 0, which means "no test".
_NOT_ZERO = np.uint64(0x165667B19E3779F9)
_ZERO = np.uint64(0)


@inner
def mix(x: np.uint64) -> np.uint64:
    """Scramble 64 bits one-to-one (the finaliser of MurmurHash3)."""
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return x ^ (x >> np.uint64(33))


@kernel
def edge_value(distance: int) -> np.uint64:
    """Value of a token outside the sequence: distance < 0 before its first, > 0 behind its last."""
    return mix((_BEFORE if distance < 0 else _AFTER) ^ np.uint64(abs(distance)))


@kernel
def fill_edges(edges: np.ndarray) -> None:
    """Give each distance from a sequence a value of its own on either side.

    edges: [K, 2, E] uint64, out, the same for every k.
    """
    for k in range(len(edges)):
        for i in range(edges.shape[2]):
            edges[k, 0, i] = edge_value(-i - 1)
            edges[k, 1, i] = edge_value(i + 1)


# Inlined: a call would count the references to each array, which takes longer than the test.
@inner(inline="always")
def hash_test(
    p: int,
    t: int,
    first: int,
    last: int,
    rows: np.ndarray,
    lexical: np.ndarray,
    annotations: np.ndarray,
    seeds: np.ndarray,
    part_ptr: np.ndarray,
    part_columns: np.ndarray,
    part_offsets: np.ndarray,
    part_anchors: np.ndarray,
    part_edges: np.ndarray,
) -> np.uint64:
    """Hash template p at token t of the sequence first:last.

    h = mix(... mix(mix(seed ^ v1) ^ v2) ...) over the values v of the template's parts, and
    h = mix(seed) without parts; 0 where a value is missing. A part that leaves the sequence
    has a value by its distance, but none in the further columns of an attribute that has several:
    a test twice at a token would count twice. The arrays are those of `hash_tests`.
    """
    n_lexical = lexical.shape[1]
    h = seeds[p]
    if part_ptr[p] == part_ptr[p + 1]:
        h = mix(h)
    for k in range(part_ptr[p], part_ptr[p + 1]):
        anchor = part_anchors[k]
        at = part_offsets[k] + (t if anchor == 0 else first if anchor == 1 else last)
        column = part_columns[k]
        if column < 0:
            if at < first or at >= last:
                return _ZERO
            column = ~column
        if at < first:
            value = part_edges[k, 0, min(first - at, part_edges.shape[2]) - 1]
        elif at >= last:
            value = part_edges[k, 1, min(at - last + 1, part_edges.shape[2]) - 1]
        elif column < n_lexical:
            value = lexical[rows[at], column]
        else:
            value = annotations[at, column - n_lexical]
        if value == _ZERO:
            return _ZERO
        h = mix(h ^ value)
    return h if h != _ZERO else _NOT_ZERO


@kernel
def hash_tests(
    offsets: np.ndarray,
    rows: np.ndarray,
    lexical: np.ndarray,
    annotations: np.ndarray,
    seeds: np.ndarray,
    part_ptr: np.ndarray,
    part_columns: np.ndarray,
    part_offsets: np.ndarray,
    part_anchors: np.ndarray,
    part_edges: np.ndarray,
    hashes: np.ndarray,
) -> None:
    """Hash every template at every token, see `hash_test`.

    offsets: [S + 1] int64, tokens of a sequence.
    rows: [N] int32, row of a token in `lexical`.
    lexical: [R, L] uint64, values of word attributes, 0 = missing.
    annotations: [N, A] uint64, values of a token's annotations, 0 = missing.
    seeds: [P] uint64, of templates.
    part_ptr: [P + 1] int64, parts of a template.
    part_columns: [K] int64, column of `lexical` if < L, else L + column of `annotations`; ~column
        for all columns of an attribute but its first.
    part_offsets: [K] int64, in tokens.
    part_anchors: [K] int64, from where an offset counts: 0 the token, 1 the first of its sequence,
        2 behind the last.
    part_edges: [K, 2, E] uint64, values before and behind a sequence, by distance from it; E >= 1,
        and tokens that are farther away are like those at distance E.
    hashes: [N, P] uint64, out.
    """
    for s in range(len(offsets) - 1):
        first, last = offsets[s], offsets[s + 1]
        for t in range(first, last):
            for p in range(len(seeds)):
                hashes[t, p] = hash_test(
                    p,
                    t,
                    first,
                    last,
                    rows,
                    lexical,
                    annotations,
                    seeds,
                    part_ptr,
                    part_columns,
                    part_offsets,
                    part_anchors,
                    part_edges,
                )


def build_table(keys: np.ndarray, capacity: int = 0) -> np.ndarray:
    """Build an open-addressing table from keys to their positions, for `lookup`.

    keys: [K] uint64, distinct; any order, any values.
    capacity: number of keys for which to leave room (see `insert`), if more than K.
    RETURNS: slots [C] int32, C a power of two and at least twice as many as keys; a slot holds
        the position of a key, or -1.
    """
    size = 1 << max(2 * max(len(keys), capacity) - 1, 1).bit_length()
    slots = np.full(size, -1, dtype=np.int32)
    insert(slots, keys, 0, len(keys))
    return slots


@kernel
def insert(slots: np.ndarray, keys: np.ndarray, first: int, last: int) -> None:
    """Enter keys[first:last] into a table that keys[:first] are in, by linear probing.

    slots: [C] int32, C a power of two >= 2 * last, changed.
    keys: [>= last] uint64, distinct.
    """
    mask = np.uint64(len(slots) - 1)
    for i in range(first, last):
        slot = mix(keys[i]) & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = i


@inner
def find(slots: np.ndarray, keys: np.ndarray, query: np.uint64) -> int:
    """Find one key in a table; the arguments are those of `lookup`."""
    mask = np.uint64(len(slots) - 1)
    slot = mix(query) & mask
    position: int = slots[slot]
    while position >= 0 and keys[position] != query:
        slot = (slot + np.uint64(1)) & mask
        position = slots[slot]
    return position


@kernel
def lookup(slots: np.ndarray, keys: np.ndarray, queries: np.ndarray, positions: np.ndarray) -> int:
    """Find keys in a table.

    slots: [C] int32, of `build_table`; needs a free slot, as any table with load < 1 has.
    keys: [>= K] uint64, those the table was built from.
    queries: [N] uint64; pass `.reshape(-1)` of a contiguous matrix.
    positions: [N] int32, out: position of the query among the keys, -1 where it is absent.
    RETURNS: number of queries that are absent.
    """
    absent = 0
    for i in range(len(queries)):
        position = find(slots, keys, queries[i])
        positions[i] = position
        absent += position < 0
    return absent
