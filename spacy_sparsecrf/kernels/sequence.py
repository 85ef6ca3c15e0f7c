"""One sequence for SAG: its loss and its residuals."""

import numpy as np

from .compiled import inner
from .example import build_potentials
from .forward_backward import forward_backward
from .groups import Chains, Groups, PairTables, Potentials, Residuals, TokenRows, Vectors
from .memory import fill
from .path_loss import path_loss
from .residuals import add_labels, add_pairs


@inner
def evaluate_sequence(
    s: int,
    chains: Chains,
    tests: TokenRows,
    pairs: PairTables,
    groups: Groups,
    theta: np.ndarray,
    fresh: Residuals,
    products: np.ndarray,
    potentials: Potentials,
    clock: np.ndarray,
    vectors: Vectors,
) -> float:
    """The loss of sequence s and its constrained copy, times its weight, and their residuals.

    theta: [K]; fresh: [>= T], [>= groups], out; products: [Y, Yp] workspace; clock: [1], counts
    visits.
    """
    n_labels, bounds, begin = chains.n_labels, vectors.bounds, chains.offsets[s]
    length = chains.offsets[s + 1] - begin
    first, last = groups.seq_ptr[s], groups.seq_ptr[s + 1]
    fill(fresh.nodes.reshape(-1), 0, length * fresh.nodes.shape[1], 0.0)
    fill(fresh.pairs.reshape(-1), 0, (last - first) * products.size, 0.0)
    where = pairs.context[begin : begin + length]
    clock[0] += 1
    build_potentials(clock[0], where, n_labels, pairs, theta[tests.split :], potentials)
    bounds[1] = length
    # Of one part, where examples have two.
    log_z = vectors.log_z[:1]
    total = 0.0
    for part in (s, chains.twin[s]):
        if part < 0:
            continue
        at = chains.offsets[part]
        forward_backward(
            bounds[0],
            bounds[0] + 1,
            n_labels,
            bounds,
            vectors.signs[:1],
            chains.allowed[at : at + length],
            tests.head_ptr[begin : begin + length + 1],
            tests.heads,
            tests.table,
            tests.tok_ptr[begin : begin + length + 1],
            tests.tok_rows,
            tests.row_ptr,
            tests.row_labels,
            theta[: tests.split],
            where,
            pairs.matrix_of,
            potentials.psi,
            potentials.shift,
            pairs.constant,
            pairs.ent_ptr,
            pairs.ent_start,
            pairs.ent_previous,
            pairs.ent_label,
            potentials.change,
            potentials.rewritten,
            vectors.alpha,
            vectors.backward,
            vectors.marginals,
            log_z,
            vectors.walk,
            bounds[0] + 1,
            vectors.scales,
            vectors.scratch,
            # False; a literal would have numba compile forward-backward once more.
            bounds[0] > 0,
        )
        alpha, backward, marginals = vectors.alpha, vectors.backward, vectors.marginals
        weight, gold, loss = chains.weights[part], chains.labels[at : at + length], log_z[0]
        if gold[0] >= 0:
            loss = path_loss(gold, where, pairs, potentials, alpha, backward, marginals)
        add_labels(weight, gold, marginals, fresh.nodes)
        add_pairs(
            weight,
            first,
            last,
            groups.grp_ptr,
            groups.grp_tokens,
            n_labels,
            gold,
            where,
            pairs.matrix_of,
            potentials.psi,
            pairs.ent_ptr,
            pairs.ent_start,
            pairs.ent_previous,
            pairs.ent_label,
            potentials.value,
            alpha,
            backward,
            products,
            fresh.pairs,
        )
        total += weight * loss
    return float(total)
