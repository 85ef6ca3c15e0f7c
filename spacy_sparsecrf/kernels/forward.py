"""The loss of a sequence by the forward recursion alone."""

import numpy as np

from .compiled import inner
from .memory import fill
from .path_loss import pair_potential
from .potentials import add_scores
from .products import evidence_of, forward_product, normalise, start_vector


@inner
def forward_loss(
    n_labels: int,
    labels: np.ndarray,
    allowed: np.ndarray,
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
    ent_place: np.ndarray,
    value: np.ndarray,
    change: np.ndarray,
    rewritten: np.ndarray,
    alpha: np.ndarray,
    evidence: np.ndarray,
    scratch: np.ndarray,
) -> float:
    """-log p(y | x) of one sequence, or log Z where its labels are -1.

    The recursion of `forward_backward`, which see for the arguments; those by token are the
    sequence's own [T]. The scales of potentials appear in log Z and in the score of y, and cancel.
    evidence [Yp], scratch [Y + 1, Yp]: workspaces; alpha: [T, Yp], out.
    RETURNS: not finite where no path has positive probability within the arrays' range.
    """
    loss = 0.0
    for t in range(len(labels)):
        fill(evidence, 0, len(evidence), 0.0)
        add_scores(
            evidence, tok_rows, tok_ptr[t], tok_ptr[t + 1], n_labels, row_ptr, row_labels, theta
        )
        c = context[t]
        m = matrix_of[c]
        first, middle, last = ent_ptr[c], ent_start[c], ent_ptr[c + 1]
        scale = evidence_of(evidence, n_labels, allowed[t]) + psi_shift[m]
        if t == 0:
            start_vector(psi[m], n_labels, middle, last, ent_label, change, alpha[t])
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
                change,
                scratch,
                alpha[t],
            )
        loss += np.log(normalise(alpha[t], evidence))
        if labels[t] < 0:
            loss += scale
            continue
        previous = n_labels if t == 0 else labels[t - 1]
        place = previous * len(evidence) + labels[t]
        pair = pair_potential(psi[m], place, ent_place[first:last], value[first:last])
        loss -= np.log(max(pair, 1e-300)) + np.log(max(evidence[labels[t]], 1e-300))
    return loss
