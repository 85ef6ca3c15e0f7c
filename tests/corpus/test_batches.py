"""A corpus does not depend on the batches in which it arrives; runs of sequences."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sparsecrf.corpus.builder import CorpusBuilder
from spacy_sparsecrf.corpus.encoded import EncodedCorpus, Observations
from spacy_sparsecrf.corpus.numbering import runs_of_tokens


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
@settings(max_examples=30, deadline=None)
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
@settings(max_examples=30, deadline=None)
def test_runs_of_sequences_are_short(lengths):
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    runs = runs_of_tokens(offsets, 13)
    assert [s for run in runs for s in range(*run)] == list(range(len(lengths)))
    assert all(offsets[last] - offsets[first] <= 13 or last == first + 1 for first, last in runs)
