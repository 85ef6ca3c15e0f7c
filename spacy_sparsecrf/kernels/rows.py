"""A model's rows by the hash of their test, and scores of tokens from them.

The table is made for queries of which most are absent. A bitmap, small enough to stay in a near
cache, tells most absent tests apart. An entry of the table has the key and where the weights of its
row are, so that a probe touches one cache line.

A *group* is the tests of a token that read one word only, all at the same distance: their sum is
kept for each word.
"""

from typing import Any, NamedTuple

import numpy as np

from .compiled import fill, inner, kernel
from .hashing import hash_test, mix
from .layout import Floats, HashPlan, Ints, Tokens

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_THREE = np.uint64(3)
_SEVEN = np.uint64(7)
# Bits of the mixed key that tell its place in the bitmap: others than those for its slot.
_HIGH = np.uint64(32)
_START = np.uint64(32)
_COUNT = np.uint64(0xFFFFFFFF)


class RowTable(NamedTuple):
    """A model's weights by the hash of their test.

    bits: [B] uint8, entries: [C, 2] uint64, of `build_rows`; places: [K] int32, label of a weight,
    or y' * Yp + y; values: [K] float64.
    """

    bits: Ints
    entries: Ints
    places: Ints
    values: Floats


class WordGroups(NamedTuple):
    """Tests by groups.

    offsets: [G] int64, the distance at which a group's tests read; ptr: [G + 2] int64, the tests of
    a group, which read no annotations; those that are in no group are ptr[G]:ptr[G + 1].
    """

    offsets: Ints
    ptr: Ints


def build_rows(keys: Ints, row_ptr: Ints) -> tuple[np.ndarray, np.ndarray]:
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
def enter_rows(bits: Ints, entries: Ints, keys: Ints, row_ptr: Ints) -> None:
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
def may_have(bits: Ints, query: np.uint64) -> int:
    """1 if a key may be in the table, 0 if it is not, or if it is 0: "no test"."""
    bit = (mix(query) >> _HIGH) & np.uint64(8 * len(bits) - 1)
    return 1 if query != _ZERO and (bits[bit >> _THREE] >> (bit & _SEVEN)) & _ONE else 0


@inner
def find_entry(entries: Ints, query: np.uint64) -> np.uint64:
    """Find where the weights of a key are: first << 32 | number, 0 where the key is absent."""
    mask = np.uint64(len(entries) - 1)
    slot = mix(query) & mask
    while entries[slot, 1] != _ZERO and entries[slot, 0] != query:
        slot = (slot + _ONE) & mask
    entry: np.uint64 = entries[slot, 1]
    return entry


@inner
def _add_row(entry: np.uint64, table: RowTable, scores: Floats) -> None:
    """Add the weights of an entry at their places: scores[y] += mu[o, y].

    entry: of `find_entry`; scores: [Yp] or [(Y + 1) * Yp].
    """
    first = np.int64(entry >> _START)
    for k in range(first, first + np.int64(entry & _COUNT)):
        scores[table.places[k]] += table.values[k]


@kernel
def find_entries(hashes: Ints, table: RowTable, found: Ints) -> None:
    """Find the entries of tests. hashes: [N, P] uint64, 0 = none; found: [N, P] uint64, out."""
    for n in range(len(hashes)):
        for p in range(hashes.shape[1]):
            found[n, p] = _ZERO
            if may_have(table.bits, hashes[n, p]):
                found[n, p] = find_entry(table.entries, hashes[n, p])


@kernel
def add_rows(found: Ints, table: RowTable, scores: Floats) -> None:
    """Score tokens, scores[n, y] = sum_o mu[o, y], or contexts: sum_o lam[o, y', y].

    found: [N, P] uint64, entries of tests; scores: [N, Yp] or [N, (Y + 1) * Yp] float64, out.
    """
    for n in range(len(found)):
        fill(scores[n], 0, scores.shape[1], 0.0)
        for p in range(found.shape[1]):
            _add_row(found[n, p], table, scores[n])


@kernel
def admit_words(words: Ints, places: Ints, n_placed: int, new: Ints) -> int:
    """Give words without a place among the kept sums the next places.

    words: [N] int32; places: [R] int32, place of a word, -1 = none, changed; n_placed: places
    that are taken; new: [>= N] int32, out: the words with a new place, in the order of places.
    RETURNS: how many they are.
    """
    n_new = 0
    for t in range(len(words)):
        word = words[t]
        if places[word] < 0:
            places[word] = n_placed + n_new
            new[n_new] = word
            n_new += 1
    return n_new


@kernel
def find_tests(
    first_test: int,
    last_test: int,
    t: int,
    first: int,
    last: int,
    tokens: Tokens,
    plan: HashPlan,
    bits: Ints,
    tests: Ints,
    n: int,
) -> int:
    """Append to tests[:n] those of a token's tests that a model may have; see `hash_test`.

    first_test, last_test: numbers of the tests; t, first, last: the token, and its sequence's.
    RETURNS: the new n.
    """
    for p in range(first_test, last_test):
        test = hash_test(p, t, first, last, tokens, plan)
        tests[n] = test
        n += may_have(bits, test)
    return n


@inner
def _add_tests(tests: Ints, n: int, table: RowTable, score: Floats) -> None:
    """Add the weights of tests[:n], which are overwritten, to a score [Yp]."""
    # One loop a step: what is not in the cache is fetched for all tests at once.
    for j in range(n):
        tests[j] = find_entry(table.entries, tests[j])
    for j in range(n):
        _add_row(tests[j], table, score)


@kernel
def sum_groups(
    words: Tokens, groups: WordGroups, plan: HashPlan, table: RowTable, tests: Ints, sums: Floats
) -> None:
    """Sum the weights of each group for each word: sums[i, g, y] = sum_{o in g} mu[o, y].

    words: [W] distinct words, in place of tokens; tests: [P] uint64, a workspace; sums: [W, G, Yp]
    float64, out.
    """
    none: Any = np.int64(0)
    n_words = len(words.words)
    for i in range(n_words):
        for g in range(len(groups.offsets)):
            score, t = sums[i, g], i - groups.offsets[g]
            fill(score, 0, len(score), 0.0)
            own = groups.ptr[g], groups.ptr[g + 1]
            n = find_tests(*own, t, none, n_words, words, plan, table.bits, tests, none)
            _add_tests(tests, n, table, score)


@kernel
def add_words(
    tokens: Tokens,
    places: Ints,
    sums: Floats,
    groups: WordGroups,
    plan: HashPlan,
    table: RowTable,
    tests: Ints,
    scores: Floats,
) -> None:
    """Score tokens as `add_rows`, from the sums of groups and from single tests.

    Single are the tests of words outside the sequence, and those that are in no group. places: [R]
    int32, where in `sums` [W, G, Yp] a word is; tests: [P] uint64, a workspace, for each test of a
    token; scores: [N, Yp] float64, out.
    """
    none: Any = np.int64(0)
    n_groups = len(groups.offsets)
    for s in range(len(tokens.offsets) - 1):
        first, last = tokens.offsets[s], tokens.offsets[s + 1]
        for t in range(first, last):
            score, n = scores[t], none
            fill(score, 0, len(score), 0.0)
            for g in range(n_groups + 1):
                at = t + groups.offsets[g] if g < n_groups else last
                if first <= at < last:
                    kept = sums[places[tokens.words[at]], g]
                    for y in range(len(score)):
                        score[y] += kept[y]
                else:
                    own = groups.ptr[g], groups.ptr[g + 1]
                    n = find_tests(*own, t, first, last, tokens, plan, table.bits, tests, n)
            _add_tests(tests, n, table, score)
