"""Lookup of the feature blocks of a model by hash, and scores of tokens.

Most queries are absent. A bitmap, small enough to stay in a near cache, rejects most of them. An
entry of the table has the key and the position of the weights, so that a probe reads one cache
line.

A *group* is the features of a token that read a single word, all at the same offset: their sum is
cached for each word.
"""

from typing import Any, NamedTuple

import numpy as np

from .hashing import hash_feature
from .layout import Floats, HashPlan, Ints, Scored, SharedPairs, Tokens
from .numba_support import inlined, kernel
from .simd import prefetch
from .small import fill
from .viterbi import best_path

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_THREE = np.uint64(3)
_SEVEN = np.uint64(7)
_START = np.uint64(32)
_COUNT = np.uint64(0xFFFFFFFF)
# 2**64 / golden ratio: the first bits of a product with it distinguish keys, including small keys.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


class RowTable(NamedTuple):
    """The weights of a model by the hash of their feature.

    bits: [B] uint8, entries: [C, 2] uint64, bit_shift, slot_shift: of `build_rows`; places: [K]
    int32, label of a weight, or y' * Yp + y; values: [K] float64.
    """

    bits: Ints
    entries: Ints
    bit_shift: int
    slot_shift: int
    places: Ints
    values: Floats


class WordGroups(NamedTuple):
    """Templates by group.

    offsets: [G] int64, offset of the word that a group reads; ptr: [G + 2] int64, templates of a
    group, which read no annotations; templates without a group are ptr[G]:ptr[G + 1].
    """

    offsets: Ints
    ptr: Ints


class KeptSums(NamedTuple):
    """Cached sums of the weights of each group for words.

    rows: [R, >= 1] int32, row of a word and a group in sums, -1 = not cached, 0 = no weights; sums:
    [>= rows, Yp] float64, the first zeros.
    """

    rows: Ints
    sums: Floats


class LookupSpace(NamedTuple):
    """Workspaces for a sequence of L tokens, or for L words.

    features: [L, P] uint64, features of a token; counts: [L] int64; context: [L] int32, zeros;
    best: [Yp] float64.
    """

    features: Ints
    counts: Ints
    context: Ints
    best: Floats


def build_rows(keys: Ints, row_ptr: Ints) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Build the bitmap and the table of the feature blocks of a model.

    keys: [R] uint64, distinct, any values; row_ptr: [R + 1] int64, weights of a block, at least one
    and in total fewer than 2**32.
    RETURNS: bits [B] uint8, B a power of two, at least 16 bits a key; entries [C, 2] uint64: key,
    and first weight << 32 | number of weights, 0 = free, probed linearly from a slot, one of at
    least 2 R, given by the first bits of the product of the key; the last entry is free; 64 minus
    the number of bits of a position in the bitmap, and of a slot.
    """
    n_rows = len(keys)
    n_bits, n_slots = ((factor * max(n_rows, 1) - 1).bit_length() for factor in (16, 2))
    n_bits = max(n_bits, 6)
    bit_shift, slot_shift = 64 - n_bits, 64 - max(n_slots, 1)
    mixed = keys * _FACTOR
    flags = np.zeros(1 << n_bits, dtype=np.bool_)
    flags[mixed >> np.uint64(bit_shift)] = True
    slots = (mixed >> np.uint64(slot_shift)).astype(np.int64)
    order, number = np.argsort(slots, kind="stable"), np.arange(n_rows)
    # A key is at its slot, or after the previous key.
    places = number + np.maximum.accumulate(slots[order] - number)
    last_slot = int(places[-1]) if n_rows else 0
    entries = np.zeros((max(1 << (64 - slot_shift), last_slot + 1) + 1, 2), dtype=np.uint64)
    first_weight, counts = row_ptr[:-1].astype(np.uint64), np.diff(row_ptr).astype(np.uint64)
    entries[places, 0] = keys[order]
    entries[places, 1] = ((first_weight << _START) | counts)[order]
    return np.packbits(flags, bitorder="little"), entries, bit_shift, slot_shift


@inlined
def may_have(table: RowTable, query: np.uint64) -> int:
    """Return 1 if a key may be in the table, 0 if it is not, or is 0: "no feature"."""
    bit = (query * _FACTOR) >> np.uint64(table.bit_shift)
    return 1 if query != _ZERO and (table.bits[bit >> _THREE] >> (bit & _SEVEN)) & _ONE else 0


@inlined
def first_slot(table: RowTable, query: np.uint64) -> np.uint64:
    """Return the slot at which the search for a key begins."""
    slot: np.uint64 = (query * _FACTOR) >> np.uint64(table.slot_shift)
    return slot


@inlined
def find_entry(table: RowTable, query: np.uint64) -> np.uint64:
    """Find the weights of a key: first << 32 | number, 0 if the key is absent."""
    entries, slot = table.entries, first_slot(table, query)
    while entries[slot, 1] != _ZERO and entries[slot, 0] != query:
        slot += _ONE
    entry: np.uint64 = entries[slot, 1]
    return entry


@inlined
def _add_row(entry: np.uint64, table: RowTable, scores: Floats) -> None:
    """Add the weights of an entry at their positions: scores[y] += mu[o, y].

    entry: of `find_entry`; scores: [Yp] or [(Y + 1) * Yp].
    """
    begin = np.int64(entry >> _START)
    for k in range(begin, begin + np.int64(entry & _COUNT)):
        scores[table.places[k]] += table.values[k]


@kernel
def find_entries(hashes: Ints, table: RowTable, entries: Ints) -> None:
    """Find the entries of features.

    hashes: [N, P] uint64, 0 = none; entries: [N, P] uint64, out.
    """
    for n in range(len(hashes)):
        for p in range(hashes.shape[1]):
            entries[n, p] = _ZERO
            if may_have(table, hashes[n, p]):
                entries[n, p] = find_entry(table, hashes[n, p])


@kernel
def add_rows(entries: Ints, table: RowTable, scores: Floats) -> None:
    """Score tokens, scores[n, y] = sum_o mu[o, y], or contexts: sum_o lam[o, y', y].

    entries: [N, P] uint64, of features; scores: [N, Yp] or [N, (Y + 1) * Yp] float64, out.
    """
    for n in range(len(entries)):
        fill(scores[n], 0, scores.shape[1], 0.0)
        for p in range(entries.shape[1]):
            _add_row(entries[n, p], table, scores[n])


@kernel
def find_features(
    templates: tuple[int, int],
    begin: int,
    end: int,
    origin: int,
    first: int,
    last: int,
    tokens: Tokens,
    plan: HashPlan,
    table: RowTable,
    space: LookupSpace,
) -> None:
    """Append the features of tokens begin:end, by templates[0]:templates[1], that a model may have.

    first, last: sequence of the tokens; origin: token of the first row of the space.
    """
    # By template: hashes of consecutive tokens do not wait for each other.
    for p in range(templates[0], templates[1]):
        for t in range(begin, end):
            feature = hash_feature(p, t, first, last, tokens, plan)
            n = space.counts[t - origin]
            space.features[t - origin, n] = feature
            space.counts[t - origin] = n + may_have(table, feature)
            prefetch(table.entries, np.int64(first_slot(table, feature)) << 1)


@inlined
def _find_rows(n_tokens: int, table: RowTable, space: LookupSpace) -> None:
    """Replace the features of tokens by their entries."""
    for i in range(n_tokens):
        features = space.features[i]
        for j in range(space.counts[i]):
            features[j] = find_entry(table, features[j])
            prefetch(table.places, np.int64(features[j] >> _START))
            prefetch(table.values, np.int64(features[j] >> _START))


@kernel
def sum_groups(
    words: Tokens,
    groups: WordGroups,
    plan: HashPlan,
    table: RowTable,
    space: LookupSpace,
    n_rows: int,
    rows: Ints,
    sums: Floats,
) -> int:
    """Sum the weights of each group for each word: sum_{o in g} mu[o, y].

    words: [W] distinct words, as tokens; n_rows: rows of `sums` in use; rows: [W, >= G] int32, out;
    sums: [.., Yp], out; see `KeptSums`. RETURNS: the new number of rows in use.
    """
    zero: Any = np.int64(0)
    n_words = len(words.words)
    for g in range(len(groups.offsets)):
        begin = -groups.offsets[g]
        for i in range(n_words):
            space.counts[i] = 0
        templates = groups.ptr[g], groups.ptr[g + 1]
        end = begin + n_words
        find_features(templates, begin, end, begin, zero, n_words, words, plan, table, space)
        _find_rows(n_words, table, space)
        for i in range(n_words):
            score, entries = sums[n_rows], _ZERO
            fill(score, 0, len(score), 0.0)
            for j in range(space.counts[i]):
                entries |= space.features[i, j]
                _add_row(space.features[i, j], table, score)
            rows[i, g] = n_rows if entries != _ZERO else 0
            n_rows += entries != _ZERO
    return n_rows


@inlined
def _score_sequence(
    first: int,
    last: int,
    tokens: Tokens,
    cached: KeptSums,
    groups: WordGroups,
    plan: HashPlan,
    table: RowTable,
    space: LookupSpace,
    scores: Floats,
) -> None:
    """Score the tokens of a sequence, see `score_words`. scores: [last - first, Yp], out."""
    n_groups = len(groups.offsets)
    for i in range(last - first):
        space.counts[i] = 0
    for g in range(n_groups + 1):
        offset = groups.offsets[g] if g < n_groups else last - first
        # Tokens whose word at this offset is outside the sequence; without a group, all tokens.
        begin = max(last - offset, first) if offset > 0 else first
        end = last if offset > 0 else min(first - offset, last)
        templates = groups.ptr[g], groups.ptr[g + 1]
        find_features(templates, begin, end, first, first, last, tokens, plan, table, space)
    _find_rows(last - first, table, space)
    for i in range(last - first):
        score = scores[i]
        fill(score, 0, len(score), 0.0)
        for g in range(n_groups):
            at = first + i + groups.offsets[g]
            group_sums = cached.sums[cached.rows[tokens.words[at], g] if first <= at < last else 0]
            for y in range(len(score)):
                score[y] += group_sums[y]
        for j in range(space.counts[i]):
            _add_row(space.features[i, j], table, score)


@kernel
def score_words(
    tokens: Tokens,
    cached: KeptSums,
    groups: WordGroups,
    plan: HashPlan,
    table: RowTable,
    shared: SharedPairs,
    space: LookupSpace,
    scores: Floats,
    labels: Ints,
) -> bool:
    """Score tokens as `add_rows` does, from cached sums and single features; find the best labels.

    Single features are features of words outside the sequence, and features without a group.
    scores: [N, Yp] float64, out, or with labels [L, Yp], a workspace for the longest sequence;
    labels: [N] int32, out, as of `viterbi`, or [0].
    RETURNS: whether the sums of all words are cached; if not, nothing is computed.
    """
    for t in range(len(tokens.words)):
        for g in range(len(groups.offsets)):
            if cached.rows[tokens.words[t], g] < 0:
                return False
    offsets, n_labels = tokens.offsets, shared.n_labels
    chain = Scored(n_labels, offsets, scores, space.context, shared.pairs)
    for s in range(len(offsets) - 1):
        begin, end = offsets[s], offsets[s + 1]
        row = 0 if len(labels) else begin
        sequence_scores = scores[row : row + end - begin]
        _score_sequence(begin, end, tokens, cached, groups, plan, table, space, sequence_scores)
        if len(labels) and begin < end:
            for y in range(n_labels):
                sequence_scores[end - begin - 1, y] -= shared.closing[y]
            path = labels[begin:end]
            best_path(0, end - begin, chain, shared.slack, shared.search, space.best, path)
    return True
