"""Scaled forward-backward, sparse where potentials are (Lavergne 2010, sections 2.2, 4.1, 4.2)."""

import numpy as np

from .compiled import inner
from .exp import exp_shifted, largest
from .memory import fill, lent
from .potentials import add_heads, add_scores
from .sets import has_label, is_restricted, level


@inner(fastmath={"contract"})
def advance(alpha: np.ndarray, matrix: np.ndarray, n_labels: int, out: np.ndarray) -> None:
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


@inner(fastmath={"contract", "reassoc"})
def retreat(matrix: np.ndarray, v: np.ndarray, n_labels: int, out: np.ndarray) -> None:
    """Backward product: out[y'] = sum_y matrix[y', y] v[y], four y' at a time."""
    padded = len(v)
    zero = matrix.dtype.type(0)
    unrolled = n_labels - n_labels % 4
    for i in range(0, unrolled, 4):
        a, b, c, d = zero, zero, zero, zero
        for y in range(padded):
            x = v[y]
            a += matrix[i, y] * x
            b += matrix[i + 1, y] * x
            c += matrix[i + 2, y] * x
            d += matrix[i + 3, y] * x
        out[i], out[i + 1], out[i + 2], out[i + 3] = a, b, c, d
    for i in range(unrolled, n_labels):
        a = zero
        for y in range(padded):
            a += matrix[i, y] * v[y]
        out[i] = a


@inner(fastmath={"reassoc"})
def _sum(row: np.ndarray, n: int) -> float:
    """Sum of row[:n]."""
    total = 0.0
    for i in range(n):
        total += row[i]
    return total


@inner
def rewrite(
    matrix: np.ndarray,
    first: int,
    last: int,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    ent_change: np.ndarray,
    scratch: np.ndarray,
) -> None:
    """Copy a matrix and write the values of a context's entries into it."""
    # A loop: an assignment of slices takes long to compile.
    for i in range(matrix.shape[0]):
        for y in range(matrix.shape[1]):
            scratch[i, y] = matrix[i, y]
    for e in range(first, last):
        scratch[ent_previous[e], ent_label[e]] = ent_change[e]


@inner
def add_forward_entries(
    alpha: np.ndarray,
    first: int,
    last: int,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    ent_change: np.ndarray,
    out: np.ndarray,
) -> None:
    """Mend a forward product with a matrix by entries first:last (Lavergne 2010, section 4.1)."""
    for e in range(first, last):
        out[ent_label[e]] += alpha[ent_previous[e]] * ent_change[e]


@inner
def add_backward_entries(
    v: np.ndarray,
    first: int,
    last: int,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    ent_change: np.ndarray,
    out: np.ndarray,
) -> None:
    """Mend a backward product with a matrix by entries first:last."""
    # Entries lie by previous label: summed apart, they need not wait for out[previous] each time.
    e = first
    while e < last:
        previous = ent_previous[e]
        total = 0.0
        while e < last and ent_previous[e] == previous:
            total += v[ent_label[e]] * ent_change[e]
            e += 1
        out[previous] += total


@inner
def forward_product(
    alpha: np.ndarray,
    matrix: np.ndarray,
    constant: bool,
    rewritten: bool,
    n_labels: int,
    first: int,
    last: int,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    ent_change: np.ndarray,
    scratch: np.ndarray,
    out: np.ndarray,
) -> None:
    """Forward product with a matrix and a context's entries (Lavergne 2010, section 4.1).

    constant: whether the matrix is all ones; rewritten: see `entries.correct`.
    """
    if rewritten:
        rewrite(matrix, first, last, ent_previous, ent_label, ent_change, scratch)
        advance(alpha, scratch, n_labels, out)
        return
    if constant:
        fill(out, 0, n_labels, _sum(alpha, n_labels))
        fill(out, n_labels, len(out), 0.0)
    else:
        advance(alpha, matrix, n_labels, out)
    add_forward_entries(alpha, first, last, ent_previous, ent_label, ent_change, out)


@inner
def backward_product(
    matrix: np.ndarray,
    v: np.ndarray,
    constant: bool,
    rewritten: bool,
    n_labels: int,
    first: int,
    last: int,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    ent_change: np.ndarray,
    scratch: np.ndarray,
    out: np.ndarray,
) -> None:
    """Backward product with a matrix and a context's entries; arguments as in `forward_product`."""
    if rewritten:
        rewrite(matrix, first, last, ent_previous, ent_label, ent_change, scratch)
        retreat(scratch, v, n_labels, out)
        return
    if constant:
        fill(out, 0, n_labels, _sum(v, n_labels))
    else:
        retreat(matrix, v, n_labels, out)
    add_backward_entries(v, first, last, ent_previous, ent_label, ent_change, out)


@inner
def evidence_of(scores: np.ndarray, n_labels: int, allowed: np.ndarray) -> float:
    """Exponentiate a token's scores in place, relative to their maximum, which is returned.

    allowed: see `sets`; the maximum is that of the token's labels, other results and the padding
    are 0.
    """
    restricted = is_restricted(allowed)
    if restricted:
        level(scores, n_labels, allowed)
    fill(scores, n_labels, len(scores), scores[0])
    top: float = largest(scores)
    fill(scores, n_labels, len(scores), top)
    exp_shifted(scores, len(scores), top)
    fill(scores, n_labels, len(scores), 0.0)
    if restricted:
        for y in range(n_labels):
            if not has_label(allowed, y):
                scores[y] = 0.0
    return top


@inner
def normalise(row: np.ndarray, factor: np.ndarray) -> float:
    """Row *= factor, then row /= sum(row); returns that sum."""
    for y in range(len(row)):
        row[y] *= factor[y]
    total = _sum(row, len(row))
    inverse = 1.0 / total
    for y in range(len(row)):
        row[y] *= inverse
    return total


@inner
def settle(row: np.ndarray, evidence: np.ndarray) -> float:
    """Normalise a forward vector with its token's evidence, and that by the same; log scale."""
    scale = normalise(row, evidence)
    inverse = 1.0 / scale
    for y in range(len(evidence)):
        evidence[y] *= inverse
    return float(np.log(scale))


@inner
def start_vector(
    matrix: np.ndarray,
    n_labels: int,
    first: int,
    last: int,
    ent_label: np.ndarray,
    ent_change: np.ndarray,
    out: np.ndarray,
) -> None:
    """What stands for the forward product at the first token: the start row and its entries."""
    for y in range(len(out)):
        out[y] = matrix[n_labels, y]
    for e in range(first, last):
        out[ent_label[e]] = ent_change[e]


@inner
def observe(
    t: int,
    n_labels: int,
    scored: bool,
    allowed: np.ndarray,
    head_ptr: np.ndarray,
    heads: np.ndarray,
    table: np.ndarray,
    tok_ptr: np.ndarray,
    tok_rows: np.ndarray,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    theta: np.ndarray,
    evidence: np.ndarray,
) -> float:
    """Leave a token's exponentiated scores, and return their scale; see `forward_backward`."""
    if not scored:
        fill(evidence, 0, len(evidence), 0.0)
    add_heads(evidence, heads, head_ptr[t], head_ptr[t + 1], table)
    begin, end = tok_ptr[t], tok_ptr[t + 1]
    add_scores(evidence, tok_rows, begin, end, n_labels, row_ptr, row_labels, theta)
    return evidence_of(evidence, n_labels, allowed[t])


@inner
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
    beta: np.ndarray,
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
    path has positive probability within the arrays' range). Workspaces, of alpha's dtype: beta
    [Yp], scratch [Y + 1, Yp]. scored: whether `backward` has scores of the tokens already, to which
    those of the tests are added.
    """
    alpha, backward, marginals = lent(alpha), lent(backward), lent(marginals)
    psi, table, theta, allowed = lent(psi), lent(table), lent(theta), lent(allowed)
    heads, tok_rows, row_ptr = lent(heads), lent(tok_rows), lent(row_ptr)
    row_labels, beta, scratch = lent(row_labels), lent(beta), lent(scratch)
    ent_previous, ent_label, ent_change = lent(ent_previous), lent(ent_label), lent(ent_change)
    for s in range(first, last):
        begin, end = offsets[s], offsets[s + 1]
        total = 0.0
        for t in range(begin, end):
            evidence = backward[t]
            total += observe(
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
                evidence,
            )
            c = context[t]
            m = matrix_of[c]
            total += psi_shift[m]
            if t == begin:
                entries = ent_start[c], ent_ptr[c + 1], ent_label, ent_change
                start_vector(psi[m], n_labels, *entries, alpha[t])
            else:
                forward_product(
                    alpha[t - 1],
                    psi[m],
                    constant[m],
                    rewritten[c],
                    n_labels,
                    ent_ptr[c],
                    ent_start[c],
                    ent_previous,
                    ent_label,
                    ent_change,
                    scratch,
                    alpha[t],
                )
            total += settle(alpha[t], evidence)
        log_z[s] = total
        fill(beta, 0, len(beta), 1.0)
        weight = weights[s]
        for t in range(end - 1, begin - 1, -1):
            for y in range(len(beta)):
                marginals[t, y] = weight * alpha[t, y] * beta[y]
                backward[t, y] *= beta[y]
            c = context[t]
            m = matrix_of[c]
            if t > begin:
                backward_product(
                    psi[m],
                    backward[t],
                    constant[m],
                    rewritten[c],
                    n_labels,
                    ent_ptr[c],
                    ent_start[c],
                    ent_previous,
                    ent_label,
                    ent_change,
                    scratch,
                    beta,
                )
            for y in range(len(beta)):
                backward[t, y] *= weight
