"""Hash kernels against their slow twins, and the tables of keys and of words."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.attrs import ORTH, SENT_START, SPACY
from spacy.strings import StringStore
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_sparsecrf.features.lexemes import LexemeTable
from spacy_sparsecrf.features.tokens import read_tokens
from spacy_sparsecrf.kernels import hashing
from spacy_sparsecrf.kernels.layout import HashPlan, Tokens

from ..features.reference_features import mix
from .kernel_functions import function


def test_threads_that_read_docs_keep_the_gil_until_they_score() -> None:
    """Two threads that read and score in turn then overlap."""
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


# Tables --------------------------------------------------------------------------------------

uint64s = st.integers(0, 2**64 - 1) | st.integers(0, 20)


@settings(deadline=None)  # the first call may compile
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
    # Keys that all start at the last slot: probing must go on at the first.
    keys = np.array([k for k in range(2000) if mix(k) & 15 == 15][:8], dtype=np.uint64)
    slots = np.full_like(hashing.build_table(keys), -1)
    assert len(slots) == 16
    function(hashing.insert, jit)(slots, keys, 0, len(keys))
    np.testing.assert_array_equal(slots, hashing.build_table(keys))
    positions = np.empty(8, dtype=np.int32)
    function(hashing.lookup, jit)(slots, keys, keys, positions)
    assert positions.tolist() == list(range(8))


class CountingReader:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, text: str) -> int:
        self.seen.append(text)
        return len(text)


def find(table: LexemeTable, strings: StringStore, words: Sequence[str]) -> list[int]:
    orths = np.array([strings.add(word) for word in words], dtype=np.uint64)
    rows, values, _ = table.find(orths, strings)
    return values[rows, 0].tolist()


def test_lexemes_are_read_once() -> None:
    reader, strings = CountingReader(), StringStore()
    table = LexemeTable([reader])
    assert find(table, strings, ["a", "bb", "a"]) == [1, 2, 1]
    assert find(table, strings, ["ccc", "bb"]) == [3, 2]
    assert sorted(reader.seen) == ["a", "bb", "ccc"]


def test_lexemes_are_bounded() -> None:
    reader, strings = CountingReader(), StringStore()
    table = LexemeTable([reader], max_rows=3)
    assert find(table, strings, ["a", "bb", "ccc"]) == [1, 2, 3]
    assert find(table, strings, ["dddd", "a"]) == [4, 1]
    assert len(table) == 2
    assert find(table, strings, ["1", "22", "333", "4444", "a"]) == [1, 2, 3, 4, 1]
    assert len(table) == 5  # one batch must fit, whatever the bound


def test_lexemes_found_before_growth_stay(vocab: Vocab) -> None:
    strings = StringStore()
    table = LexemeTable([len], max_rows=5000)
    orths = np.array([strings.add("abc")], dtype=np.uint64)
    rows, values, _ = table.find(orths, strings)
    for start in (0, 3000, 6000):
        many = [f"w{i}" for i in range(start, start + 3000)]
        assert find(table, strings, many) == [len(word) for word in many]
    assert len(table) <= 5000
    assert values[rows[0], 0] == 3


# Where sequences begin, and what is glued, against spaCy's own.

ATTRIBUTES = (ORTH, SENT_START, SPACY)


def read(docs: list[Doc], mode: str) -> tuple[np.ndarray, np.ndarray]:
    return read_tokens(docs, ATTRIBUTES, mode)


def test_sequences_as_spacy_s_own(vocab: Vocab) -> None:
    starts = [[True, None, True, False], [None, None], [], [False, True], [True], []]
    docs = [Doc(vocab, words=["w"] * len(s), sent_starts=s) for s in starts]
    lengths = []
    for doc in docs:
        if doc.has_annotation("SENT_START"):
            lengths.extend(len(sent) for sent in doc.sents)
        else:
            lengths.extend([len(doc)] if len(doc) else [])
    offsets, _ = read(docs, "sents")
    assert np.diff(offsets).tolist() == lengths == [2, 2, 2, 1, 1, 1]
    assert offsets.dtype == np.int64
    assert read(docs, "docs")[0].tolist() == [0, 4, 6, 8, 9]


def test_glued_as_spacy_s_own(vocab: Vocab) -> None:
    spaces = [[False, True, False], [], [True, True], [False], [True]]
    docs = [Doc(vocab, words=["w"] * len(s), spaces=s) for s in spaces]
    expected = [not a.whitespace_ for doc in docs for a, _ in pairwise([*doc, None]) if a]
    last = np.cumsum([len(doc) for doc in docs if len(doc)]) - 1
    glued = read(docs, "docs")[1][:, 2]
    assert [bool(g) for i, g in enumerate(glued) if i not in last] == [
        g for i, g in enumerate(expected) if i not in last
    ]
    assert not glued[last].any()


@pytest.mark.parametrize("glued", [0, 2])
def test_the_kernel_equals_the_function_it_was_compiled_from(glued: int) -> None:
    ends = np.array([0, 3, 3, 7], dtype=np.int64)
    tokens = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 1], *[[1, 2**64 - 1, 0]] * 4], dtype=np.uint64)
    results = []
    for jit in (True, False):
        values, offsets = tokens.copy(), np.zeros(8, dtype=np.int64)
        n = function(hashing.cut, jit)(ends, values, True, glued, offsets)
        results.append((n, offsets.tolist(), values.tolist()))
    assert results[0] == results[1]
    assert (results[0][2] == tokens.tolist()) == (glued == 0)
