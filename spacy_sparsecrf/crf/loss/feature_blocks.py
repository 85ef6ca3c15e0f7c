"""Weights of the working set by feature: feature blocks, and those of sites."""

import numpy as np

from ..corpus.numbering import Ints, Longs, positions
from ..kernels.indexing import enter_rows
from ..kernels.layout import Csr
from ..parallel import Chunks, cut
from .workspace import Workspace

# Fewest chunks of sites that features are listed for: each searches all features, but sites that
# are written to at a time stay in the cache.
_LISTED = 4


class FeatureBlocks:
    """Unigram or bigram weights of the working set, by feature.

    features: [R] int32, features with weights; ptr: [R + 1] int64, weights of a block; places: [K]
    uint32 (numba tests the sign of signed indices), position of a weight in a row or matrix of
    scores: y, or y' * Yp + y for pairs.

    feature, position: [K] int64, of each weight, see `Coordinates.locate`; n_features: of the kind.
    """

    def __init__(
        self, feature: Longs, position: Longs, *, n_labels: int, padded: int, n_features: int
    ) -> None:
        begins = np.ones(len(feature), bool)
        begins[1:] = feature[1:] != feature[:-1]
        self.features = feature[begins].astype(np.int32)
        self.ptr = np.append(np.flatnonzero(begins), len(feature))
        self.places = position.astype(np.uint32)
        self.places += self.places // n_labels * np.uint32(padded - n_labels)
        self._n_features = n_features

    def __len__(self) -> int:
        return len(self.features)

    def number(self) -> Ints:
        """Return the number [O] of each feature's block, -1 for none."""
        return positions(self.features, self._n_features)

    def chunks(self, sizes: Longs, n_chunks: int) -> Chunks:
        """Cut the blocks by cost; sizes: [R], number of items summed per block."""
        return cut(sizes * np.diff(self.ptr), n_chunks)


def by_site(space: Workspace, features: Ints) -> Csr:
    """Return the positions among features [n], ascending, of the features of each site."""
    lattice, workers = space.lattice, space.workers
    n_sites = lattice.n_tokens + lattice.n_bundles
    chunks = cut(np.zeros(n_sites, np.int64), max(_LISTED, workers.n_threads))
    table, ptr = lattice.feature_sites, np.zeros(n_sites + 1, np.int64)
    workers.map(enter_rows, chunks, features, table, ptr=ptr[1:], entered=features[:0])
    np.cumsum(ptr, out=ptr)
    rows = np.empty(ptr[-1], np.int32)
    workers.map(enter_rows, chunks, features, table, ptr=ptr[:-1].copy(), entered=rows)
    return Csr(ptr, rows)
