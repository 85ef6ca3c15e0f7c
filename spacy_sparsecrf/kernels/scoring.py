"""Scores of tokens from kept sums of words.

A *group* is the tests of a token that read one word only, all at the same distance: their sum is
kept for each word.
"""

import numpy as np

from .compiled import kernel
from .hashing import hash_test
from .memory import lent
from .rows import add_row, find_entry, may_have


@kernel
def admit_words(words: np.ndarray, places: np.ndarray, n_placed: int, new: np.ndarray) -> int:
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
def sum_groups(
    group_offsets: np.ndarray,
    group_ptr: np.ndarray,
    words: np.ndarray,
    lexical: np.ndarray,
    annotations: np.ndarray,
    seeds: np.ndarray,
    part_ptr: np.ndarray,
    part_columns: np.ndarray,
    part_offsets: np.ndarray,
    part_anchors: np.ndarray,
    part_edges: np.ndarray,
    bits: np.ndarray,
    entries: np.ndarray,
    row_labels: np.ndarray,
    values: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Sum the weights of each group for each word: sums[i, g, y] = sum_{o in g} mu[o, y].

    group_offsets: [G] int64, the distance at which a group's tests read; group_ptr: [G + 2]
    int64, the tests of a group, which read no annotations; words: [W] int32, rows of `lexical`;
    sums: [W, G, Yp] float64, out; the rest as in `hash_tests`, `build_rows` and `add_row`.
    """
    n = len(words)
    start = n - n  # a literal 0 would compile `hash_test` once more
    for i in range(n):
        for g in range(len(group_offsets)):
            score = sums[i, g]
            score[:] = 0.0
            for p in range(group_ptr[g], group_ptr[g + 1]):
                test = hash_test(
                    p,
                    i - group_offsets[g],
                    start,
                    n,
                    words,
                    lexical,
                    annotations,
                    seeds,
                    part_ptr,
                    part_columns,
                    part_offsets,
                    part_anchors,
                    part_edges,
                )
                if may_have(bits, test):
                    add_row(find_entry(entries, test), row_labels, values, score)


@kernel
def add_words(
    offsets: np.ndarray,
    places: np.ndarray,
    sums: np.ndarray,
    group_offsets: np.ndarray,
    group_ptr: np.ndarray,
    words: np.ndarray,
    lexical: np.ndarray,
    annotations: np.ndarray,
    seeds: np.ndarray,
    part_ptr: np.ndarray,
    part_columns: np.ndarray,
    part_offsets: np.ndarray,
    part_anchors: np.ndarray,
    part_edges: np.ndarray,
    bits: np.ndarray,
    entries: np.ndarray,
    row_labels: np.ndarray,
    values: np.ndarray,
    tests: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Score tokens as `add_rows`, from the sums of groups and from single tests.

    Single are the tests of words outside the sequence, and those that are in no group, which are
    group_ptr[G]:group_ptr[G + 1]. offsets: [S + 1] int64, tokens of a sequence; places: [R] int32,
    where in `sums` [W, G, Yp] a word is; tests: [P] uint64, a workspace, for each test of a token;
    scores: [N, Yp] float64, out; the rest as in `sum_groups`.
    """
    sums, words, lexical = lent(sums), lent(words), lent(lexical)
    annotations, seeds, part_ptr = lent(annotations), lent(seeds), lent(part_ptr)
    part_columns, part_offsets, bits = lent(part_columns), lent(part_offsets), lent(bits)
    entries, row_labels, values = lent(entries), lent(row_labels), lent(values)
    part_anchors, part_edges = lent(part_anchors), lent(part_edges)
    scores = lent(scores)
    n_groups = len(group_offsets)
    padded = scores.shape[1]
    for s in range(len(offsets) - 1):
        first, last = offsets[s], offsets[s + 1]
        for t in range(first, last):
            score = scores[t]
            score[:] = 0.0
            n_tests = 0
            for g in range(n_groups + 1):
                if g < n_groups:
                    at = t + group_offsets[g]
                    if first <= at < last:
                        place = places[words[at]]
                        for y in range(padded):
                            score[y] += sums[place, g, y]
                        continue
                for p in range(group_ptr[g], group_ptr[g + 1]):
                    test = hash_test(
                        p,
                        t,
                        first,
                        last,
                        words,
                        lexical,
                        annotations,
                        seeds,
                        part_ptr,
                        part_columns,
                        part_offsets,
                        part_anchors,
                        part_edges,
                    )
                    tests[n_tests] = test
                    n_tests += may_have(bits, test)
            # One loop a step: what is not in the cache is fetched for all tests at once.
            for j in range(n_tests):
                tests[j] = find_entry(entries, tests[j])
            for j in range(n_tests):
                add_row(tests[j], row_labels, values, score)
