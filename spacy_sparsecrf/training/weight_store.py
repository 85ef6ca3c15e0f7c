"""Growing store of weights by feature hash, for features that are not known in advance."""

from typing import Any

import numpy as np

from ..corpus.numbering import Hashes, RowIndex, grown
from ..kernels.indexing import follow, link
from ..schema import SchemaField
from ..solvers.base import Floats, Longs
from .checkpoint import expect, prefixed, without_prefix

_FIRST_CAPACITY = 1 << 10


class WeightStore:
    """The weights of unigram or of bigram features, with the solver's numbers for each weight.

    A feature has a *row* and a weight has a *slot*, both numbered in order of arrival. Only added
    weights use memory; all other weights of a feature are zero.

    width: potential weights of a feature (Y, or P * Y pairs); columns: initial values of the
    numbers stored for each weight, by name; marks: names of the numbers stored for each feature.
    """

    def __init__(self, width: int, columns: dict[str, float], marks: tuple[str, ...]) -> None:
        self.width = width
        self._first_values = columns
        self.n_weights = 0
        self._index = RowIndex(1)
        self._heads: Longs = np.full(_FIRST_CAPACITY, -1)
        self._sizes: Longs = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self._marks = {name: np.zeros(_FIRST_CAPACITY) for name in marks}
        self._coordinates: Longs = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self._following: Longs = np.zeros(_FIRST_CAPACITY, dtype=np.int64)
        self._columns = {name: np.full(_FIRST_CAPACITY, v) for name, v in columns.items()}

    @property
    def n_features(self) -> int:
        """Number of features O."""
        return len(self._index.counts)

    @property
    def keys(self) -> Hashes:
        """[O] uint64, hashes of the features; position = row."""
        return self._index.rows[:, 0]

    @property
    def coordinates(self) -> Longs:
        """[K] int64, row * width + position in the row, of each slot."""
        return self._coordinates[: self.n_weights]

    def rows(self, keys: Hashes, marks: dict[str, float]) -> Longs:
        """Return the rows of features, [n] int64; new features are added.

        keys: [n] uint64, distinct; marks: of new features.
        """
        first, found = self.n_features, self._index.add(keys[:, None])
        last = self.n_features
        self._heads = grown(self._heads, last, -1)
        self._sizes = grown(self._sizes, last)
        for name, value in marks.items():
            self._marks[name] = grown(self._marks[name], last)
            self._marks[name][first:last] = value
        return found.astype(np.int64)

    def slots(self, rows: Longs) -> tuple[Longs, Longs]:
        """Find the weights of some features.

        rows: [n] int64, distinct. RETURNS: for each weight, [m], the index of its feature in rows,
        and its slot.
        """
        sizes = self._sizes[rows]
        found = np.empty(int(sizes.sum()), dtype=np.int64)
        follow(rows, self._heads, self._following, found)
        return np.repeat(np.arange(len(rows)), sizes), found

    def add(self, rows: Longs, places: Longs) -> Longs:
        """Add weights that are not in the store, and return their slots [n].

        rows, places: [n] int64, rows and positions in the rows.
        """
        first, last = self.n_weights, self.n_weights + len(rows)
        self._coordinates = grown(self._coordinates, last)
        self._following = grown(self._following, last, -1)
        for name, value in self._first_values.items():
            self._columns[name] = grown(self._columns[name], last, value)
        self._coordinates[first:last] = rows * self.width + places
        link(rows, first, self._heads, self._following)
        np.add.at(self._sizes, rows, 1)
        self.n_weights = last
        return np.arange(first, last)

    def read(self, slots: Longs) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """Return copies of the columns of weights, and of the marks of their features, [n] each."""
        rows = self._coordinates[slots] // self.width
        columns = {name: column[slots] for name, column in self._columns.items()}
        return columns, {name: mark[rows] for name, mark in self._marks.items()}

    def write(self, slots: Longs, columns: dict[str, Floats]) -> None:
        """Set the columns of weights [n]."""
        for name, values in columns.items():
            self._columns[name][slots] = values

    def mark(self, rows: Longs, marks: dict[str, float]) -> None:
        """Set the marks of features [n]."""
        for name, value in marks.items():
            self._marks[name][rows] = value

    def values(self) -> dict[str, Any]:
        """Return arrays by name, for `restore`."""
        own = {"keys": self.keys, "coordinates": self.coordinates}
        marks = {name: mark[: self.n_features] for name, mark in self._marks.items()}
        columns = {name: column[: self.n_weights] for name, column in self._columns.items()}
        return own | prefixed("mark.", marks) | prefixed("column.", columns)

    def restore(self, values: dict[str, Any]) -> None:
        """Fill an empty store with the result of `values`. RAISES: ValueError if it is invalid."""
        forms: dict[str, SchemaField | type] = {
            "keys": SchemaField("<u8", "O"),
            "coordinates": SchemaField("<i8", "K", below="potential"),
            **prefixed("mark.", dict.fromkeys(self._marks, SchemaField("<f8", "O"))),
            **prefixed("column.", dict.fromkeys(self._columns, SchemaField("<f8", "K"))),
        }
        n_features = len(values.get("keys", ()))
        expect(values, forms, {"potential": n_features * self.width})
        for name in ("keys", "coordinates"):
            if len(np.unique(values[name])) < len(values[name]):
                raise ValueError(f"{name} are not distinct")
        self.rows(values["keys"], dict.fromkeys(self._marks, 0.0))
        slots = self.add(*np.divmod(values["coordinates"], self.width))
        for name, mark in without_prefix("mark.", values).items():
            self._marks[name][: self.n_features] = mark
        self.write(slots, without_prefix("column.", values))
