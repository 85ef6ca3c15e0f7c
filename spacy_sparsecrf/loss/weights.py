"""Weights of the working set by feature: feature blocks, frequent features."""

import numpy as np

from ..kernels.indexing import enter_rows
from ..kernels.layout import Csr
from ..parallel import Chunks, cut
from .lattice import Floats, Ints, Longs
from .workspace import Workspace

# Cost of a single weight, and of a feature block, in elements of a vector.
_WEIGHT_COST = 8
_ROW_COST = 16
# Fewest chunks of tokens that features are listed for: each searches all features, but tokens that
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

    def chunks(self, sizes: Longs, n_chunks: int, first: int = 0) -> Chunks:
        """Cut the blocks from `first` on by cost; sizes: [R], number of items summed per block."""
        return cut((sizes * np.diff(self.ptr))[first:], n_chunks, first)


def by_token(space: Workspace, features: Ints, number: int = 0) -> Csr:
    """Return the numbers of the features of each token; features: [n]; number: of the first."""
    n_tokens, tokens, workers = space.lattice.n_tokens, space.lattice.feature_tokens, space.workers
    chunks = cut(np.zeros(n_tokens, np.int64), max(_LISTED, workers.n_threads))
    ptr, args = np.zeros(n_tokens + 1, np.int64), (features, number, tokens)
    workers.map(enter_rows, chunks, *args, ptr[1:], features[:0])
    np.cumsum(ptr, out=ptr)
    found = np.empty(ptr[-1], np.int32)
    workers.map(enter_rows, chunks, *args, ptr[:-1].copy(), found)
    return Csr(ptr, found)


class FrequentFeatures:
    """Frequent features: the first blocks, stored as dense vectors over labels, mostly zeros.

    Features are numbered by descending frequency: a few features have most of the occurrences.

    space: for its lattice and dtype; rows: unigram feature blocks; n_tokens: [R], tokens of each
    block.
    table: [H, Yp], in the precision of the workspace; tokens: frequent features
    of each token; n_rows: H; n_weights: number of their weights, which come first.
    """

    def __init__(self, space: Workspace, rows: FeatureBlocks, n_tokens: Longs) -> None:
        gains = n_tokens * (_WEIGHT_COST * np.diff(rows.ptr) + _ROW_COST - space.padded)
        most = space.limits.table_bytes // (8 * space.padded)
        saved = np.concatenate(([0], np.cumsum(gains[:most])))
        self.n_rows = n_frequent = int(np.argmax(saved))
        self.n_weights = int(rows.ptr[n_frequent])
        self.tokens = by_token(space, rows.features[:n_frequent])
        self.table = np.zeros((n_frequent, space.padded), space.dtype)
        row = np.repeat(np.arange(n_frequent), np.diff(rows.ptr[: n_frequent + 1]))
        self._places: Longs = row * space.padded + rows.places[: self.n_weights]

    def fill(self, theta: Floats) -> None:
        """Write the weights, the first of theta [K], into the table."""
        self.table.reshape(-1)[self._places] = theta[: self.n_weights]

    def gradient(self, sums: Floats) -> Floats:
        """Return the gradient [n_weights] from sums of residuals, [H, Yp]."""
        gradient: Floats = sums.reshape(-1)[self._places]
        return gradient


class OriginFeatures(FrequentFeatures):
    """Frequent features with the origin of the weights; solvers do not change them.

    space, rows: see `FrequentFeatures`; origin: [K] float64, of the unigram weights.
    """

    def __init__(self, space: Workspace, rows: FeatureBlocks, origin: Floats) -> None:
        super().__init__(space, rows, np.zeros(len(rows), np.int64))
        row = np.repeat(np.arange(len(rows)), np.diff(rows.ptr))
        kept, own = np.unique(row[origin != 0.0], return_inverse=True)
        self.tokens = by_token(space, rows.features[kept])
        self.table = np.zeros((len(kept), space.padded), space.dtype)
        self.table[own, rows.places[origin != 0.0]] = origin[origin != 0.0]
