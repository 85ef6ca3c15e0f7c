"""A corpus does not depend on its batches; ids of features; runs of sequences."""

import itertools
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sparsecrf.crf.corpus.builder import CorpusBuilder
from spacy_sparsecrf.crf.corpus.encoded import EncodedCorpus, Observations
from spacy_sparsecrf.crf.corpus.numbering import number_features, number_hashes, runs_of_tokens


def made_up(seed: int, start_label: bool) -> tuple[Observations, np.ndarray, np.ndarray]:
    """Draw features, some frequent and some missing, in sequences, some of them empty."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 6, 40)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    hashes = rng.zipf(1.3, (offsets[-1], 5)).astype(np.uint64) % np.uint64(50)
    hashes[:, 3] %= np.uint64(3)
    columns = np.array([0, 1, 2], np.int32), np.array([3, 4], np.int32)
    observations = Observations(hashes, offsets, *columns, start_label)
    return observations, rng.integers(-1, 3, offsets[-1]).astype(np.int32), rng.random(40)


def batches(whole: tuple[Observations, np.ndarray, np.ndarray], size: int):
    observations, labels, weights = whole
    for first in range(0, len(weights), size):
        offsets = observations.offsets[first : first + size + 1]
        tokens = slice(offsets[0], offsets[-1])
        yield (
            Observations(
                observations.hashes[tokens],
                offsets - offsets[0],
                observations.unigram_columns,
                observations.bigram_columns,
                observations.start_label,
            ),
            labels[tokens],
            weights[first : first + size],
        )


def assert_same(a: EncodedCorpus, b: EncodedCorpus) -> None:
    for name, x in a.arrays.items():
        y = b.arrays[name]
        assert x.dtype == y.dtype, name
        if name == "values":  # Without columns, even the number of tokens may differ.
            assert x.size == y.size == 0
        else:
            np.testing.assert_array_equal(x, y, name)


@given(
    seed=st.integers(0, 99),
    size=st.integers(1, 40),
    min_freq=st.sampled_from([1, 2, 5]),
    start_label=st.booleans(),
)
@settings(max_examples=30)
def test_a_corpus_does_not_depend_on_batches(seed, size, min_freq, start_label):
    whole, found = made_up(seed, start_label), []
    for parts in ([whole], batches(whole, size)):
        builder = CorpusBuilder()
        for batch in parts:
            builder.add(*batch)
        n_missing = builder.relabel(np.array([-1, *range(1, 99), -1], np.int32))
        assert n_missing == (whole[1] <= 0).sum()
        found.append(builder.build(min_freq))
    assert_same(*found)


@given(lengths=st.lists(st.integers(0, 40), max_size=30))
@settings(max_examples=30)
def test_runs_of_sequences_are_short(lengths):
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    runs = runs_of_tokens(offsets, 13)
    assert [s for run in runs for s in range(*run)] == list(range(len(lengths)))
    assert all(offsets[last] - offsets[first] <= 13 or last == first + 1 for first, last in runs)


# Ids of distinct features and rows


# Few values, so that some repeat; including zero and the largest value.
HASHES = st.lists(st.sampled_from([0, 1, 2, 7, 2**32, 2**63, 2**64 - 1]), max_size=30)


@given(HASHES)
def test_distinct_values_come_by_arrival(values):
    found = number_hashes(np.array(values, dtype=np.uint64))
    known = list(dict.fromkeys(values))
    wanted = known, list(map(known.index, values)), list(map(values.count, known))
    assert [array.tolist() for array in found] == list(wanted)
    assert [array.dtype for array in found] == [np.uint64, np.int32, np.int64]


def test_many_distinct_values_outgrow_the_first_table():
    values = np.random.default_rng(0).integers(0, 2**63, 1_200_000, dtype=np.uint64)
    values[-10:] = values[:10]
    keys, numbers, counts = number_hashes(values)
    assert (keys[numbers] == values).all()
    assert (np.unique(numbers, return_index=True)[1] == np.arange(len(keys))).all()
    assert len(np.unique(keys)) == len(keys)
    assert counts.sum() == len(values) and sorted(counts)[-10:] == [2] * 10


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=12))
def test_frequent_tests_come_first_and_zero_is_no_test(rows):
    hashes = np.array(rows, dtype=np.uint64).reshape(-1, 3)
    keys, indptr, ids = number_features(hashes)
    counts = Counter(value for row in rows for value in row if value)
    # Sorting is stable: equal counts keep the order of first occurrence.
    assert keys.tolist() == sorted(counts, key=lambda key: -counts[key])
    found = [keys[ids[a:b]].tolist() for a, b in itertools.pairwise(indptr)]
    assert found == [[value for value in row if value] for row in rows]
