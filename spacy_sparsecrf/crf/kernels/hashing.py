"""64-bit hashes of the features of tokens, and a hash table from keys to their positions."""

from typing import TypeVar

import numpy as np

from .layout import HashPlan, Ints, Tokens
from .numba_support import inlined, kernel

# Values of tokens outside the sequence, mixed with the distance from it.
_BEFORE = np.uint64(0x9E3779B97F4A7C15)
_AFTER = np.uint64(0xC2B2AE3D27D4EB4F)
# Replaces the hash 0, which means "no feature".
_NOT_ZERO = np.uint64(0x165667B19E3779F9)
_ZERO = np.uint64(0)

Bits = TypeVar("Bits", np.uint64, np.ndarray)


@inlined
def mix(x: Bits) -> Bits:
    """Mix 64 bits by a bijection (the finaliser of MurmurHash3), or each element of an array."""
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    mixed: Bits = x ^ (x >> np.uint64(33))
    return mixed


# Keep the GIL: the kernel is short, and if it released the GIL, another thread that reads Docs
# would take it and delay the kernel that scores this thread's Docs.
@kernel(nogil=False)
def cut(
    ends: Ints,
    values: Ints,
    rows: Ints,
    kinds: Ints,
    sentences: bool,
    glued: int,
    lines: int,
    offsets: Ints,
    token_of_word: Ints,
) -> int:
    """Cut the concatenated tokens of Docs into sequences of words, and move the words together.

    ends: [D] int64, end of each Doc; a Doc without words gives no sequence.
    values: [N, A] uint64, in and out, SENT_START of tokens in column 1; out: of words.
    rows: [N] int32, in and out, row of each token in `kinds`; out: of words.
    kinds: [R] uint8, 0 for a word, 1 for a blank, plus its line breaks, of which 2 count.
    sentences: whether a sequence is a sentence (if the Doc has sentences) or a whole Doc.
    glued: column that has trailing whitespace, and gets 1 where the next word follows without
    blanks; lines: column that gets the line breaks between a word and the word before, 0 to 2; 0
    if no template reads the column.
    offsets: [N + 1] int64, out: sequence s is the words offsets[s]:offsets[s + 1].
    token_of_word: [N] int64, out: the token t of each word, or ~t behind two or more line breaks.
    RETURNS: the number of sequences.
    """
    n = 0
    words = 0
    start = 0
    for d in range(len(ends)):
        begins = True
        # What stands before the first word of a Doc is no break.
        breaks = -1
        for t in range(start, ends[d]):
            # As Doc.sents: a sentence begins where the value is 1, not 0 (unknown) or -1 (no).
            begins |= sentences and values[t, 1] == np.uint64(1)
            kind = int(kinds[rows[t]])
            if kind > 0:
                if breaks >= 0:
                    breaks += kind - 1
                continue
            if begins:
                offsets[n] = words
                n += 1
                begins = False
            # No token follows the last token of a Doc, with or without whitespace.
            follows = glued > 0 and t + 1 < ends[d] and values[t, glued] == _ZERO
            follows = follows and kinds[rows[t + 1]] == 0
            if words < t:
                rows[words] = rows[t]
                for a in range(values.shape[1]):
                    values[words, a] = values[t, a]
            if glued > 0:
                values[words, glued] = np.uint64(follows)
            if lines > 0:
                values[words, lines] = np.uint64(min(max(breaks, 0), 2))
            token_of_word[words] = ~t if breaks >= 2 else t
            words += 1
            breaks = 0
        start = ends[d]
    offsets[n] = words
    return n


@kernel(nogil=False)
def find_capitals(
    ends: Ints, values: Ints, lower: int, marks: tuple[Ints, Ints], cells: Ints
) -> int:
    """Find the words with capitals in Docs of several sentences; see `attributes.document`.

    ends, values: as for `find_runs`; lower: column of LOWER.
    marks: [n] uint64, words that end a sentence, and words that begin a quotation.
    cells: [N] int64, in: 1 for words behind an empty line, 0 for others. Out: 0 without capitals, 1
    for a word with capitals where a sentence or a quotation begins, 2 for one elsewhere; -1 in Docs
    of one sentence. RETURNS: the number of Docs of several sentences.
    """
    final, opening = marks
    start = several = 0
    for d in range(len(ends)):
        sentences = 0
        for t in range(start, ends[d]):
            begins = t == start or cells[t] == 1
            quoted = False
            for mark in final:
                begins |= values[t - 1, lower] == mark
            for mark in opening:
                quoted |= values[t - 1, lower] == mark
            sentences += begins
            cells[t] = 2 - (begins or quoted) if values[t, 0] != values[t, lower] else 0
        several += sentences > 1
        if sentences < 2:
            cells[start : ends[d]] = -1
        start = ends[d]
    return several


@kernel(nogil=False)
def find_runs(
    ends: Ints,
    values: Ints,
    columns: tuple[int, int],
    table: tuple[Ints, Ints],
    cells: Ints,
    sets: Ints,
) -> None:
    """Find the positions of words with capitals in runs elsewhere; see `attributes.document`.

    ends: [D] int64, end of each Doc, in words.
    values: [N, A] uint64, of words, in and out; ORTH in column 0.
    columns: that have LOWER, and that have 0 and get the value of the set of positions.
    table: [C] uint64 and [C, 4] int32, zeros, C a power of two >= 2 N.
    cells: [N] int64, of `find_capitals`, changed.
    sets: [16] uint64, values of sets of positions: 8 for a word alone, 4 for the last one of a run,
    2 for the first one, 1 for an inner one.
    """
    (lower, column), (keys, counts) = columns, table
    mask = np.uint64(len(keys) - 1)
    start = 0
    for d in range(len(ends)):
        end = ends[d] if start < ends[d] and cells[start] >= 0 else start
        previous = 0
        for t in range(start, end):
            case = cells[t]
            cells[t] = -1
            # A run can only begin at 1, and goes on at 2.
            if case > 0:
                key = values[t, lower] + np.uint64(d) * _BEFORE
                slot = mix(key) & mask
                while keys[slot] != _ZERO and keys[slot] != key:
                    slot = (slot + np.uint64(1)) & mask
                keys[slot] = key
                goes_on = t + 1 < end and cells[t + 1] == 2
                position = int(case == 2 and previous > 0) + 2 * int(goes_on)
                cells[t] = 4 * int(slot) + position
                counts[slot, position] += 1
            previous = case
        for t in range(start, end):
            position_set = 0
            for k in range(4 if cells[t] >= 0 else 0):
                is_there = counts[cells[t] // 4, k] > int(k == cells[t] % 4)
                position_set = 2 * position_set + is_there
            values[t, column] = sets[position_set]
        start = ends[d]


def edge_values(n: int) -> np.ndarray:
    """Return values of tokens at distances 1..n before and after a sequence: [2, n]."""
    distances = np.arange(1, n + 1, dtype=np.uint64)
    return mix(np.stack([_BEFORE ^ distances, _AFTER ^ distances]))


def hash_seeds(seeds: Ints) -> np.ndarray:
    """Hash templates without attributes, see `hash_feature`. seeds, RETURNS: [P] uint64."""
    hashes = mix(seeds)
    return np.where(hashes == _ZERO, _NOT_ZERO, hashes)


# Inlined: the attributes of a template are the same for all tokens.
@inlined(forceinline=True)
def hash_feature(
    p: int, t: int, first: int, last: int, tokens: Tokens, plan: HashPlan
) -> np.uint64:
    """Hash template p at token t of the sequence first:last.

    h = mix(... mix(mix(seed ^ v1) ^ v2) ...) over the values v of the attributes, and
    h = mix(seed) without attributes; 0 if a value is missing. Outside the sequence, the value
    depends on the distance. If an attribute has several columns, only the first has such a value,
    as a feature must not occur twice at a token.
    """
    n_lexical, farthest = tokens.lexical.shape[1], plan.part_edges.shape[2]
    h = plan.seeds[p]
    if plan.part_ptr[p] == plan.part_ptr[p + 1]:
        h = mix(h)
    for k in range(plan.part_ptr[p], plan.part_ptr[p + 1]):
        anchor = plan.part_anchors[k]
        at = plan.part_offsets[k] + (t if anchor == 0 else first if anchor == 1 else last)
        column = plan.part_columns[k]
        if column < 0:
            if at < first or at >= last:
                return _ZERO
            column = ~column
        if at < first:
            value = plan.part_edges[k, 0, min(first - at, farthest) - 1]
        elif at >= last:
            value = plan.part_edges[k, 1, min(at - last + 1, farthest) - 1]
        elif column < n_lexical:
            value = tokens.lexical[tokens.words[at], column]
        else:
            value = tokens.annotations[at, column - n_lexical]
        if value == _ZERO:
            return _ZERO
        h = mix(h ^ value)
    return h if h != _ZERO else _NOT_ZERO


@kernel
def hash_features(tokens: Tokens, plan: HashPlan, hashes: Ints) -> None:
    """Hash all templates at all tokens, see `hash_feature`. hashes: [N, P] uint64, out."""
    for s in range(len(tokens.offsets) - 1):
        begin, end = tokens.offsets[s], tokens.offsets[s + 1]
        for t in range(begin, end):
            for p in range(len(plan.seeds)):
                hashes[t, p] = hash_feature(p, t, begin, end, tokens, plan)


def build_table(keys: Ints, capacity: int = 0) -> np.ndarray:
    """Build an open-addressing table from keys to their positions, for `lookup`.

    keys: [K] uint64, distinct; any order, any values.
    capacity: number of keys to reserve space for (see `insert`), if it exceeds K.
    RETURNS: slots [C] int32, C a power of two and at least twice as many as keys; a slot holds
        the position of a key, or -1.
    """
    size = 1 << max(2 * max(len(keys), capacity) - 1, 1).bit_length()
    slots = np.full(size, -1, dtype=np.int32)
    insert(slots, keys, 0, len(keys))
    return slots


@kernel
def insert(slots: Ints, keys: Ints, first: int, last: int) -> None:
    """Insert keys[first:last] into a table of keys[:first], by linear probing.

    slots: [C] int32, C a power of two >= 2 * last, changed.
    keys: [>= last] uint64, distinct.
    """
    mask = np.uint64(len(slots) - 1)
    for i in range(first, last):
        slot = mix(keys[i]) & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = i


@inlined
def find(slots: Ints, keys: Ints, query: np.uint64) -> int:
    """Find one key in a table; arguments as `lookup`."""
    mask = np.uint64(len(slots) - 1)
    slot = mix(query) & mask
    position: int = slots[slot]
    while position >= 0 and keys[position] != query:
        slot = (slot + np.uint64(1)) & mask
        position = slots[slot]
    return position


@kernel(nogil=False)
def lookup(slots: Ints, keys: Ints, queries: Ints, positions: Ints) -> int:
    """Find keys in a table.

    slots: [C] int32, of `build_table`; at least one slot is free.
    keys: [>= K] uint64, keys of the table.
    queries: [N, A] uint64, keys in column 0.
    positions: [N] int32, out: position of the query among the keys, -1 if it is absent.
    RETURNS: number of absent queries.
    """
    absent = 0
    for i in range(len(queries)):
        position = find(slots, keys, queries[i, 0])
        positions[i] = position
        absent += position < 0
    return absent


@kernel
def find_features(
    tokens: Tokens, plan: HashPlan, slots: Ints, keys: Ints, seen: Ints, cells: Ints
) -> None:
    """Find a token and a template of each feature.

    slots, keys: [K] uint64, hashes of the features; see `lookup`.
    seen: [P, R] bool, in and out, words that templates of one attribute have read before, and need
        not hash again; zeros for the first tokens of a lexicon.
    cells: [K] int64, in and out, t * P + p of a token and a template, -1 if there is none.
    """
    for s in range(len(tokens.offsets) - 1):
        begin, end = tokens.offsets[s], tokens.offsets[s + 1]
        for p in range(len(plan.seeds)):
            k = plan.part_ptr[p]
            is_one = plan.part_ptr[p + 1] == k + 1 and plan.part_anchors[k] == 0
            is_word = is_one and 0 <= plan.part_columns[k] < tokens.lexical.shape[1]
            offset = plan.part_offsets[k] if is_word else 0
            for t in range(begin, end):
                if is_word and begin <= t + offset < end:
                    if seen[p, tokens.words[t + offset]]:
                        continue
                    seen[p, tokens.words[t + offset]] = True
                h = hash_feature(p, t, begin, end, tokens, plan)
                i = find(slots, keys, h) if h != _ZERO else -1
                if i >= 0 and cells[i] < 0:
                    cells[i] = t * len(plan.seeds) + p
