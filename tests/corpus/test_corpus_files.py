"""A corpus in files, and arrays in files, equal those in memory."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sparsecrf.corpus.arrays import MEMORY, Files
from spacy_sparsecrf.corpus.encoded import CorpusBuilder, EncodedCorpus, Observations
from spacy_sparsecrf.corpus.files import corpus_builder, read_corpus
from spacy_sparsecrf.errors import SparseCRFError

from .file_cases import cut_small, full_disk


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch)


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
def test_the_corpus_is_the_one_in_memory(tmp_path_factory, seed, size, min_freq, start_label):
    whole = made_up(seed, start_label)
    in_memory = CorpusBuilder()
    in_memory.add(*whole)
    directory = tmp_path_factory.mktemp("corpus")
    found = []
    with corpus_builder(Files(directory)) as builder:
        for batch in batches(whole, size):
            builder.add(*batch)
        for each in (in_memory, builder):
            n_missing = each.relabel(lambda labels: np.where(labels == 0, -1, labels))
            assert n_missing == (whole[1] <= 0).sum()
            found.append(each.build(min_freq))
    assert_same(*found)
    assert_same(found[1], read_corpus(Files(directory), 3))
    assert os.listdir(directory) == ["encoded"]


def write_corpus(directory: Path, seed: int = 0) -> EncodedCorpus:
    with corpus_builder(Files(directory)) as builder:
        builder.add(*made_up(seed, True))
        return builder.build()


def test_a_new_corpus_replaces_the_old_one(tmp_path: Path):
    (tmp_path / "mine.txt").write_text("kept")
    old = write_corpus(tmp_path, 0)
    before = old.uni_indices.copy()
    new = write_corpus(tmp_path, 1)
    assert_same(read_corpus(Files(tmp_path), 3), new)
    # Users of the old mapping continue to see the old corpus.
    np.testing.assert_array_equal(old.uni_indices, before)
    assert sorted(os.listdir(tmp_path)) == ["encoded", "mine.txt"]


def test_what_is_mapped_is_never_written_to_the_files(tmp_path: Path):
    corpus = write_corpus(tmp_path)
    before = corpus.labels.copy()
    corpus.labels[:] = 7
    np.testing.assert_array_equal(read_corpus(Files(tmp_path), 3).labels, before)


@pytest.mark.parametrize("min_freq", [1, 1000])
def test_nothing_to_learn_from_is_said_alike(tmp_path: Path, min_freq: int):
    messages = []
    for store in (MEMORY, Files(tmp_path)):
        with corpus_builder(store) as builder:
            if min_freq > 1:
                builder.add(*made_up(0, True))
            with pytest.raises(SparseCRFError) as caught:
                builder.build(min_freq)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert os.listdir(tmp_path) == []


DAMAGES = {
    "cut off": lambda path: os.truncate(path / "uni_indices.npy", 200),
    "no meta": lambda path: (path / "corpus.json").unlink(),
    "no json": lambda path: (path / "corpus.json").write_bytes(b"\xff{"),
    "empty array": lambda path: np.save(path / "uni_indptr.npy", np.zeros(0, np.int64)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_corpus_is_refused(tmp_path: Path, damage: str):
    write_corpus(tmp_path)
    DAMAGES[damage](tmp_path / "encoded")
    with pytest.raises(SparseCRFError, match="SC348"):
        read_corpus(Files(tmp_path), 3)


@pytest.mark.parametrize("n_bytes", [0, 64, 300, 900])
def test_a_full_disk_loses_nothing(tmp_path: Path, n_bytes: int):
    old = write_corpus(tmp_path, 0)
    with full_disk(n_bytes), pytest.raises(SparseCRFError, match="SC345"):
        write_corpus(tmp_path, 1)
    assert_same(read_corpus(Files(tmp_path), 3), old)
    assert os.listdir(tmp_path) == ["encoded"]


@pytest.mark.parametrize("make", ["zeros", "kept", "joined"])
def test_no_room_for_arrays_is_no_crash(tmp_path: Path, make: str):
    files = Files(tmp_path)
    with full_disk(128), pytest.raises(SparseCRFError, match="SC345"):
        match make:
            case "zeros":
                files.zeros(1000, np.float64)
            case "kept":
                files.kept([np.ones(1000)])
            case "joined":
                files.joined([np.ones(10), np.ones(10)], np.float64)


def test_a_failed_renaming_leaves_the_old_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    old = write_corpus(tmp_path, 0)
    rename, n_renamed = Path.rename, []

    def fail_second(self: Path, target: Path) -> Path:
        n_renamed.append(target)
        if len(n_renamed) == 2:
            raise OSError(errno.EIO, "made up")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_second)
    with pytest.raises(SparseCRFError, match="made up"):
        write_corpus(tmp_path, 1)
    assert_same(read_corpus(Files(tmp_path), 3), old)


def test_a_directory_that_cannot_be_made_is_said(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SparseCRFError, match="SC345"):
        Files(tmp_path / "file" / "below")


@given(
    lengths=st.lists(st.integers(0, 40), max_size=30),
    sizes=st.lists(st.integers(0, 300), max_size=12),
)
@settings(max_examples=30, deadline=None)
def test_arrays_in_files_are_those_in_memory(tmp_path_factory, lengths, sizes):
    files = Files(tmp_path_factory.mktemp("arrays"))
    given_ = [np.arange(size) + i for i, size in enumerate(sizes)]
    kept, expected = files.kept(given_), MEMORY.kept(given_)
    joined = files.joined(iter(given_), np.int64)
    files.release()
    for a, b in zip(kept, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(joined, MEMORY.joined(iter(given_), np.int64))
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    runs = files.runs(offsets)
    assert [s for run in runs for s in range(*run)] == list(range(len(lengths)))
    assert all(offsets[last] - offsets[first] <= 13 or last == first + 1 for first, last in runs)
    n = int(offsets[-1])
    assert [t for first, last in files.ranges(n) for t in range(first, last)] == list(range(n))
    assert os.listdir(files.directory) == []
