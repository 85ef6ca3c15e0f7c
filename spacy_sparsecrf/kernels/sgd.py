"""Stochastic gradient descent with the cumulative l1 penalty (Tsuruoka et al. 2009)."""

import numpy as np
from numba import njit

from .expectations import add_outer_products, add_starts
from .forward_backward import forward_backward
from .potentials import context_matrices


@njit(cache=True, nogil=True, error_model="numpy")
def _decay(x: float) -> float:
    """exp(-x); where x is tiny, as it mostly is, without calling exp."""
    if x < 1e-5:
        return 1.0 - x + 0.5 * x * x
    return float(np.exp(-x))


@njit(cache=True, nogil=True, error_model="numpy")
def _penalised(weight: float, ledger: np.ndarray, k: int, due_l1: float, due_l2: float) -> float:
    """Apply to a weight the penalties that are due, and enter them at ledger[k]."""
    weight *= _decay(due_l2 - ledger[k, 1])
    ledger[k, 1] = due_l2
    # Both signs at once, without a branch that cannot be foreseen.
    sign = np.copysign(1.0, weight)
    kept: float = sign * max(abs(weight) - (due_l1 + sign * ledger[k, 0]), 0.0)
    ledger[k, 0] += kept - weight
    return kept


@njit(cache=True, nogil=True, error_model="numpy")
def penalise(
    first: int, last: int, theta: np.ndarray, ledger: np.ndarray, due_l1: float, due_l2: float
) -> None:
    """Apply to weights first:last the penalties that have been due since they were last seen.

    With u = due_l1 and q = received: w := max(0, w - (u + q)) for w > 0, min(0, w + (u - q)) for
    w < 0, and q += the change (Tsuruoka 2009, section 3.2; Lavergne 2010, equation 8, prints one
    sign wrong). l2 shrinks: w *= exp(-(due_l2 - shrunk)). Applying it twice changes nothing.

    theta: [K] float64, in and out; ledger: [K, 2] float64, in and out, the l1 penalty that a
    weight has received and the l2 rate it has been shrunk by, side by side for the cache;
    due_l1, due_l2: cumulated penalty rates.
    """
    for k in range(first, last):
        theta[k] = _penalised(theta[k], ledger, k, due_l1, due_l2)


@njit(cache=True, nogil=True, error_model="numpy")
def _local_matrices(
    begin: int,
    end: int,
    n_labels: int,
    n_previous: int,
    context: np.ndarray,
    ctx_ptr: np.ndarray,
    ctx_rows: np.ndarray,
    pair_ptr: np.ndarray,
    pair_places: np.ndarray,
    theta: np.ndarray,
    place: np.ndarray,
    psi: np.ndarray,
    shift: np.ndarray,
) -> None:
    """Build the pair potentials of tokens begin:end, one matrix for each run of equal contexts.

    place: [>= end - begin] int32, out: of each token the number of its matrix in psi.
    """
    # Literal arguments would have numba compile the kernel called once more.
    zero = begin - begin
    n_matrices = 0
    for i in range(end - begin):
        c = context[begin + i]
        if i == 0 or c != context[begin + i - 1]:
            context_matrices(
                zero,
                zero + 1,
                n_labels,
                n_previous,
                ctx_ptr[c : c + 2],
                ctx_rows,
                pair_ptr,
                pair_places,
                theta,
                psi[n_matrices : n_matrices + 1],
                shift[n_matrices : n_matrices + 1],
            )
            n_matrices += 1
        place[i] = n_matrices - 1


@njit(cache=True, nogil=True, error_model="numpy")
def _path_loss(
    labels: np.ndarray,
    place: np.ndarray,
    psi: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    marginals: np.ndarray,
) -> float:
    """-log p(y | x) of a sequence's gold labels, as the product of p(y_t | y_{t-1})."""
    loss = 0.0
    start = psi.shape[1] - 1
    for i in range(len(labels)):
        y = labels[i]
        previous = start if i == 0 else labels[i - 1]
        pair = psi[place[i], previous, y] * backward[i, y]
        before = 1.0
        if i > 0:
            pair *= alpha[i - 1, previous]
            before = marginals[i - 1, previous]
        loss += np.log(max(before, 1e-300)) - np.log(max(pair, 1e-300))
    return loss


@njit(cache=True, nogil=True, error_model="numpy")
def _pair_residual(
    first: int,
    last: int,
    n_labels: int,
    tokens: np.ndarray,
    labels: np.ndarray,
    matrix: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    residual: np.ndarray,
) -> None:
    """Expected minus observed pairs of the tokens first:last of a sequence, which share a matrix.

    tokens: 0, 1, 2, ...; residual: [Y + 1, Yp], out.
    """
    residual[:, :] = 0.0
    inner = max(first, 1)
    add_outer_products(tokens, inner, last, n_labels, alpha, backward, residual)
    add_starts(tokens, first, inner, n_labels, backward, residual)
    for i in range(residual.shape[0]):
        for y in range(residual.shape[1]):
            residual[i, y] *= matrix[i, y]
    for i in range(first, last):
        residual[n_labels if i == 0 else labels[i - 1], labels[i]] -= 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def _update(
    rows: np.ndarray,
    row_ptr: np.ndarray,
    row_places: np.ndarray,
    residual: np.ndarray,
    step: float,
    theta: np.ndarray,
    ledger: np.ndarray,
    due: np.ndarray,
) -> None:
    """Descend on the weights of some rows, then apply the penalties due.

    residual: gradient by place of a weight; rows: ids, each at most once.
    """
    for j in range(len(rows)):
        for k in range(row_ptr[rows[j]], row_ptr[rows[j] + 1]):
            weight = theta[k] - step * residual[row_places[k]]
            theta[k] = _penalised(weight, ledger, k, due[0], due[1])


@njit(cache=True, nogil=True, error_model="numpy")
def sgd_pass(
    order: np.ndarray,
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
    ctx_ptr: np.ndarray,
    ctx_rows: np.ndarray,
    pair_ptr: np.ndarray,
    pair_places: np.ndarray,
    split: int,
    theta: np.ndarray,
    ledger: np.ndarray,
    due: np.ndarray,
    l1_rate: float,
    l2_rate: float,
    eta: float,
    decay: float,
    tokens: np.ndarray,
    place: np.ndarray,
    psi: np.ndarray,
    shift: np.ndarray,
    residual: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    marginals: np.ndarray,
    beta: np.ndarray,
) -> float:
    """One pass of stochastic gradient descent over sequences, in the given order.

    order: [n] int64 sequences, all of whose tokens have gold labels; theta [K] and ledger [K, 2]
    (see `penalise`): unigram weights first, `split` of them, in and out; due: [2] float64
    cumulated l1 and l2 rates, in and out; l1_rate, l2_rate: penalties per sequence (rho / N);
    eta: step of the first sequence, multiplied by `decay` after each; 0 only measures. The CSR
    tables are those of `forward_backward` and `context_matrices`. Workspaces: tokens [T] int32
    0, 1, 2, ..., place [T] int32, psi [runs, Y + 1, Yp], shift [runs], residual [Y + 1, Yp],
    alpha, backward, marginals [T, Yp], beta [Yp], T the longest sequence.
    RETURNS: the weighted sum of -log p(y | x) of the sequences, each before its update.
    """
    loss = 0.0
    # bounds[0] stays 0: a literal would have numba compile the kernels called once more.
    bounds = np.zeros(2, dtype=np.int64)
    one, log_z = np.ones(1), np.zeros(1)
    for s in order:
        begin, end = offsets[s], offsets[s + 1]
        n = end - begin
        bounds[1] = n
        gold = labels[begin:end]
        _local_matrices(
            begin,
            end,
            n_labels,
            n_previous,
            context,
            ctx_ptr,
            ctx_rows,
            pair_ptr,
            pair_places,
            theta[split:],
            place,
            psi,
            shift,
        )
        forward_backward(
            bounds[0],
            bounds[0] + 1,
            n_labels,
            bounds,
            one,
            allowed[begin:end],
            tok_ptr[begin : end + 1],
            tok_rows,
            row_ptr,
            row_labels,
            theta[:split],
            place,
            psi,
            shift,
            alpha,
            backward,
            marginals,
            log_z,
            beta,
        )
        loss += sequence_weights[s] * _path_loss(gold, place, psi, alpha, backward, marginals)
        step = eta * sequence_weights[s]
        if step == 0.0:
            continue
        eta *= decay
        due[0] += step * l1_rate
        due[1] += step * l2_rate
        first = bounds[0]
        for i in range(n):
            marginals[i, gold[i]] -= 1.0
            t = begin + i
            _update(
                tok_rows[tok_ptr[t] : tok_ptr[t + 1]],
                row_ptr,
                row_labels,
                marginals[i],
                step,
                theta[:split],
                ledger[:split],
                due,
            )
            if i + 1 < n and place[i + 1] == place[i]:
                continue
            c = context[t]
            matrix = psi[place[i]]
            _pair_residual(first, i + 1, n_labels, tokens, gold, matrix, alpha, backward, residual)
            _update(
                ctx_rows[ctx_ptr[c] : ctx_ptr[c + 1]],
                pair_ptr,
                pair_places,
                residual.reshape(-1),
                step,
                theta[split:],
                ledger[split:],
                due,
            )
            first = i + 1
    return loss
