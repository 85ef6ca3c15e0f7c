"""The base of decoders: probabilities of labels, paths and spans of a source."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import Errors, SparseCRFError
from ..corpus.numbering import Floats, Ints, Mask, runs_of_tokens
from .chains import Chains, SpanEvents, checked_permitted
from .sources import Source

if TYPE_CHECKING:
    from .posterior import Posterior

CHUNK = 2048  # tokens decoded at once: scores stay in a near cache, memory is bounded


@cache
def posterior_class() -> "type[Posterior]":
    """Import the class and its kernels, only once: an import takes as long as labelling."""
    from .posterior import Posterior

    return Posterior


class LabelDecoder(ABC):
    """Answers questions about the label sequences of a source.

    `source` is the observations or readings of N tokens (readings are faster, because not every
    feature of every token is hashed), and `permitted` is a mask of the labels that tokens may get:
    [N, Y] bool, or None: all. A mask of the wrong shape raises SparseCRFError.
    """

    n_labels: int

    @abstractmethod
    def chains(self, source: Source, permitted: Mask | None = None) -> Chains:
        """Score the labels and label pairs of tokens, and apply the constraints."""

    @abstractmethod
    def viterbi(self, source: Source, permitted: Mask | None = None) -> Ints:
        """Find the most probable labels of each sequence. RETURNS: [N] int32 label ids."""

    @abstractmethod
    def decode(
        self, source: Source, method: str, permitted: Mask | None = None
    ) -> tuple[Ints, Floats]:
        """Find labels and their marginal probabilities.

        method: "viterbi", or "posterior" for the valid labels with the largest sum of marginals,
            argmax_y sum_t p(y_t | x), which maximises the expected number of correct tokens.
        RETURNS: [N] int32 label ids, and [N] float64 probabilities.
        """

    @abstractmethod
    def nbest(
        self, source: Source, n: int, permitted: Mask | None = None
    ) -> list[tuple[Ints, Floats]]:
        """Find the n most probable paths of each sequence. Preferences are not used.

        n: at least 1. RETURNS: for each sequence, K <= n paths, [K, tokens] int32 label ids, and
        their log p(y | x), [K] float64, descending. RAISES: SparseCRFError for an invalid n.
        """

    def marginals(self, source: Source, permitted: Mask | None = None) -> Floats:
        """Compute p(y_t = y | x) of each token. RETURNS: [N, Y] float64, rows sum to 1."""
        marginals = np.empty((source.n_tokens, self.n_labels))
        for tokens, run, run_permitted in self.runs(source, permitted):
            marginals[tokens] = self.posterior(run, run_permitted).marginals()
        return marginals

    def posterior(self, source: Source, permitted: Mask | None = None) -> "Posterior":
        """Return the distribution of the label sequences, for several questions about it."""
        return posterior_class()(self.chains(source, permitted))

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
        by_run = [np.empty(0)]
        for tokens, run, run_permitted in self.runs(source, permitted):
            by_run.append(self.posterior(run, run_permitted).log_probabilities(labels[tokens]))
        return np.concatenate(by_run)

    def span_probability(
        self, source: Source, spans: SpanEvents, permitted: Mask | None = None
    ) -> Floats:
        """Compute the probabilities that runs of tokens have given labels, see `SpanEvents`.

        RETURNS: [M] float64. RAISES: SparseCRFError for a span that is not within the tokens.
        """
        from .posterior import span_probabilities

        spans.check(source.n_tokens)
        return span_probabilities(self.chains(source, permitted), spans)

    def runs(
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
        for begin, end in runs_of_tokens(offsets, CHUNK):
            tokens = slice(int(offsets[begin]), int(offsets[end]))
            run_permitted = None if permitted is None else permitted[tokens]
            yield tokens, source.sequences(begin, end), run_permitted
