"""The table of a model's rows, and the numbering of contexts, against dictionaries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sparsecrf.kernels import indexing
from spacy_sparsecrf.kernels import model_lookup as rows

from .kernel_functions import function

# Without numba's compiler 64-bit products are numpy scalars, which warn when they wrap around.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

uint64s = st.integers(0, 2**64 - 1) | st.integers(0, 20)


def layout(counts: list[int]) -> np.ndarray:
    return np.cumsum([0, *counts]).astype(np.int64)


def table(keys: np.ndarray, ptr: np.ndarray) -> rows.RowTable:
    """A table without weights."""
    return rows.RowTable(*rows.build_rows(keys, ptr), np.zeros(0, np.int32), np.zeros(0))


@settings(deadline=None)  # the first call may compile
@given(st.dictionaries(uint64s, st.integers(1, 5), max_size=100), st.lists(uint64s, max_size=50))
def test_entries_say_where_the_weights_are(counts: dict[int, int], others: list[int]) -> None:
    ptr = layout(list(counts.values()))
    of_rows = table(np.array([*counts], dtype=np.uint64), ptr)
    assert 8 * len(of_rows.bits) >= 16 * len(counts)
    assert len(of_rows.entries) > 2 * len(counts)
    place = {key: (int(ptr[i]) << 32) + counts[key] for i, key in enumerate(counts)}
    place[0] = 0  # "no test", whatever the keys
    queries = np.array([[*counts, *others, 0]], dtype=np.uint64)
    found = np.empty_like(queries)
    rows.find_entries(queries, of_rows, found)
    assert found[0].tolist() == [place.get(query, 0) for query in queries[0].tolist()]


@pytest.mark.parametrize("jit", [True, False])
def test_probing_goes_on_behind_the_last_slot(jit: bool) -> None:
    # Products of these keys begin with ones: all of them begin at the last slot.
    inverse = pow(0x9E3779B97F4A7C15, -1, 2**64)
    keys = np.array([-i * inverse % 2**64 for i in range(1, 9)], dtype=np.uint64)
    of_rows = table(keys, np.arange(9, dtype=np.int64))
    assert of_rows.entries[15:23, 0].tolist() == keys.tolist()
    assert not of_rows.entries[:15].any() and not of_rows.entries[23:].any()
    others = np.array([-9 * inverse % 2**64, 1], dtype=np.uint64)
    found = np.empty((1, 10), np.uint64)
    function(rows.find_entries, jit)(np.append(keys, others).reshape(1, -1), of_rows, found)
    assert found[0].tolist() == [*((i << 32) + 1 for i in range(8)), 0, 0]


@pytest.mark.parametrize("jit", [True, False])
def test_weights_are_added_at_their_places(jit: bool) -> None:
    weights = np.array([2, 0, 2], np.int32), np.array([1.0, 2.0, 4.0])
    nothing = np.zeros(8, np.uint8), np.zeros((3, 2), np.uint64), 58, 63
    rows_of = rows.RowTable(*nothing, *weights)
    found = np.array([[2, 0], [(2 << 32) + 1, (1 << 32) + 2]], dtype=np.uint64)
    scores = np.full((2, 8), 9.0)
    function(rows.add_rows, jit)(found, rows_of, scores)
    assert scores[:, :3].tolist() == [[2.0, 0.0, 1.0], [2.0, 0.0, 8.0]]
    assert not scores[:, 3:].any()


@pytest.mark.parametrize("jit", [True, False])
@pytest.mark.parametrize("shape", [(0, 2), (1, 1), (50, 2), (50, 0), (200, 3)])
def test_contexts_are_the_distinct_rows(shape: tuple[int, int], jit: bool) -> None:
    tests = np.random.default_rng(3).integers(0, 4, shape).astype(np.uint64)
    context = np.full(len(tests), -1, np.int32)
    found, counts = np.full_like(tests, 9), np.zeros(len(tests), np.int64)
    slots = np.full(1 << (2 * len(tests)).bit_length(), -1, np.int32)
    n = function(indexing.number_rows, jit)(slots, found, counts, 0, tests, context)
    distinct = list(dict.fromkeys(map(tuple, tests.tolist())))
    assert n == len(distinct)
    assert [distinct[c] for c in context] == [tuple(row) for row in tests.tolist()]
    assert [tuple(row) for row in found[:n].tolist()] == distinct
    assert counts[:n].tolist() == [context.tolist().count(number) for number in range(n)]
