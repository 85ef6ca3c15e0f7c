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
    assert (store.n_features, store.n_weights) == (len(marks), len(expected))
