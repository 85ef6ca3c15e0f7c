"""Sources that are decoded: observations, readings, or tokens whose labels have scores already."""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..corpus.encoded import Observations
from ..corpus.numbering import Floats
from ..corpus.readings import Readings


class ScoredTokens(NamedTuple):
    """Sequences with the scores of their tokens' labels, without those of label pairs.

    offsets: [S + 1] int64; scores: [N, Yp] float64; bigram_hashes: [N, B] uint64, features
    conjoined with the label pair, as in `Observations`; [B] if they are the same at all tokens.
    """

    offsets: NDArray[np.int64]
    scores: Floats
    bigram_hashes: NDArray[np.uint64]

    @property
    def n_tokens(self) -> int:
        """Number of tokens N."""
        return len(self.scores)

    def sequences(self, first: int, last: int) -> "ScoredTokens":
        """Return sequences first:last."""
        begin, end = self.offsets[[first, last]]
        hashes = self.bigram_hashes
        if hashes.ndim > 1:
            hashes = hashes[begin:end]
        return ScoredTokens(self.offsets[first : last + 1] - begin, self.scores[begin:end], hashes)


Source: TypeAlias = Observations | Readings | ScoredTokens
