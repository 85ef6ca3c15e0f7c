"""Scores of a batch of sequences under constraints, for decoding and probabilities.

Also events of spans, to compute their probabilities. MEMMs and maximum entropy models are
represented as chains too, see `Decoder`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...errors import Errors, SparseCRFError, Warnings, warn
from ...portable import REPEATED
from ..corpus.numbering import Floats, Ints, Longs, Mask
from ..kernels.layout import Scored, Search, search_all
from .transitions import Transitions, checked_mask

# A path is less probable by a factor of at least e^40 than a path with fewer invalid transitions.
FAR = 40.0


@dataclass
class PairScores:
    """Scores of label pairs.

    free: [C, Y + 1, Yp], before the mask; may be the array of `ready` if they are not needed;
    ready: [C, Y + 1, Yp], after it, padding -inf; slack: [C, Yp], of `Transitions.finish`;
    exponentials: of `ready`, once computed, see `kernels.log_space.exponentiate_pairs`.
    """

    free: Floats
    ready: Floats
    slack: Floats
    exponentials: tuple[Floats, Floats] | None = None

    @classmethod
    def masked(
        cls, pairs: Floats, transitions: Transitions, *, prune: bool, keep: bool
    ) -> "PairScores":
        """Mask pair scores [C, Y + 1, Yp] for Viterbi, in place.

        prune: see `Transitions.finish`; keep: whether to mask a copy instead.
        """
        ready = pairs.copy() if keep else pairs
        return cls(pairs, ready, transitions.finish(ready, prune))


@dataclass
class Chains:
    """Sequences whose path y has the score sum_t scores[t, y_t] + pairs[c_t, y_{t-1}, y_t].

    The score is -inf if the path is not valid or not permitted. If the permitted labels of a
    sequence allow no valid path, the sequence is *soft*: invalid transitions cost a penalty, which
    is large enough to minimise their number.

    offsets: [S + 1] int64; n_labels: Y; scores: [N, Yp] float64, padding -inf or not read;
    context: [N] int32; pairs: row Y = start label; soft: [S] bool, or None if no sequence is soft.
    """

    offsets: Longs
    n_labels: int
    scores: Floats
    context: Ints
    pairs: PairScores
    transitions: Transitions
    soft: Mask | None = None

    @property
    def scored(self) -> Scored:
        """The sequences, as an argument of kernels."""
        return self.scored_by(self.scores)

    def scored_by(self, scores: Floats) -> Scored:
        """Return the sequences with other scores [N, Yp], as an argument of kernels."""
        return Scored(
            n_labels=self.n_labels,
            offsets=self.offsets,
            scores=scores,
            context=self.context,
            pairs=self.pairs.ready,
        )

    @property
    def search(self) -> Search:
        """The pairs that Viterbi searches; see `Transitions`."""
        return self.transitions.search if self.soft is None else self.transitions.everything

    def soft_tokens(self) -> Mask:
        """Return a mask of the tokens in soft sequences: [N] bool."""
        if self.soft is None:
            return np.zeros(len(self.scores), dtype=bool)
        return np.repeat(self.soft, np.diff(self.offsets))

    def close(self, penalty: float) -> None:
        """Forbid labels that may not end a sequence; in soft sequences, subtract a penalty."""
        end_tokens = self.offsets[1:][np.diff(self.offsets) > 0] - 1
        costs = np.where(self.soft_tokens()[end_tokens], penalty, np.inf)[:, None]
        valid_ends = self.transitions.ends
        self.scores[end_tokens, : self.n_labels] -= np.where(valid_ends, 0.0, costs)


@dataclass(frozen=True)
class SpanEvents:
    """M events: tokens i..j have given labels, and token j + 1 has a label of a set.

    The set is needed if the labels of a span do not mark its end (in IOB2, I-PER after B-PER
    continues the span). It is ignored after the last token of a sequence.

    starts: [M] int64, first tokens; run_ptr: [M + 1] int64, and runs: int32, CSR of label ids;
    after: [M, Y] bool, the set; None: any label.
    """

    starts: Longs
    run_ptr: Longs
    runs: Ints
    after: Mask | None = None

    @classmethod
    def of(
        cls, starts: Sequence[int], runs: Sequence[Sequence[int]], after: Mask | None = None
    ) -> "SpanEvents":
        """Create events from lists. starts: first tokens; runs: label ids of the spans' tokens."""
        run_ptr = np.cumsum([0, *map(len, runs)], dtype=np.int64)
        labels = np.array([label for run in runs for label in run], dtype=np.int32)
        return cls(np.array(starts, dtype=np.int64), run_ptr, labels, after)

    def check(self, n_tokens: int) -> None:
        """Raise `SparseCRFError` for a span that is empty or not within the tokens."""
        lengths = np.diff(self.run_ptr)
        wrong = (lengths < 1) | (self.starts < 0) | (self.starts + lengths > n_tokens)
        if wrong.any():
            number = int(wrong.argmax())
            values = {"length": lengths[number], "start": self.starts[number]}
            raise SparseCRFError(Errors.SC408.format(number=number, n_tokens=n_tokens, **values))


def constrain(chains: Chains, permitted: Mask | None) -> None:
    """Apply valid final labels and permitted labels to chains with masked pairs.

    permitted: [N, Y] bool, labels that a token may get; a token without any may get all.
    """
    if permitted is not None:
        permitted = _opened(checked_permitted(permitted, len(chains.scores), chains.n_labels))
    penalty = np.inf
    if permitted is not None and chains.transitions.masked:
        penalty = _soften(chains, permitted)
    if chains.transitions.masked:
        chains.close(penalty)
    if permitted is not None:
        chains.scores[:, : chains.n_labels][~permitted] = -np.inf


def with_subsets(chains: Chains, bits: Longs, m: int) -> Chains:
    """Return one sequence whose labels are states, with numbers m label + subset.

    bits: [Y + 1, Y], m: see `Posterior.relaxed_paths`.
    """
    n = chains.n_labels
    next_subset = np.arange(m)
    subset = next_subset[:, None, None]
    begun = bits[:, None, :, None]
    repeated = np.where(subset & begun, REPEATED, 0.0)
    costs = np.where(subset | begun == next_subset, repeated, np.inf)
    # The first of the last rows is that of the first token.
    ready = chains.pairs.ready[:, :, None, :n, None]
    pairs = np.ascontiguousarray(ready - costs).reshape(len(ready), -1, n * m)
    search = search_all(n * m, chains.search.favourite * m)
    return Chains(
        offsets=chains.offsets,
        n_labels=n * m,
        scores=chains.scores[:, :n].repeat(m, axis=1),
        context=chains.context,
        pairs=PairScores(pairs, pairs, np.full((len(pairs), n * m), np.inf)),
        transitions=replace(chains.transitions, search=search),
    )


def checked_permitted(permitted: Mask, n_tokens: int, n_labels: int) -> Mask:
    """Check the shape and type of permitted labels. RAISES: SparseCRFError."""
    return checked_mask(
        permitted, (n_tokens, n_labels), what="permitted labels", method="permitted"
    )


def _opened(permitted: Mask) -> Mask:
    """Permit all labels for tokens without a permitted label."""
    is_closed = permitted.sum(axis=1) == 0
    if is_closed.any():
        warn(Warnings.SCW402.format(n=int(is_closed.sum())))
    opened: Mask = permitted | is_closed[:, None]
    return opened


def _soften(chains: Chains, permitted: Mask) -> float:
    """Find the sequences without a valid path, and make them soft.

    RETURNS: the penalty of an invalid transition; inf if there are no such sequences.
    """
    from ..kernels.viterbi import find_possible

    transitions = chains.transitions
    n = chains.n_labels
    possible = np.empty(len(chains.offsets) - 1, dtype=bool)
    find_possible(
        offsets=chains.offsets,
        permitted=permitted,
        valid=transitions.valid,
        ends=transitions.ends,
        possible=possible,
    )
    if possible.all():
        return np.inf
    warn(Warnings.SCW401.format(n=int((~possible).sum())))
    chains.soft = ~possible
    tokens = chains.soft_tokens()
    contexts, renumbered = np.unique(chains.context[tokens], return_inverse=True)
    free = chains.pairs.free[contexts]
    hard = chains.pairs.ready
    length = int(np.diff(chains.offsets)[chains.soft].max())
    spread = np.ptp(chains.scores[tokens, :n], axis=1).max() + np.ptp(free[:, :, :n])
    penalty = float((length + 1) * (spread + np.log(n)) + FAR)
    chains.context = chains.context.copy()
    chains.context[tokens] = len(hard) + renumbered
    ready = np.concatenate((hard, free + transitions.penalties(penalty)))
    chains.pairs = PairScores(ready, ready, np.full((len(ready), ready.shape[2]), np.inf))
    return penalty
