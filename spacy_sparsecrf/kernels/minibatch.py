"""Passes of stochastic solvers, a minibatch at a time."""

import numpy as np

from .compiled import inner, kernel
from .gradient import add_gradient, collect_rows
from .updates import catch_up_adagrad, catch_up_sgd, step_adagrad, step_sgd

# Rules of `minibatch_pass`.
SGD = 0
ADAGRAD = 1


@inner
def _catch_up(
    rows: np.ndarray,
    step: int,
    rule: int,
    weights_of: np.ndarray,
    done: np.ndarray,
    eta: float,
    delta: float,
    l1: float,
    l2: float,
    shrinkage: np.ndarray,
    averaged: np.ndarray,
    theta: np.ndarray,
    extra: np.ndarray,
) -> None:
    """Bring rows up to a step; arguments as in `minibatch_pass`."""
    for row in rows:
        begin, end = weights_of[row], weights_of[row + 1]
        if rule == SGD:
            catch_up_sgd(begin, end, done[row], step, shrinkage, averaged, theta, extra)
        else:
            missed = step - done[row]
            catch_up_adagrad(begin, end, missed, eta, delta, l1, l2, theta, extra)
        done[row] = step


@kernel
def minibatch_pass(
    order: np.ndarray,
    batch: int,
    rule: int,
    token_context: np.ndarray,
    ctx_ptr: np.ndarray,
    ctx_rows: np.ndarray,
    weights_of: np.ndarray,
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
    etas: np.ndarray,
    delta: float,
    l1: float,
    l2: float,
    shrinkage: np.ndarray,
    averaged: np.ndarray,
    averaging: bool,
    theta: np.ndarray,
    extra: np.ndarray,
    gradient: np.ndarray,
    nothing: np.ndarray,
    no_dues: np.ndarray,
    marks: np.ndarray,
    touched: np.ndarray,
    done: np.ndarray,
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
    """One pass over examples, a minibatch at a time, with a step along each one's gradient.

    order: [n] int64 examples; batch: how many make up a minibatch; rule: SGD or ADAGRAD, see
    `updates`; token_context, ctx_ptr, ctx_rows: see `collect_rows`; weights_of: [rows + 1] int64,
    weights of each row; etas: [minibatches], the steps, of which a 0 only measures; delta: of
    AdaGrad; l1, l2: penalties of one step; shrinkage, averaged: of SGD, see `catch_up_sgd`; theta:
    [K], in and out; extra: [K], in and out, the sum of SGD's iterates or AdaGrad's sum of
    squares. Workspaces: gradient [K], nothing [K + 1], no_dues [2], done [rows], all zero; marks
    [rows], all -1; touched [rows]. The rest: see `sgd_pass`.
    RETURNS: the weighted sum of the losses of the examples, each before its step.
    """
    loss = 0.0
    for i in range(len(stamp)):
        stamp[i] = -1
    for visit in range(len(etas)):
        members = order[visit * batch : (visit + 1) * batch]
        n_touched = collect_rows(
            members,
            visit,
            offsets,
            tok_ptr,
            tok_rows,
            len(row_ptr) - 1,
            token_context,
            ctx_ptr,
            ctx_rows,
            marks,
            touched,
        )
        rows = touched[:n_touched]
        eta = etas[visit]
        _catch_up(
            rows,
            visit,
            rule,
            weights_of,
            done,
            eta,
            delta,
            l1,
            l2,
            shrinkage,
            averaged,
            theta,
            extra,
        )
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
        for row in rows:
            begin, end = weights_of[row], weights_of[row + 1]
            if rule == SGD:
                step_sgd(begin, end, eta, l2, averaging, gradient, theta, extra)
            else:
                step_adagrad(begin, end, eta, delta, l1, l2, gradient, theta, extra)
            done[row] = visit + 1
    for row in range(len(done)):
        touched[row] = row
    _catch_up(
        touched,
        len(etas),
        rule,
        weights_of,
        done,
        etas[-1],
        delta,
        l1,
        l2,
        shrinkage,
        averaged,
        theta,
        extra,
    )
    return loss
