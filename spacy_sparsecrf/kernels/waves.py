"""The steps of the chain through many sequences at once, so that matrices are read seldom.

One sequence after another, each token would read the matrix of its context anew, from far memory
where matrices are many or large. In waves, the first tokens of some sequences, then the second and
so on, tokens with the same matrix come together: it is read once for two of them, and on the way
back it may still be in a near cache. The recursion is that of `chain`, of which these are the steps
in another order.
"""

from .chain import (
    backward_product,
    finish,
    forward_product,
    mend_backward,
    mend_forward,
    settle,
    start_vector,
)
from .compiled import inner
from .layout import Contexts, Flags, Floats, Ints, Pairs, Vectors


@inner(fastmath={"contract"})
def _advance_two(
    alpha: Floats, other: Floats, matrix: Floats, n_labels: int, out: Floats, other_out: Floats
) -> None:
    """Forward products of two tokens with one matrix, which is read once."""
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
    matrix: Floats, v: Floats, w: Floats, n_labels: int, out: Floats, other_out: Floats
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
def _share(t: int, u: int, context: Ints, contexts: Contexts, rewritten: Flags) -> bool:
    """Whether tokens t and u, of an order, share a product with a matrix, and may."""
    if t < 0 or u < 0 or t == u + 1 or u == t + 1:
        return False
    c, d = context[t], context[u]
    m = contexts.matrix_of[c]
    return bool(
        m == contexts.matrix_of[d] and not (contexts.constant[m] or rewritten[c] or rewritten[d])
    )


@inner
def waves_forward(order: Ints, context: Ints, pairs: Pairs, vectors: Vectors) -> None:
    """Turn evidence into forward vectors, norms n_t, and evidence / n_t in `backward`.

    order: [T] int32, ~t of tokens that begin a sequence, t of others, each after the one before it
    in its sequence; context: [T].
    """
    alpha, evidence, norms = vectors.alpha, vectors.backward, vectors.norms
    n_labels, contexts, potentials = pairs
    change, rewritten = potentials.change, potentials.rewritten
    j = 0
    while j < len(order):
        t = order[j]
        j += 1
        if t < 0:
            t = ~t
            start_vector(context[t], pairs, alpha[t])
        elif j < len(order) and _share(t, order[j], context, contexts, rewritten):
            u = order[j]
            j += 1
            matrix = potentials.psi[contexts.matrix_of[context[t]]]
            _advance_two(alpha[t - 1], alpha[u - 1], matrix, n_labels, alpha[t], alpha[u])
            mend_forward(context[t], alpha[t - 1], contexts, change, alpha[t])
            mend_forward(context[u], alpha[u - 1], contexts, change, alpha[u])
            norms[u] = settle(alpha[u], evidence[u])
        else:
            forward_product(context[t], alpha[t - 1], pairs, vectors.scratch, alpha[t])
        norms[t] = settle(alpha[t], evidence[t])


@inner
def waves_back(order: Ints, context: Ints, pairs: Pairs, vectors: Vectors) -> None:
    """Leave marginals, and E_t beta_t / n_t in `backward`; the arguments are `waves_forward`'s.

    Until their token's turn, rows of `marginals` are beta. Those of last tokens are 1 at first.
    """
    alpha, backward, beta = vectors.alpha, vectors.backward, vectors.marginals
    n_labels, contexts, potentials = pairs
    change, rewritten = potentials.change, potentials.rewritten
    j = len(order) - 1
    while j >= 0:
        t = order[j]
        j -= 1
        if t < 0:
            finish(n_labels, alpha[~t], beta[~t], backward[~t])
            continue
        finish(n_labels, alpha[t], beta[t], backward[t])
        if j >= 0 and _share(t, order[j], context, contexts, rewritten):
            u = order[j]
            j -= 1
            finish(n_labels, alpha[u], beta[u], backward[u])
            matrix = potentials.psi[contexts.matrix_of[context[t]]]
            _retreat_two(matrix, backward[t], backward[u], n_labels, beta[t - 1], beta[u - 1])
            mend_backward(context[t], backward[t], contexts, change, beta[t - 1])
            mend_backward(context[u], backward[u], contexts, change, beta[u - 1])
        else:
            backward_product(context[t], backward[t], pairs, vectors.scratch, beta[t - 1])
