"""Steps of decoding that a model's kind needs: scores of tokens and label pairs from its weights.

A chain has `TokenWeights` and `LabelPairs`. Maximum entropy models have no pairs, and may have
clusters of labels. MEMMs are converted to chains with the same distribution. Imports numba.
"""

import numpy as np
from numpy.typing import NDArray

from ..corpus.encoded import Observations
from ..corpus.numbering import Floats, Ints
from ..corpus.readings import Readings
from ..kernels.indexing import number_rows
from ..kernels.layout import Scored
from ..model.model import CRFModel, WeightTable
from .rows import ModelRows, ValueScores, WordScores, dense_rows
from .sources import ScoredTokens, Source
from .steps import Scores, TokenStep


def steps_of_model(model: CRFModel, padded: int) -> list[TokenStep]:
    """Return the steps of a model's kind. padded: Yp."""
    steps: list[TokenStep] = [TokenWeights(model.unigram, padded)]
    if model.kind != "maxent":
        steps.append(LabelPairs(model.bigram, len(model.labels), padded))
    if model.kind == "memm":
        steps.append(LocalNormalisation())
    # Without weights, clusters do not tell labels apart.
    if model.bounds and model.n_active:
        steps.append(JoinedClusters(np.array(model.bounds, dtype=np.int64)))
    return steps


class TokenWeights(TokenStep):
    """Scores of the labels of tokens, from a model's unigram weights. padded: Yp."""

    def __init__(self, unigram: WeightTable, padded: int) -> None:
        self._rows = ModelRows(unigram, padded)
        self._values = ValueScores(unigram, padded)
        self._padded = padded
        self._words: WordScores | None = None

    def score(self, scores: Scores) -> None:
        """Score the tokens."""
        source = scores.source
        if isinstance(source, ScoredTokens):
            scores.tokens = source.scores.copy()
            return
        if isinstance(source, Observations):
            entries = self._rows.find(source.unigram_hashes)
            scores.tokens = self._rows.score(entries, self._padded)
        else:
            scores.tokens = self.words(source).score(source)
        self._values.add(source, scores.tokens)

    def words(self, readings: Readings) -> WordScores:
        """Return the scorer for the templates of the readings."""
        words = self._words
        if words is None or words.templates is not readings.templates:
            words = self._words = WordScores(self._rows, readings.templates, self._padded)
        return words


class LabelPairs(TokenStep):
    """Scores of label pairs, from a model's bigram weights. padded: Yp."""

    def __init__(self, bigram: WeightTable, n_labels: int, padded: int) -> None:
        self._weights = bigram
        self._rows = ModelRows(bigram, padded)
        self._shape = n_labels + 1, padded
        # Features of all tokens, and their pair scores.
        self._shared: tuple[NDArray[np.uint64], Floats] | None = None

    def score(self, scores: Scores) -> None:
        """Score the label pairs."""
        pairs = self.shared(scores.source)
        scores.are_shared = pairs is not None
        if pairs is None:
            scores.context, pairs = self._by_context(scores.source.bigram_hashes)
        scores.pairs = pairs

    def shared(self, source: Source) -> Floats | None:
        """Return the scores [1, Y + 1, Yp] that all tokens share; None if their features differ."""
        features, has_start = None, True
        if isinstance(source, Readings):
            features, has_start = source.templates.constant_pairs, source.templates.start_label
        elif isinstance(source, ScoredTokens) and source.bigram_hashes.ndim == 1:
            features = source.bigram_hashes
        if features is None:
            return None
        shared = self._shared
        if shared is None or shared[0] is not features:
            n_rows, padded = self._shape
            _, weights = dense_rows(self._weights, features, padded, n_rows * padded)
            pairs = weights.sum(axis=0).reshape(1, n_rows, padded)
            if not has_start:
                pairs[:, -1] = 0.0
            shared = self._shared = features, pairs
        return shared[1]

    def _by_context(self, hashes: NDArray[np.uint64]) -> tuple[Ints, Floats]:
        """Number the contexts of tokens: [N] int32, and score their label pairs: [C, Y + 1, Yp]."""
        features = self._rows.find(hashes)
        n_tokens = len(features)
        contexts = np.empty_like(features)
        counts = np.zeros(n_tokens, dtype=np.int64)
        context_of = np.empty(n_tokens, dtype=np.int32)
        slots = np.full(1 << (2 * n_tokens).bit_length(), -1, dtype=np.int32)
        n_contexts = number_rows(
            slots=slots,
            rows=contexts,
            counts=counts,
            n_rows=0,
            queries=features,
            numbers=context_of,
        )
        n_rows, padded = self._shape
        pairs = self._rows.score(contexts[:n_contexts], n_rows * padded)
        return context_of, pairs.reshape(-1, n_rows, padded)


class LocalNormalisation(TokenStep):
    """Converts scores of an MEMM to those of a chain with the same distribution."""

    def score(self, scores: Scores) -> None:
        """Subtract from scores of tokens, and so of each step, the log of its normaliser."""
        from ..kernels.log_space import normalise_steps

        normalise_steps(
            Scored(
                n_labels=scores.pairs.shape[1] - 1,
                offsets=scores.source.offsets,
                scores=scores.tokens,
                context=scores.context,
                pairs=scores.pairs,
            )
        )


class JoinedClusters(TokenStep):
    """Joins p(cluster | x) and p(y | cluster, x). bounds: of clusters of labels, see `CRFModel`."""

    def __init__(self, bounds: NDArray[np.int64]) -> None:
        self._bounds = bounds

    def score(self, scores: Scores) -> None:
        """Convert scores of labels given clusters, and of clusters, to log p(y | x) + constant."""
        n_labels = self._bounds[-1]
        sizes = np.diff(self._bounds)
        of_labels = scores.tokens[:, :n_labels]
        of_clusters = scores.tokens[:, n_labels : n_labels + len(sizes)]
        log_z = np.logaddexp.reduceat(of_labels, self._bounds[:-1], axis=1)
        of_labels += np.repeat(of_clusters - log_z, sizes, axis=1)
