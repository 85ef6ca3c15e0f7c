"""Stochastic gradient descent, an example at a time, with a cumulative l1 penalty."""

import numpy as np

from .compiled import inner, kernel
from .descent import pair_residual, update_entries, update_matrix, update_rows
from .example import infer_example
from .memory import lent


@inner
def update_pairs(
    first: int,
    last: int,
    n_parts: int,
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
    """Descend on the bigram weights of an example, tokens first:last, a run of tokens at a time.

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
                    n_parts,
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
                    n_parts,
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
                    sums,
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


@kernel
def sgd_pass(
    order: np.ndarray,
    n_labels: int,
    n_previous: int,
    offsets: np.ndarray,
    twin: np.ndarray,
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
    walk: np.ndarray,
    scales: np.ndarray,
    bounds: np.ndarray,
    signs: np.ndarray,
    log_z: np.ndarray,
) -> float:
    """One pass of stochastic gradient descent over examples, in the given order.

    order: [n] int64 sequences, complete or with a copy `twin` (see `infer_example`); theta and
    received [K], row_shrunk [R], pair_shrunk [bigram weights] (see `descent`): unigram weights
    first, `split` of them, in and out; due: [2] float64 cumulated l1 and l2 rates, in and out;
    l1_rate, l2_rate: penalties per example (rho / N); eta: step of the first example,
    multiplied by `decay` after each; 0 only measures. The tables are those of `forward_backward`,
    `context_matrices` and `entries.correct`. Workspaces: tokens [T] int32 0, 1, 2, ..., psi [M,
    Y + 1, Yp] (ones where constant), shift [M], value, change [E], rewritten [C], stamp [M + C],
    sums [largest number of entries of a context], residual, scratch [Y + 1, Yp], alpha, backward,
    marginals [2, T, Yp], scales [T], T the longest sequence; walk [T] of any one sequence; bounds,
    signs, log_z [2] of `infer_example`.
    RETURNS: the weighted sum of the losses of the examples, each before its update.
    """
    labels, context, tok_rows = lent(labels), lent(context), lent(tok_rows)
    row_ptr, row_labels, theta = lent(row_ptr), lent(row_labels), lent(theta)
    received, row_shrunk, pair_shrunk = lent(received), lent(row_shrunk), lent(pair_shrunk)
    marginals, alpha, backward = lent(marginals), lent(alpha), lent(backward)
    psi = lent(psi)
    loss = 0.0
    pair_theta, pair_received = theta[split:], received[split:]
    for i in range(len(stamp)):
        stamp[i] = -1
    for visit in range(len(order)):
        s = order[visit]
        begin = offsets[s]
        n = offsets[s + 1] - begin
        n_parts = 1 + (twin[s] >= 0)
        loss += sequence_weights[s] * infer_example(
            s,
            visit,
            n_labels,
            n_previous,
            offsets,
            twin,
            labels,
            allowed,
            head_ptr,
            heads,
            table,
            tok_ptr,
            tok_rows,
            row_ptr,
            row_labels,
            context,
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
            split,
            theta,
            psi,
            shift,
            value,
            change,
            rewritten,
            stamp,
            scratch,
            alpha,
            backward,
            marginals,
            walk,
            scales,
            bounds,
            signs,
            log_z,
        )
        if eta == 0.0:
            continue
        step = eta * sequence_weights[s]
        # An example's share of the penalty does not depend on its weight.
        due[0] += eta * l1_rate
        due[1] += eta * l2_rate
        eta *= decay
        for i in range(n):
            update_rows(
                tok_rows,
                tok_ptr[begin + i],
                tok_ptr[begin + i + 1],
                n_labels,
                row_ptr,
                row_labels,
                marginals[0, i],
                step,
                theta[:split],
                received[:split],
                row_shrunk,
                due,
            )
        update_pairs(
            bounds[0],
            n,
            n_parts,
            n_labels,
            tokens,
            labels[begin : begin + n],
            context[begin : begin + n],
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
