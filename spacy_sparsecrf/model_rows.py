"""One kind of a model's weights, ready for look-up by hash.

Imports numba.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .kernels.rows import add_rows, build_rows, find_entries
from .model import WeightTable

Entries: TypeAlias = NDArray[np.uint64]


class ModelRows:
    """The rows of a weight table in a hash table: a row is a test that has weights.

    table: the weights, sorted by test; padded: Yp, the length of a row of scores.
    """

    def __init__(self, table: WeightTable, padded: int) -> None:
        # Arrays of a loaded model are read-only, which would compile every kernel once more.
        self._bits, self._entries = build_rows(table.keys.copy(), table.indptr.copy())
        self._places = table.labels.astype(np.int32)
        if len(table.previous):
            self._places += table.previous.astype(np.int32) * padded
        self._values = table.values.astype(np.float64)

    @property
    def arrays(self) -> tuple[NDArray[np.uint8], Entries, NDArray[np.int32], NDArray[np.float64]]:
        """Bitmap, table, and places and values of weights, in the kernels' order."""
        return self._bits, self._entries, self._places, self._values

    def find(self, hashes: NDArray[np.uint64]) -> Entries:
        """Find the entries of tests: [N, P] uint64, 0 where the model has no weight.

        hashes: [N, P] uint64, 0 = no test.
        """
        found = np.empty(hashes.shape, dtype=np.uint64)
        find_entries(hashes, self._bits, self._entries, found)
        return found

    def score(self, found: Entries, width: int) -> NDArray[np.float64]:
        """Sum the weights of tests at their places: [N, width]. found: [N, P], of `find`."""
        scores = np.empty((len(found), width))
        add_rows(found, self._places, self._values, scores)
        return scores
