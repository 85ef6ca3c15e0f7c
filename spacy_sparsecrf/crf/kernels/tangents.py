"""The tangent of the scaled chain: changes of vectors and marginals along a direction.

The dynamic programme of Tsuboi, Unno, Kashima & Okazaki 2011, section 3. With the direction's score
u_t(j) of label j at a token and V_t(i, j) of a label pair,

    A_t(j) = u_t(j) + sum_i P(i | j) (V_t(i, j) + A_{t-1}(i)),            A_0 = 0,
    B_{t-1}(i) = sum_j P(j | i) (V_t(i, j) + u_t(j) + B_t(j)),            B_T = 0,

each minus its mean over the marginals, so that A + B is the paper's minus E(Phi).v and does not
grow with the length of the sequence. The conditional probabilities are products of vectors,
P(i | j) = alpha_{t-1}(i) Psi_t(i, j) q_t(j) / alpha_t(j) and P(j | i) = Psi_t(i, j) q_t(j)
beta_t(j) / beta_{t-1}(i), with q_t the evidence over n_t. The recursions compute alpha A and beta B
and never divide by a probability, which may be 0. They do not depend on features and weights.
"""

from .chain import backward_product, rewrite
from .layout import Floats, Ints, Pairs, Slopes, Tangents, Vectors
from .numba_support import inlined
from .simd import WIDTH, add_multiple, multiply_add, read, sum_of, zeros
from .small import dot, fill, row_sum


@inlined
def recover_betas(
    weight: float, context: Ints, pairs: Pairs, vectors: Vectors, beta: Floats
) -> None:
    """Recover weight * beta_t of one sequence from `backward`, as inference wrote it.

    weight: factor of `backward`; context: [T]; beta: [T, Yp], out, padding 0.
    """
    last_token, backward, n_labels = len(context) - 1, vectors.backward, pairs.n_labels
    for t in range(last_token + 1):
        row = beta[t]
        fill(row, n_labels, len(row), 0.0)
        if t == last_token:
            fill(row, 0, n_labels, weight)
        else:
            backward_product(context[t + 1], backward[t + 1], pairs, vectors.scratch, row)


@inlined
def _advance(
    alpha: Floats, change: Floats, matrix: Floats, slope: Floats, n_labels: int, out: Floats
) -> None:
    """out[y] = sum_y' matrix[y', y] (change[y'] + alpha[y'] slope[y', y]), two y' at a time."""
    padded = len(out)
    for y in range(padded):
        out[y] = 0.0
    unrolled = n_labels - n_labels % 2
    for i in range(0, unrolled, 2):
        a, b, c, d = alpha[i], alpha[i + 1], change[i], change[i + 1]
        for y in range(padded):
            second = matrix[i + 1, y] * multiply_add(b, slope[i + 1, y], d)
            out[y] += multiply_add(matrix[i, y], multiply_add(a, slope[i, y], c), second)
    for i in range(unrolled, n_labels):
        a, c = alpha[i], change[i]
        for y in range(padded):
            out[y] = multiply_add(matrix[i, y], multiply_add(a, slope[i, y], c), out[y])


@inlined
def _retreat(
    matrix: Floats, slope: Floats, v: Floats, change: Floats, n_labels: int, out: Floats
) -> None:
    """out[y'] = sum_y matrix[y', y] (change[y] + slope[y', y] v[y])."""
    width = len(v)
    for i in range(n_labels):
        total = zeros(matrix)
        for y in range(0, width, WIDTH):
            offset = i * width + y
            inner = add_multiple(read(change, y), read(slope, offset), read(v, y))
            total = add_multiple(total, read(matrix, offset), inner)
        out[i] = sum_of(total)


@inlined
def _forward_change(
    c: int,
    alpha: Floats,
    change: Floats,
    pairs: Pairs,
    slopes: Slopes,
    scratch: Floats,
    out: Floats,
) -> None:
    """Write the derivative of alpha Psi, Psi of context c; change: derivative of alpha."""
    n_labels, contexts, potentials = pairs
    m, begin, end = contexts.matrix_of[c], contexts.corr_ptr[c], contexts.corr_start[c]
    previous, label = contexts.corr_previous, contexts.corr_label
    if potentials.rewritten[c]:
        rewrite(c, contexts, potentials, scratch)
        _advance(alpha, change, scratch, slopes.psi[m], n_labels, out)
        for e in range(begin, end):
            out[label[e]] += alpha[previous[e]] * slopes.change[e]
        return
    if contexts.constant[m]:
        fill(out, 0, n_labels, row_sum(change, n_labels))
        fill(out, n_labels, len(out), 0.0)
    else:
        _advance(alpha, change, potentials.psi[m], slopes.psi[m], n_labels, out)
    for e in range(begin, end):
        i = previous[e]
        out[label[e]] += change[i] * potentials.change[e] + alpha[i] * slopes.change[e]


@inlined
def _backward_change(
    c: int, v: Floats, change: Floats, pairs: Pairs, slopes: Slopes, scratch: Floats, out: Floats
) -> None:
    """Write the derivative of Psi v, Psi of context c, padding 0; change: derivative of v."""
    n_labels, contexts, potentials = pairs
    m, begin, end = contexts.matrix_of[c], contexts.corr_ptr[c], contexts.corr_start[c]
    previous, label = contexts.corr_previous, contexts.corr_label
    fill(out, n_labels, len(out), 0.0)
    if potentials.rewritten[c]:
        rewrite(c, contexts, potentials, scratch)
        _retreat(scratch, slopes.psi[m], v, change, n_labels, out)
        for e in range(begin, end):
            out[previous[e]] += v[label[e]] * slopes.change[e]
        return
    if contexts.constant[m]:
        fill(out, 0, n_labels, row_sum(change, n_labels))
    else:
        _retreat(potentials.psi[m], slopes.psi[m], v, change, n_labels, out)
    for e in range(begin, end):
        y = label[e]
        out[previous[e]] += change[y] * potentials.change[e] + v[y] * slopes.change[e]


@inlined
def _start_change(c: int, pairs: Pairs, slopes: Slopes, out: Floats) -> None:
    """Write the derivative of `chain.start_vector`."""
    n_labels, contexts, potentials = pairs
    m = contexts.matrix_of[c]
    start, slope = potentials.psi[m, n_labels], slopes.psi[m, n_labels]
    for y in range(len(out)):
        out[y] = start[y] * slope[y]
    for e in range(contexts.corr_start[c], contexts.corr_ptr[c + 1]):
        out[contexts.corr_label[e]] = slopes.change[e]


@inlined
def _centre(row: Floats, mass: Floats, inverse: float, shape: Floats) -> float:
    """Subtract k shape from a row, for k = sum_y mass[y] row[y] * inverse, and return k."""
    total = dot(mass, row) * inverse
    k = row.dtype.type(total)
    for y in range(len(row)):
        row[y] = multiply_add(-k, shape[y], row[y])
    return total


@inlined
def _add_evidence(
    row: Floats, backward: Floats, beta: Floats, whole: Floats, score: Floats
) -> None:
    """row[y] := q[y] row[y] + whole[y] score[y], with q = backward / beta.

    If beta is 0, the marginal of the label is 0 too, and q is irrelevant.
    """
    zero = row.dtype.type(0)
    for y in range(len(row)):
        q = backward[y] / beta[y] if beta[y] != zero else zero
        row[y] = multiply_add(q, row[y], whole[y] * score[y])


@inlined
def _change_forward(
    inverse: float,
    context: Ints,
    pairs: Pairs,
    slopes: Slopes,
    vectors: Vectors,
    tangents: Tangents,
) -> float:
    """Write alpha_t A_t to `forward_change`, and return the mean that was subtracted from A_1."""
    alpha, beta, rows = vectors.alpha, tangents.beta, tangents.forward_change
    start_mean = 0.0
    for t in range(len(context)):
        row, c = rows[t], context[t]
        if t == 0:
            _start_change(c, pairs, slopes, row)
        else:
            _forward_change(c, alpha[t - 1], rows[t - 1], pairs, slopes, vectors.scratch, row)
        _add_evidence(row, vectors.backward[t], beta[t], alpha[t], tangents.marginal_change[t])
        mean = _centre(row, beta[t], inverse, alpha[t])
        if t == 0:
            start_mean = mean
    return start_mean


@inlined
def differentiate(
    weight: float, context: Ints, pairs: Pairs, slopes: Slopes, vectors: Vectors, tangents: Tangents
) -> None:
    """Run the recursions A and B over one sequence, without exp.

    Writes forward_change[t] = alpha_t A_t, marginal_change[t] = weight p(y_t) (A_t + B_t) and
    backward_change[t] = backward_t (u_t + B_t - k), k the mean of V + u_t + B_t. The derivative of
    weight p(i, j) is then forward_change_{t-1}[i] Psi[i, j] backward_t[j] +
    alpha_{t-1}[i] Psi[i, j] (backward_change_t[j] + V[i, j] backward_t[j]).

    weight: factor of `backward` and `beta`; context: [T]; vectors: as inference wrote them;
    tangents: with `beta`, and with u in `marginal_change`.
    """
    inverse = 1.0 / weight if weight != 0.0 else 0.0
    start_mean = _change_forward(inverse, context, pairs, slopes, vectors, tangents)
    alpha, backward, beta = vectors.alpha, vectors.backward, tangents.beta
    rows, scratch, last_token = tangents.backward_change, vectors.scratch, len(context) - 1
    # A workspace: the start row of a matrix rewritten into scratch is not read.
    marginal_change = scratch[pairs.n_labels]
    fill(rows[last_token], 0, rows.shape[1], 0.0)
    for t in range(last_token, -1, -1):
        # Here a row is beta_t B_t, and `marginal_change` contains u_t.
        row, scores, forward = rows[t], tangents.marginal_change[t], tangents.forward_change[t]
        for y in range(len(row)):
            marginal_change[y] = forward[y] * beta[t, y] + alpha[t, y] * row[y]
        _add_evidence(row, backward[t], beta[t], backward[t], scores)
        for y in range(len(row)):
            scores[y] = marginal_change[y]
        mean = start_mean
        if t > 0:
            previous = rows[t - 1]
            _backward_change(context[t], backward[t], row, pairs, slopes, scratch, previous)
            mean = _centre(previous, alpha[t - 1], inverse, beta[t - 1])
        for y in range(len(row)):
            row[y] -= mean * backward[t, y]
