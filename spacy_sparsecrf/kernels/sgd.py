"""Stochastic gradient descent, a sequence at a time, with a cumulative l1 penalty."""

from typing import Any

import numpy as np
from numba import njit

from .descent import pair_residual, update_entries, update_matrix, update_rows
from .entries import correct
from .forward_backward import forward_backward
from .path_loss import path_loss
from .potentials import context_matrices


@njit(cache=True, nogil=True, error_model="numpy")
def _build_potentials(
    s: int,
    tokens: np.ndarray,
    n_labels: int,
    n_previous: int,
    matrix_of: np.ndarray,
    constant: np.ndarray,
    mat_ptr: np.ndarray,
    mat_rows: np.ndarray,
    pair_ptr: np.ndarray,
    pair_places: np.ndarray,
    ent_ptr: np.ndarray,
    ent_start: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    weight_ptr: np.ndarray,
    weights: np.ndarray,
    theta: np.ndarray,
    psi: np.ndarray,
    shift: np.ndarray,
    value: np.ndarray,
    change: np.ndarray,
    rewritten: np.ndarray,
    stamp: np.ndarray,
) -> None:
    """Evaluate the matrices and entries of the contexts of sequence s, `tokens`, once each.

    stamp: [M + C] int64, in and out: the sequence for which each was evaluated last.
    """
    n_matrices = len(constant)
    for token_context in tokens:
        # Of the type that these kernels are called with elsewhere.
        c: Any = np.int64(token_context)
        m: Any = np.int64(matrix_of[c])
        # Matrices of ones were built before, and stay.
        if stamp[m] != s and not constant[m]:
            stamp[m] = s
            context_matrices(
                m,
                m + 1,
                n_labels,
                n_previous,
                mat_ptr,
                mat_rows,
                pair_ptr,
                pair_places,
                theta,
                psi,
                shift,
            )
        if stamp[n_matrices + c] != s and ent_ptr[c] < ent_ptr[c + 1]:
            stamp[n_matrices + c] = s
            correct(
                c,
                c + 1,
                matrix_of,
                ent_ptr,
                ent_start,
                ent_previous,
                ent_label,
                weight_ptr,
                weights,
                theta,
                psi,
                value,
                change,
                rewritten,
            )


@njit(cache=True, nogil=True, error_model="numpy")
def _update_pairs(
    first: int,
    last: int,
    n_labels: int,
    tokens: np.ndarray,
    labels: np.ndarray,
    context: np.ndarray,
    matrix_of: np.ndarray,
    constant: np.ndarray,
    mat_ptr: np.ndarray,
    mat_rows: np.ndarray,
    pair_ptr: np.ndarray,
    pair_places: np.ndarray,
    ent_ptr: np.ndarray,
    ent_start: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    ent_place: np.ndarray,
    weight_ptr: np.ndarray,
    weights: np.ndarray,
    psi: np.ndarray,
    value: np.ndarray,
    sums: np.ndarray,
    residual: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    step: float,
    theta: np.ndarray,
    received: np.ndarray,
    shrunk: np.ndarray,
    due: np.ndarray,
) -> None:
    """Descend on the bigram weights of a sequence, tokens first:last, a run of tokens at a time.

    Tokens of a run share a context, or a matrix; arguments as in `sgd_pass`, theta, received and
    shrunk of bigram weights only.
    """
    same_context = same_matrix = first
    for i in range(first, last):
        c = context[i]
        m = matrix_of[c]
        # The first token has entries of its own, those of the start row.
        if i == first or i + 1 == last or context[i + 1] != c:
            if ent_ptr[c] < ent_ptr[c + 1]:
                update_entries(
                    same_context,
                    i + 1,
                    labels,
                    c,
                    n_labels,
                    ent_ptr,
                    ent_start,
                    ent_previous,
                    ent_label,
                    ent_place,
                    weight_ptr,
                    weights,
                    value,
                    alpha,
                    backward,
                    sums,
                    step,
                    theta,
                    received,
                    shrunk,
                    due,
                )
            same_context = i + 1
        if i + 1 == last or matrix_of[context[i + 1]] != m:
            if not constant[m]:
                pair_residual(
                    same_matrix,
                    i + 1,
                    n_labels,
                    tokens,
                    labels,
                    context,
                    psi[m],
                    ent_ptr,
                    ent_start,
                    ent_previous,
                    ent_label,
                    value,
                    alpha,
                    backward,
                    residual,
                )
                update_matrix(
                    mat_rows[mat_ptr[m] : mat_ptr[m + 1]],
                    pair_ptr,
                    pair_places,
                    residual.reshape(-1),
                    step,
                    theta,
                    received,
                    shrunk,
                    due,
                )
            same_matrix = i + 1


@njit(cache=True, nogil=True, error_model="numpy")
def sgd_pass(
    order: np.ndarray,
    n_labels: int,
    n_previous: int,
    offsets: np.ndarray,
    labels: np.ndarray,
    allowed: np.ndarray,
    sequence_weights: np.ndarray,
    head_ptr: np.ndarray,
    heads: np.ndarray,
    table: np.ndarray,
    tok_ptr: np.ndarray,
    tok_rows: np.ndarray,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    context: np.ndarray,
    matrix_of: np.ndarray,
    constant: np.ndarray,
    mat_ptr: np.ndarray,
    mat_rows: np.ndarray,
    pair_ptr: np.ndarray,
    pair_places: np.ndarray,
    ent_ptr: np.ndarray,
    ent_start: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    ent_place: np.ndarray,
    weight_ptr: np.ndarray,
    weights: np.ndarray,
    split: int,
    theta: np.ndarray,
    received: np.ndarray,
    row_shrunk: np.ndarray,
    pair_shrunk: np.ndarray,
    due: np.ndarray,
    l1_rate: float,
    l2_rate: float,
    eta: float,
    decay: float,
    tokens: np.ndarray,
    psi: np.ndarray,
    shift: np.ndarray,
    value: np.ndarray,
    change: np.ndarray,
    rewritten: np.ndarray,
    stamp: np.ndarray,
    sums: np.ndarray,
    residual: np.ndarray,
    scratch: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    marginals: np.ndarray,
    beta: np.ndarray,
) -> float:
    """One pass of stochastic gradient descent over sequences, in the given order.

    order: [n] int64 sequences, all of whose tokens have gold labels; theta and received [K],
    row_shrunk [R], pair_shrunk [bigram weights] (see `descent`): unigram weights
    first, `split` of them, in and out; due: [2] float64 cumulated l1 and l2 rates, in and out;
    l1_rate, l2_rate: penalties per sequence (rho / N); eta: step of the first sequence,
    multiplied by `decay` after each; 0 only measures. The tables are those of `forward_backward`,
    `context_matrices` and `entries.correct`. Workspaces: tokens [T] int32 0, 1, 2, ..., psi [M,
    Y + 1, Yp] (ones where constant), shift [M], value, change [E], rewritten [C], stamp [M + C],
    sums [largest number of entries of a context], residual, scratch [Y + 1, Yp], alpha, backward,
    marginals [T, Yp], beta [Yp], T the longest sequence.
    RETURNS: the weighted sum of -log p(y | x) of the sequences, each before its update.
    """
    loss = 0.0
    # bounds[0] stays 0: a literal would have numba compile the kernels called once more.
    bounds = np.zeros(2, dtype=np.int64)
    one, log_z = np.ones(1), np.zeros(1)
    pair_theta, pair_received = theta[split:], received[split:]
    for i in range(len(stamp)):
        stamp[i] = -1
    for s in order:
        begin, end = offsets[s], offsets[s + 1]
        n = end - begin
        bounds[1] = n
        gold = labels[begin:end]
        where = context[begin:end]
        _build_potentials(
            s,
            where,
            n_labels,
            n_previous,
            matrix_of,
            constant,
            mat_ptr,
            mat_rows,
            pair_ptr,
            pair_places,
            ent_ptr,
            ent_start,
            ent_previous,
            ent_label,
            weight_ptr,
            weights,
            pair_theta,
            psi,
            shift,
            value,
            change,
            rewritten,
            stamp,
        )
        forward_backward(
            bounds[0],
            bounds[0] + 1,
            n_labels,
            bounds,
            one,
            allowed[begin:end],
            head_ptr[begin : end + 1],
            heads,
            table,
            tok_ptr[begin : end + 1],
            tok_rows,
            row_ptr,
            row_labels,
            theta[:split],
            where,
            matrix_of,
            psi,
            shift,
            constant,
            ent_ptr,
            ent_start,
            ent_previous,
            ent_label,
            change,
            rewritten,
            alpha,
            backward,
            marginals,
            log_z,
            beta,
            scratch,
        )
        loss += sequence_weights[s] * path_loss(
            gold,
            where,
            matrix_of,
            psi,
            ent_ptr,
            ent_place,
            value,
            alpha,
            backward,
            marginals,
        )
        step = eta * sequence_weights[s]
        if step == 0.0:
            continue
        eta *= decay
        due[0] += step * l1_rate
        due[1] += step * l2_rate
        for i in range(n):
            marginals[i, gold[i]] -= 1.0
            update_rows(
                tok_rows,
                tok_ptr[begin + i],
                tok_ptr[begin + i + 1],
                n_labels,
                row_ptr,
                row_labels,
                marginals[i],
                step,
                theta[:split],
                received[:split],
                row_shrunk,
                due,
            )
        _update_pairs(
            bounds[0],
            n,
            n_labels,
            tokens,
            gold,
            where,
            matrix_of,
            constant,
            mat_ptr,
            mat_rows,
            pair_ptr,
            pair_places,
            ent_ptr,
            ent_start,
            ent_previous,
            ent_label,
            ent_place,
            weight_ptr,
            weights,
            psi,
            value,
            sums,
            residual,
            alpha,
            backward,
            step,
            pair_theta,
            pair_received,
            pair_shrunk,
            due,
        )
    return loss
