"""The gradients of examples, and the rows of weights they are on."""

import numpy as np

from .compiled import inner, kernel
from .descent import update_rows
from .example import infer_example
from .sgd import update_pairs


@inner
def add_gradient(
    s: int,
    visit: int,
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
    gradient: np.ndarray,
    nothing: np.ndarray,
    no_dues: np.ndarray,
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
    """Add the weighted gradient of example s to gradient [K].

    That is to descend from it, with a step of minus the example's weight and no penalty. nothing:
    [K + 1] zeros; no_dues: [2] zeros; the rest: see `sgd_pass` and `infer_example`, which leave
    what they do in the workspaces. RETURNS: the weighted loss.
    """
    loss = infer_example(
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
    weight = sequence_weights[s]
    begin = offsets[s]
    n = offsets[s + 1] - begin
    n_parts = 1 + (twin[s] >= 0)
    for i in range(n):
        update_rows(
            tok_rows,
            tok_ptr[begin + i],
            tok_ptr[begin + i + 1],
            n_labels,
            row_ptr,
            row_labels,
            marginals[0, i],
            -weight,
            gradient[:split],
            nothing,
            nothing,
            no_dues,
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
        -weight,
        gradient[split:],
        nothing,
        nothing,
        no_dues,
    )
    return float(weight * loss)


@kernel
def add_gradients(
    members: np.ndarray,
    visit: int,
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
    gradient: np.ndarray,
    nothing: np.ndarray,
    no_dues: np.ndarray,
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
    """Add the weighted gradients of examples `members`, at the same weights, to gradient [K].

    visit: a number of its own for each theta; the rest: see `add_gradient`.
    RETURNS: the weighted sum of the losses.
    """
    loss = 0.0
    for s in members:
        loss += add_gradient(
            s,
            visit,
            n_labels,
            n_previous,
            offsets,
            twin,
            labels,
            allowed,
            sequence_weights,
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
            gradient,
            nothing,
            no_dues,
            tokens,
            psi,
            shift,
            value,
            change,
            rewritten,
            stamp,
            sums,
            residual,
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
    return loss


@inner
def _collect(
    rows: np.ndarray, first: int, visit: int, marks: np.ndarray, touched: np.ndarray, n: int
) -> int:
    """Append first + row to touched[:n] for rows that are not marked with this visit.

    RETURNS: the new n.
    """
    for row in rows:
        if marks[first + row] != visit:
            marks[first + row] = visit
            touched[n] = first + row
            n += 1
    return n


@inner
def collect_rows(
    sequences: np.ndarray,
    visit: int,
    offsets: np.ndarray,
    tok_ptr: np.ndarray,
    tok_rows: np.ndarray,
    n_unigram: int,
    token_context: np.ndarray,
    ctx_ptr: np.ndarray,
    ctx_rows: np.ndarray,
    marks: np.ndarray,
    touched: np.ndarray,
) -> int:
    """List the rows that sequences have: unigram rows, then bigram rows from n_unigram on.

    token_context: [N]; ctx_ptr, ctx_rows: CSR, bigram rows of a context; marks: [rows] int64, in
    and out, the visit at which a row was listed last; touched: [rows] int64, out.
    RETURNS: how many they are.
    """
    n = 0
    for s in sequences:
        for t in range(offsets[s], offsets[s + 1]):
            rows = tok_rows[tok_ptr[t] : tok_ptr[t + 1]]
            n = _collect(rows, 0, visit, marks, touched, n)
            c = token_context[t]
            rows = ctx_rows[ctx_ptr[c] : ctx_ptr[c + 1]]
            n = _collect(rows, n_unigram, visit, marks, touched, n)
    return n
