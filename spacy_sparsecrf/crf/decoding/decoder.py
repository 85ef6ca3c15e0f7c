"""Decoding: the best labels of sequences, and probabilities of labels, paths and spans."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...errors import Errors, SparseCRFError
from ..corpus.numbering import Floats, Ints, Mask
from ..corpus.readings import Readings, Templates
from ..kernels.layout import SharedPairs
from ..model.model import CRFModel
from .answers import LabelDecoder
from .chains import Chains, PairScores, constrain
from .sources import Source
from .steps import Scores, Step, TokenStep
from .transitions import Transitions

if TYPE_CHECKING:
    from .rows import WordScores

PRUNE_FROM = 4  # average number of tokens per context from which pruning pays off


class WordLabels(NamedTuple):
    """Scores of words and of label pairs that together determine the labels of readings.

    words: None if they do not, because labels depend on more.
    """

    templates: Templates
    words: "WordScores | None"
    pairs: SharedPairs | None


class Decoder(LabelDecoder):
    """Applies a model to observations; serial, so that it is safe in forked processes.

    All results use one distribution: p(y | x) of the model, restricted to valid and permitted
    label sequences and renormalised over whole sequences, for every type of model. If no permitted
    sequence is valid, labels have as few invalid transitions as possible, and a warning is raised.
    A Decoder is thread-safe. Results depend neither on batches nor on earlier calls.

    model: its labels and weights must not change.
    valid: [Y + 1, Y + 1] bool, whether label b may follow label a; row Y: whether b may begin a
        sequence; column Y: whether a may end one; None: all transitions are valid.
    favourite: label that wins ties, and that gets all tokens if the model has no weights.
    options: steps after those of the model, see `steps`.
    RAISES: SparseCRFError for a mask of the wrong shape, or without a valid sequence.
    """

    def __init__(
        self,
        model: CRFModel,
        valid: Mask | None = None,
        favourite: int = 0,
        options: Sequence[Step] = (),
    ) -> None:
        from .model_steps import steps_of_model  # imports numba

        for step in options:
            model, valid = step.prepare(model, valid)
        self.n_labels = len(model.labels)
        self.padded = -(-model.n_outcomes // 8) * 8
        self.transitions = Transitions.make(valid, self.n_labels, self.padded, favourite)
        self._options = options
        self._token_steps = [
            *steps_of_model(model, self.padded),
            *(step for step in options if isinstance(step, TokenStep)),
        ]
        self.has_weights = bool(model.n_active)
        self._no_pairs = np.zeros((1, self.n_labels + 1, self.padded))
        self._shared: PairScores | None = None
        self._word_labels: WordLabels | None = None

    def viterbi(self, source: Source, permitted: Mask | None = None) -> Ints:
        """Find the most probable labels of each sequence; see `LabelDecoder`."""
        if permitted is None and isinstance(source, Readings):
            word_labels = self._word_labels
            if word_labels is None or word_labels.templates is not source.templates:
                word_labels = self._word_labels = self._joined(source)
            _, words, pairs = word_labels
            if words is not None and pairs is not None:
                return words.label(source, pairs)
        labels = np.empty(source.n_tokens, dtype=np.int32)
        for tokens, run, run_permitted in self.runs(source, permitted):
            scores = self._scores(run)
            are_free = run_permitted is None and self.transitions.are_free
            if are_free and scores.pairs is self._no_pairs:
                # Tokens are independent, and the first label wins ties.
                self.prefer(scores.tokens)
                labels[tokens] = scores.tokens[:, : self.n_labels].argmax(axis=1)
            else:
                self._choose(self._constrained(scores, run_permitted), labels[tokens])
        return labels

    def decode(
        self, source: Source, method: str, permitted: Mask | None = None
    ) -> tuple[Ints, Floats]:
        """Find labels and their marginal probabilities; see `LabelDecoder`."""
        from .posterior import Posterior, posterior_labels

        labels = np.empty(source.n_tokens, dtype=np.int32)
        probabilities = np.empty(source.n_tokens)
        for tokens, run, run_permitted in self.runs(source, permitted):
            chains = self.chains(run, run_permitted)
            marginals = Posterior(chains).marginals()
            chosen = labels[tokens]
            if method == "posterior" and self.has_weights:
                posterior_labels(chains, marginals, chosen)
            else:
                self._choose(chains, chosen)
            probabilities[tokens] = marginals[np.arange(len(chosen)), chosen]
        return labels, probabilities

    def nbest(
        self, source: Source, n: int, permitted: Mask | None = None
    ) -> list[tuple[Ints, Floats]]:
        """Find the n most probable paths of each sequence; see `LabelDecoder`."""
        from .posterior import nbest

        check_n(n)
        paths = []
        for _, run, run_permitted in self.runs(source, permitted):
            paths += nbest(self.chains(run, run_permitted), n)
        return paths

    def chains(self, source: Source, permitted: Mask | None = None) -> Chains:
        """Score the labels and label pairs of tokens, and apply the constraints."""
        return self._constrained(self._scores(source), permitted)

    def prefer(self, scores: Floats) -> None:
        """Change scores [..., Yp] to those by which labels are chosen, in place; see `Step`."""
        # Without weights, only ties tell labels apart.
        if self.has_weights:
            for step in self._options:
                step.prefer(scores)

    def _choose(self, chains: Chains, labels: Ints) -> None:
        """Find the labels [N] with the best scores, which are overwritten."""
        from .posterior import best_labels

        self.prefer(chains.scores)
        best_labels(chains, chains.scores, labels)

    def _scores(self, source: Source) -> Scores:
        """Compute the scores of tokens and of label pairs, step by step."""
        context = np.zeros(source.n_tokens, dtype=np.int32)
        scores = Scores(source, context, self._no_pairs)
        for step in self._token_steps:
            step.score(scores)
        return scores

    def _constrained(self, scores: Scores, permitted: Mask | None) -> Chains:
        """Apply the constraints to scores, which are overwritten."""
        chains = Chains(
            offsets=scores.source.offsets,
            n_labels=self.n_labels,
            scores=scores.tokens,
            context=scores.context,
            pairs=self._masked_pairs(scores, permitted is not None),
            transitions=self.transitions,
        )
        constrain(chains, permitted)
        return chains

    def _masked_pairs(self, scores: Scores, is_forced: bool) -> PairScores:
        """Mask pair scores for Viterbi. is_forced: whether tokens have permitted labels."""
        pairs, transitions = scores.pairs, self.transitions
        if not scores.are_shared:
            prune = len(pairs) * PRUNE_FROM <= len(scores.tokens)
            keep = is_forced and transitions.masked
            return PairScores.masked(pairs, transitions, prune=prune, keep=keep)
        shared = self._shared
        if shared is None or shared.free is not pairs:
            shared = PairScores.masked(pairs, transitions, prune=True, keep=True)
            self._shared = shared
        return shared

    def _joined(self, readings: Readings) -> WordLabels:
        """Return what determines the labels of readings without masks, for their templates."""
        from .model_steps import LabelPairs, TokenWeights

        templates = readings.templates
        match self._token_steps:
            # Scores of real values are not in a table of words.
            case [TokenWeights() as weights, LabelPairs() as label_pairs] if not len(
                templates.value_seeds
            ):
                pairs = label_pairs.shared(readings)
                if pairs is not None:
                    return WordLabels(templates, weights.words(readings), self._ready(pairs))
        return WordLabels(templates, None, None)

    def _ready(self, pairs: Floats) -> SharedPairs:
        """Return pair scores for a search by words, with the preferences."""
        preferred = pairs.copy()
        self.prefer(preferred)
        slack = self.transitions.finish(preferred, prune=True)
        return SharedPairs(
            n_labels=self.n_labels,
            pairs=preferred,
            slack=slack,
            closing=self.transitions.closing,
            search=self.transitions.search,
        )


def check_n(n: object) -> None:
    """Raise `SparseCRFError` for anything but a whole number of paths, at least 1."""
    if not isinstance(n, int | np.integer) or n < 1:
        raise SparseCRFError(Errors.SC407.format(n=n))
