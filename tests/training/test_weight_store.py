"""Weights found by hash, against dictionaries."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_sparsecrf.training.weight_store import WeightStore

WIDTH = 5
Batch = list[tuple[int, int]]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(1, 60), st.integers(0, WIDTH - 1)), max_size=40), max_size=6
    ),
    st.integers(1, 2**57),
)
def test_a_store_is_a_dictionary(batches: list[Batch], factor: int):
    store = WeightStore(WIDTH, {"theta": 0.0, "gain": 0.25}, ("when",))
    expected: dict[tuple[int, int], float] = {}
    marks: dict[int, float] = {}
    for i, batch in enumerate(batches):
        tests = sorted({test for test, _ in batch})
        keys = np.array([test * factor for test in tests], dtype=np.uint64)
        rows = store.rows(keys, {"when": float(i)})
        for test in tests:
            marks.setdefault(test, float(i))
        np.testing.assert_array_equal(store.keys[rows], keys)
        owner, slots = store.slots(rows)
        places = store.coordinates[slots] % WIDTH
        known = {(tests[o], int(p)) for o, p in zip(owner, places, strict=True)}
        assert known == {key for key in expected if key[0] in tests}
        assert len(known) == len(slots)
        columns, since = store.read(slots)
        for o, p, theta, when in zip(owner, places, columns["theta"], since["when"], strict=True):
            assert theta == expected[tests[o], p]
            assert when == marks[tests[o]]
        new = sorted(set(batch) - known)
        row_of = dict(zip(tests, rows, strict=True))
        added = store.add(
            np.array([row_of[test] for test, _ in new], dtype=np.int64),
            np.array([place for _, place in new], dtype=np.int64),
        )
        np.testing.assert_array_equal(store.read(added)[0]["gain"], 0.25)
        values = np.arange(len(new)) + 100.0 * i
        store.write(added, {"theta": values})
        expected |= dict(zip(new, values, strict=True))
        store.mark(rows[::2], {"when": -1.0})
        marks |= dict.fromkeys(tests[::2], -1.0)
    assert (store.n_tests, store.n_weights) == (len(marks), len(expected))


def test_a_store_grows_and_comes_back():
    rng = np.random.default_rng(3)
    keys = rng.choice(2**62, 5000, replace=False).astype(np.uint64)
    store = WeightStore(WIDTH, {"theta": 0.0, "gain": 0.25}, ("when",))
    for first in range(0, 5000, 700):
        rows = store.rows(keys[first : first + 700], {"when": float(first)})
        slots = store.add(rows, (rows * 7) % WIDTH)
        store.write(slots, {"theta": rows + 0.5})
    found = store.rows(keys[::-1].copy(), {"when": 0.0})
    np.testing.assert_array_equal(found, np.arange(5000)[::-1])
    again = WeightStore(WIDTH, {"theta": 0.0, "gain": 0.25}, ("when",))
    again.restore(store.values())
    for each in (store, again):
        owner, slots = each.slots(found)
        np.testing.assert_array_equal(owner, np.arange(5000))
        columns, since = each.read(slots)
        np.testing.assert_array_equal(columns["theta"], found + 0.5)
        np.testing.assert_array_equal(columns["gain"], 0.25)
        np.testing.assert_array_equal(since["when"], found // 700 * 700)
        np.testing.assert_array_equal(each.coordinates[slots], found * WIDTH + found * 7 % WIDTH)
