"""Hessian-vector products of the chain loss: marginals' derivatives along a direction v.

The dynamic programme of Tsuboi, Unno, Kashima & Okazaki 2011, with its conditional probabilities
written as products of vectors: P(y_{t-1} = i | y_t = j) = alpha_{t-1}[i] Psi[i, j] q_t[j] /
alpha_t[j], and P(y_t = j | y_{t-1} = i) = Psi[i, j] q_t[j] beta_t[j] / beta_{t-1}[i], where
q_t[j] is the exponentiated score of a token over the norm n_t of `forward_backward`. So nothing
is divided by a probability, which may be 0.
"""

import numpy as np

from .compiled import inner, kernel
from .memory import fill
from .potentials import add_heads, add_scores
from .products import backward_product, rewrite


@kernel
def weighted_betas(
    first: int,
    last: int,
    n_labels: int,
    offsets: np.ndarray,
    weights: np.ndarray,
    context: np.ndarray,
    matrix_of: np.ndarray,
    psi: np.ndarray,
    constant: np.ndarray,
    ent_ptr: np.ndarray,
    ent_start: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    ent_change: np.ndarray,
    rewritten: np.ndarray,
    backward: np.ndarray,
    beta: np.ndarray,
    scratch: np.ndarray,
) -> None:
    """Recover weight * beta_t of sequences first:last from what `forward_backward` has left.

    Arguments as there, of which backward: [N, Yp] was written; beta: [N, Yp], out, padding 0.
    """
    for s in range(first, last):
        end = offsets[s + 1]
        for t in range(offsets[s], end):
            fill(beta[t], n_labels, beta.shape[1], 0.0)
            if t + 1 == end:
                fill(beta[t], 0, n_labels, weights[s])
                continue
            c = context[t + 1]
            m = matrix_of[c]
            backward_product(
                psi[m],
                backward[t + 1],
                constant[m],
                rewritten[c],
                n_labels,
                ent_ptr[c],
                ent_start[c],
                ent_previous,
                ent_label,
                ent_change,
                scratch,
                beta[t],
            )


@inner(fastmath={"contract"})
def _advance(
    alpha: np.ndarray,
    change: np.ndarray,
    matrix: np.ndarray,
    slope: np.ndarray,
    n_labels: int,
    out: np.ndarray,
) -> None:
    """out[y] = sum_y' matrix[y', y] (change[y'] + alpha[y'] slope[y', y]), two y' at a time."""
    padded = len(out)
    for y in range(padded):
        out[y] = 0.0
    unrolled = n_labels - n_labels % 2
    for i in range(0, unrolled, 2):
        a, b, c, d = alpha[i], alpha[i + 1], change[i], change[i + 1]
        for y in range(padded):
            out[y] += matrix[i, y] * (c + a * slope[i, y]) + matrix[i + 1, y] * (
                d + b * slope[i + 1, y]
            )
    for i in range(unrolled, n_labels):
        a, c = alpha[i], change[i]
        for y in range(padded):
            out[y] += matrix[i, y] * (c + a * slope[i, y])


@inner(fastmath={"contract", "reassoc"})
def _retreat(
    matrix: np.ndarray,
    slope: np.ndarray,
    v: np.ndarray,
    change: np.ndarray,
    n_labels: int,
    out: np.ndarray,
) -> None:
    """out[y'] = sum_y matrix[y', y] (change[y] + slope[y', y] v[y]), two y' at a time."""
    padded = len(v)
    zero = matrix.dtype.type(0)
    unrolled = n_labels - n_labels % 2
    for i in range(0, unrolled, 2):
        a, b = zero, zero
        for y in range(padded):
            x, c = v[y], change[y]
            a += matrix[i, y] * (c + slope[i, y] * x)
            b += matrix[i + 1, y] * (c + slope[i + 1, y] * x)
        out[i], out[i + 1] = a, b
    for i in range(unrolled, n_labels):
        a = zero
        for y in range(padded):
            a += matrix[i, y] * (change[y] + slope[i, y] * v[y])
        out[i] = a


@inner
def _forward_change(
    alpha: np.ndarray,
    change: np.ndarray,
    matrix: np.ndarray,
    slope: np.ndarray,
    constant: bool,
    rewritten: bool,
    n_labels: int,
    first: int,
    last: int,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    ent_change: np.ndarray,
    ent_slope: np.ndarray,
    scratch: np.ndarray,
    out: np.ndarray,
) -> None:
    """The derivative of a forward product alpha Psi, where alpha changes by `change`.

    Psi: a matrix with its slope, and entries first:last; see `tangents`.
    """
    if rewritten:
        rewrite(matrix, first, last, ent_previous, ent_label, ent_change, scratch)
        _advance(alpha, change, scratch, slope, n_labels, out)
        for e in range(first, last):
            out[ent_label[e]] += alpha[ent_previous[e]] * ent_slope[e]
        return
    if constant:
        total = 0.0
        for y in range(n_labels):
            total += change[y]
        fill(out, 0, n_labels, total)
        fill(out, n_labels, len(out), 0.0)
    else:
        _advance(alpha, change, matrix, slope, n_labels, out)
    for e in range(first, last):
        i = ent_previous[e]
        out[ent_label[e]] += change[i] * ent_change[e] + alpha[i] * ent_slope[e]


@inner
def _backward_change(
    matrix: np.ndarray,
    slope: np.ndarray,
    v: np.ndarray,
    change: np.ndarray,
    constant: bool,
    rewritten: bool,
    n_labels: int,
    first: int,
    last: int,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    ent_change: np.ndarray,
    ent_slope: np.ndarray,
    scratch: np.ndarray,
    out: np.ndarray,
) -> None:
    """The derivative of a backward product Psi v, where v changes; see `_forward_change`."""
    if rewritten:
        rewrite(matrix, first, last, ent_previous, ent_label, ent_change, scratch)
        _retreat(scratch, slope, v, change, n_labels, out)
        for e in range(first, last):
            out[ent_previous[e]] += v[ent_label[e]] * ent_slope[e]
        return
    if constant:
        total = 0.0
        for y in range(n_labels):
            total += change[y]
        fill(out, 0, n_labels, total)
    else:
        _retreat(matrix, slope, v, change, n_labels, out)
    for e in range(first, last):
        y = ent_label[e]
        out[ent_previous[e]] += change[y] * ent_change[e] + v[y] * ent_slope[e]


@inner(fastmath={"contract", "reassoc"})
def _centre(row: np.ndarray, mass: np.ndarray, inverse: float, shape: np.ndarray) -> float:
    """Row -= k shape, for k = sum_y mass[y] row[y] * inverse, which is returned."""
    total = 0.0
    for y in range(len(row)):
        total += mass[y] * row[y]
    total *= inverse
    k = row.dtype.type(total)
    for y in range(len(row)):
        row[y] -= k * shape[y]
    return total


@inner(fastmath={"contract"})
def _add_evidence(
    row: np.ndarray, backward: np.ndarray, beta: np.ndarray, whole: np.ndarray, score: np.ndarray
) -> None:
    """row[y] := q[y] row[y] + whole[y] score[y], with q = backward / beta.

    Where beta is 0, so is the label's marginal, and q does not matter.
    """
    zero = row.dtype.type(0)
    for y in range(len(row)):
        q = backward[y] / beta[y] if beta[y] != zero else zero
        row[y] = q * row[y] + whole[y] * score[y]


@kernel
def tangents(
    first: int,
    last: int,
    n_labels: int,
    offsets: np.ndarray,
    weights: np.ndarray,
    head_ptr: np.ndarray,
    heads: np.ndarray,
    table: np.ndarray,
    tok_ptr: np.ndarray,
    tok_rows: np.ndarray,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    direction: np.ndarray,
    context: np.ndarray,
    matrix_of: np.ndarray,
    psi: np.ndarray,
    slope: np.ndarray,
    constant: np.ndarray,
    ent_ptr: np.ndarray,
    ent_start: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    ent_change: np.ndarray,
    ent_slope: np.ndarray,
    rewritten: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    beta: np.ndarray,
    forward_change: np.ndarray,
    backward_change: np.ndarray,
    marginal_change: np.ndarray,
    change: np.ndarray,
    scratch: np.ndarray,
    scored: bool,
) -> None:
    """Run the recursions A and B of Tsuboi 2011 over sequences first:last, without exp.

    With u_t the direction's scores of a token, V those of a pair,
    A_t[j] = u_t[j] + sum_i P(i | j) (V[i, j] + A_{t-1}[i]),
    B_{t-1}[i] = sum_j P(j | i) (V[i, j] + u_t[j] + B_t[j]), B_T = 0, each less its mean over
    the marginals: A + B is then what the paper has less E(Phi).v, and its size does not grow with
    the sequence. Written are
    forward_change[t] = alpha_t A_t, marginal_change[t] = weight p(y_t) (A_t + B_t) and
    backward_change[t] = backward_t (u_t + B_t - k), k the mean of V + u_t + B_t, such that the
    derivative of weight p(i, j) is forward_change_{t-1}[i] Psi[i, j] backward_t[j] +
    alpha_{t-1}[i] Psi[i, j] (backward_change_t[j] + V[i, j] backward_t[j]).

    table, direction: v where `forward_backward` has weights; slope: [M, Y + 1, Yp], V of a matrix,
    ent_slope: [E], see `entry_slopes`; beta: [N, Yp] of `weighted_betas`; forward_change,
    backward_change, marginal_change: [N, Yp], out; the rest as in `forward_backward`. Workspaces:
    change [Yp], scratch [Y + 1, Yp]. scored: whether `marginal_change` has the direction's scores
    of the tokens already, to which those of the tests are added.
    """
    for s in range(first, last):
        begin, end = offsets[s], offsets[s + 1]
        inverse = 1.0 / weights[s] if weights[s] != 0.0 else 0.0
        start_mean = 0.0
        for t in range(begin, end):
            scores, row = marginal_change[t], forward_change[t]
            if not scored:
                fill(scores, 0, len(scores), 0.0)
            add_heads(scores, heads, head_ptr[t], head_ptr[t + 1], table)
            add_scores(
                scores,
                tok_rows,
                tok_ptr[t],
                tok_ptr[t + 1],
                n_labels,
                row_ptr,
                row_labels,
                direction,
            )
            c = context[t]
            m = matrix_of[c]
            if t == begin:
                for y in range(len(row)):
                    row[y] = psi[m, n_labels, y] * slope[m, n_labels, y]
                for e in range(ent_start[c], ent_ptr[c + 1]):
                    row[ent_label[e]] = ent_slope[e]
            else:
                _forward_change(
                    alpha[t - 1],
                    forward_change[t - 1],
                    psi[m],
                    slope[m],
                    constant[m],
                    rewritten[c],
                    n_labels,
                    ent_ptr[c],
                    ent_start[c],
                    ent_previous,
                    ent_label,
                    ent_change,
                    ent_slope,
                    scratch,
                    row,
                )
            _add_evidence(row, backward[t], beta[t], alpha[t], scores)
            mean = _centre(row, beta[t], inverse, alpha[t])
            if t == begin:
                start_mean = mean
        fill(change, 0, len(change), 0.0)
        for t in range(end - 1, begin - 1, -1):
            scores, row = marginal_change[t], backward_change[t]
            for y in range(len(row)):
                row[y] = change[y]
            _add_evidence(row, backward[t], beta[t], backward[t], scores)
            for y in range(len(row)):
                scores[y] = forward_change[t, y] * beta[t, y] + alpha[t, y] * change[y]
            mean = start_mean
            if t > begin:
                c = context[t]
                m = matrix_of[c]
                _backward_change(
                    psi[m],
                    slope[m],
                    backward[t],
                    row,
                    constant[m],
                    rewritten[c],
                    n_labels,
                    ent_ptr[c],
                    ent_start[c],
                    ent_previous,
                    ent_label,
                    ent_change,
                    ent_slope,
                    scratch,
                    change,
                )
                mean = _centre(change, alpha[t - 1], inverse, beta[t - 1])
            for y in range(len(row)):
                row[y] -= mean * backward[t, y]
