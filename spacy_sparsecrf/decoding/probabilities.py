"""Probabilities of labels, paths and runs of labels of chains.

Imports numba. log Z, alpha and beta are sums over the valid and permitted paths of a chain.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..corpus.numbering import Floats, Ints
from ..kernels.layout import Scored
from ..kernels.log_space import (
    Backward,
    Forward,
    Runs,
    exponentiate_pairs,
    run_backward,
    run_forward,
    score_paths,
    score_spans,
)
from ..kernels.numba_support import Bound
from ..kernels.viterbi import find_paths, viterbi
from .chains import Chains, PairScores, SpanEvents

# The arrays of chains have the same types in each call.
_forward, _backward = Bound(run_forward), Bound(run_backward)
_score, _viterbi = Bound(score_paths), Bound(viterbi)


def run(chains: Chains) -> Forward:
    """Run the forward recursion."""
    (n, padded), pairs = chains.scores.shape, chains.pairs
    if pairs.exponentials is None:
        psi, shift = np.empty_like(pairs.ready), np.empty(len(pairs.ready))
        exponentiate_pairs(chains.n_labels, pairs.ready, psi, shift)
        pairs.exponentials = psi, shift
    own = np.empty((n, padded)), np.empty(n), np.empty(len(chains.offsets) - 1)
    forward = Forward(*pairs.exponentials, *own)
    _forward(chains.scored, forward, np.empty((3, padded)))
    return forward


def run_back(chains: Chains, forward: Forward, marginals: Floats) -> Backward:
    """Run the backward recursion, and compute marginals. marginals: [N, Y] or [0, Y], out."""
    n, padded = chains.scores.shape
    backward = Backward(np.empty((n, padded)), np.empty(n), marginals)
    _backward(chains.scored, forward, backward, np.empty((3, padded)))
    return backward


class Posterior:
    """The distribution of the label sequences of chains; all answers share one recursion."""

    def __init__(self, chains: Chains) -> None:
        self._chains = chains

    def __len__(self) -> int:
        return len(self._chains.scores)

    @cached_property
    def _forward(self) -> Forward:
        return run(self._chains)

    def labels(self) -> list[int]:
        """Return the labels of the most probable path of each sequence: [N]."""
        chains, labels = self._chains, np.empty(len(self), np.int32)
        best_labels(chains, chains.scored._replace(scores=chains.scores.copy()), labels)
        found: list[int] = labels.tolist()
        return found

    def marginals(self) -> Floats:
        """Compute p(y_t = y | x): [N, Y]."""
        found = np.empty((len(self), self._chains.n_labels))
        run_back(self._chains, self._forward, found)
        return found

    def log_probabilities(self, labels: NDArray[np.int32]) -> Floats:
        """Compute log p(y | x) of one path of each sequence. labels: [N]. RETURNS: [S]."""
        given, found = np.ascontiguousarray(labels, np.int32), np.empty_like(self._forward.log_z)
        _score(self._chains.scored, given, self._forward.log_z, found)
        return found

    def log_probability(self, labels: Sequence[int]) -> float:
        """Compute log p(y | x) of labels of all tokens."""
        return float(self.log_probabilities(np.array(labels, np.int32)).sum())


def best_labels(chains: Chains, scored: Scored, labels: Ints) -> None:
    """Find the most probable labels [N]. scored: of the chains; its scores are overwritten."""
    best = np.empty(scored.scores.shape[1])
    _viterbi(scored, chains.pairs.slack, chains.search, best, labels)


def posterior_labels(chains: Chains, found: Floats, labels: Ints) -> None:
    """Find the valid path with the largest sum of marginals.

    found: [N, Y], of `marginals`; labels: [N], out. In soft sequences, a path with fewer invalid
    transitions always wins.
    """
    n, transitions = chains.n_labels, chains.transitions
    possible = chains.scores[:, :n] > -np.inf
    scores = np.full_like(chains.scores, -np.inf)
    scores[:, :n] = np.where(possible, found, -np.inf)
    if not (transitions.masked or transitions.search.favourite):
        labels[:] = scores.argmax(axis=1)
        return
    penalty = len(scores) + 1.0
    pairs = np.stack([transitions.mask(np.inf), transitions.mask(penalty)])
    slack, context = np.full((2, scores.shape[1]), np.inf), chains.soft_tokens().astype(np.int32)
    own = PairScores(pairs, pairs, slack)
    chosen = replace(chains, scores=scores, context=context, pairs=own)
    chosen.close(penalty)
    best_labels(chosen, chosen.scored, labels)


def nbest(chains: Chains, n: int) -> list[tuple[Ints, Floats]]:
    """Find the n best paths, and their log-probabilities, of each sequence; see `Decoder.nbest`."""
    log_z = run(chains).log_z
    found = []
    for s, log_sum in enumerate(log_z):
        begin, end = int(chains.offsets[s]), int(chains.offsets[s + 1])
        most = min(n, chains.n_labels ** (end - begin))
        labels, totals = np.empty((most, end - begin), dtype=np.int32), np.zeros(most)
        if end > begin:
            kept = find_paths(begin, end, chains.scored, chains.search.favourite, labels, totals)
            labels, totals = labels[:kept], totals[:kept] - log_sum
        found.append((labels, np.minimum(totals, 0.0)))
    return found


def span_probabilities(chains: Chains, spans: SpanEvents) -> Floats:
    """Compute the probabilities of M checked events: [M] float64."""
    forward = run(chains)
    backward = run_back(chains, forward, np.empty((0, chains.n_labels)))
    n_sequences = len(chains.offsets) - 1
    sequence = np.repeat(np.arange(n_sequences, dtype=np.int32), np.diff(chains.offsets))
    found = np.empty(len(spans.starts))
    bounded = spans.after is not None
    after = np.empty((0, chains.n_labels), bool) if spans.after is None else spans.after
    runs = Runs(spans.starts, spans.run_ptr, spans.runs, bounded, after)
    score_spans(chains.scored, sequence, forward, backward, runs, found)
    return np.exp(found)
