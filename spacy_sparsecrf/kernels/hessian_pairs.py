"""Pair weights in Hessian-vector products: their scores along a direction, their derivatives."""

import numpy as np

from .compiled import kernel
from .expectations import add_outer_products, add_starts
from .memory import fill
from .potentials import add_pairs


@kernel
def matrix_slopes(
    first: int,
    last: int,
    n_labels: int,
    n_previous: int,
    mat_ptr: np.ndarray,
    mat_rows: np.ndarray,
    row_ptr: np.ndarray,
    row_places: np.ndarray,
    direction: np.ndarray,
    slope: np.ndarray,
) -> None:
    """slope[m, y', y] = sum of the direction's weights: derivative of a matrix's log-potentials.

    Of matrices first:last; direction: [K] of the bigram weights; slope: [M, Y + 1, Yp], out; the
    rest as in `context_matrices`.
    """
    for m in range(first, last):
        fill(slope[m].reshape(-1), 0, slope[m].size, 0.0)
        add_pairs(
            slope[m],
            mat_rows,
            mat_ptr[m],
            mat_ptr[m + 1],
            n_labels,
            n_previous,
            row_ptr,
            row_places,
            direction,
        )


@kernel
def entry_slopes(
    first: int,
    last: int,
    matrix_of: np.ndarray,
    ent_ptr: np.ndarray,
    ent_start: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    weight_ptr: np.ndarray,
    weights: np.ndarray,
    direction: np.ndarray,
    slope: np.ndarray,
    value: np.ndarray,
    change: np.ndarray,
    rewritten: np.ndarray,
    ent_score: np.ndarray,
    ent_slope: np.ndarray,
) -> None:
    """Evaluate a direction at the entries of contexts first:last.

    ent_score[e]: the direction's score of the pair, the matrix's part included; ent_slope[e]: the
    derivative of the potential less what products with the matrix as it was used have of it (the
    matrix itself, or rewritten, with its slope; nothing in the start row).

    value, change, rewritten and the tables: see `entries.correct`; slope: [M, Y + 1, Yp];
    ent_score, ent_slope: [E] float64, out.
    """
    for c in range(first, last):
        matrix = slope[matrix_of[c]]
        for e in range(ent_ptr[c], ent_ptr[c + 1]):
            own = 0.0
            for j in range(weight_ptr[e], weight_ptr[e + 1]):
                own += direction[weights[j]]
            base = float(matrix[ent_previous[e], ent_label[e]])
            ent_score[e] = base + own
            ent_slope[e] = value[e] * own
            if e >= ent_start[c] or not rewritten[c]:
                ent_slope[e] += change[e] * base


@kernel
def matrix_products(
    first: int,
    last: int,
    n_labels: int,
    constant: np.ndarray,
    mat_spans: np.ndarray,
    sums: np.ndarray,
    inner_ptr: np.ndarray,
    inner_tokens: np.ndarray,
    start_ptr: np.ndarray,
    start_tokens: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    total: np.ndarray,
) -> None:
    """total[m] += sum_t alpha_{t-1} (x) backward_t over the tokens of matrices first:last.

    Arguments as in `matrix_residuals`; total: [M, Y + 1, Yp] float64, added to.
    """
    for m in range(first, last):
        if constant[m]:
            continue
        if mat_spans[m] == mat_spans[m + 1]:
            add_outer_products(
                inner_tokens, inner_ptr[m], inner_ptr[m + 1], n_labels, alpha, backward, total[m]
            )
        for p in range(mat_spans[m], mat_spans[m + 1]):
            for i in range(n_labels):
                for y in range(total.shape[2]):
                    total[m, i, y] += sums[p, i, y]
        add_starts(start_tokens, start_ptr[m], start_ptr[m + 1], n_labels, backward, total[m])


@kernel
def settle_slopes(
    first: int,
    last: int,
    constant: np.ndarray,
    ctx_ptr: np.ndarray,
    contexts: np.ndarray,
    ent_ptr: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    psi: np.ndarray,
    slope: np.ndarray,
    counts: np.ndarray,
    value: np.ndarray,
    ent_score: np.ndarray,
    ent_counts: np.ndarray,
    total: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Turn sums of products into derivatives of expected pair counts, in place.

    total[m] := psi[m] (total[m] + slope[m] counts[m]), and likewise sums[e] for entries, whose
    matrices are mended. Of matrices first:last, whose contexts ctx_ptr/contexts list; counts,
    total: [M, Y + 1, Yp] sums of products of the vectors, and of their derivatives (see
    `tangents`); ent_counts, sums: [E], the same of entries.
    """
    for m in range(first, last):
        if not constant[m]:
            for i in range(total.shape[1]):
                for y in range(total.shape[2]):
                    total[m, i, y] = psi[m, i, y] * (
                        total[m, i, y] + slope[m, i, y] * counts[m, i, y]
                    )
        for j in range(ctx_ptr[m], ctx_ptr[m + 1]):
            c = contexts[j]
            for e in range(ent_ptr[c], ent_ptr[c + 1]):
                i, y = ent_previous[e], ent_label[e]
                changed = value[e] * (sums[e] + ent_score[e] * ent_counts[e])
                if not constant[m]:
                    total[m, i, y] += changed - psi[m, i, y] * (
                        sums[e] + slope[m, i, y] * ent_counts[e]
                    )
                sums[e] = changed
