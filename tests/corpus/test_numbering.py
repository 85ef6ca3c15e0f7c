"""Ids of distinct features and rows, compared with plain Python lists."""

import itertools
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spacy_sparsecrf.corpus.numbering import distinct, number_features

# Few values, so that some repeat; including zero and the largest value.
HASHES = st.lists(st.sampled_from([0, 1, 2, 7, 2**32, 2**63, 2**64 - 1]), max_size=30)


@given(HASHES)
def test_distinct_values_come_by_arrival(values: list[int]) -> None:
    found = distinct(np.array(values, dtype=np.uint64))
    known = list(dict.fromkeys(values))
    wanted = known, list(map(known.index, values)), list(map(values.count, known))
    assert [array.tolist() for array in found] == list(wanted)
    assert [array.dtype for array in found] == [np.uint64, np.int32, np.int64]


def test_many_distinct_values_outgrow_the_first_table() -> None:
    values = np.random.default_rng(0).integers(0, 2**63, 1_200_000, dtype=np.uint64)
    values[-10:] = values[:10]
    keys, numbers, counts = distinct(values)
    assert (keys[numbers] == values).all()
    assert (np.unique(numbers, return_index=True)[1] == np.arange(len(keys))).all()
    assert len(np.unique(keys)) == len(keys)
    assert counts.sum() == len(values) and sorted(counts)[-10:] == [2] * 10


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=12))
def test_frequent_tests_come_first_and_zero_is_no_test(rows: list[tuple[int, int, int]]) -> None:
    hashes = np.array(rows, dtype=np.uint64).reshape(-1, 3)
    keys, indptr, ids = number_features(hashes)
    counts = Counter(value for row in rows for value in row if value)
    # Sorting is stable: equal counts keep the order of first occurrence.
    assert keys.tolist() == sorted(counts, key=lambda key: -counts[key])
    found = [keys[ids[a:b]].tolist() for a, b in itertools.pairwise(indptr)]
    assert found == [[value for value in row if value] for row in rows]
