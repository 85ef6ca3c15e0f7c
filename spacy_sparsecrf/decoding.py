"""Decoding: the best labels of sequences, and marginal probabilities."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .corpus import Observations
from .model import CRFModel
from .readings import Readings, Templates

if TYPE_CHECKING:
    from .model_rows import Entries
    from .word_sums import WordSums

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

CHUNK = 2048  # tokens decoded at once: scores stay in a near cache, memory is bounded
PRUNE_FROM = 4  # tokens a context, on average, from which pruning pays


class Decoder:
    """Applies a model to observations; serial, so that it is safe in forked processes.

    It may be used by several threads at once. Results depend neither on batches nor on what was
    decoded before.
    """

    def __init__(self, model: CRFModel) -> None:
        # Imports numba.
        from .model_rows import ModelRows

        self._source = model.labels, model.unigram, model.bigram
        self._kind = model.kind
        self._bounds = np.array(model.bounds, dtype=np.int64)
        self.n_labels = len(model.labels)
        self.padded = -(-model.n_outcomes // 8) * 8
        self._unigram = ModelRows(model.unigram, self.padded)
        self._bigram = ModelRows(model.bigram, self.padded)
        self._words: WordSums | None = None
        self._constant: tuple[Templates, Floats, Floats] | None = None

    def is_of(self, model: CRFModel) -> bool:
        """Whether the model still has the weights and labels that the decoder was made from."""
        labels, unigram, bigram = self._source
        return labels is model.labels and unigram is model.unigram and bigram is model.bigram

    def viterbi(self, source: Observations | Readings) -> Ints:
        """Find the most probable labels of each sequence.

        source: of N tokens: readings are faster, as not every test of every token is hashed.
        RETURNS: [N] int32 label ids.
        """
        labels = np.empty(source.n_tokens, dtype=np.int32)
        if not len(labels):
            return labels
        if len(labels) <= CHUNK:
            self._decode(source, labels)
            return labels
        for first, last in _chunks(source.offsets):
            part = _sequences(source, first, last)
            self._decode(part, labels[source.offsets[first] : source.offsets[last]])
        return labels

    def marginals(self, source: Observations | Readings) -> Floats:
        """Compute p(y_t = y | x) of each token.

        source: of N tokens, as for `viterbi`. RETURNS: [N, Y] float64, rows sum to 1.
        """
        from .kernels.marginals import marginals

        padded = self._token_scores(source)
        context, pairs = self._pairs(source)
        self._normalise(source, padded, context, pairs)
        scores = np.ascontiguousarray(padded[:, : self.n_labels])
        pairs = np.ascontiguousarray(pairs[:, :, : self.n_labels])
        marginals(source.offsets, scores, context, pairs, np.empty_like(scores))
        return scores

    def _decode(self, source: Observations | Readings, labels: Ints) -> None:
        """Decode one chunk. labels: [N] int32, out."""
        from .kernels.viterbi import viterbi

        scores = self._token_scores(source)
        if self._kind == "maxent":
            # Tokens are independent.
            labels[:] = scores[:, : self.n_labels].argmax(axis=1)
            return
        if isinstance(source, Readings) and source.templates.constant_pairs:
            context = np.zeros(len(labels), dtype=np.int32)
            pairs, slack = self._constant_pairs(source)
        else:
            context, pairs = self._pairs(source)
            slack = self._finish(pairs, prune=len(pairs) * PRUNE_FROM <= len(labels))
        self._normalise(source, scores, context, pairs)
        viterbi(source.offsets, self.n_labels, scores, context, pairs, slack, labels)

    def _normalise(
        self, source: Observations | Readings, scores: Floats, context: Ints, pairs: Floats
    ) -> None:
        """Make the scores [N, Yp] of an MEMM those of a chain with the same distribution."""
        if self._kind == "memm":
            from .kernels.memm import normalise_steps

            normalise_steps(source.offsets, self.n_labels, scores, context, pairs)

    def _token_scores(self, source: Observations | Readings) -> Floats:
        """Scores of the labels of tokens: [N, Yp]."""
        scores = self._outcome_scores(source)
        if len(self._bounds):
            _join_clusters(scores, self._bounds)
        return scores

    def _outcome_scores(self, source: Observations | Readings) -> Floats:
        """Scores of the labels, and of clusters of labels, of tokens: [N, Yp]."""
        if isinstance(source, Observations):
            return self._unigram.score(self._unigram.find(source.unigram_hashes), self.padded)
        words = self._words
        if words is None or words.templates is not source.templates:
            from .word_sums import WordSums

            words = self._words = WordSums(self._unigram, source.templates, self.padded)
        return words.score(source)

    def _pairs(self, source: Observations | Readings) -> tuple[Ints, Floats]:
        """Number the contexts of tokens: [N] int32, and score their label pairs: [C, Y + 1, Yp]."""
        from .kernels.contexts import number_contexts

        tests = self._bigram.find(_bigram_hashes(source))
        context = np.empty(len(tests), dtype=np.int32)
        representatives = np.empty(len(tests), dtype=np.int64)
        slots = np.full(1 << (2 * len(tests)).bit_length(), -1, dtype=np.int32)
        n = number_contexts(tests, slots, context, representatives)
        return context, self._pair_scores(tests[representatives[:n]])

    def _pair_scores(self, tests: "Entries") -> Floats:
        """Scores of the label pairs of contexts: [C, Y + 1, Yp]. tests: [C, B], of `find`."""
        scores = self._bigram.score(tests, (self.n_labels + 1) * self.padded)
        return scores.reshape(-1, self.n_labels + 1, self.padded)

    def _constant_pairs(self, readings: Readings) -> tuple[Floats, Floats]:
        """Scores and slack of the one context of templates whose pairs read nothing."""
        templates = readings.templates
        constant = self._constant
        if constant is None or constant[0] is not templates:
            tests = self._bigram.find(readings.hash(templates.pairs)[:1])
            pairs = self._pair_scores(tests)
            if not templates.start_label:
                pairs[:, self.n_labels] = 0.0
            constant = self._constant = templates, pairs, self._finish(pairs, prune=True)
        return constant[1:]

    def _finish(self, pairs: Floats, prune: bool) -> Floats:
        """Make pair scores ready for Viterbi. RETURNS: slack, [C, Yp]."""
        from .kernels.viterbi import finish_pairs

        slack = np.empty((len(pairs), self.padded))
        finish_pairs(self.n_labels, prune, pairs, slack)
        return slack


def _join_clusters(scores: Floats, bounds: NDArray[np.int64]) -> None:
    """Make scores of labels given their clusters those of log p(y | x), up to a constant.

    scores: [N, Yp], in and out, labels and then clusters; bounds: see `CRFModel`.
    """
    n, sizes = bounds[-1], np.diff(bounds)
    log_z = np.logaddexp.reduceat(scores[:, :n], bounds[:-1], axis=1)
    scores[:, :n] += np.repeat(scores[:, n : n + len(sizes)] - log_z, sizes, axis=1)


def _bigram_hashes(source: Observations | Readings) -> NDArray[np.uint64]:
    """Tests conjoined with label pairs: [N, B], as `Observations.bigram_hashes`."""
    if isinstance(source, Observations):
        return source.bigram_hashes
    hashes = source.hash(source.templates.pairs)
    if not source.templates.start_label:
        hashes[source.offsets[:-1]] = 0
    return hashes


def _chunks(offsets: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Cut [S + 1] offsets into runs of sequences, first:last, of at most CHUNK tokens or of one."""
    first, n_sequences = 0, len(offsets) - 1
    while first < n_sequences:
        fitting = int(np.searchsorted(offsets, offsets[first] + CHUNK, side="right")) - 1
        last = max(first + 1, fitting)
        yield first, last
        first = last


def _sequences(source: Observations | Readings, first: int, last: int) -> Observations | Readings:
    """Those of the sequences first:last."""
    if isinstance(source, Readings):
        return source.sequences(first, last)
    begin, end = source.offsets[first], source.offsets[last]
    offsets = source.offsets[first : last + 1] - begin
    return replace(source, hashes=source.hashes[begin:end], offsets=offsets)
