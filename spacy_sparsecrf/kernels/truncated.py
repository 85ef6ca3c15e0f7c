"""Forward-backward over parts of sequences, whose vectors are kept (Lavergne 2010, section 4.1).

What a test's weights change in a sequence lies between its first and its last *active* token,
those where the test occurs. Of a sequence, alpha_t depends on the potentials up to t, beta_t on
those after t: hence a change at the tokens first..last leaves alpha before `first` and beta from
`last` on as they were. `alpha_end` and `beta_begin` tell how far each is still true, and only what
is missing up to the last active token, or down to the first, is computed.
"""

import numpy as np

from .compiled import inner
from .memory import fill
from .products import backward_product, forward_product, normalise, start_vector


@inner
def extend_forward(
    begin: int,
    first: int,
    last: int,
    n_labels: int,
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
    evidence: np.ndarray,
    alpha: np.ndarray,
    scale: np.ndarray,
    scratch: np.ndarray,
) -> None:
    """Compute alpha_t = (alpha_{t-1} Psi_t) * E_t / n_t, of sum 1, for t = first .. last - 1.

    begin: first token of the sequence; evidence: [N, Yp] E; alpha: [N, Yp], in and out; scale: [N]
    float64, out, n_t; the rest as in `forward_backward`.
    """
    for t in range(first, last):
        c = context[t]
        m = matrix_of[c]
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
        scale[t] = normalise(alpha[t], evidence[t])


@inner
def extend_backward(
    end: int,
    first: int,
    last: int,
    n_labels: int,
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
    evidence: np.ndarray,
    beta: np.ndarray,
    product: np.ndarray,
    scratch: np.ndarray,
) -> None:
    """Compute beta_t ~ Psi_{t+1} (E_{t+1} * beta_{t+1}), of sum 1, for t = last - 1 .. first.

    end: one after the last token of the sequence; beta: [N, Yp], in and out, its padding 0;
    product: [Yp], workspace; the rest as in `extend_forward`.
    """
    for t in range(last - 1, first - 1, -1):
        if t == end - 1:
            fill(beta[t], 0, n_labels, 1.0)
            continue
        for y in range(len(product)):
            product[y] = evidence[t + 1, y] * beta[t + 1, y]
        c = context[t + 1]
        m = matrix_of[c]
        backward_product(
            psi[m],
            product,
            constant[m],
            rewritten[c],
            n_labels,
            ent_ptr[c],
            ent_start[c],
            ent_previous,
            ent_label,
            ent_change,
            scratch,
            beta[t],
        )
        total = 0.0
        for y in range(n_labels):
            total += beta[t, y]
        inverse = 1.0 / total
        for y in range(n_labels):
            beta[t, y] *= inverse


@inner
def overlap(alpha: np.ndarray, beta: np.ndarray) -> float:
    """Sum alpha_t(y) beta_t(y): Z, up to the factors taken out, from any token t."""
    total = 0.0
    for y in range(len(alpha)):
        total += float(alpha[y]) * float(beta[y])
    return total


@inner
def partial_log_z(
    first: int,
    last: int,
    context: np.ndarray,
    matrix_of: np.ndarray,
    psi_shift: np.ndarray,
    top: np.ndarray,
    scale: np.ndarray,
    alpha: np.ndarray,
    beta: np.ndarray,
) -> float:
    """The part of log Z that depends on the potentials of the tokens first..last, both included.

    It is log Z but for a summand that alpha before `first` and beta from `last` on determine.
    """
    total: float = np.log(overlap(alpha[last], beta[last]))
    for t in range(first, last + 1):
        total += np.log(scale[t]) + top[t] + psi_shift[matrix_of[context[t]]]
    return total
