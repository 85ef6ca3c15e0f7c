"""Scaled forward-backward (Lavergne 2010, sections 2.2, 4.1, 4.2), in waves.

One sequence after another, each token would read the matrix of its context anew, from far memory
where matrices are many or large. In waves, the first tokens of some sequences, then the second and
so on, those with the same matrix come together: it is read once, and by two tokens at a time. On
the way back what was read on the way forward may still be near.
"""

import numpy as np

from .compiled import inner, kernel
from .memory import fill, lent
from .products import (
    add_backward_entries,
    add_forward_entries,
    backward_product,
    forward_product,
    observe,
    settle,
    start_vector,
)


@inner(fastmath={"contract"})
def _advance_two(
    alpha: np.ndarray,
    other: np.ndarray,
    matrix: np.ndarray,
    n_labels: int,
    out: np.ndarray,
    other_out: np.ndarray,
) -> None:
    """Forward products of two tokens with one matrix, four previous labels at a time."""
    padded = len(out)
    for y in range(padded):
        out[y] = 0.0
        other_out[y] = 0.0
    unrolled = n_labels - n_labels % 4
    for i in range(0, unrolled, 4):
        a, b, c, d = alpha[i], alpha[i + 1], alpha[i + 2], alpha[i + 3]
        e, f, g, h = other[i], other[i + 1], other[i + 2], other[i + 3]
        for y in range(padded):
            p, q, r, s = matrix[i, y], matrix[i + 1, y], matrix[i + 2, y], matrix[i + 3, y]
            out[y] += (a * p + b * q) + (c * r + d * s)
            other_out[y] += (e * p + f * q) + (g * r + h * s)
    for i in range(unrolled, n_labels):
        a, e = alpha[i], other[i]
        for y in range(padded):
            out[y] += a * matrix[i, y]
            other_out[y] += e * matrix[i, y]


@inner(fastmath={"contract", "reassoc"})
def _retreat_two(
    matrix: np.ndarray,
    v: np.ndarray,
    w: np.ndarray,
    n_labels: int,
    out: np.ndarray,
    other_out: np.ndarray,
) -> None:
    """Backward products of two tokens with one matrix, two previous labels at a time."""
    padded = len(v)
    zero = matrix.dtype.type(0)
    unrolled = n_labels - n_labels % 2
    for i in range(0, unrolled, 2):
        a, b, c, d = zero, zero, zero, zero
        for y in range(padded):
            p, q = matrix[i, y], matrix[i + 1, y]
            a += p * v[y]
            b += q * v[y]
            c += p * w[y]
            d += q * w[y]
        out[i], out[i + 1] = a, b
        other_out[i], other_out[i + 1] = c, d
    for i in range(unrolled, n_labels):
        a, c = zero, zero
        for y in range(padded):
            a += matrix[i, y] * v[y]
            c += matrix[i, y] * w[y]
        out[i], other_out[i] = a, c


@inner
def _fit(
    walk: np.ndarray,
    j: int,
    k: int,
    context: np.ndarray,
    matrix_of: np.ndarray,
    constant: np.ndarray,
    rewritten: np.ndarray,
) -> bool:
    """Whether the tokens at j and k of an order share a product with a matrix, and may."""
    t, u = walk[j], walk[k]
    if t < 0 or u < 0 or t == u + 1 or u == t + 1:
        return False
    c, d = context[t], context[u]
    m = matrix_of[c]
    return bool(m == matrix_of[d] and not (constant[m] or rewritten[c] or rewritten[d]))


@inner
def _finish(alpha: np.ndarray, beta: np.ndarray, n_labels: int, backward: np.ndarray) -> None:
    """Backward *= beta, then beta *= alpha: the marginals of a token."""
    fill(beta, n_labels, len(beta), 1.0)
    for y in range(len(beta)):
        backward[y] *= beta[y]
        beta[y] *= alpha[y]


@inner
def _go_forward(
    begin: int,
    end: int,
    n_labels: int,
    walk: np.ndarray,
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
    alpha: np.ndarray,
    evidence: np.ndarray,
    scales: np.ndarray,
    scratch: np.ndarray,
) -> None:
    """Forward vectors of the tokens walk[begin:end], whose log scales are added to `scales`."""
    j = begin
    while j < end:
        t = walk[j]
        begins = t < 0
        if begins:
            t = ~t
        c = context[t]
        m = matrix_of[c]
        first, middle, last = ent_ptr[c], ent_start[c], ent_ptr[c + 1]
        if begins:
            start_vector(psi[m], n_labels, middle, last, ent_label, ent_change, alpha[t])
        elif j + 1 < end and _fit(walk, j, j + 1, context, matrix_of, constant, rewritten):
            j += 1
            u = walk[j]
            other = ent_ptr[context[u]], ent_start[context[u]]
            _advance_two(alpha[t - 1], alpha[u - 1], psi[m], n_labels, alpha[t], alpha[u])
            entries = ent_previous, ent_label, ent_change
            add_forward_entries(alpha[t - 1], first, middle, *entries, alpha[t])
            add_forward_entries(alpha[u - 1], *other, *entries, alpha[u])
            scales[u] += settle(alpha[u], evidence[u])
        else:
            forward_product(
                alpha[t - 1],
                psi[m],
                constant[m],
                rewritten[c],
                n_labels,
                first,
                middle,
                ent_previous,
                ent_label,
                ent_change,
                scratch,
                alpha[t],
            )
        scales[t] += settle(alpha[t], evidence[t])
        j += 1


@inner
def _go_back(
    begin: int,
    end: int,
    n_labels: int,
    walk: np.ndarray,
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
    alpha: np.ndarray,
    backward: np.ndarray,
    marginals: np.ndarray,
    scratch: np.ndarray,
) -> None:
    """Marginals of the tokens walk[begin:end], from the last on.

    Until their token's turn rows of `marginals` are beta, those of `backward` evidence.
    """
    j = end - 1
    while j >= begin:
        t = walk[j]
        if t < 0:
            _finish(alpha[~t], marginals[~t], n_labels, backward[~t])
            j -= 1
            continue
        _finish(alpha[t], marginals[t], n_labels, backward[t])
        c = context[t]
        m = matrix_of[c]
        first, middle = ent_ptr[c], ent_start[c]
        if j > begin and _fit(walk, j, j - 1, context, matrix_of, constant, rewritten):
            j -= 1
            u = walk[j]
            other = ent_ptr[context[u]], ent_start[context[u]]
            _finish(alpha[u], marginals[u], n_labels, backward[u])
            betas = marginals[t - 1], marginals[u - 1]
            _retreat_two(psi[m], backward[t], backward[u], n_labels, *betas)
            entries = ent_previous, ent_label, ent_change
            add_backward_entries(backward[t], first, middle, *entries, marginals[t - 1])
            add_backward_entries(backward[u], *other, *entries, marginals[u - 1])
        else:
            backward_product(
                psi[m],
                backward[t],
                constant[m],
                rewritten[c],
                n_labels,
                first,
                middle,
                ent_previous,
                ent_label,
                ent_change,
                scratch,
                marginals[t - 1],
            )
        j -= 1


@kernel
def forward_backward(
    first: int,
    last: int,
    n_labels: int,
    offsets: np.ndarray,
    weights: np.ndarray,
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
    psi_shift: np.ndarray,
    constant: np.ndarray,
    ent_ptr: np.ndarray,
    ent_start: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    ent_change: np.ndarray,
    rewritten: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    marginals: np.ndarray,
    log_z: np.ndarray,
    walk: np.ndarray,
    together: int,
    scales: np.ndarray,
    scratch: np.ndarray,
    scored: bool,
) -> None:
    """Run sequences first:last and leave log Z, marginals and the factors of pair marginals.

    With E_t = exp(scores_t - max), alpha_t = (alpha_{t-1} Psi) * E_t / n_t (sum 1) and
    beta_{t-1} = Psi (E_t * beta_t / n_t), beta_T = 1: p(y_t) = alpha_t * beta_t and
    p(y', y) = alpha_{t-1}[y'] Psi[y', y] (E_t beta_t / n_t)[y]; no log or exp in the
    recursions (Lavergne 2010, section 4.2). Psi is the matrix of the token's context with the
    context's entries in it (section 4.1).

    offsets [S + 1], weights [S], allowed [N, W] (labels that a token may have, see `sets`),
    head_ptr [N + 1] and heads: CSR of a token's rows in `table` [H, Yp] (see `potentials`);
    tok_ptr [N + 1] and tok_rows: CSR of its other unigram rows, row_ptr, row_labels, theta: their
    weights; context [N], matrix_of [C], psi [M, Y + 1, Yp], psi_shift [M], constant [M] (a matrix
    of ones), ent_*, rewritten: see `entries.correct`;
    alpha, backward, marginals: [N, Yp], out; `backward` is weight * E_t beta_t / n_t and
    `marginals` is weight * p(y_t). log_z: [S] float64, out (not weighted; not finite where no
    path has positive probability within the arrays' range). walk: [N] int32, the order in which
    tokens are gone through, each after the one before it in its sequence: ~t of those that begin a
    sequence, t of others; together: how many sequences are gone through forward and then back
    before the next, those of each such run of first:last being a run of `walk` as well.
    Workspaces: scales [N] float64, scratch [Y + 1, Yp] of alpha's dtype. scored: whether `backward`
    has scores of the tokens already, to which those of the tests are added.
    """
    alpha, backward, marginals = lent(alpha), lent(backward), lent(marginals)
    psi, table, theta, allowed = lent(psi), lent(table), lent(theta), lent(allowed)
    heads, tok_rows, row_ptr, row_labels = (
        lent(heads),
        lent(tok_rows),
        lent(row_ptr),
        lent(row_labels),
    )
    ent_previous, ent_label, ent_change = lent(ent_previous), lent(ent_label), lent(ent_change)
    scratch, walk = lent(scratch), lent(walk)
    for head in range(first, last, together):
        tail = min(head + together, last)
        begin, end = offsets[head], offsets[tail]
        for t in range(begin, end):
            scales[t] = observe(
                t,
                n_labels,
                scored,
                allowed,
                head_ptr,
                heads,
                table,
                tok_ptr,
                tok_rows,
                row_ptr,
                row_labels,
                theta,
                backward[t],
            )
            scales[t] += psi_shift[matrix_of[context[t]]]
        _go_forward(
            begin,
            end,
            n_labels,
            walk,
            context,
            matrix_of,
            psi,
            constant,
            ent_ptr,
            ent_start,
            ent_previous,
            ent_label,
            ent_change,
            rewritten,
            alpha,
            backward,
            scales,
            scratch,
        )
        for s in range(head, tail):
            total = 0.0
            for t in range(offsets[s], offsets[s + 1]):
                total += scales[t]
            log_z[s] = total
            fill(marginals[offsets[s + 1] - 1], 0, n_labels, 1.0)
        _go_back(
            begin,
            end,
            n_labels,
            walk,
            context,
            matrix_of,
            psi,
            constant,
            ent_ptr,
            ent_start,
            ent_previous,
            ent_label,
            ent_change,
            rewritten,
            alpha,
            backward,
            marginals,
            scratch,
        )
    for s in range(first, last):
        weight = weights[s]
        if weight != 1.0:
            for t in range(offsets[s], offsets[s + 1]):
                for y in range(alpha.shape[1]):
                    marginals[t, y] *= weight
                    backward[t, y] *= weight
