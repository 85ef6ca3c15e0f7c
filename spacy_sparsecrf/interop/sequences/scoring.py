"""Prediction by the kernels, from the numbers of attributes. Imports numba."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from ...crf.corpus.numbering import Array, Hashes, Longs, Singles
from ...crf.decoding.decoder import Decoder
from ...crf.decoding.once import Once
from ...crf.decoding.once_decoder import OnceDecoder
from ...crf.decoding.posterior import Posterior
from ...crf.decoding.sources import ScoredTokens
from ...crf.kernels.layout import Csr
from ...crf.kernels.numba_support import Bound
from ...crf.kernels.values import score_numbered
from ...crf.model.model import CRFModel
from .item_encoding import ALWAYS, bigrams_of, rows_of
from .items import Numbered

_score = Bound(score_numbered)
_NO_VALUES = np.empty(0, np.int64), np.empty(0, np.float32)
_PAIRS = np.array([ALWAYS], np.uint64)


class CompiledRoad:
    """Predicts by kernels; see `PlainRoad`."""

    def __init__(self, model: CRFModel, n_attributes: int, once: Once | None = None) -> None:
        decoder = Decoder(model)
        self._decoder = decoder if once is None else OnceDecoder(decoder, once)
        table, keys = model.unigram, np.arange(n_attributes + 2, dtype=np.uint64) + ALWAYS
        ends = table.indptr[table.keys.searchsorted(keys)]
        self._blocks = Csr(ends, table.labels.astype(np.int32))
        self._weights = table.values.astype(np.float64)
        self._padded = -(-model.n_outcomes // 8) * 8
        self._chosen = bigrams_of(model, n_attributes)
        self._has_pairs = bool(self._chosen.any())

    def chain(self, read: Numbered) -> Posterior:
        """Return the distribution of the label sequences of one sequence."""
        return self._decoder.posterior(self._score(read))

    def labels(self, read: Numbered) -> Iterator[list[int]]:
        """Yield the most probable labels of each sequence."""
        return _cut(read, self._decoder.viterbi(self._score(read)))

    def marginals(self, read: Numbered) -> Iterator[list[list[float]]]:
        """Yield p(y_t = y | x) of each sequence: [T, Y]."""
        return _cut(read, self._decoder.marginals(self._score(read)))

    def _score(self, read: Numbered) -> ScoredTokens:
        """Score the tokens of sequences."""
        numbers = np.fromiter(read.numbers, np.int64, len(read.numbers))
        sizes = np.fromiter(read.sizes, np.int64, len(read.sizes))
        places, values = _NO_VALUES
        if read.values:
            places = np.array([*read.values])
            values = np.array([*read.values.values()], np.float32)
        scores = np.empty((len(sizes), self._padded))
        _score(sizes, numbers, places, values, self._blocks, self._weights, scores)
        pairs = self._pairs(sizes, numbers, places, values) if self._has_pairs else _PAIRS
        return ScoredTokens(np.array(read.ends), scores, pairs)

    def _pairs(self, sizes: Longs, numbers: Longs, places: Longs, values: Singles) -> Hashes:
        """Return the features of tokens that are conjoined with pairs of labels."""
        is_bigram = self._chosen[np.maximum(numbers, 0)]
        is_bigram[places[values != 1.0]] = False
        tokens = np.repeat(np.arange(len(sizes)), sizes)
        rows = rows_of(tokens[is_bigram], numbers[is_bigram], len(sizes))
        return np.concatenate((np.full((len(sizes), 1), ALWAYS, np.uint64), rows), axis=1)


def _cut(read: Numbered, of_tokens: Array) -> Iterator[list[Any]]:
    """Yield the values of the tokens of each sequence."""
    rows = of_tokens.tolist()
    return (rows[a:b] for a, b in pairwise(read.ends))
