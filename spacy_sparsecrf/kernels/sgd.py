"""Stochastic gradient descent, an example at a time, with a cumulative l1 penalty."""

import numpy as np

from .compiled import inner, kernel
from .descent import pair_residual, update_entries, update_matrix, update_rows
from .example import infer_example
from .groups import Chains, PairSums, PairTables, Potentials, TokenRows, Vectors
from .memory import lent


@inner
def update_pairs(
    n: int,
    n_parts: int,
    n_labels: int,
    labels: np.ndarray,
    context: np.ndarray,
    pairs: PairTables,
    potentials: Potentials,
    vectors: Vectors,
    space: PairSums,
    step: float,
    theta: np.ndarray,
    received: np.ndarray,
    shrunk: np.ndarray,
    due: np.ndarray,
) -> None:
    """Descend on the bigram weights of an example of n tokens, a run of tokens at a time.

    Tokens of a run share a context, or a matrix. n_parts: 2 with a constrained copy, else 1;
    labels, context: of its tokens; theta, received, shrunk: of bigram weights only (see `descent`).
    """
    matrix_of, ent_ptr, ent_start = pairs.matrix_of, pairs.ent_ptr, pairs.ent_start
    ent_previous, ent_label, value = pairs.ent_previous, pairs.ent_label, potentials.value
    alpha, backward = vectors.alpha, vectors.backward
    same_context = same_matrix = 0
    for i in range(n):
        c = context[i]
        m = matrix_of[c]
        # The first token has entries of its own, those of the start row.
        if i == 0 or i + 1 == n or context[i + 1] != c:
            if ent_ptr[c] < ent_ptr[c + 1]:
                update_entries(
                    same_context,
                    i + 1,
                    n_parts,
                    labels,
                    c,
                    n_labels,
                    ent_ptr,
                    ent_start,
                    ent_previous,
                    ent_label,
                    pairs.ent_place,
                    pairs.weight_ptr,
                    pairs.weights,
                    value,
                    alpha,
                    backward,
                    space.sums,
                    step,
                    theta,
                    received,
                    shrunk,
                    due,
                )
            same_context = i + 1
        if i + 1 == n or matrix_of[context[i + 1]] != m:
            if not pairs.constant[m]:
                pair_residual(
                    same_matrix,
                    i + 1,
                    n_parts,
                    n_labels,
                    space.tokens,
                    labels,
                    context,
                    potentials.psi[m],
                    ent_ptr,
                    ent_start,
                    ent_previous,
                    ent_label,
                    value,
                    alpha,
                    backward,
                    space.sums,
                    space.residual,
                )
                update_matrix(
                    pairs.mat_rows[pairs.mat_ptr[m] : pairs.mat_ptr[m + 1]],
                    pairs.pair_ptr,
                    pairs.pair_places,
                    space.residual.reshape(-1),
                    step,
                    theta,
                    received,
                    shrunk,
                    due,
                )
            same_matrix = i + 1


@inner
def update_example(
    s: int,
    chains: Chains,
    tests: TokenRows,
    pairs: PairTables,
    potentials: Potentials,
    vectors: Vectors,
    space: PairSums,
    step: float,
    theta: np.ndarray,
    received: np.ndarray,
    row_shrunk: np.ndarray,
    pair_shrunk: np.ndarray,
    due: np.ndarray,
) -> None:
    """Descend from the gradient of example s, which was inferred last, then apply penalties.

    theta, received: [K], unigram weights first; row_shrunk [R], pair_shrunk [bigram weights]; due:
    [2]: see `descent.penalise`.
    """
    begin, end, split = chains.offsets[s], chains.offsets[s + 1], tests.split
    tok_rows, tok_ptr, n_labels = tests.tok_rows, tests.tok_ptr, chains.n_labels
    for t in range(begin, end):
        update_rows(
            tok_rows,
            tok_ptr[t],
            tok_ptr[t + 1],
            n_labels,
            tests.row_ptr,
            tests.row_labels,
            vectors.marginals[0, t - begin],
            step,
            theta,
            received,
            row_shrunk,
            due,
        )
    update_pairs(
        end - begin,
        1 + (chains.twin[s] >= 0),
        n_labels,
        chains.labels[begin:end],
        pairs.context[begin:end],
        pairs,
        potentials,
        vectors,
        space,
        step,
        theta[split:],
        received[split:],
        pair_shrunk,
        due,
    )


@kernel
def sgd_pass(
    order: np.ndarray,
    chains: Chains,
    tests: TokenRows,
    pairs: PairTables,
    theta: np.ndarray,
    received: np.ndarray,
    row_shrunk: np.ndarray,
    pair_shrunk: np.ndarray,
    due: np.ndarray,
    l1_rate: float,
    l2_rate: float,
    eta: float,
    decay: float,
    potentials: Potentials,
    vectors: Vectors,
    space: PairSums,
) -> float:
    """One pass of stochastic gradient descent over examples, in the given order.

    order: [n] int64 sequences, complete or with a copy (see `infer_example`); theta, received,
    row_shrunk, pair_shrunk, due: see `update_example`, in and out; l1_rate, l2_rate: penalties per
    example (rho / N); eta: step of the first example, multiplied by `decay` after each; 0 only
    measures; potentials, vectors, space: workspaces.
    RETURNS: the weighted sum of the losses of the examples, each before its update.
    """
    theta, received = lent(theta), lent(received)
    row_shrunk, pair_shrunk = lent(row_shrunk), lent(pair_shrunk)
    loss = 0.0
    for i in range(len(potentials.stamp)):
        potentials.stamp[i] = -1
    for visit in range(len(order)):
        s = order[visit]
        weight = chains.weights[s]
        loss += weight * infer_example(s, visit, chains, tests, pairs, theta, potentials, vectors)
        if eta == 0.0:
            continue
        # An example's share of the penalty does not depend on its weight.
        due[0] += eta * l1_rate
        due[1] += eta * l2_rate
        update_example(
            s,
            chains,
            tests,
            pairs,
            potentials,
            vectors,
            space,
            eta * weight,
            theta,
            received,
            row_shrunk,
            pair_shrunk,
            due,
        )
        eta *= decay
    return loss
