"""One sequence for SAG: its loss and its residuals."""

import numpy as np

from .compiled import inner
from .example import _build_potentials
from .forward_backward import forward_backward
from .memory import fill
from .path_loss import path_loss
from .residuals import add_labels, add_pairs


@inner
def _add_residuals(
    s: int,
    first: int,
    offsets: np.ndarray,
    weights: np.ndarray,
    n_labels: int,
    labels: np.ndarray,
    allowed: np.ndarray,
    head_ptr: np.ndarray,
    heads: np.ndarray,
    table: np.ndarray,
    tok_ptr: np.ndarray,
    tok_rows: np.ndarray,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    theta: np.ndarray,
    context: np.ndarray,
    matrix_of: np.ndarray,
    psi: np.ndarray,
    shift: np.ndarray,
    constant: np.ndarray,
    ent_ptr: np.ndarray,
    ent_start: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    ent_place: np.ndarray,
    value: np.ndarray,
    change: np.ndarray,
    rewritten: np.ndarray,
    seq_ptr: np.ndarray,
    grp_ptr: np.ndarray,
    grp_tokens: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    marginals: np.ndarray,
    walk: np.ndarray,
    scales: np.ndarray,
    scratch: np.ndarray,
    products: np.ndarray,
    node_residual: np.ndarray,
    pair_residual: np.ndarray,
) -> float:
    """Add a sequence's residuals, times its weight, and return its loss, times its weight.

    s: the sequence, whose potentials are built; first: the one whose groups it has: itself, or that
    of which it is a copy; offsets [S + 1], weights [S]; seq_ptr, grp_ptr, grp_tokens: groups of a
    sequence and their tokens (see `residuals`); products, node_residual [>= T, Yp], pair_residual
    [>= groups, Y, Yp]: see `add_pairs`. The others: see `forward_backward`.
    """
    begin, end = offsets[s], offsets[s + 1]
    gold, where = labels[begin:end], context[begin:end]
    # bounds[0] stays 0: a literal would have numba compile the kernels called once more.
    bounds = np.zeros(2, dtype=np.int64)
    bounds[1] = end - begin
    log_z = np.zeros(1)
    forward_backward(
        bounds[0],
        bounds[0] + 1,
        n_labels,
        bounds,
        np.ones(1),
        allowed[begin:end],
        head_ptr[begin : end + 1],
        heads,
        table,
        tok_ptr[begin : end + 1],
        tok_rows,
        row_ptr,
        row_labels,
        theta,
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
        walk,
        bounds[0] + 1,
        scales,
        scratch,
        # False; a literal would have numba compile forward-backward once more.
        bounds[0] > 0,
    )
    weight = weights[s]
    loss = log_z[0]
    if gold[0] >= 0:
        loss = path_loss(
            gold, where, matrix_of, psi, ent_ptr, ent_place, value, alpha, backward, marginals
        )
    add_labels(weight, gold, marginals, node_residual)
    add_pairs(
        weight,
        seq_ptr[first],
        seq_ptr[first + 1],
        grp_ptr,
        grp_tokens,
        n_labels,
        gold,
        where,
        matrix_of,
        psi,
        ent_ptr,
        ent_start,
        ent_previous,
        ent_label,
        value,
        alpha,
        backward,
        products,
        pair_residual,
    )
    return float(weight * loss)


@inner
def evaluate_sequence(
    s: int,
    copy: int,
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
    seq_ptr: np.ndarray,
    grp_ptr: np.ndarray,
    grp_tokens: np.ndarray,
    theta: np.ndarray,
    fresh_nodes: np.ndarray,
    fresh_pairs: np.ndarray,
    products: np.ndarray,
    psi: np.ndarray,
    shift: np.ndarray,
    value: np.ndarray,
    change: np.ndarray,
    rewritten: np.ndarray,
    stamp: np.ndarray,
    clock: np.ndarray,
    scratch: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    marginals: np.ndarray,
    walk: np.ndarray,
    scales: np.ndarray,
) -> float:
    """The loss of a sequence, times its weight, and its residuals.

    copy: its constrained copy, -1 = none; fresh_nodes: [>= T, Yp], fresh_pairs: [>= groups, Y, Yp],
    out. The others: see `sag_pass`.
    """
    begin, end = offsets[s], offsets[s + 1]
    n_groups = seq_ptr[s + 1] - seq_ptr[s]
    fill(fresh_nodes.reshape(-1), 0, (end - begin) * fresh_nodes.shape[1], 0.0)
    fill(fresh_pairs.reshape(-1), 0, n_groups * products.size, 0.0)
    clock[0] += 1
    _build_potentials(
        clock[0],
        context[begin:end],
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
        theta[split:],
        psi,
        shift,
        value,
        change,
        rewritten,
        stamp,
    )
    loss = 0.0
    for part in (s, copy):
        if part >= 0:
            loss += _add_residuals(
                part,
                s,
                offsets,
                sequence_weights,
                n_labels,
                labels,
                allowed,
                head_ptr,
                heads,
                table,
                tok_ptr,
                tok_rows,
                row_ptr,
                row_labels,
                theta[:split],
                context,
                matrix_of,
                psi,
                shift,
                constant,
                ent_ptr,
                ent_start,
                ent_previous,
                ent_label,
                ent_place,
                value,
                change,
                rewritten,
                seq_ptr,
                grp_ptr,
                grp_tokens,
                alpha,
                backward,
                marginals,
                walk,
                scales,
                scratch,
                products,
                fresh_nodes,
                fresh_pairs,
            )
    return float(loss)
