"""Forward-backward in log space, for probabilities of any event in a chain.

Vectors are logarithms relative to their largest element. Their products with matrices are sums of
exponentials; a sum so small that a term may have underflowed is recomputed in log space. Each
element is therefore accurate, however improbable its event. `normalise_steps` turns an MEMM into a
chain by its normaliser, the sum over one step.
"""

from typing import NamedTuple

import numpy as np

from .exp import exp, exp_relative, exp_shifted, log
from .layout import Floats, Ints, Scored
from .numba_support import inlined, kernel
from .products import advance, retreat
from .small import fill, normalise, row_sum

# Sums of at most 65,536 products of exponentials >= 3e-308 lose less than 1e-20 of this.
_TINY = 1e-280


class Forward(NamedTuple):
    """Exponentiated pair scores, and the output of `run_forward`.

    psi: [C, Y, Yp], shift: [C], of `exponentiate_pairs`; alpha: [N, Yp], at most 0, padding
    undefined, and scale: [N]: log alpha_t(y) = alpha[t, y] + scale[t]; log_z: [S], 0 for a sequence
    without tokens.
    """

    psi: Floats
    shift: Floats
    alpha: Floats
    scale: Floats
    log_z: Floats


class Backward(NamedTuple):
    """Output of `run_both`: log beta_t(y) = beta[t, y] + scale[t].

    beta: [N, Yp], at most 0, padding undefined; scale: [N]; marginals: p(y_t = y | x), [N, Y], or
    [0, Y] if they are not needed.
    """

    beta: Floats
    scale: Floats
    marginals: Floats


class Runs(NamedTuple):
    """Label runs whose probabilities are requested.

    starts: [M] int64, first token of a run; ptr [M + 1] int64, labels int32: CSR, its labels;
    bounded: whether `next_labels` applies; next_labels: [M, Y] bool, labels that may follow a run.
    """

    starts: Ints
    ptr: Ints
    labels: Ints
    bounded: bool
    next_labels: Ints


@kernel
def exponentiate_pairs(n_labels: int, pairs: Floats, psi: Floats, shift: Floats) -> None:
    """Exponentiate pair scores: psi[c, y', y] = exp(pairs[c, y', y] - shift[c]).

    pairs: [C, Y + 1, Yp]; psi: [C, Y, Yp], out, without the start label; shift: [C], out.
    """
    for c in range(len(pairs)):
        top = -np.inf
        for i in range(n_labels):
            for y in range(n_labels):
                top = max(top, pairs[c, i, y])
        # If no transition is valid, every sum of these is tiny.
        shift[c] = top if top > -np.inf else 0.0
        for i in range(n_labels):
            for y in range(psi.shape[2]):
                psi[c, i, y] = pairs[c, i, y]
            exp_shifted(psi[c, i], psi.shape[2], shift[c])
            for y in range(psi.shape[2]):
                # Not the least number: products with it are denormal, and many times as slow.
                psi[c, i, y] = psi[c, i, y] if pairs[c, i, y] > -np.inf else 0.0


@inlined
def log_sum(row: Floats, n: int) -> float:
    """Return the log of the sum of exp(row[:n]); -inf for a row of -inf."""
    top: float = -np.inf
    for y in range(n):
        top = max(top, row[y])
    if top == -np.inf:
        return top
    total = 0.0
    for y in range(n):
        total += exp(row[y] - top)
    return float(top + log(total))


@inlined
def _level(row: Floats, n: int) -> float:
    """Subtract the largest element from row[:n], and return it."""
    top = -np.inf
    for y in range(n):
        top = max(top, row[y])
    for y in range(n):
        row[y] -= top
    return top


@inlined
def _exponentials(row: Floats, n: int, out: Floats) -> None:
    """Exponentiate row[:n], elements <= 0; the padding of `out` becomes 0."""
    for y in range(n):
        out[y] = row[y]
    fill(out, n, len(out), 0.0)
    exp_shifted(out, len(out), 0.0)
    fill(out, n, len(out), 0.0)


@inlined
def _sum_of_products(
    products: Floats, shift: float, vector: Floats, matrix: Floats, forward: bool, terms: Floats
) -> None:
    """Replace products [Y] of exponentials by logarithms; recompute tiny products in log space.

    shift: of the matrix; vector, matrix: logarithms of the factors, [Yp] and [Y + 1, Yp]; forward:
    whether the sums are over rows of the matrix, or over columns; terms: [Yp], workspace.
    """
    n_labels = len(products)
    for y in range(n_labels):
        if products[y] >= _TINY:
            products[y] = log(products[y]) + shift
            continue
        for i in range(n_labels):
            terms[i] = vector[i] + (matrix[i, y] if forward else matrix[y, i])
        products[y] = log_sum(terms, n_labels)


@kernel
def run_forward(scored: Scored, forward: Forward, space: Floats) -> None:
    """Sum over the paths to each label.

    forward: psi and shift are read, the rest is written; space: [3, Yp] float64, a workspace.
    """
    offsets, n_labels, scores = scored.offsets, scored.n_labels, scored.scores
    alpha, exponentials, terms = forward.alpha, space[0], space[1]
    for s in range(len(offsets) - 1):
        begin, end = offsets[s], offsets[s + 1]
        scale = 0.0
        for t in range(begin, end):
            c = scored.context[t]
            row, matrix = alpha[t], scored.pairs[c]
            if t == begin:
                for y in range(n_labels):
                    row[y] = matrix[n_labels, y]
            else:
                previous = alpha[t - 1]
                _exponentials(previous, n_labels, exponentials)
                advance(exponentials, forward.psi[c], n_labels, row)
                products, shift = row[:n_labels], forward.shift[c]
                _sum_of_products(products, shift, previous, matrix, True, terms)
            for y in range(n_labels):
                row[y] += scores[t, y]
            scale += _level(row, n_labels)
            forward.scale[t] = scale
        empty = begin == end
        forward.log_z[s] = 0.0 if empty else scale + log_sum(alpha[end - 1], n_labels)


@inlined
def _find_marginals(alpha: Floats, beta: Floats, marginals: Floats) -> None:
    """Compute p(y_t = y | x) = alpha_t(y) beta_t(y) / Z."""
    for t in range(len(marginals)):
        row = marginals[t]
        for y in range(len(row)):
            row[y] = alpha[t, y] + beta[t, y]
        _level(row, len(row))
        for y in range(len(row)):
            row[y] = exp(row[y])
        normalise(len(row), row)


@kernel
def run_both(scored: Scored, forward: Forward, backward: Backward, space: Floats) -> None:
    """Sum over the paths to and from each label, and compute marginals.

    forward, space: as for `run_forward`; backward: out.
    """
    run_forward(scored, forward, space)
    offsets, n_labels, scores = scored.offsets, scored.n_labels, scored.scores
    beta, scale = backward.beta, backward.scale
    exponentials, terms, ahead = space[0], space[1], space[2]
    for s in range(len(offsets) - 1):
        begin, end = offsets[s], offsets[s + 1]
        if begin == end:
            continue
        fill(beta[end - 1], 0, n_labels, 0.0)
        scale[end - 1] = 0.0
        for t in range(end - 1, begin, -1):
            c = scored.context[t]
            for y in range(n_labels):
                ahead[y] = scores[t, y] + beta[t, y]
            top = _level(ahead, n_labels)
            _exponentials(ahead, n_labels, exponentials)
            row = beta[t - 1]
            retreat(forward.psi[c], exponentials, n_labels, row)
            products, shift = row[:n_labels], forward.shift[c]
            _sum_of_products(products, shift, ahead, scored.pairs[c], False, terms)
            scale[t - 1] = scale[t] + top + _level(row, n_labels)
    _find_marginals(forward.alpha, beta, backward.marginals)


@kernel
def score_paths(scored: Scored, labels: Ints, log_z: Floats, log_p: Floats) -> None:
    """Compute log p(y | x), at most 0, of a path y of each sequence.

    labels: [N] int32; log_z: [S], of `run_forward`; log_p: [S], out.
    """
    offsets = scored.offsets
    for s in range(len(offsets) - 1):
        total = 0.0
        previous = scored.n_labels
        for t in range(offsets[s], offsets[s + 1]):
            y = labels[t]
            total += scored.scores[t, y] + scored.pairs[scored.context[t], previous, y]
            previous = y
        total -= log_z[s]
        log_p[s] = 0.0 if total > 0.0 else total


@kernel(allocates=True)
def normalise_steps(scored: Scored) -> None:
    """Subtract the log normaliser of the next step from the scores of an MEMM, in place.

    With s = scores and log p(y | y', x, t) = s[t, y] + pairs[c_t, y', y] - log Z_t(y'), a path has
    the log-probability sum_t (s[t, y_t] - log Z_{t+1}(y_t)) + pairs[c_t, y_{t-1}, y_t], minus the
    normaliser of the first step, which is the same for all paths: the score of a chain.

    scored: its scores are changed; padding is not read.
    """
    offsets, scores, n_labels = scored.offsets, scored.scores, scored.n_labels
    padded = scores.shape[1]
    row = np.empty(padded)
    for s in range(len(offsets) - 1):
        for t in range(offsets[s] + 1, offsets[s + 1]):
            matrix = scored.pairs[scored.context[t]]
            for i in range(n_labels):
                for y in range(padded):
                    row[y] = scores[t, y] + matrix[i, y]
                top = exp_relative(row, n_labels)
                scores[t - 1, i] -= top + log(row_sum(row, n_labels))


@kernel(allocates=True)
def score_spans(
    scored: Scored, sequence: Ints, forward: Forward, backward: Backward, runs: Runs, log_p: Floats
) -> None:
    """Compute log p(y_i .. y_j = the labels of a run, y_{j+1} in a set | x) of many runs.

    With alpha, beta and the factors psi of a chain, p is alpha_i(y_i) psi_{i+1}(y_i, y_{i+1}) ..
    psi_j(y_{j-1}, y_j) sum_{y in set} psi_{j+1}(y_j, y) beta_{j+1}(y) / Z. Sequences are
    independent: a run may cross their boundaries, and the set is ignored after the last token of a
    sequence.

    sequence: [N] int32, of a token; forward, backward: of all sequences; log_p: [M], out.
    """
    alpha, beta, log_z = forward.alpha, backward.beta, forward.log_z
    context, pairs, scores = scored.context, scored.pairs, scored.scores
    terms = np.empty(scored.n_labels)
    for m in range(len(runs.starts)):
        t = runs.starts[m]
        y = runs.labels[runs.ptr[m]]
        total = alpha[t, y] + forward.scale[t]
        for k in range(runs.ptr[m] + 1, runs.ptr[m + 1]):
            t += 1
            previous, y = y, runs.labels[k]
            if sequence[t] == sequence[t - 1]:
                total += pairs[context[t], previous, y] + scores[t, y]
            else:
                total += alpha[t, y] + forward.scale[t] - log_z[sequence[t - 1]]
        is_last = t + 1 == len(sequence) or sequence[t + 1] != sequence[t]
        if is_last or not runs.bounded:
            total += beta[t, y] + backward.scale[t]
        else:
            for ahead in range(len(terms)):
                score = pairs[context[t + 1], y, ahead] + scores[t + 1, ahead]
                terms[ahead] = score + beta[t + 1, ahead] if runs.next_labels[m, ahead] else -np.inf
            total += log_sum(terms, len(terms)) + backward.scale[t + 1]
        log_p[m] = min(total - log_z[sequence[t]], 0.0)
