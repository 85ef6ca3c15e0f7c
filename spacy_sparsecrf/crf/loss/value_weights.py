"""Real-valued features: their weights in the working set, and their screening.

Real values x, a dense matrix, add sum_v x_t[v] W[v, y] to the score of a label, and the gradient of
W[v, y] is the sum over tokens of x_t[v] (p(y_t = y) - [gold]). A real-valued feature is numbered as
a unigram feature without tokens.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..corpus.coordinates import Coordinates
from ..corpus.numbering import Floats, Longs, concatenated_ranges
from ..kernels.layout import Values
from ..kernels.values import value_counts, value_curvatures, value_scores, value_sums
from ..parallel import Chunks, cut
from .feature_blocks import FeatureBlocks
from .lattice import Shard
from .workspace import Workspace


class ValueWeights:
    """Weights of real-valued features in the working set.

    space: for its lattice and residuals; rows: unigram feature blocks, including real values.
    columns: [R] int64, values with weights; blocks: [R] int64, their feature blocks; table: [R, Yp]
    float64, for all labels.
    """

    def __init__(self, space: Workspace, rows: FeatureBlocks) -> None:
        self._space = space
        features = space.lattice.value_features
        numbers = rows.number()[features]
        self.columns: Longs = np.flatnonzero(numbers >= 0)
        self.blocks: Longs = numbers[self.columns].astype(np.int64)
        lengths = np.diff(rows.ptr)[self.blocks]
        self._weights = concatenated_ranges(rows.ptr[:-1][self.blocks], lengths)
        row = np.repeat(np.arange(len(self.blocks)), lengths)
        self._places: Longs = row * space.padded + rows.places[self._weights]
        self.table = np.zeros((len(self.blocks), space.padded))

    @property
    def features(self) -> Values:
        """The values of all tokens as arguments of kernels."""
        lattice = self._space.lattice
        return Values(lattice.values, lattice.value_rows, self.columns)

    def fill(self, theta: Floats) -> None:
        """Write the weights of real-valued features in theta [K] into the table."""
        self.table.reshape(-1)[self._places] = theta[self._weights]

    def score(self, shard: Shard, chunks: Chunks, scores: NDArray[np.floating]) -> None:
        """Write the scores of the tokens of chunks of sequences of a shard: [tokens, Yp], out."""
        lattice = self._space.lattice
        features = Values(lattice.values, lattice.value_rows[shard.begin :], self.columns)
        tokens = list(map(tuple, shard.offsets[np.array(chunks).reshape(-1, 2)].tolist()))
        self._space.workers.map(
            value_scores, tokens, features=features, table=self.table, add=False, scores=scores
        )

    def gradient(self, gradient: Floats) -> None:
        """Write the gradient of these weights into the gradient [K], from the residuals."""
        space = self._space
        sums = _sum_over_tokens(space, self.columns, value_sums, residual=space.residual)
        gradient[self._weights] = sums.reshape(-1)[self._places]

    def count(self, counts: Floats) -> None:
        """Write the observed counts of these weights into the counts [K]."""
        lattice, sums = self._space.lattice, np.zeros(self.table.shape)
        value_counts(self.features, lattice.labels, lattice.token_weight, sums)
        counts[self._weights] = sums.reshape(-1)[self._places]

    def curvature(self, curvature: Floats) -> None:
        """Write the curvature of these weights into [K] curvatures; see `WorkingLoss.curvature`."""
        space = self._space
        total = _sum_over_tokens(
            space,
            self.columns,
            value_curvatures,
            token_weight=space.lattice.token_weight,
            residual=space.residual,
        )
        curvature[self._weights] = total.reshape(-1)[self._places]


def _sum_over_tokens(
    space: Workspace, columns: Longs, kernel: Callable[..., None], **of_tokens: Any
) -> Floats:
    """Return the sums [R, Yp] of a kernel over all tokens, by chunks; columns: [R]."""
    limits, shape = space.limits, (len(columns), space.padded)
    features = Values(space.lattice.values, space.lattice.value_rows, columns)

    def add(first: int, last: int) -> Floats:
        sums = np.zeros(shape)
        kernel(first, last, features=features, **of_tokens, sums=sums)
        return sums

    size = max(1, len(columns) * space.padded)
    n_chunks = min(limits.n_chunks, max(1, limits.sums_bytes // (8 * size)))
    chunks = cut(np.ones(space.lattice.n_tokens, np.int64), n_chunks)
    return sum(space.workers.map(add, chunks), np.zeros(shape))


def screen_values(space: Workspace, coding: Coordinates, threshold: float) -> tuple[Longs, Floats]:
    """Find the weights of real-valued features whose gradient exceeds a threshold in magnitude.

    RETURNS: coordinates [n] int64, and gradients [n] float64.
    """
    features, n_labels = space.lattice.value_features, space.n_labels
    columns = np.arange(len(features))
    sums = _sum_over_tokens(space, columns, value_sums, residual=space.residual)[:, :n_labels]
    coordinates = coding.at(features[:, None], np.arange(n_labels))
    beyond = np.abs(sums) > threshold
    return coordinates[beyond], sums[beyond]
