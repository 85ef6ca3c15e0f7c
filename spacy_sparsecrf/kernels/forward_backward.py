"""Scaled forward-backward (Lavergne 2010, sections 2.2 and 4.2)."""

import numpy as np
from numba import njit

from .exp import exp_shifted
from .potentials import add_scores


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _advance(alpha: np.ndarray, matrix: np.ndarray, n_labels: int, out: np.ndarray) -> None:
    """Forward product: out[y] = sum_y' alpha[y'] matrix[y', y], four y' at a time."""
    padded = len(out)
    for y in range(padded):
        out[y] = 0.0
    unrolled = n_labels - n_labels % 4
    for i in range(0, unrolled, 4):
        a, b, c, d = alpha[i], alpha[i + 1], alpha[i + 2], alpha[i + 3]
        for y in range(padded):
            out[y] += (a * matrix[i, y] + b * matrix[i + 1, y]) + (
                c * matrix[i + 2, y] + d * matrix[i + 3, y]
            )
    for i in range(unrolled, n_labels):
        a = alpha[i]
        for y in range(padded):
            out[y] += a * matrix[i, y]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def _retreat(matrix: np.ndarray, v: np.ndarray, n_labels: int, out: np.ndarray) -> None:
    """Backward product: out[y'] = sum_y matrix[y', y] v[y]."""
    padded = len(v)
    for i in range(n_labels):
        total = 0.0
        for y in range(padded):
            total += matrix[i, y] * v[y]
        out[i] = total


@njit(cache=True, nogil=True, error_model="numpy")
def _evidence(scores: np.ndarray, n_labels: int, allowed: int) -> float:
    """Exponentiate a token's scores in place, relative to their maximum, which is returned.

    allowed: the only label with a non-zero result, or -1 for all; padding becomes 0.
    """
    top: float = scores[0]
    for y in range(1, n_labels):
        top = max(top, scores[y])
    for y in range(n_labels, len(scores)):
        scores[y] = top
    exp_shifted(scores, len(scores), top)
    for y in range(n_labels, len(scores)):
        scores[y] = 0.0
    if allowed >= 0:
        for y in range(n_labels):
            if y != allowed:
                scores[y] = 0.0
    return top


@njit(cache=True, nogil=True, error_model="numpy")
def _normalise(row: np.ndarray, factor: np.ndarray) -> float:
    """Row *= factor, then row /= sum(row); returns that sum."""
    total = 0.0
    for y in range(len(row)):
        row[y] *= factor[y]
    for y in range(len(row)):
        total += row[y]
    for y in range(len(row)):
        row[y] /= total
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def forward_backward(
    first: int,
    last: int,
    n_labels: int,
    offsets: np.ndarray,
    weights: np.ndarray,
    allowed: np.ndarray,
    tok_ptr: np.ndarray,
    tok_rows: np.ndarray,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    theta: np.ndarray,
    context: np.ndarray,
    psi: np.ndarray,
    psi_shift: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    marginals: np.ndarray,
    log_z: np.ndarray,
    beta: np.ndarray,
) -> None:
    """Run sequences first:last and leave log Z, marginals and the factors of pair marginals.

    With E_t = exp(scores_t - max), alpha_t = (alpha_{t-1} Psi) * E_t / n_t (sum 1) and
    beta_{t-1} = Psi (E_t * beta_t / n_t), beta_T = 1: p(y_t) = alpha_t * beta_t and
    p(y', y) = alpha_{t-1}[y'] Psi[y', y] (E_t beta_t / n_t)[y]; no log or exp in the
    recursions (Lavergne 2010, section 4.2).

    offsets [S + 1], weights [S], allowed [N] (label a token must have, -1 = any),
    tok_ptr [N + 1] and tok_rows: CSR of a token's unigram rows, row_ptr, row_labels, theta: their
    weights, context [N], psi [C, Y + 1, Yp], psi_shift [C];
    alpha, backward, marginals: [N, Yp] float64, out; `backward` is weight * E_t beta_t / n_t and
    `marginals` is weight * p(y_t). log_z: [S] float64, out (not weighted; not finite where no
    path has positive probability within float64's range). beta: [Yp] workspace.
    """
    for s in range(first, last):
        begin, end = offsets[s], offsets[s + 1]
        total = 0.0
        for t in range(begin, end):
            evidence = backward[t]
            evidence[:] = 0.0
            add_scores(evidence, tok_rows, tok_ptr[t], tok_ptr[t + 1], row_ptr, row_labels, theta)
            total += _evidence(evidence, n_labels, allowed[t]) + psi_shift[context[t]]
            if t == begin:
                alpha[t] = psi[context[t], n_labels]
            else:
                _advance(alpha[t - 1], psi[context[t]], n_labels, alpha[t])
            scale = _normalise(alpha[t], evidence)
            total += np.log(scale)
            for y in range(len(evidence)):
                evidence[y] /= scale
        log_z[s] = total
        beta[:] = 1.0
        weight = weights[s]
        for t in range(end - 1, begin - 1, -1):
            for y in range(len(beta)):
                marginals[t, y] = weight * alpha[t, y] * beta[y]
                backward[t, y] *= beta[y]
            if t > begin:
                _retreat(psi[context[t]], backward[t], n_labels, beta)
            for y in range(len(beta)):
                backward[t, y] *= weight
