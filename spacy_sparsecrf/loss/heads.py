"""Unigram weights of frequent tests, laid out so that they add as vectors."""

import numpy as np
from numpy.typing import NDArray

from .rows import Rows
from .workspace import Workspace

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

# What a weight of its own, and a row of them, cost in elements of a vector.
_WEIGHT_COST = 8
_ROW_COST = 16


class Heads:
    """The *heads*: the first rows, whose weights a table holds for all labels, mostly zeros.

    Most of a token's weights are of few tests, as tests are numbered by descending frequency.

    space: for its lattice and type; rows: the unigram weights; n_tokens: [R], tokens of each
    row; most: the largest number of heads.
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
