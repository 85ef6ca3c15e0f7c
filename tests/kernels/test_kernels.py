"""Kernels with their own reference implementation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sparsecrf.crf.kernels import hashing
from spacy_sparsecrf.crf.kernels.exp import exp_shifted, exponentiate, log
from spacy_sparsecrf.crf.kernels.layout import HashPlan, Tokens
from spacy_sparsecrf.crf.kernels.simd import multiply_add
from spacy_sparsecrf.crf.kernels.values import value_scores

from ..support.kernel_functions import compiled, function
from ..support.reference_features import mix


@pytest.mark.parametrize("shift", [0.0, 3.5, -100.0])
def test_exp_is_accurate_to_a_few_units_in_the_last_place(shift):
    x = shift - np.concatenate((np.linspace(0.0, 40.0, 4000), np.linspace(40.0, 700.0, 4000)))
    row = x.copy()
    exp_shifted(row, len(row), shift)
    np.testing.assert_allclose(row, np.exp(x - shift), rtol=1e-14)


def test_exp_of_very_negative_numbers_is_tiny_but_not_zero():
    row = np.array([-1e9, -800.0, -np.inf, 0.0, 0, 0, 0, 0])
    exp_shifted(row, 8, 0.0)
    assert (row[:3] < 1e-307).all()
    assert (row[:3] > 0).all()
    assert row[3] == 1.0


@pytest.mark.parametrize("far", [np.nan, np.inf, -np.inf, -800.0, 705.0, 710.0])
def test_exp_beyond_the_range_of_numbers(far):
    row = np.array([1.0, far, -2.0])
    with np.errstate(over="ignore"):
        wanted = np.exp(row)
    compiled(exponentiate)(row)
    np.testing.assert_allclose(row, wanted, rtol=1e-14)


def test_a_float32_product_and_sum_are_rounded_once():
    tiny = np.float32(2.0**-23)
    # 1 + 2^-23 + 2^-24 - 2^-70, in float64 a tie between two float32 numbers.
    x, y = np.float32(2.0**-12) * (1 + tiny), np.float32(2.0**-12) * (1 - tiny)
    assert multiply_add(x, y, 1 + tiny) == 1 + tiny
    assert multiply_add(x, -y, -1 - tiny) == -1 - tiny
    # 1 + 2^-24 + 2^-54.2
    x, y = np.float32(11860650 * 2.0**-36), np.float32(11865917 * 2.0**-35)
    for sign in (-1, 1):
        assert multiply_add(sign * x, y, np.float32(sign)) == sign * (1 + tiny)
    assert multiply_add(3.0, np.inf, 2.0) == np.inf
    assert np.signbit([multiply_add(-1.0, 0.0, -0.0), multiply_add(-1.0, 0.0, 0.0)]).tolist() == [
        True,
        False,
    ]


def test_logarithms_of_all_magnitudes():
    logarithm, numbers = function(log, False), [5e-324, 1e-310, 2.3e-308, 1e-9, 0.7, 0.71, 1.0]
    numbers += [1.41, 1.42, 3.0, 1e300, 1.7e308]
    np.testing.assert_allclose(
        [logarithm(x) for x in numbers], np.log(numbers), rtol=1e-15, atol=1e-16
    )
    assert [logarithm(0.0), logarithm(np.inf)] == [-np.inf, np.inf]
    assert np.isnan([logarithm(-1.0), logarithm(np.nan)]).all()


def test_scores_of_more_values_than_are_held_at_once():
    rng = np.random.default_rng(3)
    stored, table = rng.normal(size=(2, 140)).astype(np.float32), rng.normal(size=(140, 40))
    scores, columns = np.empty((2, 40)), rng.permutation(140)
    features = stored, np.array([1, 0]), columns
    function(value_scores, False)(0, 2, features, table, False, scores)
    np.testing.assert_allclose(scores, stored[::-1, columns].astype(float) @ table, atol=1e-12)


# Hash kernels, and key tables compared with dicts


def test_threads_that_read_docs_keep_the_gil_until_they_score():
    """Two threads that alternate between reading and scoring then overlap."""
    assert not hashing.cut.targetoptions["nogil"] and not hashing.lookup.targetoptions["nogil"]


@pytest.mark.parametrize("jit", [True, False])
def test_hash_zero_is_kept_for_absent_tests(jit):
    # mix is one-to-one with mix(0) = 0: a value equal to the seed makes the hash 0.
    hashes = np.ones((2, 2), dtype=np.uint64)
    seeds = np.array([5, 0], dtype=np.uint64)
    tokens = Tokens(
        np.array([0, 2], dtype=np.int64),
        np.array([0, 1], dtype=np.int32),
        np.array([[5], [0]], dtype=np.uint64),
        np.empty((2, 0), dtype=np.uint64),
    )
    plan = HashPlan(
        seeds,
        np.array([0, 1, 1], dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros((1, 2, 1), dtype=np.uint64),
    )
    function(hashing.hash_features, jit)(tokens, plan, hashes)
    assert hashes[0, 0] != 0
    assert hashes[1, 0] == 0
    assert hashes[:, 1].all()


@pytest.mark.parametrize("jit", [True, False])
def test_features_are_found_where_they_are_hashed(jit):
    rng = np.random.default_rng(5)
    lexical = rng.integers(0, 5, (6, 2)).astype(np.uint64)
    # The columns 0 and 1 are of words; ~1 is another value of the attribute of column 0.
    columns, offsets, anchors = np.array(
        [(0, 0, 0), (1, -1, 0), (~1, 0, 0), (2, 1, 0), (0, 0, 1), (0, -1, 0), (1, 0, 0)]
    ).T
    ptr, edges = np.array([0, 0, 1, 2, 3, 4, 5, 7, 7]), np.full((7, 2, 1), 9, np.uint64)
    plan = HashPlan(np.arange(90, 98, dtype=np.uint64), ptr, columns, offsets, anchors, edges)
    parts, matrices = [], []
    for ends in ([0, 1, 1, 9], [0, 4, 30]):
        words = rng.integers(0, 6, ends[-1]).astype(np.int32)
        annotations = rng.integers(0, 3, (ends[-1], 1)).astype(np.uint64)
        parts.append(Tokens(np.array(ends), words, lexical, annotations))
        matrices.append(np.empty((ends[-1], 8), np.uint64))
        hashing.hash_features(parts[-1], plan, matrices[-1])
    left = {*np.concatenate(matrices)[:, 1:].ravel().tolist(), 7} - {0}
    seen = np.zeros((8, 6), np.bool_)
    for tokens, matrix in zip(parts, matrices, strict=True):
        keys, cells = np.array([*left], np.uint64), np.full(len(left), -1)
        table = hashing.build_table(keys), keys
        function(hashing.find_features, jit)(tokens, plan, *table, seen, cells)
        found = keys[cells >= 0]
        np.testing.assert_array_equal(matrix.ravel()[cells[cells >= 0]], found)
        assert {*found.tolist()} == left & {*matrix.ravel().tolist()}
        left -= {*found.tolist()}
    assert left == {7}


uint64s = st.integers(0, 2**64 - 1) | st.integers(0, 20)


@given(st.lists(uint64s, unique=True, max_size=200), st.lists(uint64s, max_size=50))
def test_lookup(keys, others):
    queries = np.array([*keys, *others, *keys], dtype=np.uint64)
    slots = hashing.build_table(np.array(keys, dtype=np.uint64))
    assert len(slots) >= 2 * len(keys)
    assert len(slots).bit_count() == 1
    positions = np.empty(len(queries), dtype=np.int32)
    absent = hashing.lookup(slots, np.array(keys, dtype=np.uint64), queries[:, None], positions)
    place = {key: i for i, key in enumerate(keys)}
    assert absent == sum(query not in place for query in queries.tolist())
    assert positions.tolist() == [place.get(query, -1) for query in queries.tolist()]


@pytest.mark.parametrize("jit", [True, False])
def test_lookup_past_the_end_of_the_slots(jit):
    # All keys hash to the last slot: probing must continue at the first slot.
    keys = np.array([k for k in range(2000) if mix(k) & 15 == 15][:8], dtype=np.uint64)
    slots = np.full_like(hashing.build_table(keys), -1)
    assert len(slots) == 16
    function(hashing.insert, jit)(slots, keys, 0, len(keys))
    np.testing.assert_array_equal(slots, hashing.build_table(keys))
    positions = np.empty(8, dtype=np.int32)
    function(hashing.lookup, jit)(slots, keys, keys[:, None], positions)
    assert positions.tolist() == list(range(8))
