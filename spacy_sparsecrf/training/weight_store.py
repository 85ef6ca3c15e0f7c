"""Weights whose tests are not known ahead: found by hash, and more of them all the time."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.hashing import build_table, insert, lookup
from ..kernels.indexing import follow, link
from ..schema import SchemaField
from ..solvers.base import Floats, Longs
from .checkpoint import expect, prefixed, without_prefix

Keys = NDArray[np.uint64]

_FIRST_CAPACITY = 1 << 10


class WeightStore:
    """The weights of unigram or of bigram features, with the solver's values for each.

    A test has a *row*, a number in the order of arrival, and a weight a *slot*. Only weights that
    were added take memory; all others of a test are zero.

    width: potential weights of a test (Y, or P Y pairs); columns: of each weight, a number and
    its first value, by name; marks: of each test, a number, by name.
    """

    def __init__(self, width: int, columns: dict[str, float], marks: tuple[str, ...]) -> None:
        self.width = width
        self._first_values = columns
        self.n_tests = 0
        self.n_weights = 0
        self._keys: Keys = np.zeros(_FIRST_CAPACITY, dtype=np.uint64)
        self._table = build_table(self._keys[:0], _FIRST_CAPACITY)
        self._heads: Longs = np.full(_FIRST_CAPACITY, -1)
        self._sizes: Longs = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self._marks = {name: np.zeros(_FIRST_CAPACITY) for name in marks}
        self._coordinates: Longs = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self._following: Longs = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self._columns = {name: np.full(_FIRST_CAPACITY, v) for name, v in columns.items()}

    @property
    def keys(self) -> Keys:
        """[O] uint64, hashes of the tests; position = row."""
        return self._keys[: self.n_tests]

    @property
    def coordinates(self) -> Longs:
        """[K] int64, row * width + place of each slot."""
        return self._coordinates[: self.n_weights]

    def rows(self, keys: Keys, marks: dict[str, float]) -> Longs:
        """The rows of features, [n] int64; new features get one.

        keys: [n] uint64, distinct; marks: of the new.
        """
        found = np.empty(len(keys), dtype=np.int32)
        if lookup(self._table, self._keys, keys, found):
            new = np.flatnonzero(found < 0)
            found[new] = np.arange(self.n_tests, self.n_tests + len(new), dtype=np.int32)
            self._add_tests(keys[new], marks)
        return found.astype(np.int64)

    def _add_tests(self, keys: Keys, marks: dict[str, float]) -> None:
        first, last = self.n_tests, self.n_tests + len(keys)
        self._keys = _grown(self._keys, last, 0)
        self._heads = _grown(self._heads, last, -1)
        self._sizes = _grown(self._sizes, last, 0)
        self._keys[first:last] = keys
        for name, value in marks.items():
            self._marks[name] = _grown(self._marks[name], last, 0.0)
            self._marks[name][first:last] = value
        if 2 * last > len(self._table):
            self._table = build_table(self._keys[:first], 2 * last)
        insert(self._table, self._keys, first, last)
        self.n_tests = last

    def slots(self, rows: Longs) -> tuple[Longs, Longs]:
        """The weights of some tests.

        rows: [n] int64, distinct. RETURNS: of each weight, [m], the position of its test in
        rows, and its slot.
        """
        sizes = self._sizes[rows]
        found = np.empty(int(sizes.sum()), dtype=np.int64)
        follow(rows, self._heads, self._following, found)
        return np.repeat(np.arange(len(rows)), sizes), found

    def add(self, rows: Longs, places: Longs) -> Longs:
        """Add weights that are not there yet, and return their slots [n].

        rows, places: [n] int64.
        """
        first, last = self.n_weights, self.n_weights + len(rows)
        self._coordinates = _grown(self._coordinates, last, 0)
        self._following = _grown(self._following, last, -1)
        for name, value in self._first_values.items():
            self._columns[name] = _grown(self._columns[name], last, value)
        self._coordinates[first:last] = rows * self.width + places
        link(rows, first, self._heads, self._following)
        np.add.at(self._sizes, rows, 1)
        self.n_weights = last
        return np.arange(first, last)

    def read(self, slots: Longs) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """Copies of the columns of weights, and of the marks of their tests, [n] each."""
        rows = self._coordinates[slots] // self.width
        columns = {name: column[slots] for name, column in self._columns.items()}
        return columns, {name: mark[rows] for name, mark in self._marks.items()}

    def write(self, slots: Longs, columns: dict[str, Floats]) -> None:
        """Set the columns of weights [n]."""
        for name, values in columns.items():
            self._columns[name][slots] = values

    def mark(self, rows: Longs, marks: dict[str, float]) -> None:
        """Set the marks of tests [n]."""
        for name, value in marks.items():
            self._marks[name][rows] = value

    def values(self) -> dict[str, Any]:
        """Arrays by name, from which `restore` makes the same weights."""
        own = {"keys": self.keys, "coordinates": self.coordinates}
        marks = {name: mark[: self.n_tests] for name, mark in self._marks.items()}
        columns = {name: column[: self.n_weights] for name, column in self._columns.items()}
        return own | prefixed("mark.", marks) | prefixed("column.", columns)

    def restore(self, values: dict[str, Any]) -> None:
        """Fill an empty store with what `values` returned. RAISES: ValueError for others."""
        forms: dict[str, SchemaField | type] = {
            "keys": SchemaField("<u8", "O"),
            "coordinates": SchemaField("<i8", "K", below="potential"),
            **prefixed("mark.", dict.fromkeys(self._marks, SchemaField("<f8", "O"))),
            **prefixed("column.", dict.fromkeys(self._columns, SchemaField("<f8", "K"))),
        }
        n_tests = len(values.get("keys", ()))
        expect(values, forms, {"potential": n_tests * self.width})
        for name in ("keys", "coordinates"):
            if len(np.unique(values[name])) < len(values[name]):
                raise ValueError(f"{name} are not distinct")
        self._add_tests(values["keys"], dict.fromkeys(self._marks, 0.0))
        slots = self.add(*np.divmod(values["coordinates"], self.width))
        for name, mark in without_prefix("mark.", values).items():
            self._marks[name][: self.n_tests] = mark
        self.write(slots, without_prefix("column.", values))


def _grown(array: NDArray[Any], n: int, value: float) -> NDArray[Any]:
    """The array with room for n elements: itself, or one twice as long."""
    if n <= len(array):
        return array
    longer = np.full(max(n, 2 * len(array)), value, dtype=array.dtype)
    longer[: len(array)] = array
    return longer
