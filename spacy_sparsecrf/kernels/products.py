"""Products of forward-backward, sparse where potentials are (Lavergne 2010, sections 4.1, 4.2)."""

import numpy as np

from .compiled import inner
from .exp import exp_shifted, largest
from .memory import fill
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
    source, copy = matrix.reshape(-1), scratch.reshape(-1)
    for i in range(len(copy)):
        copy[i] = source[i]
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
