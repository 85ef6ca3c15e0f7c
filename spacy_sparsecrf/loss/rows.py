"""Working weights grouped by test."""

import numpy as np
from numpy.typing import NDArray

from ..corpus.arrays import MEMORY, Memory
from ..parallel import Chunks, cut
from .lattice import Csr

Longs = NDArray[np.int64]


class Rows:
    """Working weights of one kind, grouped by test: a *row* is a test that has any.

    tests: [R] int32; ptr: [R + 1] int64; places: [K] uint32 (numba tests the sign of
    other indices), y, or y' * Yp + y for pairs: a weight's place in a row or matrix of scores.
    """

    def __init__(
        self, coordinates: Longs, n_labels: int, n_previous: int, padded: int, n_tests: int
    ) -> None:
        pair, label = np.divmod(coordinates, n_labels)
        test, previous = np.divmod(pair, n_previous)
        self.tests, first = np.unique(test.astype(np.int32), return_index=True)
        self.ptr = np.append(first, len(coordinates)).astype(np.int64)
        self.places = (previous * padded + label).astype(np.uint32)
        self.number = np.full(n_tests, -1, dtype=np.int32)
        self.number[self.tests] = np.arange(len(self.tests), dtype=np.int32)

    def __len__(self) -> int:
        return len(self.tests)

    def of(
        self, table: Csr, first: int = 0, last: int | None = None, store: Memory = MEMORY
    ) -> Csr:
        """The rows first:last in each line of a table of tests; store: where these go."""
        last = len(self) if last is None else last
        number = np.where((self.number >= first) & (self.number < last), self.number, -1)
        return table.selected(number.astype(np.int32), store)

    def chunks(self, sizes: Longs, n_chunks: int, first: int = 0) -> Chunks:
        """Runs of the rows from `first` of about equal cost; sizes: [R], items each row sums."""
        cost = (sizes * np.diff(self.ptr))[first:]
        return [(begin + first, end + first) for begin, end in cut(cost, n_chunks)]
