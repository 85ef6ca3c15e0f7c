"""Probabilities of labels, paths and runs of labels of chains.

Imports numba. log Z, alpha and beta are sums over the valid and permitted paths of a chain.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from ...portable import REPEATED, Bits
from ..corpus.numbering import Floats, Ints
from ..corpus.ragged import row_numbers
from ..kernels import log_space
from ..kernels.log_space import Backward, Forward, Runs
from ..kernels.numba_support import Bound
from ..kernels.viterbi import find_paths, viterbi
from .chains import Chains, PairScores, SpanEvents, with_subsets

# The arrays of chains have the same types in each call.
_forward, _both = Bound(log_space.run_forward), Bound(log_space.run_both)
_score, _viterbi = Bound(log_space.score_paths), Bound(viterbi)


def run(chains: Chains, backward: Backward | None = None) -> Forward:
    """Run the forward recursion; given its arrays, also the backward recursion."""
    n, padded = chains.scores.shape
    pairs = chains.pairs
    if pairs.exponentials is None:
        psi, shift = np.empty_like(pairs.ready), np.empty(len(pairs.ready))
        log_space.exponentiate_pairs(
            n_labels=chains.n_labels, pairs=pairs.ready, psi=psi, shift=shift
        )
        pairs.exponentials = psi, shift
    psi, shift = pairs.exponentials
    forward = Forward(
        psi=psi,
        shift=shift,
        alpha=np.empty((n, padded)),
        scale=np.empty(n),
        log_z=np.empty(len(chains.offsets) - 1),
    )
    space = np.empty((3, padded))
    if backward is None:
        _forward(chains.scored, forward, space)
    else:
        _both(chains.scored, forward, backward, space)
    return forward


def backward_arrays(chains: Chains, n_marginals: int) -> Backward:
    """Return arrays for the backward recursion. n_marginals: number of tokens N, or 0."""
    n, padded = chains.scores.shape
    return Backward(np.empty((n, padded)), np.empty(n), np.empty((n_marginals, chains.n_labels)))


class Posterior:
    """The distribution of the label sequences of chains; all answers share one recursion."""

    def __init__(self, chains: Chains) -> None:
        self._chains = chains

    def __len__(self) -> int:
        return len(self._chains.scores)

    @property
    def n_contexts(self) -> int:
        """Number of matrices of pairs."""
        return len(self._chains.pairs.ready)

    @cached_property
    def _forward(self) -> Forward:
        return run(self._chains)

    def labels(self) -> list[int]:
        """Return the labels of the most probable path of each sequence: [N]."""
        labels = np.empty(len(self), np.int32)
        best_labels(self._chains, self._chains.scores.copy(), labels)
        ids: list[int] = labels.tolist()
        return ids

    def relaxed_paths(self, bits: Bits, m: int, n: int = 1) -> list[list[int]]:
        """Find the n best paths of one sequence; see `Chain.relaxed`. m: number of subsets."""
        states = with_subsets(self._chains, np.array(bits), m)
        if n == 1:
            return [[state // m for state in Posterior(states).labels()]]
        [(paths, totals)] = best_paths(states, n, np.zeros(1))
        best: list[list[int]] = (paths[totals > totals[0] - REPEATED / 2] // m).tolist()
        return best

    def marginals(self) -> Floats:
        """Compute p(y_t = y | x): [N, Y]."""
        backward = backward_arrays(self._chains, len(self))
        self._forward = run(self._chains, backward)
        return backward.marginals

    def log_probabilities(self, labels: Sequence[int] | Ints) -> Floats:
        """Compute log p(y | x) of one path of each sequence. labels: [N]. RETURNS: [S]."""
        ids = np.ascontiguousarray(labels, np.int32)
        log_z = self._forward.log_z
        log_p = np.empty_like(log_z)
        _score(self._chains.scored, ids, log_z, log_p)
        return log_p

    def log_probability(self, labels: Sequence[int]) -> float:
        """Compute log p(y | x) of labels of all tokens."""
        return float(sum(self.log_probabilities(labels).tolist()))


def best_labels(chains: Chains, scores: Floats, labels: Ints) -> None:
    """Find the most probable labels [N]. scores: those of the chains; they are overwritten."""
    best = np.empty(scores.shape[1])
    _viterbi(chains.scored_by(scores), chains.pairs.slack, chains.search, best, labels)


def posterior_labels(chains: Chains, marginals: Floats, labels: Ints) -> None:
    """Find the valid path with the largest sum of marginals.

    marginals: [N, Y]; labels: [N], out. In soft sequences, a path with fewer invalid
    transitions always wins.
    """
    chosen = posterior_chains(chains, marginals)
    if chains.transitions.are_free:
        labels[:] = chosen.scores.argmax(axis=1)
    else:
        best_labels(chosen, chosen.scores, labels)


def posterior_chains(chains: Chains, marginals: Floats) -> Chains:
    """Return chains whose scores are the marginals [N, Y]; see `posterior_labels`."""
    n, transitions = chains.n_labels, chains.transitions
    are_possible = chains.scores[:, :n] > -np.inf
    scores = np.full_like(chains.scores, -np.inf)
    scores[:, :n] = np.where(are_possible, marginals, -np.inf)
    penalty = len(scores) + 1.0
    pairs = np.stack([transitions.penalties(np.inf), transitions.penalties(penalty)])
    slack = np.full((2, scores.shape[1]), np.inf)
    chosen = replace(
        chains,
        scores=scores,
        context=chains.soft_tokens().astype(np.int32),
        pairs=PairScores(pairs, pairs, slack),
    )
    chosen.close(penalty)
    return chosen


def nbest(chains: Chains, n: int) -> list[tuple[Ints, Floats]]:
    """Find the n best paths, and their log-probabilities, of each sequence; see `Decoder.nbest`."""
    return best_paths(chains, n, run(chains).log_z)


def best_paths(chains: Chains, n: int, log_z: Floats) -> list[tuple[Ints, Floats]]:
    """Find the n best paths of each sequence, and their scores less log_z, at most 0."""
    by_sequence = []
    for s, log_sum in enumerate(log_z):
        begin, end = int(chains.offsets[s]), int(chains.offsets[s + 1])
        most = min(n, chains.n_labels ** (end - begin))
        labels, totals = np.empty((most, end - begin), dtype=np.int32), np.zeros(most)
        if end > begin:
            n_paths = find_paths(
                begin=begin,
                end=end,
                scored=chains.scored,
                favourite=chains.search.favourite,
                labels=labels,
                totals=totals,
            )
            labels, totals = labels[:n_paths], totals[:n_paths] - log_sum
        by_sequence.append((labels, np.minimum(totals, 0.0)))
    return by_sequence


def span_probabilities(chains: Chains, spans: SpanEvents) -> Floats:
    """Compute the probabilities of M checked events: [M] float64."""
    backward = backward_arrays(chains, 0)
    forward = run(chains, backward)
    log_p = np.empty(len(spans.starts))
    no_labels = np.empty((0, chains.n_labels), bool)
    runs = Runs(
        starts=spans.starts,
        ptr=spans.run_ptr,
        labels=spans.runs,
        bounded=spans.after is not None,
        next_labels=no_labels if spans.after is None else spans.after,
    )
    log_space.score_spans(
        scored=chains.scored,
        sequence=row_numbers(chains.offsets).astype(np.int32),
        forward=forward,
        backward=backward,
        runs=runs,
        log_p=log_p,
    )
    return np.exp(log_p)
