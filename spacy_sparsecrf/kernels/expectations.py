"""Gradients as sums of residuals, over the tokens of a test or the tests of a token."""

import numpy as np

from .compiled import inner, kernel
from .memory import fill, lent, prefetch

# How many tokens ahead their residuals are asked for.
_AHEAD = 8


@kernel
def subtract_gold(
    first: int,
    last: int,
    offsets: np.ndarray,
    weights: np.ndarray,
    labels: np.ndarray,
    residual: np.ndarray,
) -> None:
    """Turn weighted marginals into residuals: residual[t, y_t] -= weight, for gold y_t >= 0."""
    for s in range(first, last):
        for t in range(offsets[s], offsets[s + 1]):
            if labels[t] >= 0:
                residual[t, labels[t]] -= weights[s]


@kernel
def scatter_heads(
    first: int,
    last: int,
    head_ptr: np.ndarray,
    heads: np.ndarray,
    residual: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Add the residuals of tokens first:last to the sums of their frequent tests.

    head_ptr, heads: CSR, heads of a token (see `potentials`); residual: [N, Yp]; sums: [H, Yp]
    float64, added to. Faster than a gather while it fits a cache.
    """
    residual, sums = lent(residual), lent(sums)
    for t in range(first, last):
        row = residual[t]
        for j in range(head_ptr[t], head_ptr[t + 1]):
            total = sums[heads[j]]
            for y in range(len(total)):
                total[y] += row[y]


@kernel
def gather_unigrams(
    first: int,
    last: int,
    n_labels: int,
    row_columns: np.ndarray,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    col_ptr: np.ndarray,
    col_tokens: np.ndarray,
    residual: np.ndarray,
    gradient: np.ndarray,
) -> None:
    """Add to the gradient of the working unigram weights of rows first:last: sum_t residual[t, y].

    row_columns: [R] int32, column of a row's test, -1 for none; row_ptr, row_labels: its weights;
    col_ptr, col_tokens: CSC, tokens of a test; residual: [N, Yp]; gradient: [K] float64, added to:
    token by token, so that parts of the tokens may come one after another.
    """
    col_tokens, residual, gradient = lent(col_tokens), lent(residual), lent(gradient)
    padded = residual.shape[1]
    flat, total = residual.reshape(-1), np.zeros(padded)
    for row in range(first, last):
        column = row_columns[row]
        if column < 0:
            continue
        begin, end = row_ptr[row], row_ptr[row + 1]
        if end - begin == n_labels:
            for y in range(n_labels):
                total[y] = gradient[begin + y]
            add_rows(residual, col_tokens, col_ptr[column], col_ptr[column + 1], total)
            for y in range(n_labels):
                gradient[begin + y] = total[y]
            continue
        place = row_labels[begin]
        for j in range(col_ptr[column], col_ptr[column + 1]):
            if j + _AHEAD < len(col_tokens):
                prefetch(flat, col_tokens[j + _AHEAD] * padded + place)
            t = col_tokens[j]
            for k in range(begin, end):
                gradient[k] += residual[t, row_labels[k]]


@inner
def add_rows(
    residual: np.ndarray, tokens: np.ndarray, first: int, last: int, total: np.ndarray
) -> None:
    """total[y] += sum over tokens[first:last] of residual[t, y], four tokens at a time.

    They are added one by one, so that sums do not depend on where tokens are cut into parts.

    residual: [N, Yp]; total: [Yp] float64, added to.
    """
    padded = len(total)
    flat = residual.reshape(-1)
    unrolled = last - (last - first) % 4
    for j in range(first, unrolled, 4):
        for i in range(j + _AHEAD, min(j + _AHEAD + 4, len(tokens))):
            for y in range(0, padded, 8):
                prefetch(flat, tokens[i] * padded + y)
        t, u, v, w = tokens[j], tokens[j + 1], tokens[j + 2], tokens[j + 3]
        for y in range(padded):
            begun = (total[y] + residual[t, y]) + residual[u, y]
            total[y] = (begun + residual[v, y]) + residual[w, y]
    for j in range(unrolled, last):
        # Of the next test, most tests having few tokens.
        if j + _AHEAD < len(tokens):
            for y in range(0, padded, 8):
                prefetch(flat, tokens[j + _AHEAD] * padded + y)
        t = tokens[j]
        for y in range(padded):
            total[y] += residual[t, y]


@inner(fastmath={"contract"})
def add_outer_products(
    tokens: np.ndarray,
    first: int,
    last: int,
    n_labels: int,
    alpha: np.ndarray,
    backward: np.ndarray,
    total: np.ndarray,
) -> None:
    """total[y', y] += sum over tokens[first:last] of alpha[t - 1, y'] backward[t, y].

    None of the tokens begins a sequence. Four tokens at a time: `total` is read and written once
    for four products.
    """
    padded = total.shape[1]
    unrolled, even = last - (last - first) % 4, n_labels - n_labels % 2
    for j in range(first, unrolled, 4):
        t, u, v, w = tokens[j], tokens[j + 1], tokens[j + 2], tokens[j + 3]
        for i in range(0, even, 2):
            a, b, c, d = alpha[t - 1, i], alpha[u - 1, i], alpha[v - 1, i], alpha[w - 1, i]
            k = i + 1
            e, f, g, h = alpha[t - 1, k], alpha[u - 1, k], alpha[v - 1, k], alpha[w - 1, k]
            for y in range(padded):
                p, q, r, s = backward[t, y], backward[u, y], backward[v, y], backward[w, y]
                total[i, y] += (a * p + b * q) + (c * r + d * s)
                total[k, y] += (e * p + f * q) + (g * r + h * s)
        for i in range(even, n_labels):
            a, b, c, d = alpha[t - 1, i], alpha[u - 1, i], alpha[v - 1, i], alpha[w - 1, i]
            for y in range(padded):
                total[i, y] += (a * backward[t, y] + b * backward[u, y]) + (
                    c * backward[v, y] + d * backward[w, y]
                )
    for j in range(unrolled, last):
        t = tokens[j]
        for i in range(n_labels):
            a = alpha[t - 1, i]
            for y in range(padded):
                total[i, y] += a * backward[t, y]


@kernel
def pair_sums(
    first: int,
    last: int,
    n_labels: int,
    spans: np.ndarray,
    tokens: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Outer-product sums of token spans first:last, each into a matrix of its own.

    spans: [P, 2] int64: span p is tokens[spans[p, 0]:spans[p, 1]], none of
    which begins a sequence; sums: [P, Y + 1, Yp] float64, out (start row 0).
    """
    for p in range(first, last):
        fill(sums[p].reshape(-1), 0, sums[p].size, 0.0)
        add_outer_products(tokens, spans[p, 0], spans[p, 1], n_labels, alpha, backward, sums[p])


@inner
def add_starts(
    tokens: np.ndarray,
    first: int,
    last: int,
    n_labels: int,
    backward: np.ndarray,
    total: np.ndarray,
) -> None:
    """total[start, y] += backward[t, y] for tokens[first:last], which begin sequences."""
    start = total[n_labels]
    for j in range(first, last):
        row = backward[tokens[j]]
        for y in range(len(start)):
            start[y] += row[y]


@inner
def subtract_gold_pairs(
    c: int,
    n_labels: int,
    inner_ptr: np.ndarray,
    inner_tokens: np.ndarray,
    start_ptr: np.ndarray,
    start_tokens: np.ndarray,
    labels: np.ndarray,
    token_weight: np.ndarray,
    total: np.ndarray,
) -> None:
    """total[y_{t-1}, y_t] -= weight for the tokens of context c.

    inner_ptr, inner_tokens, start_ptr, start_tokens: CSR, tokens of a context that continue
    sequences, and that begin them, where y_{t-1} is the start label.
    """
    for j in range(inner_ptr[c], inner_ptr[c + 1]):
        t = inner_tokens[j]
        if labels[t] >= 0:
            total[labels[t - 1], labels[t]] -= token_weight[t]
    for j in range(start_ptr[c], start_ptr[c + 1]):
        t = start_tokens[j]
        if labels[t] >= 0:
            total[n_labels, labels[t]] -= token_weight[t]


@kernel
def matrix_residuals(
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
    labels: np.ndarray,
    token_weight: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    psi: np.ndarray,
    is_first: bool,
    residual: np.ndarray,
) -> None:
    """Add expected minus observed pair counts of a block's tokens, as if no context had entries.

    residual[m] += psi[m] * (sum_t alpha_{t-1} (x) backward_t) - gold pair counts. The sum is taken
    from `sums[mat_spans[m]:mat_spans[m + 1]]`, in order, where the matrix's tokens were split into
    spans, else computed here. constant: [M] bool, matrices without weights, left out;
    inner_ptr/inner_tokens, start_ptr/start_tokens: CSR of a matrix's tokens that continue and that
    begin a sequence; is_first: whether this is the first block; residual: [M, Y + 1, Yp] float64,
    overwritten by the first block, added to by others.
    """
    inner_tokens, start_tokens, alpha = lent(inner_tokens), lent(start_tokens), lent(alpha)
    backward, residual = lent(backward), lent(residual)
    total = np.empty((residual.shape[1], residual.shape[2]))
    for m in range(first, last):
        if constant[m]:
            continue
        fill(total.reshape(-1), 0, total.size, 0.0)
        if mat_spans[m] == mat_spans[m + 1]:
            add_outer_products(
                inner_tokens, inner_ptr[m], inner_ptr[m + 1], n_labels, alpha, backward, total
            )
        for p in range(mat_spans[m], mat_spans[m + 1]):
            for i in range(n_labels):
                for y in range(total.shape[1]):
                    total[i, y] += sums[p, i, y]
        add_starts(start_tokens, start_ptr[m], start_ptr[m + 1], n_labels, backward, total)
        for i in range(n_labels + 1):
            for y in range(total.shape[1]):
                residual[m, i, y] = psi[m, i, y] * total[i, y] + (
                    0.0 if is_first else residual[m, i, y]
                )
        subtract_gold_pairs(
            m,
            n_labels,
            inner_ptr,
            inner_tokens,
            start_ptr,
            start_tokens,
            labels,
            token_weight,
            residual[m],
        )


@kernel
def gather_bigrams(
    first: int,
    last: int,
    n_labels: int,
    n_previous: int,
    row_ptr: np.ndarray,
    row_places: np.ndarray,
    col_ptr: np.ndarray,
    col_matrices: np.ndarray,
    residual: np.ndarray,
    weight_ptr: np.ndarray,
    weight_entries: np.ndarray,
    entry_residual: np.ndarray,
    gradient: np.ndarray,
) -> None:
    """Gradient of the working bigram weights of rows first:last, over matrices and entries.

    col_ptr, col_matrices: CSC, matrices that contain a row; residual: [M, Y + 1, Yp] as
    `matrix_residuals` leaves it; row_places: [K] uint32 y' * Yp + y; weight_ptr, weight_entries:
    CSR, entries of a weight; entry_residual: [E]; gradient: [K] float64, out.
    """
    residual, gradient = lent(residual), lent(gradient)
    for row in range(first, last):
        begin, end = row_ptr[row], row_ptr[row + 1]
        fill(gradient, begin, end, 0.0)
        for j in range(col_ptr[row], col_ptr[row + 1]):
            matrix = residual[col_matrices[j]]
            if end - begin == n_previous * n_labels:
                full = gradient[begin:end].reshape(-1, n_labels)
                for i in range(len(full)):
                    for y in range(n_labels):
                        full[i, y] += matrix[i, y]
            else:
                flat = matrix.reshape(-1)
                for k in range(begin, end):
                    gradient[k] += flat[row_places[k]]
        if len(weight_entries) == 0:
            continue
        for k in range(begin, end):
            for j in range(weight_ptr[k], weight_ptr[k + 1]):
                gradient[k] += entry_residual[weight_entries[j]]
