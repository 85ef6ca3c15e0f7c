"""Weights of the working set by feature: feature blocks, frequent features, real-valued features.

Real values x, a dense matrix, add sum_v x_t[v] W[v, y] to the score of a label, and the gradient of
W[v, y] is the sum over tokens of x_t[v] (p(y_t = y) - [gold]). A real-valued feature is numbered as
a unigram feature without tokens.
"""

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..corpus.csr import concatenated_ranges
from ..corpus.numbering import positions
from ..kernels.layout import Values
from ..kernels.values import value_counts, value_curvatures, value_scores, value_sums
from ..parallel import Chunks, cut
from .lattice import Floats, Ints, Longs
from .workspace import Workspace

# Cost of a single weight, and of a feature block, in elements of a vector.
_WEIGHT_COST = 8
_ROW_COST = 16


class FeatureBlocks:
    """Unigram or bigram weights of the working set, by feature.

    features: [R] int32, features with weights; ptr: [R + 1] int64, weights of a block; places: [K]
    uint32 (numba tests the sign of signed indices), position of a weight in a row or matrix of
    scores: y, or y' * Yp + y for pairs.
    """

    def __init__(
        self, coordinates: Longs, n_labels: int, n_previous: int, padded: int, n_features: int
    ) -> None:
        pair, label = np.divmod(coordinates, n_labels)
        feature, previous = np.divmod(pair, n_previous)
        self.features, first = np.unique(feature.astype(np.int32), return_index=True)
        self.ptr = np.append(first, len(coordinates)).astype(np.int64)
        self.places = (previous * padded + label).astype(np.uint32)
        self.number = positions(self.features, n_features)

    def __len__(self) -> int:
        return len(self.features)

    def between(self, first: int, last: int) -> Ints:
        """Return the number [O] of each feature's block if first <= number < last, otherwise -1."""
        number = np.where((self.number >= first) & (self.number < last), self.number, -1)
        return number.astype(np.int32)

    def chunks(self, sizes: Longs, n_chunks: int, first: int = 0) -> Chunks:
        """Cut the blocks from `first` on by cost; sizes: [R], number of items summed per block."""
        cost = (sizes * np.diff(self.ptr))[first:]
        return [(begin + first, end + first) for begin, end in cut(cost, n_chunks)]


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
        self.tokens = space.lattice.token_features(rows.between(0, n_frequent))
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
        lattice = space.lattice
        super().__init__(space, rows, np.zeros(len(rows), np.int64))
        row = np.repeat(np.arange(len(rows)), np.diff(rows.ptr))
        kept, own = np.unique(row[origin != 0.0], return_inverse=True)
        number = positions(rows.features[kept], lattice.n_features)
        self.tokens = lattice.token_features(number)
        self.table = np.zeros((len(kept), space.padded), space.dtype)
        self.table[own, rows.places[origin != 0.0]] = origin[origin != 0.0]


class ValueWeights:
    """Weights of real-valued features in the working set.

    space: for its lattice and residuals; rows: unigram feature blocks, including real values.
    columns: [R] int64, values with weights; blocks: [R] int64, their feature blocks; table: [R, Yp]
    float64, for all labels.
    """

    def __init__(self, space: Workspace, rows: FeatureBlocks) -> None:
        self._space = space
        features = space.lattice.value_features
        numbers = rows.number[features]
        self.columns: Longs = np.flatnonzero(numbers >= 0)
        self.blocks: Longs = numbers[self.columns].astype(np.int64)
        own = self.blocks
        lengths = np.diff(rows.ptr)[own]
        self._weights = concatenated_ranges(rows.ptr[:-1][own], lengths)
        row = np.repeat(np.arange(len(own)), lengths)
        self._places: Longs = row * space.padded + rows.places[self._weights]
        self.table = np.zeros((len(own), space.padded))

    def __len__(self) -> int:
        return len(self.table)

    @property
    def features(self) -> Values:
        """The values of all tokens as arguments of kernels."""
        lattice = self._space.lattice
        return Values(lattice.values, lattice.value_rows, self.columns)

    def with_new_table(self) -> "ValueWeights":
        """Return the same weights with a new table."""
        other = copy(self)
        other.table = np.zeros_like(self.table)
        return other

    def fill(self, theta: Floats) -> None:
        """Write the weights of real-valued features in theta [K] into the table."""
        self.table.reshape(-1)[self._places] = theta[self._weights]

    def score(self, begin: int, first: int, last: int, scores: NDArray[np.floating]) -> bool:
        """Write the scores of tokens first:last of the shard that begins at token `begin`.

        scores: [tokens of the shard, Yp], out. RETURNS: whether scores were written.
        """
        lattice = self._space.lattice
        if not len(self):
            return False
        rows = lattice.value_rows[begin:]
        features = Values(lattice.values, rows, self.columns)
        value_scores(first, last, features, self.table, False, scores)
        return True

    def gradient(self, gradient: Floats) -> None:
        """Write the gradient of these weights into the gradient [K], from the residuals."""
        if len(self):
            sums = sum_residuals(self._space, self.columns)
            gradient[self._weights] = sums.reshape(-1)[self._places]

    def count(self, counts: Floats) -> None:
        """Write the observed counts of these weights into the counts [K]."""
        if len(self):
            lattice, sums = self._space.lattice, np.zeros(self.table.shape)
            value_counts(self.features, lattice.labels, lattice.token_weight, sums)
            counts[self._weights] = sums.reshape(-1)[self._places]

    def curvature(self, curvature: Floats) -> None:
        """Write the curvature of these weights into [K] curvatures; see `WorkingLoss.curvature`."""
        if len(self):
            args = self._space.lattice.token_weight, self._space.residual
            total = _sum_over_tokens(self._space, self.columns, value_curvatures, *args)
            curvature[self._weights] = total.reshape(-1)[self._places]


def sum_residuals(space: Workspace, columns: Longs) -> Floats:
    """Return the gradient of real values for all labels, [R, Yp], from the workspace's residuals.

    columns: [R] int64, of the values.
    """
    return _sum_over_tokens(space, columns, value_sums, space.residual)


def _sum_over_tokens(
    space: Workspace, columns: Longs, kernel: Callable[..., None], *args: Any
) -> Floats:
    """Return the sums [R, Yp] of a kernel over all tokens, by chunks; columns: [R]."""
    limits, shape = space.limits, (len(columns), space.padded)
    features = Values(space.lattice.values, space.lattice.value_rows, columns)

    def add(first: int, last: int) -> Floats:
        sums = np.zeros(shape)
        kernel(first, last, features, *args, sums)
        return sums

    size = max(1, len(columns) * space.padded)
    n_chunks = min(limits.n_chunks, max(1, limits.sums_bytes // (8 * size)))
    chunks = cut(np.ones(space.lattice.n_tokens, np.int64), n_chunks)
    return sum(space.workers.map(add, chunks), np.zeros(shape))


def screen_values(space: Workspace, threshold: float) -> tuple[Longs, Floats]:
    """Find the weights of real-valued features whose gradient exceeds a threshold in magnitude.

    RETURNS: coordinates [n] int64, and gradients [n] float64.
    """
    features, n_labels = space.lattice.value_features, space.n_labels
    if not len(features):
        return np.empty(0, np.int64), np.empty(0)
    sums = sum_residuals(space, np.arange(len(features)))[:, :n_labels]
    coordinates = features[:, None] * n_labels + np.arange(n_labels)
    found = np.abs(sums) > threshold
    return coordinates[found], sums[found]
