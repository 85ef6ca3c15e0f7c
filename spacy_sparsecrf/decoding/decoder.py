"""Decoding: the best labels of sequences, and probabilities of labels, paths and spans."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..corpus.encoded import Observations
from ..corpus.numbering import Floats, Ints, Mask, runs_of_tokens
from ..corpus.readings import Readings
from ..errors import Errors, SparseCRFError
from ..kernels.layout import Scored, SharedPairs
from ..model.model import CRFModel
from .chains import Chains, PairScores, SpanEvents, checked_permitted, constrain
from .transitions import Transitions

if TYPE_CHECKING:
    from .probabilities import Posterior
    from .rows import WordScores


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
        (begin, end), hashes = self.offsets[[first, last]], self.bigram_hashes
        hashes = hashes if hashes.ndim == 1 else hashes[begin:end]
        return ScoredTokens(self.offsets[first : last + 1] - begin, self.scores[begin:end], hashes)


Source: TypeAlias = Observations | Readings | ScoredTokens
SourceT = TypeVar("SourceT", Observations, Readings, Source)

CHUNK = 2048  # tokens decoded at once: scores stay in a near cache, memory is bounded
PRUNE_FROM = 4  # average number of tokens per context from which pruning pays off


class Decoder:
    """Applies a model to observations; serial, so that it is safe in forked processes.

    All results use one distribution: p(y | x) of the model, restricted to valid and permitted
    label sequences and renormalised over whole sequences, for every type of model. If no permitted
    sequence is valid, labels have as few invalid transitions as possible, and a warning is raised.
    A Decoder is thread-safe. Results depend neither on batches nor on earlier calls.

    model: its labels and weights must not change.
    valid: [Y + 1, Y + 1] bool, whether label b may follow label a; row Y: whether b may begin a
        sequence; column Y: whether a may end one; None: all transitions are valid.
    temperature: > 0, all weights are divided by it.
    preference: a label that wins ties, and that gets all tokens if the model has no weights; and a
        number that `viterbi` and `decode` with "viterbi" add to its scores to choose labels;
        probabilities do not use it; None for no preference: the first label wins ties.
    RAISES: SparseCRFError for a mask of the wrong shape, or without a valid sequence.

    In all methods, `source` is the observations or readings of N tokens (readings are faster,
    because not every feature of every token is hashed), and `permitted` is a mask of the labels
    that tokens may get: [N, Y] bool, or None: all. A mask of the wrong shape raises SparseCRFError.
    """

    def __init__(
        self,
        model: CRFModel,
        valid: Mask | None = None,
        temperature: float = 1.0,
        preference: tuple[int, float] | None = None,
    ) -> None:
        # Imports numba.
        from .rows import ModelRows, ValueScores

        # The texts of the values that `completed` may add, by string id.
        self.texts: Mapping[int, str] = {}
        self._kind = model.kind
        # Without weights, neither clusters, marginals nor a preference tell labels apart.
        self._is_empty = not model.n_active
        self._bounds = np.array(() if self._is_empty else model.bounds, dtype=np.int64)
        self.n_labels = len(model.labels)
        self.padded = -(-model.n_outcomes // 8) * 8
        label, weight = preference or (0, 0.0)
        self.transitions = Transitions.make(valid, self.n_labels, self.padded, label)
        tables = [model.unigram, model.bigram]
        if temperature != 1.0:
            tables = [replace(table, values=table.values / temperature) for table in tables]
        unigram, bigram = tables
        self._unigram = ModelRows(unigram, self.padded)
        self._bigram, self._pair_weights = ModelRows(bigram, self.padded), bigram
        self._values = ValueScores(unigram, self.padded)
        self._words: tuple[WordScores, SharedPairs | None] | None = None
        self._constant: tuple[NDArray[np.uint64] | None, PairScores] | None = None
        self._bias: Floats | None = None
        if weight and not self._is_empty:
            self._bias = np.zeros(self.padded)
            self._bias[label] = weight / temperature

    def completed(self, parts: Sequence[SourceT]) -> Sequence[SourceT]:
        """Add the values that come from this decoder, here none, to the readings of Docs."""
        return parts

    def viterbi(self, source: Source, permitted: Mask | None = None) -> Ints:
        """Find the most probable labels of each sequence. RETURNS: [N] int32 label ids."""
        if permitted is None and isinstance(source, Readings):
            words, shared = self._word_scores(source)
            if shared is not None:
                return words.label(source, shared)
        labels = np.empty(source.n_tokens, dtype=np.int32)
        for tokens, run, mask in self._runs(source, permitted):
            of = self.transitions
            is_free = mask is None and not (of.masked or of.search.favourite)
            if self._kind == "maxent" and is_free:
                # Tokens are independent, and the first label wins ties.
                scores = self._token_scores(run)
                if self._bias is not None:
                    scores += self._bias
                labels[tokens] = scores[:, : self.n_labels].argmax(axis=1)
            else:
                self._choose(self.chains(run, mask), labels[tokens])
        return labels

    def _choose(self, chains: Chains, labels: Ints) -> None:
        """Find the labels [N] with the best scores, which are overwritten, given the preference."""
        from .probabilities import best_labels

        if self._bias is not None:
            np.add(chains.scores, self._bias, out=chains.scores)
        best_labels(chains, chains.scores, labels)

    def marginals(self, source: Source, permitted: Mask | None = None) -> Floats:
        """Compute p(y_t = y | x) of each token. RETURNS: [N, Y] float64, rows sum to 1."""
        found = np.empty((source.n_tokens, self.n_labels))
        for tokens, run, mask in self._runs(source, permitted):
            found[tokens] = _posterior()(self.chains(run, mask)).marginals()
        return found

    def decode(
        self, source: Source, method: str, permitted: Mask | None = None
    ) -> tuple[Ints, Floats]:
        """Find labels and their marginal probabilities.

        method: "viterbi", or "posterior" for the valid labels with the largest sum of marginals,
            argmax_y sum_t p(y_t | x), which maximises the expected number of correct tokens.
        RETURNS: [N] int32 label ids, and [N] float64 probabilities.
        """
        from .probabilities import posterior_labels

        labels = np.empty(source.n_tokens, dtype=np.int32)
        probabilities = np.empty(source.n_tokens)
        for tokens, run, mask in self._runs(source, permitted):
            chains, chosen = self.chains(run, mask), labels[tokens]
            found = _posterior()(chains).marginals()
            if method == "posterior" and not self._is_empty:
                posterior_labels(chains, found, chosen)
            else:
                self._choose(chains, chosen)
            probabilities[tokens] = found[np.arange(len(chosen)), chosen]
        return labels, probabilities

    def nbest(
        self, source: Source, n: int, permitted: Mask | None = None
    ) -> list[tuple[NDArray[np.int32], Floats]]:
        """Find the n most probable paths of each sequence. The preference is not used.

        n: at least 1. RETURNS: for each sequence, K <= n paths, [K, tokens] int32 label ids, and
        their log p(y | x), [K] float64, descending. RAISES: SparseCRFError for an invalid n.
        """
        from .probabilities import nbest

        check_n(n)
        found = []
        for _, run, mask in self._runs(source, permitted):
            found += nbest(self.chains(run, mask), n)
        return found

    def posterior(self, source: Source) -> "Posterior":
        """Return the distribution of the label sequences, for several questions about it."""
        return _posterior()(self.chains(source))

    def log_probability(
        self, source: Source, labels: NDArray[np.int32], permitted: Mask | None = None
    ) -> Floats:
        """Compute log p(y | x) of given labels, -inf if they are not valid or not permitted.

        labels: [N] int32 label ids. RETURNS: [S] float64, one for each sequence.
        RAISES: SparseCRFError for a wrong number of labels.
        """
        if len(labels) != source.n_tokens:
            message = Errors.SC406.format(n_labels=len(labels), n_tokens=source.n_tokens)
            raise SparseCRFError(message)
        found = [np.empty(0)]
        for tokens, run, mask in self._runs(source, permitted):
            of_run = _posterior()(self.chains(run, mask))
            found.append(of_run.log_probabilities(labels[tokens]))
        return np.concatenate(found)

    def span_probability(
        self, source: Source, spans: SpanEvents, permitted: Mask | None = None
    ) -> Floats:
        """Compute the probabilities that runs of tokens have given labels, see `SpanEvents`.

        RETURNS: [M] float64. RAISES: SparseCRFError for a span that is not within the tokens.
        """
        from .probabilities import span_probabilities

        spans.check(source.n_tokens)
        return span_probabilities(self.chains(source, permitted), spans)

    def _runs(
        self, source: Source, permitted: Mask | None
    ) -> Iterator[tuple[slice, Source, Mask | None]]:
        """Divide sequences into runs of at most CHUNK tokens, or of one longer sequence.

        YIELDS: the tokens of a run, its observations or readings, and its permitted labels.
        """
        offsets = source.offsets
        if permitted is not None:
            checked_permitted(permitted, source.n_tokens, self.n_labels)
        if source.n_tokens <= CHUNK:
            if len(offsets) > 1:
                yield slice(0, source.n_tokens), source, permitted
            return
        for first, last in runs_of_tokens(offsets, CHUNK):
            tokens = slice(int(offsets[first]), int(offsets[last]))
            run = source.sequences(first, last)
            yield tokens, run, None if permitted is None else permitted[tokens]

    def chains(self, source: Source, permitted: Mask | None = None) -> Chains:
        """Score the labels and label pairs of tokens, and apply the constraints."""
        scores = self._token_scores(source)
        shared = self._shared_pairs(source)
        if shared is not None:
            context = np.zeros(len(scores), dtype=np.int32)
            self._normalise(source, scores, context, shared.free)
        else:
            context, pairs = self._pairs(source)
            self._normalise(source, scores, context, pairs)
            prune = len(pairs) * PRUNE_FROM <= len(scores)
            shared = self._finish(pairs, prune, keep=permitted is not None)
        own = source.offsets, self.n_labels, scores, context
        chains = Chains(*own, shared, self.transitions)
        constrain(chains, permitted)
        return chains

    def _normalise(self, source: Source, scores: Floats, context: Ints, pairs: Floats) -> None:
        """Convert scores [N, Yp] of an MEMM to a chain with the same distribution, in place."""
        if self._kind == "memm":
            from ..kernels.log_space import normalise_steps

            normalise_steps(Scored(self.n_labels, source.offsets, scores, context, pairs))

    def _token_scores(self, source: Source) -> Floats:
        """Return the scores of the labels of tokens: [N, Yp]."""
        if isinstance(source, ScoredTokens):
            return source.scores.copy()
        if isinstance(source, Observations):
            found = self._unigram.find(source.unigram_hashes)
            scores = self._unigram.score(found, self.padded)
        else:
            scores = self._word_scores(source)[0].score(source)
        self._values.add(source, scores)
        if len(self._bounds):
            _join_clusters(scores, self._bounds)
        return scores

    def _word_scores(self, readings: Readings) -> tuple["WordScores", SharedPairs | None]:
        """Return the scorer for the templates of the readings, and `_pairs_of_words`."""
        known = self._words
        if known is None or known[0].templates is not readings.templates:
            from .rows import WordScores

            words = WordScores(self._unigram, readings.templates, self.padded)
            known = self._words = words, self._pairs_of_words(readings)
        return known

    def _pairs_of_words(self, readings: Readings) -> SharedPairs | None:
        """Return the pair scores that determine the labels with the scores of words, or None."""
        is_chain = self._kind == "chain" and not len(self._bounds)
        # Scores of real values are not in a table of words.
        has_values = bool(len(readings.templates.value_seeds))
        shared = self._shared_pairs(readings) if is_chain and not has_values else None
        if shared is None:
            return None
        if self._bias is not None:
            # Every token is the second of one pair.
            shared = self._finish(shared.free + self._bias, prune=True, keep=False)
        of = self.transitions
        return SharedPairs(self.n_labels, shared.ready, shared.slack, of.closing, of.search)

    def _pairs(self, source: Source) -> tuple[Ints, Floats]:
        """Number the contexts of tokens: [N] int32, and score their label pairs: [C, Y + 1, Yp]."""
        from ..kernels.indexing import number_rows

        features = self._bigram.find(source.bigram_hashes)
        distinct, counts = np.empty_like(features), np.zeros(len(features), dtype=np.int64)
        context = np.empty(len(features), dtype=np.int32)
        slots = np.full(1 << (2 * len(features)).bit_length(), -1, dtype=np.int32)
        n = number_rows(slots, distinct, counts, 0, features, context)
        scores = self._bigram.score(distinct[:n], (self.n_labels + 1) * self.padded)
        return context, scores.reshape(-1, self.n_labels + 1, self.padded)

    def _shared_pairs(self, source: Source) -> PairScores | None:
        """Return the pair scores if they are the same for all tokens; None otherwise."""
        if self._kind == "maxent":
            if self._constant is None:
                none = np.zeros((1, self.n_labels + 1, self.padded))
                self._constant = None, self._finish(none, prune=True, keep=True)
            return self._constant[1]
        features, has_start = None, True
        if isinstance(source, Readings):
            features, has_start = source.templates.constant_pairs, source.templates.start_label
        elif isinstance(source, ScoredTokens) and source.bigram_hashes.ndim == 1:
            features = source.bigram_hashes
        if features is None:
            return None
        constant = self._constant
        if constant is None or constant[0] is not features:
            from .rows import dense_rows

            shape = 1, self.n_labels + 1, self.padded
            _, weights = dense_rows(self._pair_weights, features, self.padded, shape[1] * shape[2])
            pairs = weights.sum(axis=0).reshape(shape)
            if not has_start:
                pairs[:, self.n_labels] = 0.0
            constant = self._constant = features, self._finish(pairs, prune=True, keep=True)
        return constant[1]

    def _finish(self, pairs: Floats, prune: bool, keep: bool) -> PairScores:
        """Mask pair scores for Viterbi, in place. keep: keep a copy of them before the mask."""
        of = self.transitions
        free = pairs.copy() if keep and of.masked else pairs
        return PairScores(free, pairs, of.finish(pairs, prune))


@cache
def _posterior() -> "type[Posterior]":
    """Import the class and its kernels, only once: an import takes as long as labelling."""
    from .probabilities import Posterior

    return Posterior


def check_n(n: object) -> None:
    """Raise `SparseCRFError` for anything but a whole number of paths, at least 1."""
    if not isinstance(n, int | np.integer) or n < 1:
        raise SparseCRFError(Errors.SC407.format(n=n))


def _join_clusters(scores: Floats, bounds: NDArray[np.int64]) -> None:
    """Convert scores of labels given their clusters to log p(y | x), up to a constant.

    scores: [N, Yp], in and out, labels and then clusters; bounds: see `CRFModel`.
    """
    n, sizes = bounds[-1], np.diff(bounds)
    log_z = np.logaddexp.reduceat(scores[:, :n], bounds[:-1], axis=1)
    scores[:, :n] += np.repeat(scores[:, n : n + len(sizes)] - log_z, sizes, axis=1)
