"""Small kernels that number, transpose and sum, compared with NumPy on random arrays."""

from itertools import pairwise

import numpy as np
import pytest

from spacy_sparsecrf.kernels import (
    exp,
    hashing,
    indexing,
    screening,
    small,
    values,
    vectors,
)
from spacy_sparsecrf.solvers.bcd.kernels import order_levels
from spacy_sparsecrf.solvers.gis.kernels import repetitions
from spacy_sparsecrf.solvers.sag.sag_updates import seen_first

from .kernel_functions import function

RNG = np.random.default_rng(3)
PTR = np.array([0, 3, 3, 7, 12])
COLUMNS = np.array([4, 0, 2, 1, 2, 3, 4, 0, 1, 2, 3, 4], dtype=np.int32)
DENSE = np.zeros((4, 6), bool)
for row, (a, b) in enumerate(pairwise(PTR)):
    DENSE[row, COLUMNS[a:b]] = True


def test_equal_rows_get_one_number_and_are_counted():
    queries = RNG.integers(0, 3, (60, 3)).astype(np.uint64)
    slots, rows = np.full(256, -1, np.int32), np.zeros((80, 3), np.uint64)
    counts, numbers = np.full(80, 5), np.empty(60, np.int64)
    n = 0
    for part in (slice(0, 25), slice(25, 60)):
        n = function(indexing.number_rows, False)(
            slots, rows, counts, n, queries[part], numbers[part]
        )
    assert n == len(np.unique(queries, axis=0))
    np.testing.assert_array_equal(rows[numbers], queries)
    np.testing.assert_array_equal(counts[:n], 5 + np.bincount(numbers))
    again = np.full(64, -1, np.int32)
    function(indexing.enter_all, False)(again, rows, n)
    np.testing.assert_array_equal(np.sort(again[again >= 0]), np.arange(n))


def test_patterns_are_transposed_renumbered_and_summed():
    for numbers in ([0, 1, 2, 3], [5, -1, 7, -1], [-1, 2, 0, 1]):
        col_ptr, col_rows = np.full(7, 9), np.full(12, -7, np.int32)
        args = PTR, COLUMNS, np.array(numbers, np.int32), col_ptr, col_rows
        function(indexing.transpose, False)(*args)
        rows = [[numbers[row] for row in np.flatnonzero(column)] for column in DENSE.T]
        expected = [[number for number in row if number >= 0] for row in rows]
        assert [col_rows[a:b].tolist() for a, b in pairwise(col_ptr)] == expected
    number = np.array([-1, 0, 5, -1, 2, -1], dtype=np.int32)
    ptr, kept = np.full(5, 9), np.empty(12, np.int32)
    n = function(indexing.select, False)(PTR, COLUMNS, number, ptr, kept)
    expected = [[number[c] for c in COLUMNS[a:b] if number[c] >= 0] for a, b in pairwise(PTR)]
    assert [kept[a:b].tolist() for a, b in pairwise(ptr)] == expected
    assert n == sum(map(len, expected))
    totals, weights = np.ones(6), RNG.normal(size=4)
    function(indexing.sum_columns, False)(PTR, COLUMNS, weights, totals)
    np.testing.assert_allclose(totals, 1.0 + weights @ DENSE)


def test_linked_numbers_are_followed_from_the_last():
    rows = np.array([2, 0, 2, 1, 2])
    heads, following = np.full(4, -1), np.full(9, -7)
    function(indexing.link, False)(rows, 3, heads, following)
    found = np.empty(4, np.int64)
    function(indexing.follow, False)(np.array([2, 3, 0]), heads, following, found)
    assert found.tolist() == [7, 5, 3, 4]


def test_blocks_of_one_level_share_no_sequence():
    tokens = [[0, 1], [2], [1, 3], [4], [0, 4], [5], [3]]
    ptr = np.cumsum([0, *map(len, tokens)])
    sequence_of, level = np.array([0, 0, 1, 1, 2, 3]), np.empty(7, np.int64)
    function(order_levels, False)(ptr, np.concatenate(tokens), sequence_of, np.zeros(4, int), level)
    expected: list[int] = []
    for i, own in enumerate(tokens):
        shared = [expected[j] for j in range(i) if {*sequence_of[own]} & {*sequence_of[tokens[j]]}]
        expected.append(1 + max(shared, default=0))
    assert level.tolist() == expected


def test_the_longest_run_of_a_token_is_found():
    most = np.empty(5, np.int32)
    ptr = np.array([0, 0, 1, 6, 9, 12])
    tokens = np.array([4, 1, 1, 3, 3, 3, 3, 5, 5, 2, 6, 7], dtype=np.int32)
    function(repetitions, False)(ptr, tokens, most)
    assert most.tolist() == [0, 1, 3, 2, 1]


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 16, 21])
def test_sums_of_rows_end_where_they_are_told(n):
    row = np.full(32, np.nan)
    row[:n] = np.arange(1.0, n + 1.0)
    assert function(small.row_sum, False)(row, n) == n * (n + 1) / 2
    assert function(small.inner_product, False)(row[:n], row[:n]) == n * (n + 1) * (2 * n + 1) / 6


def test_a_float32_product_and_sum_are_rounded_once():
    tiny = np.float32(2.0**-23)
    # 1 + 2^-23 + 2^-24 - 2^-70, in float64 a tie between two float32 numbers.
    x, y = np.float32(2.0**-12) * (1 + tiny), np.float32(2.0**-12) * (1 - tiny)
    assert vectors.multiply_add(x, y, 1 + tiny) == 1 + tiny
    assert vectors.multiply_add(x, -y, -1 - tiny) == -1 - tiny
    # 1 + 2^-24 + 2^-54.2
    x, y = np.float32(11860650 * 2.0**-36), np.float32(11865917 * 2.0**-35)
    for sign in (-1, 1):
        assert vectors.multiply_add(sign * x, y, np.float32(sign)) == sign * (1 + tiny)
    assert vectors.multiply_add(3.0, np.inf, 2.0) == np.inf
    assert np.signbit(
        [vectors.multiply_add(-1.0, 0.0, -0.0), vectors.multiply_add(-1.0, 0.0, 0.0)]
    ).tolist() == [True, False]


def test_positions_of_corrections_are_listed_by_context():
    places = RNG.choice(300, 90, replace=False).astype(np.int32)
    weight_ptr, row_ptr, rows = np.array([0, 40, 70, 90]), np.array([0, 2, 3]), np.array([0, 2, 1])
    members = [[*range(40), *range(70, 90)], [*range(40, 70)]]
    corr_ptr = np.array([0, 60, 90])
    found, correction_ptr = np.empty(90, np.int32), np.empty(91, np.int64)
    weights, workspace = np.empty(90, np.int32), np.empty(320, np.int64)
    arguments = row_ptr, rows, weight_ptr, places, corr_ptr, np.zeros(5, np.uint64), workspace
    function(indexing.list_places, False)(*arguments, found, correction_ptr, weights)
    expected = [sorted(own, key=lambda k: places[k]) for own in members]
    assert weights.tolist() == expected[0] + expected[1]
    np.testing.assert_array_equal(found, places[weights])
    assert correction_ptr.tolist() == [*range(91)]


def test_logarithms_of_all_magnitudes():
    log, numbers = function(exp.log, False), [5e-324, 1e-310, 2.3e-308, 1e-9, 0.7, 0.71, 1.0]
    numbers += [1.41, 1.42, 3.0, 1e300, 1.7e308]
    np.testing.assert_allclose([log(x) for x in numbers], np.log(numbers), rtol=1e-15, atol=1e-16)
    assert [log(0.0), log(np.inf)] == [-np.inf, np.inf]
    assert np.isnan([log(-1.0), log(np.nan)]).all()


def test_rows_are_exponentiated_near_and_far():
    for row in ([0.5, -3.0, 9.0] * 3, [0.5, 800.0, -800.0, np.nan, np.inf, -np.inf] * 2):
        numbers = np.array(row)
        function(exp.exponentiate, False)(numbers)
        with np.errstate(over="ignore"):
            np.testing.assert_allclose(numbers, np.exp(row), rtol=1e-14)


def test_docs_are_cut_into_sentences_and_no_token_follows_the_last():
    values, offsets = np.zeros((6, 3), np.uint64), np.zeros(7, np.int64)
    values[[0, 2, 4], 1], values[1, 2] = 1, 5
    n = function(hashing.cut, False)(np.array([3, 3, 6]), values, True, 2, offsets)
    assert offsets[: n + 1].tolist() == [0, 2, 3, 4, 6]
    assert values[:, 2].tolist() == [1, 0, 0, 1, 1, 0]


def test_sequences_with_a_curvature_come_first():
    order = np.zeros(4, np.int64)
    assert function(seen_first, False)(np.array([0.0, 2.0, 0.0, 0.1]), order) == 2
    assert order.tolist() == [1, 3, 0, 2]


def test_the_largest_number_of_a_row_is_found_anywhere():
    for i in range(24):
        assert function(exp.largest, False)(np.where(np.arange(24) == i, -2.0, -3.0)) == -2.0


def test_labels_are_chosen_whose_sums_may_exceed_the_threshold():
    # The larger sum, with a tolerance for the rounding of both sums.
    up, down = np.array([1.0, 0.0, 0.94, 0.94, 9.0]), np.array([0.5, 1.1, 0.1, 0.3, 9.0])
    chosen = np.zeros(5, np.int64)
    assert function(screening._choose, False)(up, down, 4, 0.05, 1.0, chosen) == 3
    assert chosen[:3].tolist() == [0, 1, 3]


def test_scores_of_more_values_than_are_held_at_once():
    stored, table = RNG.normal(size=(2, 140)).astype(np.float32), RNG.normal(size=(140, 40))
    scores, columns = np.empty((2, 40)), RNG.permutation(140)
    features = stored, np.array([1, 0]), columns
    function(values.value_scores, False)(0, 2, features, table, False, scores)
    np.testing.assert_allclose(scores, stored[::-1, columns].astype(float) @ table, atol=1e-12)


@pytest.mark.parametrize("n_columns", [3, 8, 21])
def test_sums_of_values(n_columns):
    n, padded = 70, 8
    stored = RNG.normal(size=(9, 30)).astype(np.float32)
    rows, columns = RNG.integers(0, 9, n), RNG.permutation(30)[:n_columns]
    features, x = (stored, rows, columns), stored[rows][:, columns].astype(float)
    table, residual = RNG.normal(size=(n_columns, padded)), RNG.normal(size=(n, padded))
    first, last = 2, 68
    inner = slice(first, last)
    for add in (False, True):
        scores = np.ones((n, padded))
        function(values.value_scores, False)(first, last, features, table, add, scores)
        expected = np.ones((n, padded))
        expected[inner] = x[inner] @ table + add
        np.testing.assert_allclose(scores, expected, atol=1e-12)
    sums = np.ones((n_columns, padded))
    function(values.value_sums, False)(first, last, features, residual, sums)
    np.testing.assert_allclose(sums, 1.0 + x[inner].T @ residual[inner], atol=1e-12)
    labels, weights = RNG.integers(-1, 3, n).astype(np.int32), RNG.uniform(0.5, 2.0, n)
    sums = np.ones((n_columns, padded))
    function(values.value_counts, False)(features, labels, weights, sums)
    gold = (labels[:, None] == np.arange(padded)) * weights[:, None]
    np.testing.assert_allclose(sums, 1.0 + x.T @ gold, atol=1e-12)
    found = np.zeros((2, 30), bool)
    sparse = stored * (RNG.random(stored.shape) < 0.2)
    function(values.value_supports, False)(sparse, rows, np.arange(n) % 2, found)
    np.testing.assert_array_equal(found, [(sparse[rows[i::2]] != 0).any(axis=0) for i in (0, 1)])
