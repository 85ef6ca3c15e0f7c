"""Working weights grouped by test; those of frequent unigram tests laid out as vectors."""

import numpy as np

from ..corpus.arrays import MEMORY, Memory
from ..parallel import Chunks, cut
from .lattice import Csr, Floats, Longs
from .workspace import Workspace

# What a weight of its own, and a row of them, cost in elements of a vector.
_WEIGHT_COST = 8
_ROW_COST = 16


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


class Heads:
    """The *heads*: the first rows, whose weights a table holds for all labels, mostly zeros.

    Most of a token's weights are of few tests, as tests are numbered by descending frequency.

    space: for its lattice and type; rows: the unigram weights; n_tokens: [R], tokens of each
    row.
    table: [H, Yp] of the workspace's precision; tokens: heads of each token; n_weights: how many
    weights the heads have, which come first.
    """

    def __init__(self, space: Workspace, rows: Rows, n_tokens: Longs) -> None:
        gains = n_tokens * (_WEIGHT_COST * np.diff(rows.ptr) + _ROW_COST - space.padded)
        most = space.limits.table_bytes // (8 * space.padded)
        saved = np.concatenate(([0], np.cumsum(gains[:most])))
        n_heads = int(np.argmax(saved))
        self.n_weights = int(rows.ptr[n_heads])
        self.tokens = rows.of(space.lattice.tests, 0, n_heads, space.lattice.store)
        self.table = np.zeros((n_heads, space.padded), space.dtype)
        row = np.repeat(np.arange(n_heads), np.diff(rows.ptr[: n_heads + 1]))
        self._places: Longs = row * space.padded + rows.places[: self.n_weights]

    def __len__(self) -> int:
        return len(self.table)

    def fill(self, theta: Floats) -> None:
        """Write the heads' weights, the first of theta [K], into the table."""
        self.table.reshape(-1)[self._places] = theta[: self.n_weights]

    def gradient(self, sums: Floats) -> Floats:
        """The gradient [n_weights] from residuals that were summed by label, [H, Yp]."""
        gradient: Floats = sums.reshape(-1)[self._places]
        return gradient
