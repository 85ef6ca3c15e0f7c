"""Descent on weights with the cumulative l1 penalty (Tsuruoka et al. 2009) and lazy l2."""

from typing import Any

import numpy as np

from .compiled import inner, kernel
from .expectations import add_outer_products, add_starts
from .memory import fill, prefetch
from .search import position

# How many rows ahead what a weight has paid is asked for.
_AHEAD = 12


@inner
def _decay(x: float) -> float:
    """exp(-x); where x is tiny, as it mostly is, without calling exp."""
    if x < 1e-5:
        return 1.0 - x + 0.5 * x * x
    return float(np.exp(-x))


@inner
def _penalise(k: int, weight: float, theta: np.ndarray, received: np.ndarray, due: float) -> None:
    """Apply to theta[k] := weight the l1 penalty that is due, and enter it at received[k].

    Both signs at once, without a branch, so that loops over weights vectorise: the penalty is the
    weight itself, cut to what is left of `due` in the direction of either sign.
    """
    positive = max(due + received[k], 0.0)
    negative = min(received[k] - due, 0.0)
    kept = weight - min(max(weight, negative), positive)
    received[k] += kept - weight
    theta[k] = kept


@kernel
def penalise(
    row_ptr: np.ndarray,
    theta: np.ndarray,
    received: np.ndarray,
    shrunk: np.ndarray,
    due: np.ndarray,
) -> None:
    """Apply to all weights the penalties that have been due since they were last seen.

    With u = due[0] and q = received: w := max(0, w - (u + q)) for w > 0, min(0, w + (u - q)) for
    w < 0, and q += the change (Tsuruoka 2009, section 3.2; Lavergne 2010, equation 8, prints one
    sign wrong). l2 shrinks: w *= exp(-(due[1] - shrunk)). Applying it twice changes nothing.

    theta: [K] float64, in and out; received: [K] float64, in and out, the l1 penalty that a
    weight has received; shrunk: [R] float64, in and out, the l2 rate a row has been shrunk by;
    row_ptr: [R + 1], weights of a row; due: [2], cumulated l1 and l2 rates.
    """
    for row in range(len(shrunk)):
        factor = _decay(due[1] - shrunk[row])
        shrunk[row] = due[1]
        for k in range(row_ptr[row], row_ptr[row + 1]):
            _penalise(k, factor * theta[k], theta, received, due[0])


@inner
def _add_masses(
    t: int,
    begin: int,
    end: int,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    sums: np.ndarray,
) -> None:
    """sums[e - begin] += p(y', y) / psi(y', y) at token t of the pairs of entries begin:end."""
    for e in range(begin, end):
        i, y = ent_previous[e], ent_label[e]
        sums[e - begin] += backward[t, y] if t == 0 else alpha[t - 1, i] * backward[t, y]


@inner
def pair_residual(
    first: int,
    last: int,
    n_parts: int,
    n_labels: int,
    tokens: np.ndarray,
    labels: np.ndarray,
    context: np.ndarray,
    matrix: np.ndarray,
    ent_ptr: np.ndarray,
    ent_start: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    value: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    sums: np.ndarray,
    residual: np.ndarray,
) -> None:
    """Expected minus observed pairs of the tokens first:last of an example, which share a matrix.

    n_parts: 2 with a constrained copy, else 1; tokens: 0, 1, 2, ...; alpha, backward: [2, T, Yp],
    see `infer_example`; sums: [entries of a context] workspace; residual:
    [Y + 1, Yp], out.
    """
    fill(residual.reshape(-1), 0, residual.size, 0.0)
    inner = max(first, 1)
    for part in range(n_parts):
        add_outer_products(tokens, inner, last, n_labels, alpha[part], backward[part], residual)
        add_starts(tokens, first, inner, n_labels, backward[part], residual)
    for i in range(residual.shape[0]):
        for y in range(residual.shape[1]):
            residual[i, y] *= matrix[i, y]
    for t in range(first, last):
        c = context[t]
        begin, end = _entries_of(t, c, ent_ptr, ent_start)
        if begin < end:
            fill(sums, 0, end - begin, 0.0)
            for part in range(n_parts):
                _add_masses(
                    t, begin, end, ent_previous, ent_label, alpha[part], backward[part], sums
                )
        for e in range(begin, end):
            i, y = ent_previous[e], ent_label[e]
            residual[i, y] += (value[e] - matrix[i, y]) * sums[e - begin]
        if labels[t] >= 0:
            residual[n_labels if t == 0 else labels[t - 1], labels[t]] -= 1.0


@inner
def _entries_of(t: int, c: int, ent_ptr: np.ndarray, ent_start: np.ndarray) -> tuple[int, int]:
    """Entries of context c that a sequence's token t can use: the start row's, or the others."""
    if t == 0:
        return ent_start[c], ent_ptr[c + 1]
    return ent_ptr[c], ent_start[c]


@inner
def update_rows(
    rows: np.ndarray,
    first: int,
    last: int,
    n_labels: int,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    residual: np.ndarray,
    step: float,
    theta: np.ndarray,
    received: np.ndarray,
    shrunk: np.ndarray,
    due: np.ndarray,
) -> None:
    """Descend on the unigram weights of rows[first:last], then apply the penalties due.

    residual: [Yp], gradient by label; rows: int32 ids; shrunk: [R] of rows.
    """
    for j in range(first, last):
        if j + _AHEAD < len(rows):
            prefetch(received, row_ptr[rows[j + _AHEAD]])
            prefetch(shrunk, rows[j + _AHEAD])
        row = rows[j]
        begin, end = row_ptr[row], row_ptr[row + 1]
        factor = _decay(due[1] - shrunk[row])
        shrunk[row] = due[1]
        if end - begin == n_labels:
            weights, paid = theta[begin:end], received[begin:end]
            for y in range(n_labels):
                _penalise(y, factor * (weights[y] - step * residual[y]), weights, paid, due[0])
        else:
            for k in range(begin, end):
                weight = factor * (theta[k] - step * residual[row_labels[k]])
                _penalise(k, weight, theta, received, due[0])


@inner
def _update_pair(
    k: int,
    weight: float,
    theta: np.ndarray,
    received: np.ndarray,
    shrunk: np.ndarray,
    due: np.ndarray,
) -> None:
    """Set a bigram weight, then apply the penalties due; shrunk: [K] of weights.

    A bigram test may act by a matrix here and by entries there: its weights shrink apart.
    """
    factor = _decay(due[1] - shrunk[k])
    shrunk[k] = due[1]
    _penalise(k, factor * weight, theta, received, due[0])


@inner
def update_matrix(
    rows: np.ndarray,
    pair_ptr: np.ndarray,
    pair_places: np.ndarray,
    residual: np.ndarray,
    step: float,
    theta: np.ndarray,
    received: np.ndarray,
    shrunk: np.ndarray,
    due: np.ndarray,
) -> None:
    """Descend on the weights of a matrix's rows; residual: gradient by place of a weight."""
    for j in range(len(rows)):
        for k in range(pair_ptr[rows[j]], pair_ptr[rows[j] + 1]):
            weight = theta[k] - step * residual[pair_places[k]]
            _update_pair(k, weight, theta, received, shrunk, due)


@inner
def update_entries(
    first: int,
    last: int,
    n_parts: int,
    labels: np.ndarray,
    c: int,
    n_labels: int,
    ent_ptr: np.ndarray,
    ent_start: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    ent_place: np.ndarray,
    weight_ptr: np.ndarray,
    weights: np.ndarray,
    value: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    sums: np.ndarray,
    step: float,
    theta: np.ndarray,
    received: np.ndarray,
    shrunk: np.ndarray,
    due: np.ndarray,
) -> None:
    """Descend on the weights of the entries of tokens first:last, all of context c.

    Either all of the tokens begin the sequence, or none. sums: [entries of a context] workspace.
    """
    padded = backward.shape[2]
    begin, end = _entries_of(first, c, ent_ptr, ent_start)
    fill(sums, 0, end - begin, 0.0)
    for part in range(n_parts):
        for t in range(first, last):
            _add_masses(t, begin, end, ent_previous, ent_label, alpha[part], backward[part], sums)
    for e in range(begin, end):
        sums[e - begin] *= value[e]
    for t in range(first, last):
        if labels[t] < 0:
            continue
        place = (n_labels if t == 0 else labels[t - 1]) * padded + labels[t]
        e = position(ent_place[begin:end], place)
        if begin + e < end and ent_place[begin + e] == place:
            sums[e] -= 1.0
    for e in range(begin, end):
        for j in range(weight_ptr[e], weight_ptr[e + 1]):
            k: Any = np.int64(weights[j])
            weight = theta[k] - step * sums[e - begin]
            _update_pair(k, weight, theta, received, shrunk, due)
