"""The chain: alpha, beta, log Z and marginals from evidence and potentials of pairs.

With E_t(y) the evidence of token t and Psi_t the potentials of its context,

    alpha_t = (alpha_{t-1} Psi_t) * E_t / n_t,   n_t such that alpha_t sums to 1,
    beta_{t-1} = Psi_t (E_t * beta_t / n_t),     beta_T = 1,
    p(y_t) = alpha_t * beta_t,   p(y', y) = alpha_{t-1}[y'] Psi_t[y', y] (E_t * beta_t / n_t)[y],
    Z = prod_t n_t times the factors by which E and Psi were scaled,

so that there is no exp or log in the recursions (Lavergne 2010, sections 2.2, 4.1, 4.2). The
recursions do not depend on features and weights.

`go_forward` and `go_back` process one sequence, `forward_batch` and `backward_batch` a batch of
interleaved sequences. In an interleaved batch the first tokens of all sequences come first, then
the second tokens, and so on, sorted by matrix. Each matrix is then read once for two tokens, and
may still be in a near cache in the backward pass. Sequence by sequence, every token would read its
matrix again, from main memory where matrices are many or large.
"""

from .exp import log
from .layout import Contexts, Flags, Floats, Ints, Pairs, Potentials, Vectors
from .numba_support import inlined
from .products import advance, advance_two, retreat, retreat_two
from .simd import WIDTH, add_multiple, read, sum_of, wide_zeros, write, zeros
from .small import fill, row_sum

# A product of factors is added as a logarithm once it leaves these bounds.
_SMALL = 1e-8
_LARGE = 1e8


@inlined
def rewrite(c: int, contexts: Contexts, potentials: Potentials, scratch: Floats) -> None:
    """Copy the matrix of context c to scratch and write the values of its corrections into it."""
    # A loop: an assignment of slices takes long to compile.
    source, copy = potentials.psi[contexts.matrix_of[c]].reshape(-1), scratch.reshape(-1)
    for i in range(len(copy)):
        copy[i] = source[i]
    for e in range(contexts.corr_ptr[c], contexts.corr_start[c]):
        scratch[contexts.corr_previous[e], contexts.corr_label[e]] = potentials.change[e]


@inlined
def correct_forward(c: int, alpha: Floats, contexts: Contexts, change: Floats, out: Floats) -> None:
    """Add the sparse corrections of a context to a forward product with its matrix."""
    for e in range(contexts.corr_ptr[c], contexts.corr_start[c]):
        out[contexts.corr_label[e]] += alpha[contexts.corr_previous[e]] * change[e]


@inlined
def correct_backward(c: int, v: Floats, contexts: Contexts, change: Floats, out: Floats) -> None:
    """Add the sparse corrections of a context to a backward product with its matrix."""
    # Sorted by previous label: a separate sum does not wait for out[previous] at each addition.
    e, end = contexts.corr_ptr[c], contexts.corr_start[c]
    while e < end:
        previous = contexts.corr_previous[e]
        total = 0.0
        while e < end and contexts.corr_previous[e] == previous:
            total += v[contexts.corr_label[e]] * change[e]
            e += 1
        out[previous] += total


@inlined
def forward_product(c: int, alpha: Floats, pairs: Pairs, scratch: Floats, out: Floats) -> None:
    """Multiply alpha by the Psi of context c. alpha, out: [Yp]; scratch: [Y + 1, Yp]."""
    n_labels, contexts, potentials = pairs
    m = contexts.matrix_of[c]
    if potentials.rewritten[c]:
        rewrite(c, contexts, potentials, scratch)
        advance(alpha, scratch, n_labels, out)
        return
    if contexts.constant[m]:
        fill(out, 0, n_labels, row_sum(alpha, len(alpha)))
        fill(out, n_labels, len(out), 0.0)
    else:
        advance(alpha, potentials.psi[m], n_labels, out)
    correct_forward(c, alpha, contexts, potentials.change, out)


@inlined
def backward_product(c: int, v: Floats, pairs: Pairs, scratch: Floats, out: Floats) -> None:
    """Multiply the Psi of context c by v; the padding of `out` is not written."""
    n_labels, contexts, potentials = pairs
    m = contexts.matrix_of[c]
    if potentials.rewritten[c]:
        rewrite(c, contexts, potentials, scratch)
        retreat(scratch, v, n_labels, out)
        return
    if contexts.constant[m]:
        fill(out, 0, n_labels, row_sum(v, len(v)))
    else:
        retreat(potentials.psi[m], v, n_labels, out)
    correct_backward(c, v, contexts, potentials.change, out)


@inlined
def start_vector(c: int, pairs: Pairs, out: Floats) -> None:
    """Write the start row of context c with its corrections: the product at a first token."""
    n_labels, contexts, potentials = pairs
    start = potentials.psi[contexts.matrix_of[c], n_labels]
    for y in range(len(out)):
        out[y] = start[y]
    for e in range(contexts.corr_start[c], contexts.corr_ptr[c + 1]):
        out[contexts.corr_label[e]] = potentials.change[e]


@inlined
def settle(alpha: Floats, evidence: Floats) -> float:
    """Multiply alpha by the evidence, divide both by the sum of the product, and return the sum."""
    sums = wide_zeros()
    for y in range(0, len(alpha), WIDTH):
        product = add_multiple(zeros(alpha), read(alpha, y), read(evidence, y))
        write(product, alpha, y)
        sums = add_multiple(sums, 1.0, product)
    total: float = sum_of(sums)  # float64, in Python too
    inverse = alpha.dtype.type(1.0 / total)
    # The vectors just written: reading across them would wait until the writes are in the cache.
    for y in range(0, len(alpha), WIDTH):
        write(add_multiple(zeros(alpha), inverse, read(alpha, y)), alpha, y)
        write(add_multiple(zeros(alpha), inverse, read(evidence, y)), evidence, y)
    return total


@inlined
def finish(n_labels: int, alpha: Floats, beta: Floats, backward: Floats) -> None:
    """Turn beta into the marginals of a token: backward *= beta, then beta *= alpha."""
    fill(beta, n_labels, len(beta), 1.0)
    for y in range(len(beta)):
        backward[y] *= beta[y]
        beta[y] *= alpha[y]


@inlined
def vectors_of(begin: int, end: int, vectors: Vectors) -> Vectors:
    """Return views of the vectors of tokens begin:end."""
    return Vectors(
        vectors.alpha[begin:end],
        vectors.backward[begin:end],
        vectors.marginals[begin:end],
        vectors.scales[begin:end],
        vectors.norms[begin:end],
        vectors.scratch,
    )


@inlined
def go_forward(context: Ints, pairs: Pairs, vectors: Vectors) -> None:
    """Turn evidence into forward vectors, norms n_t, and evidence / n_t in `backward`.

    context: [T], of the tokens of one sequence; vectors: with the evidence in `backward`.
    """
    alpha, evidence, norms = vectors.alpha, vectors.backward, vectors.norms
    for t in range(len(context)):
        if t == 0:
            start_vector(context[t], pairs, alpha[t])
        else:
            forward_product(context[t], alpha[t - 1], pairs, vectors.scratch, alpha[t])
        norms[t] = settle(alpha[t], evidence[t])


@inlined
def go_back(context: Ints, pairs: Pairs, vectors: Vectors) -> None:
    """Write the marginals, and E_t beta_t / n_t to `backward`; arguments as `go_forward`.

    A row of `marginals` is beta until its token is processed.
    """
    alpha, backward, beta = vectors.alpha, vectors.backward, vectors.marginals
    fill(beta[len(context) - 1], 0, pairs.n_labels, 1.0)
    for t in range(len(context) - 1, -1, -1):
        finish(pairs.n_labels, alpha[t], beta[t], backward[t])
        if t > 0:
            backward_product(context[t], backward[t], pairs, vectors.scratch, beta[t - 1])


@inlined
def log_partition(first: int, last: int, context: Ints, pairs: Pairs, vectors: Vectors) -> float:
    """Return log Z of the sequence of tokens first:last; not finite if all paths underflow."""
    matrix_of, shift, total, product = pairs.contexts.matrix_of, pairs.potentials.shift, 0.0, 1.0
    for t in range(first, last):
        total += vectors.scales[t] + shift[matrix_of[context[t]]]
        product *= vectors.norms[t]
        if product < _SMALL or product > _LARGE:
            total += log(product)
            product = 1.0
    return float(total + log(product))


@inlined
def infer(context: Ints, pairs: Pairs, vectors: Vectors) -> float:
    """Run forward-backward on one sequence, whose evidence and scales are in `vectors`.

    context: [T]. RETURNS: log Z.
    """
    go_forward(context, pairs, vectors)
    go_back(context, pairs, vectors)
    return log_partition(0, len(context), context, pairs, vectors)


@inlined
def _share(t: int, u: int, context: Ints, contexts: Contexts, rewritten: Flags) -> bool:
    """Return whether tokens t and u of a batch can share one pass over a matrix."""
    if t < 0 or u < 0 or t == u + 1 or u == t + 1:
        return False
    c, d = context[t], context[u]
    m = contexts.matrix_of[c]
    return bool(
        m == contexts.matrix_of[d] and not (contexts.constant[m] or rewritten[c] or rewritten[d])
    )


@inlined
def forward_batch(order: Ints, context: Ints, pairs: Pairs, vectors: Vectors) -> None:
    """Apply `go_forward` to an interleaved batch.

    order: [T] int32, ~t for tokens that begin a sequence, t for others; every token comes after its
    predecessor; context: [T].
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
            advance_two(alpha[t - 1], alpha[u - 1], matrix, n_labels, alpha[t], alpha[u])
            correct_forward(context[t], alpha[t - 1], contexts, change, alpha[t])
            correct_forward(context[u], alpha[u - 1], contexts, change, alpha[u])
            norms[u] = settle(alpha[u], evidence[u])
        else:
            forward_product(context[t], alpha[t - 1], pairs, vectors.scratch, alpha[t])
        norms[t] = settle(alpha[t], evidence[t])


@inlined
def backward_batch(order: Ints, context: Ints, pairs: Pairs, vectors: Vectors) -> None:
    """Apply `go_back` to an interleaved batch; arguments as `forward_batch`.

    On entry, the rows of `marginals` of last tokens must be 1.
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
            retreat_two(matrix, backward[t], backward[u], n_labels, beta[t - 1], beta[u - 1])
            correct_backward(context[t], backward[t], contexts, change, beta[t - 1])
            correct_backward(context[u], backward[u], contexts, change, beta[u - 1])
        else:
            backward_product(context[t], backward[t], pairs, vectors.scratch, beta[t - 1])
