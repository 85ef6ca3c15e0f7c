"""Entries: the pairs in which a context's potentials differ from a matrix that contexts share.

Sparse forward-backward relative to a shared base (Lavergne 2010, section 4.1, has ones as base).
"""

import numpy as np

from .compiled import inner, kernel
from .search import position


@kernel
def correct(
    first: int,
    last: int,
    matrix_of: np.ndarray,
    ent_ptr: np.ndarray,
    ent_start: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    weight_ptr: np.ndarray,
    weights: np.ndarray,
    theta: np.ndarray,
    psi: np.ndarray,
    value: np.ndarray,
    change: np.ndarray,
    rewritten: np.ndarray,
) -> None:
    """Evaluate the entries in which the potentials of contexts first:last differ from a matrix.

    value[e] = psi[m, y', y] exp(sum of theta over the entry's weights), m the context's matrix.
    Products with a matrix are mended by change[e] = value[e] - psi[m, y', y], which cancels where
    value is much smaller: the matrix of such a context is *rewritten*, with change[e] = value[e].
    In the start row, ent_start[c]:ent_ptr[c + 1], change[e] is always value[e].

    ent_ptr [C + 1], ent_start [C]: entries of a context; ent_previous, ent_label: [E] uint16;
    weight_ptr, weights: CSR, weights of an entry; theta: [K]; psi: [M, Y + 1, Yp]; value, change:
    [E] float64, out; rewritten: [C] bool, out.
    """
    for c in range(first, last):
        matrix = psi[matrix_of[c]]
        least = 1.0
        for e in range(ent_ptr[c], ent_ptr[c + 1]):
            score = 0.0
            for j in range(weight_ptr[e], weight_ptr[e + 1]):
                score += theta[weights[j]]
            factor = np.exp(score)
            base = float(matrix[ent_previous[e], ent_label[e]])
            value[e] = base * factor
            change[e] = value[e] - base
            if e < ent_start[c]:
                least = min(least, factor)
        # A thousandth loses three of sixteen digits.
        rewritten[c] = least < 1e-3
        first_value = ent_ptr[c] if rewritten[c] else ent_start[c]
        for e in range(first_value, ent_ptr[c + 1]):
            change[e] = value[e]


@kernel
def entry_sums(
    first: int,
    last: int,
    ent_context: np.ndarray,
    ent_ptr: np.ndarray,
    ent_start: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    inner_ptr: np.ndarray,
    inner_tokens: np.ndarray,
    start_ptr: np.ndarray,
    start_tokens: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Add to sums[e] alpha_{t-1}[y'] backward_t[y] of the tokens of the entry's context.

    Entries first:last, which may be a part of a context's; ent_context: [E] int32;
    inner_*, start_*: CSR of a context's tokens; sums: [E] float64, added to.
    """
    e = first
    while e < last:
        c = ent_context[e]
        end = min(last, ent_ptr[c + 1])
        middle = max(e, min(last, ent_start[c]))
        for j in range(inner_ptr[c], inner_ptr[c + 1]):
            t = inner_tokens[j]
            for i in range(e, middle):
                sums[i] += alpha[t - 1, ent_previous[i]] * backward[t, ent_label[i]]
        for j in range(start_ptr[c], start_ptr[c + 1]):
            t = start_tokens[j]
            for i in range(middle, end):
                sums[i] += backward[t, ent_label[i]]
        e = end


@kernel
def settle_entries(
    first: int,
    last: int,
    constant: np.ndarray,
    ctx_ptr: np.ndarray,
    contexts: np.ndarray,
    ent_ptr: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    value: np.ndarray,
    gold: np.ndarray,
    psi: np.ndarray,
    residual: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Turn sums of entries into expected minus observed counts, and mend their matrices' counts.

    Of matrices first:last, whose contexts ctx_ptr/contexts list: residual[m, y', y] += (value[e] -
    psi[m, y', y]) sums[e], then sums[e] := value[e] sums[e] - gold[e]. gold: [E] float64,
    weighted gold counts of an entry's pair in its context.
    """
    for m in range(first, last):
        for j in range(ctx_ptr[m], ctx_ptr[m + 1]):
            c = contexts[j]
            for e in range(ent_ptr[c], ent_ptr[c + 1]):
                i, y = ent_previous[e], ent_label[e]
                if not constant[m]:
                    residual[m, i, y] += (value[e] - psi[m, i, y]) * sums[e]
                sums[e] = value[e] * sums[e] - gold[e]


@inner
def _count(
    places: np.ndarray,
    place: int,
    labels: np.ndarray,
    token_weight: np.ndarray,
    t: int,
    counts: np.ndarray,
) -> None:
    """Add a token's weight to the count of its place, if the token is gold and the place listed."""
    if labels[t] < 0:
        return
    e = position(places, place)
    if e < len(places) and places[e] == place:
        counts[e] += token_weight[t]


@kernel
def count_entries(
    ent_ptr: np.ndarray,
    ent_place: np.ndarray,
    inner_ptr: np.ndarray,
    inner_tokens: np.ndarray,
    start_ptr: np.ndarray,
    start_tokens: np.ndarray,
    n_labels: int,
    padded: int,
    labels: np.ndarray,
    token_weight: np.ndarray,
    gold: np.ndarray,
) -> None:
    """Add to gold[e] the weights of the tokens of a context whose gold pair is the entry's.

    ent_place: [E] int32, y' * Yp + y, ascending in each context.
    """
    for c in range(len(ent_ptr) - 1):
        places = ent_place[ent_ptr[c] : ent_ptr[c + 1]]
        if len(places) == 0:
            continue
        counts = gold[ent_ptr[c] : ent_ptr[c + 1]]
        for j in range(inner_ptr[c], inner_ptr[c + 1]):
            t = inner_tokens[j]
            _count(places, labels[t - 1] * padded + labels[t], labels, token_weight, t, counts)
        for j in range(start_ptr[c], start_ptr[c + 1]):
            t = start_tokens[j]
            _count(places, n_labels * padded + labels[t], labels, token_weight, t, counts)
