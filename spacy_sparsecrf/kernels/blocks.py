"""A block, the weights of one test, on the sequences that contain it: gradient and change of log Z.

The tokens of a block are those of its test, ascending; a *visit* is a run of them in one sequence.
Forward and backward vectors are kept from block to block: see `truncated`.
"""

from typing import Any

import numpy as np

from .compiled import inner
from .truncated import extend_backward, extend_forward, overlap, partial_log_z


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


@inner
def _update_vectors(
    s: int,
    first: int,
    last: int,
    offsets: np.ndarray,
    n_labels: int,
    context: np.ndarray,
    matrix_of: np.ndarray,
    psi: np.ndarray,
    constant: np.ndarray,
    ent_ptr: np.ndarray,
    ent_start: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    change: np.ndarray,
    rewritten: np.ndarray,
    evidence: np.ndarray,
    alpha: np.ndarray,
    beta: np.ndarray,
    scale: np.ndarray,
    alpha_end: np.ndarray,
    beta_begin: np.ndarray,
    product: np.ndarray,
    scratch: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Make forward vectors of sequence s true up to token `last`, backward ones from `first`.

    The other arguments are as in `visit_block`.
    """
    if alpha_end[s] <= last:
        extend_forward(
            offsets[s],
            alpha_end[s],
            last + 1,
            n_labels,
            context,
            matrix_of,
            psi,
            constant,
            ent_ptr,
            ent_start,
            ent_previous,
            ent_label,
            change,
            rewritten,
            evidence,
            alpha,
            scale,
            scratch,
        )
        counts[1] += last + 1 - alpha_end[s]
        alpha_end[s] = last + 1
    if beta_begin[s] > first:
        extend_backward(
            offsets[s + 1],
            first,
            beta_begin[s],
            n_labels,
            context,
            matrix_of,
            psi,
            constant,
            ent_ptr,
            ent_start,
            ent_previous,
            ent_label,
            change,
            rewritten,
            evidence,
            beta,
            product,
            scratch,
        )
        counts[2] += beta_begin[s] - first
        beta_begin[s] = first


@inner
def visit_block(
    tokens: np.ndarray,
    unigrams: np.ndarray,
    bigrams: np.ndarray,
    sequence_of: np.ndarray,
    offsets: np.ndarray,
    sequence_weights: np.ndarray,
    row_labels: np.ndarray,
    pair_places: np.ndarray,
    split: int,
    n_labels: int,
    context: np.ndarray,
    matrix_of: np.ndarray,
    psi: np.ndarray,
    psi_shift: np.ndarray,
    constant: np.ndarray,
    ent_ptr: np.ndarray,
    ent_start: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    ent_place: np.ndarray,
    value: np.ndarray,
    change: np.ndarray,
    rewritten: np.ndarray,
    evidence: np.ndarray,
    top: np.ndarray,
    alpha: np.ndarray,
    beta: np.ndarray,
    scale: np.ndarray,
    alpha_end: np.ndarray,
    beta_begin: np.ndarray,
    partial: np.ndarray,
    expected: np.ndarray,
    curvature: np.ndarray,
    product: np.ndarray,
    scratch: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Add the expected counts of a block's weights, and the diagonal of their Hessian.

    tokens: [n] int32; unigrams, bigrams: [2] int64, first and last of the block's weights of either
    kind; split: number of unigram weights; sequence_of: [N] int32; offsets .. rewritten: as in
    `forward_backward`, change being ent_change, ent_place and value those of `entries.correct`;
    evidence, top: see `weigh_tokens`; alpha, beta, scale: see `extend_forward`, [N, Yp] and [N];
    of sequence s, alpha and scale are true before alpha_end[s], beta from beta_begin[s] on.
    partial: [S] float64, out, see `partial_log_z`; expected: [K] float64, added to: E; curvature:
    [K] float64, added to: w p (1 - p) summed over tokens, those of negative weight left out.
    Workspaces: product [Yp], scratch [Y + 1, Yp]; counts: [3] int64, added to: evaluations of a
    sequence, tokens that forward steps and that backward steps went over.
    """
    j = 0
    while j < len(tokens):
        s = sequence_of[tokens[j]]
        stop = _end_of_visit(tokens, j, offsets[s + 1])
        # Of the type that the other kernels are called with elsewhere.
        first: Any = np.int64(tokens[j])
        last: Any = np.int64(tokens[stop - 1])
        counts[0] += 1
        _update_vectors(
            s,
            first,
            last,
            offsets,
            n_labels,
            context,
            matrix_of,
            psi,
            constant,
            ent_ptr,
            ent_start,
            ent_previous,
            ent_label,
            change,
            rewritten,
            evidence,
            alpha,
            beta,
            scale,
            alpha_end,
            beta_begin,
            product,
            scratch,
            counts,
        )
        partial[s] = partial_log_z(
            first, last, context, matrix_of, psi_shift, top, scale, alpha, beta
        )
        for i in range(j, stop):
            t = tokens[i]
            inverse = 1.0 / overlap(alpha[t], beta[t])
            _count_labels(
                unigrams[0],
                unigrams[1],
                row_labels,
                0,
                inverse,
                sequence_weights[s],
                alpha[t],
                beta[t],
                expected,
                curvature,
            )
            c = context[t]
            if t == offsets[s]:
                _count_labels(
                    _first_start(bigrams, pair_places, split, n_labels * psi.shape[2]),
                    bigrams[1],
                    pair_places,
                    split,
                    inverse,
                    sequence_weights[s],
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
                split,
                inverse / scale[t],
                sequence_weights[s],
                psi[matrix_of[c]],
                ent_ptr[c],
                ent_ptr[c + 1],
                ent_place,
                value,
                evidence,
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
    offsets: np.ndarray,
    sequence_weights: np.ndarray,
    n_labels: int,
    context: np.ndarray,
    matrix_of: np.ndarray,
    psi: np.ndarray,
    psi_shift: np.ndarray,
    constant: np.ndarray,
    ent_ptr: np.ndarray,
    ent_start: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    change: np.ndarray,
    rewritten: np.ndarray,
    evidence: np.ndarray,
    top: np.ndarray,
    alpha: np.ndarray,
    beta: np.ndarray,
    scale: np.ndarray,
    alpha_end: np.ndarray,
    beta_begin: np.ndarray,
    partial: np.ndarray,
    scratch: np.ndarray,
    counts: np.ndarray,
) -> tuple[float, float]:
    """Change of the weighted log Z since `visit_block`, after `refresh_block`.

    Forward vectors are computed anew from a sequence's first token of the block to its last, where
    the backward vector, which knows only of what comes after, tells the rest.
    RETURNS: the change; weighted number of tokens that were gone over, for its rounding error.
    """
    total, size, j = 0.0, 0.0, 0
    while j < len(tokens):
        s = sequence_of[tokens[j]]
        stop = _end_of_visit(tokens, j, offsets[s + 1])
        # Of the type that the other kernels are called with elsewhere.
        first: Any = np.int64(tokens[j])
        last: Any = np.int64(tokens[stop - 1])
        extend_forward(
            offsets[s],
            first,
            last + 1,
            n_labels,
            context,
            matrix_of,
            psi,
            constant,
            ent_ptr,
            ent_start,
            ent_previous,
            ent_label,
            change,
            rewritten,
            evidence,
            alpha,
            scale,
            scratch,
        )
        alpha_end[s] = last + 1
        beta_begin[s] = max(beta_begin[s], last)
        after = partial_log_z(first, last, context, matrix_of, psi_shift, top, scale, alpha, beta)
        total += sequence_weights[s] * (after - partial[s])
        size += abs(sequence_weights[s]) * (last + 1 - first)
        counts[0] += 1
        counts[1] += last + 1 - first
        j = stop
    return total, size
