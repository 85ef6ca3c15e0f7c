"""The search for the Lipschitz constant of a sequence's gradient, its *curvature*."""

import numpy as np

from .compiled import inner
from .example import _build_potentials
from .forward import forward_loss

# Rounding errors of the loss, a token: where they prevail, the search would not end without it.
_ROUNDING = 1e-13
# No curvature is estimated to be larger.
_LARGEST = 1e30


@inner
def _loss_of(
    s: int,
    n_labels: int,
    offsets: np.ndarray,
    labels: np.ndarray,
    allowed: np.ndarray,
    sequence_weights: np.ndarray,
    tok_ptr: np.ndarray,
    tok_rows: np.ndarray,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    context: np.ndarray,
    matrix_of: np.ndarray,
    constant: np.ndarray,
    ent_ptr: np.ndarray,
    ent_start: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    ent_place: np.ndarray,
    split: int,
    theta: np.ndarray,
    psi: np.ndarray,
    shift: np.ndarray,
    value: np.ndarray,
    change: np.ndarray,
    rewritten: np.ndarray,
    alpha: np.ndarray,
    evidence: np.ndarray,
    scratch: np.ndarray,
) -> float:
    """The weighted loss of sequence s, whose potentials are built; arguments as in `sag_pass`."""
    begin, end = offsets[s], offsets[s + 1]
    return float(
        sequence_weights[s]
        * forward_loss(
            n_labels,
            labels[begin:end],
            allowed[begin:end],
            tok_ptr[begin : end + 1],
            tok_rows,
            row_ptr,
            row_labels,
            theta[:split],
            context[begin:end],
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
            alpha,
            evidence,
            scratch,
        )
    )


@inner
def _losses(
    s: int,
    copy: int,
    n_labels: int,
    n_previous: int,
    offsets: np.ndarray,
    labels: np.ndarray,
    allowed: np.ndarray,
    sequence_weights: np.ndarray,
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
    clock: np.ndarray,
    alpha: np.ndarray,
    evidence: np.ndarray,
    scratch: np.ndarray,
) -> float:
    """The weighted loss of sequence s at theta [K], that of its copy added; see `sag_pass`."""
    begin, end = offsets[s], offsets[s + 1]
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
            loss += _loss_of(
                part,
                n_labels,
                offsets,
                labels,
                allowed,
                sequence_weights,
                tok_ptr,
                tok_rows,
                row_ptr,
                row_labels,
                context,
                matrix_of,
                constant,
                ent_ptr,
                ent_start,
                ent_previous,
                ent_label,
                ent_place,
                split,
                theta,
                psi,
                shift,
                value,
                change,
                rewritten,
                alpha,
                evidence,
                scratch,
            )
    return float(loss)


@inner
def search_curvature(
    curvature: float,
    loss: float,
    norm: float,
    grow: float,
    s: int,
    copy: int,
    n_labels: int,
    n_previous: int,
    offsets: np.ndarray,
    labels: np.ndarray,
    allowed: np.ndarray,
    sequence_weights: np.ndarray,
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
    own_ptr: np.ndarray,
    own_rows: np.ndarray,
    all_ptr: np.ndarray,
    theta: np.ndarray,
    gradient: np.ndarray,
    trial: np.ndarray,
    psi: np.ndarray,
    shift: np.ndarray,
    value: np.ndarray,
    change: np.ndarray,
    rewritten: np.ndarray,
    stamp: np.ndarray,
    clock: np.ndarray,
    alpha: np.ndarray,
    evidence: np.ndarray,
    scratch: np.ndarray,
) -> tuple[float, int]:
    """Raise an estimate of a sequence's curvature until a step is as good as it foretells.

    f(w - g / L) < f(w) - |g|^2 / (2 L), else L := grow * L (algorithm 2).

    curvature: L; loss, norm: f and |g|^2 of sequence s; copy: its constrained copy, -1 = none;
    gradient: [K], g where the sequence has weights; trial: [K] workspace. The others: see
    `sag_pass`. RETURNS: L, and the number of evaluations.
    """
    begin, end = offsets[s], offsets[s + 1]
    slack = _ROUNDING * (end - begin) * sequence_weights[s]
    n_trials = 0
    while True:
        for j in range(own_ptr[s], own_ptr[s + 1]):
            for k in range(all_ptr[own_rows[j]], all_ptr[own_rows[j] + 1]):
                trial[k] = theta[k] - gradient[k] / curvature
        reached = _losses(
            s,
            copy,
            n_labels,
            n_previous,
            offsets,
            labels,
            allowed,
            sequence_weights,
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
            trial,
            psi,
            shift,
            value,
            change,
            rewritten,
            stamp,
            clock,
            alpha,
            evidence,
            scratch,
        )
        n_trials += 1
        # Nor where the loss is not a number.
        if reached < loss - norm / (2.0 * curvature) + slack or curvature > _LARGEST:
            return curvature, n_trials
        curvature *= grow
