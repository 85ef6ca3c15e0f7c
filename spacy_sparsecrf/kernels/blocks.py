"""A block, the weights of one test, on the sequences that contain it: gradient and change of log Z.

The tokens of a block are those of its test, ascending; a *visit* is a run of them in one sequence.
Forward and backward vectors are kept from block to block: see `truncated`.
"""

from typing import Any, NamedTuple

import numpy as np

from .compiled import inner
from .groups import Chains, PairTables, Potentials, TokenRows
from .truncated import extend_backward, extend_forward, overlap, partial_log_z


class Blocks(NamedTuple):
    """Where the blocks are, which have a row of unigram weights, of bigram weights, or both.

    unigram, bigram: [B] int32, rows, -1 = none; ptr [B + 1], tokens: CSR, tokens of a block;
    sequence_of: [N] int32; mat_ptr, matrices: CSR, matrices of a bigram row; ctx_ptr, contexts:
    CSR, contexts with entries that depend on it.
    """

    unigram: np.ndarray
    bigram: np.ndarray
    ptr: np.ndarray
    tokens: np.ndarray
    sequence_of: np.ndarray
    mat_ptr: np.ndarray
    matrices: np.ndarray
    ctx_ptr: np.ndarray
    contexts: np.ndarray


class Kept(NamedTuple):
    """What is kept of all tokens from block to block.

    evidence [N, Yp], top [N]: see `weigh_tokens`; alpha, beta [N, Yp], scale [N]: see
    `extend_forward`; of sequence s, alpha and scale are true before alpha_end[s], beta from
    beta_begin[s] on; partial: [S] float64, see `partial_log_z`.
    """

    evidence: np.ndarray
    top: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray
    scale: np.ndarray
    alpha_end: np.ndarray
    beta_begin: np.ndarray
    partial: np.ndarray


class BlockSpace(NamedTuple):
    """Workspaces.

    old, gradient, curvature: [K], of the weights of the block that is visited; product: [Yp];
    scratch: [Y + 1, Yp]; counts: [3] int64, added to: evaluations of a sequence, tokens that
    forward steps and that backward steps went over.
    """

    old: np.ndarray
    gradient: np.ndarray
    curvature: np.ndarray
    product: np.ndarray
    scratch: np.ndarray
    counts: np.ndarray


@inner
def _count(k: int, mass: float, weight: float, expected: np.ndarray, curvature: np.ndarray) -> None:
    """Add one token's probability to a weight's expected count, and its variance."""
    expected[k] += weight * mass
    if weight > 0.0:
        curvature[k] += weight * max(mass * (1.0 - mass), 0.0)


@inner
def _count_labels(
    first: int,
    last: int,
    labels: np.ndarray,
    split: int,
    inverse: float,
    weight: float,
    alpha: np.ndarray,
    beta: np.ndarray,
    expected: np.ndarray,
    curvature: np.ndarray,
) -> None:
    """`_count` the weights first:last at one token: p(y) = alpha(y) beta(y) * inverse.

    labels: of weight k, labels[k - split] modulo Yp.
    """
    padded = len(alpha)
    for k in range(first, last):
        y = np.int64(labels[k - split]) % padded
        _count(k, float(alpha[y]) * float(beta[y]) * inverse, weight, expected, curvature)


@inner
def _first_start(bigrams: np.ndarray, places: np.ndarray, split: int, start: int) -> int:
    """The first of a block's bigram weights whose previous label is the start label."""
    own = places[bigrams[0] - split : bigrams[1] - split]
    return int(bigrams[0] + np.searchsorted(own, start))


@inner
def _count_pairs(
    t: int,
    first: int,
    last: int,
    places: np.ndarray,
    split: int,
    factor: float,
    weight: float,
    matrix: np.ndarray,
    first_entry: int,
    last_entry: int,
    ent_place: np.ndarray,
    value: np.ndarray,
    evidence: np.ndarray,
    alpha: np.ndarray,
    beta: np.ndarray,
    expected: np.ndarray,
    curvature: np.ndarray,
) -> None:
    """`_count` the bigram weights first:last at token t, which does not begin its sequence.

    p(y', y) = alpha_{t-1}(y') Psi(y', y) E_t(y) beta_t(y) * factor. Both the places of weights and
    those of entries, first_entry:last_entry of the token's context, ascend.
    """
    padded = matrix.shape[1]
    e = first_entry
    for k in range(first, last):
        place = np.int64(places[k - split])
        i, y = place // padded, place % padded
        if i == len(matrix) - 1:
            break
        while e < last_entry and ent_place[e] < place:
            e += 1
        found = e < last_entry and ent_place[e] == place
        psi = value[e] if found else float(matrix[i, y])
        mass = float(alpha[t - 1, i]) * psi * float(evidence[t, y]) * float(beta[t, y])
        _count(k, mass * factor, weight, expected, curvature)


@inner
def _end_of_visit(tokens: np.ndarray, j: int, end: int) -> int:
    """Index after the last of tokens[j:] before token `end`."""
    while j < len(tokens) and tokens[j] < end:
        j += 1
    return j


# In line, as they are called for each sequence: a call hands on all fields of all groups.
@inner(inline="always")
def _extend_forward(
    s: int,
    first: int,
    last: int,
    chains: Chains,
    pairs: PairTables,
    potentials: Potentials,
    kept: Kept,
    space: BlockSpace,
) -> None:
    """Compute forward vectors of the tokens first:last of sequence s."""
    extend_forward(
        chains.offsets[s],
        first,
        last,
        chains.n_labels,
        pairs.context,
        pairs.matrix_of,
        potentials.psi,
        pairs.constant,
        pairs.ent_ptr,
        pairs.ent_start,
        pairs.ent_previous,
        pairs.ent_label,
        potentials.change,
        potentials.rewritten,
        kept.evidence,
        kept.alpha,
        kept.scale,
        space.scratch,
    )
    space.counts[1] += last - first
    kept.alpha_end[s] = last


@inner(inline="always")
def _update_vectors(
    s: int,
    first: int,
    last: int,
    chains: Chains,
    pairs: PairTables,
    potentials: Potentials,
    kept: Kept,
    space: BlockSpace,
) -> None:
    """Make forward vectors of sequence s true up to token `last`, backward ones from `first`."""
    if kept.alpha_end[s] <= last:
        begin = kept.alpha_end[s]
        _extend_forward(s, begin, last + 1, chains, pairs, potentials, kept, space)
    if kept.beta_begin[s] > first:
        extend_backward(
            chains.offsets[s + 1],
            first,
            kept.beta_begin[s],
            chains.n_labels,
            pairs.context,
            pairs.matrix_of,
            potentials.psi,
            pairs.constant,
            pairs.ent_ptr,
            pairs.ent_start,
            pairs.ent_previous,
            pairs.ent_label,
            potentials.change,
            potentials.rewritten,
            kept.evidence,
            kept.beta,
            space.product,
            space.scratch,
        )
        space.counts[2] += kept.beta_begin[s] - first
        kept.beta_begin[s] = first


@inner
def visit_block(
    tokens: np.ndarray,
    unigrams: np.ndarray,
    bigrams: np.ndarray,
    sequence_of: np.ndarray,
    chains: Chains,
    tests: TokenRows,
    pairs: PairTables,
    potentials: Potentials,
    kept: Kept,
    space: BlockSpace,
) -> None:
    """Add the expected counts of a block's weights, and the diagonal of their Hessian.

    tokens: [n] int32; unigrams, bigrams: [2] int64, first and last of the block's weights of either
    kind; sequence_of: [N] int32; kept: in and out; space: to gradient E is added, to curvature w p
    (1 - p) summed over tokens, those of negative weight left out.
    """
    psi, ent_ptr, pair_places = potentials.psi, pairs.ent_ptr, pairs.pair_places
    alpha, beta, context = kept.alpha, kept.beta, pairs.context
    expected, curvature = space.gradient, space.curvature
    j = 0
    while j < len(tokens):
        s = sequence_of[tokens[j]]
        stop = _end_of_visit(tokens, j, chains.offsets[s + 1])
        # Of the type that the other kernels are called with elsewhere.
        first: Any = np.int64(tokens[j])
        last: Any = np.int64(tokens[stop - 1])
        weight = chains.weights[s]
        space.counts[0] += 1
        _update_vectors(s, first, last, chains, pairs, potentials, kept, space)
        kept.partial[s] = partial_log_z(
            first,
            last,
            context,
            pairs.matrix_of,
            potentials.shift,
            kept.top,
            kept.scale,
            alpha,
            beta,
        )
        for i in range(j, stop):
            t = tokens[i]
            inverse = 1.0 / overlap(alpha[t], beta[t])
            _count_labels(
                unigrams[0],
                unigrams[1],
                tests.row_labels,
                0,
                inverse,
                weight,
                alpha[t],
                beta[t],
                expected,
                curvature,
            )
            c = context[t]
            if t == chains.offsets[s]:
                start = chains.n_labels * psi.shape[2]
                _count_labels(
                    _first_start(bigrams, pair_places, tests.split, start),
                    bigrams[1],
                    pair_places,
                    tests.split,
                    inverse,
                    weight,
                    alpha[t],
                    beta[t],
                    expected,
                    curvature,
                )
                continue
            _count_pairs(
                t,
                bigrams[0],
                bigrams[1],
                pair_places,
                tests.split,
                inverse / kept.scale[t],
                weight,
                psi[pairs.matrix_of[c]],
                ent_ptr[c],
                ent_ptr[c + 1],
                pairs.ent_place,
                potentials.value,
                kept.evidence,
                alpha,
                beta,
                expected,
                curvature,
            )
        j = stop


@inner
def measure_block(
    tokens: np.ndarray,
    sequence_of: np.ndarray,
    chains: Chains,
    pairs: PairTables,
    potentials: Potentials,
    kept: Kept,
    space: BlockSpace,
) -> tuple[float, float]:
    """Change of the weighted log Z since `visit_block`, after `refresh_block`.

    Forward vectors are computed anew from a sequence's first token of the block to its last, where
    the backward vector, which knows only of what comes after, tells the rest.
    RETURNS: the change; weighted number of tokens that were gone over, for its rounding error.
    """
    total, size, j = 0.0, 0.0, 0
    while j < len(tokens):
        s = sequence_of[tokens[j]]
        stop = _end_of_visit(tokens, j, chains.offsets[s + 1])
        # Of the type that the other kernels are called with elsewhere.
        first: Any = np.int64(tokens[j])
        last: Any = np.int64(tokens[stop - 1])
        _extend_forward(s, first, last + 1, chains, pairs, potentials, kept, space)
        kept.beta_begin[s] = max(kept.beta_begin[s], last)
        after = partial_log_z(
            first,
            last,
            pairs.context,
            pairs.matrix_of,
            potentials.shift,
            kept.top,
            kept.scale,
            kept.alpha,
            kept.beta,
        )
        total += chains.weights[s] * (after - kept.partial[s])
        size += abs(chains.weights[s]) * (last + 1 - first)
        space.counts[0] += 1
        j = stop
    return total, size
