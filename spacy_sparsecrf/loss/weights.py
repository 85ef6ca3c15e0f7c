"""Weights of the working set by feature: feature blocks, and those of sites."""

import numpy as np
from numpy.typing import NDArray

from ..kernels.indexing import enter_rows
from ..kernels.layout import Csr
from ..parallel import Chunks, cut
from .lattice import Floats, Ints, Longs
from .workspace import Workspace

# Fewest chunks of sites that features are listed for: each searches all features, but sites that
# are written to at a time stay in the cache.
_LISTED = 4


class FeatureBlocks:
    """Unigram or bigram weights of the working set, by feature.

    features: [R] int32, features with weights; ptr: [R + 1] int64, weights of a block; places: [K]
    uint32 (numba tests the sign of signed indices), position of a weight in a row or matrix of
    scores: y, or y' * Yp + y for pairs.
    """

    def __init__(
        self, coordinates: Longs, n_labels: int, n_previous: int, padded: int, n_features: int
    ) -> None:
        width = n_previous * n_labels
        feature, first = (coordinates // width).astype(np.int32), np.ones(len(coordinates), bool)
        first[1:] = feature[1:] != feature[:-1]
        self.features = feature[first]
        self.ptr = np.append(np.flatnonzero(first), len(coordinates))
        self.places = (coordinates % width).astype(np.uint32)
        self.places += self.places // n_labels * np.uint32(padded - n_labels)
        self._n_features = n_features

    def __len__(self) -> int:
        return len(self.features)

    def number(self) -> Ints:
        """Return the number [O] of each feature's block, -1 for none."""
        found = np.full(self._n_features, -1, np.int32)
        found[self.features] = np.arange(len(self), dtype=np.int32)
        return found

    def chunks(self, sizes: Longs, n_chunks: int) -> Chunks:
        """Cut the blocks by cost; sizes: [R], number of items summed per block."""
        return cut(sizes * np.diff(self.ptr), n_chunks)


def by_site(space: Workspace, features: Ints) -> Csr:
    """Return the positions among features [n], ascending, of the features of each site."""
    lattice, workers = space.lattice, space.workers
    n_sites = lattice.n_tokens + lattice.n_bundles
    chunks = cut(np.zeros(n_sites, np.int64), max(_LISTED, workers.n_threads))
    ptr, args = np.zeros(n_sites + 1, np.int64), (features, lattice.feature_sites)
    workers.map(enter_rows, chunks, *args, ptr[1:], features[:0])
    np.cumsum(ptr, out=ptr)
    found = np.empty(ptr[-1], np.int32)
    workers.map(enter_rows, chunks, *args, ptr[:-1].copy(), found)
    return Csr(ptr, found)


def origin_of_tokens(
    space: Workspace, rows: FeatureBlocks, origin: Floats
) -> tuple[Csr, NDArray[np.floating]]:
    """Return the features of tokens where the origin of the weights is not zero, and the origin.

    Stochastic solvers do not change it. rows: unigram feature blocks; origin: [split] float64.
    RETURNS: such features of each token; their weights, [features, Yp], in the precision of the
        workspace.
    """
    row, is_known = np.repeat(np.arange(len(rows)), np.diff(rows.ptr)), origin != 0.0
    kept, own = np.unique(row[is_known], return_inverse=True)
    table = np.zeros((len(kept), space.padded), space.dtype)
    table[own, rows.places[is_known]] = origin[is_known]
    return space.lattice.by_token(by_site(space, rows.features[kept])), table
