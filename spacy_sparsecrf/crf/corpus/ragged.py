"""Ragged arrays: rows of different lengths one after the other, and the pointers to them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels.layout import Csr
from .numbering import Longs


def pointers(lengths: ArrayLike) -> Longs:
    """Return where rows of lengths [R] begin, and the end of the last one: [R + 1]."""
    return np.append(0, np.cumsum(lengths, dtype=np.int64))


def row_numbers(ptr: Longs) -> Longs:
    """Return the row of each element; ptr: [R + 1], of the rows."""
    return np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))


def by_key(keys: NDArray[np.integer], n_keys: int) -> Csr:
    """List the positions of each key 0, ..., n_keys - 1 among keys [n], ascending."""
    order = np.argsort(keys, kind="stable")
    indptr = np.searchsorted(keys[order], np.arange(n_keys + 1)).astype(np.int64)
    return Csr(indptr, order.astype(np.int32))
