"""Forward-backward on logarithms, for probabilities of anything in a chain.

Vectors are logarithms relative to their largest element; their products with matrices are sums of
exponentials, which are done again by logarithms where they are so small that a term may have been
lost. So each element is accurate, however improbable what it stands for.
"""

import numpy as np

from .compiled import inner, kernel
from .exp import exp_shifted
from .memory import fill
from .products import advance, retreat

# Sums of at most 65,536 products of exponentials >= 3e-308 lose less than 1e-20 of this.
_TINY = 1e-280


@kernel
def exponentiate_pairs(
    n_labels: int, pairs: np.ndarray, psi: np.ndarray, shift: np.ndarray
) -> None:
    """Exponentiate pair scores: psi[c, y', y] = exp(pairs[c, y', y] - shift[c]).

    pairs: [C, Y + 1, Yp]; psi: [C, Y, Yp], out, without the start label; shift: [C], out.
    """
    for c in range(len(pairs)):
        top = -np.inf
        for i in range(n_labels):
            for y in range(n_labels):
                top = max(top, pairs[c, i, y])
        # Where nothing is legal, every sum of these is tiny.
        shift[c] = top if top > -np.inf else 0.0
        for i in range(n_labels):
            for y in range(psi.shape[2]):
                psi[c, i, y] = pairs[c, i, y]
            exp_shifted(psi[c, i], psi.shape[2], shift[c])


@inner
def log_sum(row: np.ndarray, n: int) -> float:
    """Log of the sum of exp(row[:n]); -inf for a row of -inf."""
    top: float = -np.inf
    for y in range(n):
        top = max(top, row[y])
    if top == -np.inf:
        return top
    total = 0.0
    for y in range(n):
        total += np.exp(row[y] - top)
    return float(top + np.log(total))


@inner
def _level(row: np.ndarray, n: int) -> float:
    """Make the largest element of row[:n] 0. RETURNS: what it was."""
    top = -np.inf
    for y in range(n):
        top = max(top, row[y])
    for y in range(n):
        row[y] -= top
    return top


@inner
def _exponentials(row: np.ndarray, n: int, out: np.ndarray) -> None:
    """Exponentiate row[:n], elements <= 0; the padding of `out` becomes 0."""
    for y in range(n):
        out[y] = row[y]
    fill(out, n, len(out), 0.0)
    exp_shifted(out, len(out), 0.0)
    fill(out, n, len(out), 0.0)


@kernel
def run_forward(
    offsets: np.ndarray,
    n_labels: int,
    scores: np.ndarray,
    context: np.ndarray,
    pairs: np.ndarray,
    psi: np.ndarray,
    shift: np.ndarray,
    alpha: np.ndarray,
    alpha_scale: np.ndarray,
    log_z: np.ndarray,
) -> None:
    """Sum over the paths to each label: log alpha_t(y) = alpha[t, y] + alpha_scale[t].

    offsets [S + 1]; scores [N, Yp]; context [N]; pairs [C, Y + 1, Yp]; psi, shift: of
    `exponentiate_pairs`; alpha: [N, Yp], out, at most 0, padding undefined; alpha_scale: [N],
    out; log_z: [S], out, 0 of a sequence without tokens.
    """
    padded = scores.shape[1]
    exponentials, terms = np.empty(padded), np.empty(padded)
    for s in range(len(offsets) - 1):
        begin, end = offsets[s], offsets[s + 1]
        scale = 0.0
        for t in range(begin, end):
            c = context[t]
            row = alpha[t]
            if t == begin:
                for y in range(n_labels):
                    row[y] = pairs[c, n_labels, y] + scores[t, y]
            else:
                before = alpha[t - 1]
                _exponentials(before, n_labels, exponentials)
                advance(exponentials, psi[c], n_labels, row)
                for y in range(n_labels):
                    if row[y] >= _TINY:
                        row[y] = np.log(row[y]) + shift[c] + scores[t, y]
                    else:
                        for i in range(n_labels):
                            terms[i] = before[i] + pairs[c, i, y]
                        row[y] = log_sum(terms, n_labels) + scores[t, y]
            scale += _level(row, n_labels)
            alpha_scale[t] = scale
        log_z[s] = scale + log_sum(alpha[end - 1], n_labels) if end > begin else 0.0


@kernel
def run_backward(
    offsets: np.ndarray,
    n_labels: int,
    scores: np.ndarray,
    context: np.ndarray,
    pairs: np.ndarray,
    psi: np.ndarray,
    shift: np.ndarray,
    beta: np.ndarray,
    beta_scale: np.ndarray,
) -> None:
    """Sum over the paths from each label: log beta_t(y) = beta[t, y] + beta_scale[t].

    beta: [N, Yp], out, at most 0, padding undefined; beta_scale: [N], out; the rest as in
    `run_forward`.
    """
    padded = scores.shape[1]
    exponentials, terms, ahead = np.empty(padded), np.empty(padded), np.empty(padded)
    for s in range(len(offsets) - 1):
        begin, end = offsets[s], offsets[s + 1]
        if begin == end:
            continue
        fill(beta[end - 1], 0, n_labels, 0.0)
        beta_scale[end - 1] = 0.0
        for t in range(end - 1, begin, -1):
            c = context[t]
            for y in range(n_labels):
                ahead[y] = scores[t, y] + beta[t, y]
            top = _level(ahead, n_labels)
            _exponentials(ahead, n_labels, exponentials)
            row = beta[t - 1]
            retreat(psi[c], exponentials, n_labels, row)
            for i in range(n_labels):
                if row[i] >= _TINY:
                    row[i] = np.log(row[i]) + shift[c]
                else:
                    for y in range(n_labels):
                        terms[y] = pairs[c, i, y] + ahead[y]
                    row[i] = log_sum(terms, n_labels)
            beta_scale[t - 1] = beta_scale[t] + top + _level(row, n_labels)


@kernel
def find_marginals(alpha: np.ndarray, beta: np.ndarray, marginals: np.ndarray) -> None:
    """Compute p(y_t = y | x), alpha_t(y) beta_t(y) / Z.

    alpha, beta: [N, Yp], of `run_forward` and `run_backward`; marginals: [N, Y], out.
    """
    for t in range(len(marginals)):
        row = marginals[t]
        for y in range(len(row)):
            row[y] = alpha[t, y] + beta[t, y]
        _level(row, len(row))
        total = 0.0
        for y in range(len(row)):
            row[y] = np.exp(row[y])
            total += row[y]
        for y in range(len(row)):
            row[y] /= total


@kernel
def score_paths(
    offsets: np.ndarray,
    n_labels: int,
    scores: np.ndarray,
    context: np.ndarray,
    pairs: np.ndarray,
    labels: np.ndarray,
    found: np.ndarray,
) -> None:
    """Sum the scores of a path of each sequence.

    offsets [S + 1]; scores [N, Yp]; context [N]; pairs [C, Y + 1, Yp], row Y = start label;
    labels [N] int32; found: [S], out.
    """
    for s in range(len(offsets) - 1):
        total = 0.0
        before = n_labels
        for t in range(offsets[s], offsets[s + 1]):
            y = labels[t]
            total += scores[t, y] + pairs[context[t], before, y]
            before = y
        found[s] = total
