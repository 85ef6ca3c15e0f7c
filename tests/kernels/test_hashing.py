"""Edge cases of hash kernels, and key tables compared with dicts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_sparsecrf.kernels import hashing
from spacy_sparsecrf.kernels.layout import HashPlan, Tokens

from ..features.reference_features import mix
from .kernel_functions import function


def test_threads_that_read_docs_keep_the_gil_until_they_score() -> None:
    """Two threads that alternate between reading and scoring then overlap."""
    assert not hashing.cut.targetoptions["nogil"] and not hashing.lookup.targetoptions["nogil"]


@pytest.mark.parametrize("jit", [True, False])
def test_hash_zero_is_kept_for_absent_tests(jit: bool) -> None:
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


uint64s = st.integers(0, 2**64 - 1) | st.integers(0, 20)


@given(st.lists(uint64s, unique=True, max_size=200), st.lists(uint64s, max_size=50))
def test_lookup(keys: list[int], others: list[int]) -> None:
    queries = np.array([*keys, *others, *keys], dtype=np.uint64)
    slots = hashing.build_table(np.array(keys, dtype=np.uint64))
    assert len(slots) >= 2 * len(keys)
    assert len(slots).bit_count() == 1
    positions = np.empty(len(queries), dtype=np.int32)
    absent = hashing.lookup(slots, np.array(keys, dtype=np.uint64), queries, positions)
    place = {key: i for i, key in enumerate(keys)}
    assert absent == sum(query not in place for query in queries.tolist())
    assert positions.tolist() == [place.get(query, -1) for query in queries.tolist()]


@pytest.mark.parametrize("jit", [True, False])
def test_lookup_past_the_end_of_the_slots(jit: bool) -> None:
    # All keys hash to the last slot: probing must continue at the first slot.
    keys = np.array([k for k in range(2000) if mix(k) & 15 == 15][:8], dtype=np.uint64)
    slots = np.full_like(hashing.build_table(keys), -1)
    assert len(slots) == 16
    function(hashing.insert, jit)(slots, keys, 0, len(keys))
    np.testing.assert_array_equal(slots, hashing.build_table(keys))
    positions = np.empty(8, dtype=np.int32)
    function(hashing.lookup, jit)(slots, keys, keys, positions)
    assert positions.tolist() == list(range(8))
