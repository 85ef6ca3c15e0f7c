"""Inference on one example: what a stochastic solver does between two steps."""

from typing import Any

import numpy as np

from .compiled import inner
from .entries import correct
from .forward_backward import forward_backward
from .path_loss import path_loss
from .potentials import context_matrices


@inner
def _build_potentials(
    visit: int,
    context: np.ndarray,
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
    """Evaluate the matrices and entries of the contexts of an example, once each.

    context: of its tokens; stamp: [M + C] int64, in and out: the visit at which each was evaluated
    last.
    """
    n_matrices = len(constant)
    for token_context in context:
        # Of the type that these kernels are called with elsewhere.
        c: Any = np.int64(token_context)
        m: Any = np.int64(matrix_of[c])
        # Matrices of ones were built before, and stay.
        if stamp[m] != visit and not constant[m]:
            stamp[m] = visit
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
        if stamp[n_matrices + c] != visit and ent_ptr[c] < ent_ptr[c + 1]:
            stamp[n_matrices + c] = visit
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


@inner
def infer_example(
    s: int,
    visit: int,
    n_labels: int,
    n_previous: int,
    offsets: np.ndarray,
    twin: np.ndarray,
    labels: np.ndarray,
    allowed: np.ndarray,
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
    psi: np.ndarray,
    shift: np.ndarray,
    value: np.ndarray,
    change: np.ndarray,
    rewritten: np.ndarray,
    stamp: np.ndarray,
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
    """Run forward-backward on sequence s and, if it has one, on its constrained copy.

    An *example* is a sequence with gold labels, or one with missing labels and its copy, of which
    the loss is log Z less the copy's log Z (see `Lattice`). visit: number of this visit, or of a
    run of visits at the same weights; bounds: [2] int64, the first 0; signs: [2], 1 and -1;
    log_z: [2] workspace; alpha, backward, marginals: [2, T, Yp], out, those of the sequence and
    minus those of the copy; the marginals of the sequence are turned into the residuals of both
    together, expected minus observed labels. The rest: see `sgd_pass`.
    RETURNS: the loss, not weighted.
    """
    begin, end = offsets[s], offsets[s + 1]
    n = end - begin
    bounds[1] = n
    where = context[begin:end]
    _build_potentials(
        visit,
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
        theta[split:],
        psi,
        shift,
        value,
        change,
        rewritten,
        stamp,
    )
    for part in range(2):
        at = begin if part == 0 else offsets[max(twin[s], 0)]
        if part == 1 and twin[s] < 0:
            break
        forward_backward(
            bounds[0],
            bounds[0] + 1,
            n_labels,
            bounds,
            signs[part : part + 1],
            allowed[at : at + n],
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
            alpha[part],
            backward[part],
            marginals[part],
            log_z[part : part + 1],
            walk,
            bounds[0] + 1,
            scales,
            scratch,
            # False; a literal would have numba compile forward-backward once more.
            bounds[0] > 0,
        )
    residual = marginals[0]
    if twin[s] >= 0:
        for i in range(n):
            for y in range(residual.shape[1]):
                residual[i, y] += marginals[1, i, y]
        return float(log_z[0] - log_z[1])
    gold = labels[begin:end]
    loss = path_loss(
        gold, where, matrix_of, psi, ent_ptr, ent_place, value, alpha[0], backward[0], residual
    )
    for i in range(n):
        residual[i, gold[i]] -= 1.0
    return float(loss)
