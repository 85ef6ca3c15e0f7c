"""Inference on one example: what a stochastic solver does between two steps."""

from typing import Any

import numpy as np

from .compiled import inner
from .entries import correct
from .forward_backward import forward_backward
from .groups import Chains, PairTables, Potentials, TokenRows, Vectors
from .path_loss import path_loss
from .potentials import context_matrices


@inner
def build_potentials(
    visit: int,
    context: np.ndarray,
    n_labels: int,
    pairs: PairTables,
    theta: np.ndarray,
    potentials: Potentials,
) -> None:
    """Evaluate the matrices and entries of the contexts of an example, once each.

    visit: number of this visit, or of a run of visits at the same weights; context: of its tokens;
    theta: bigram weights; potentials: in and out.
    """
    stamp = potentials.stamp
    n_matrices = len(pairs.constant)
    for token_context in context:
        # Of the type that these kernels are called with elsewhere.
        c: Any = np.int64(token_context)
        m: Any = np.int64(pairs.matrix_of[c])
        # Matrices of ones were built before, and stay.
        if stamp[m] != visit and not pairs.constant[m]:
            stamp[m] = visit
            context_matrices(
                m,
                m + 1,
                n_labels,
                pairs.n_previous,
                pairs.mat_ptr,
                pairs.mat_rows,
                pairs.pair_ptr,
                pairs.pair_places,
                theta,
                potentials.psi,
                potentials.shift,
            )
        if stamp[n_matrices + c] != visit and pairs.ent_ptr[c] < pairs.ent_ptr[c + 1]:
            stamp[n_matrices + c] = visit
            correct(
                c,
                c + 1,
                pairs.matrix_of,
                pairs.ent_ptr,
                pairs.ent_start,
                pairs.ent_previous,
                pairs.ent_label,
                pairs.weight_ptr,
                pairs.weights,
                theta,
                potentials.psi,
                potentials.value,
                potentials.change,
                potentials.rewritten,
            )


@inner
def infer_example(
    s: int,
    visit: int,
    chains: Chains,
    tests: TokenRows,
    pairs: PairTables,
    theta: np.ndarray,
    potentials: Potentials,
    vectors: Vectors,
) -> float:
    """Run forward-backward on sequence s and, if it has one, on its constrained copy.

    An *example* is a sequence with gold labels, or one with missing labels and its copy, of which
    the loss is log Z less the copy's log Z (see `Lattice`). visit: see `build_potentials`; theta:
    [K]; vectors: out, with two parts, those of the sequence and minus those of the copy; the
    marginals of the sequence are turned into the residuals of both together, expected minus
    observed labels.
    RETURNS: the loss, not weighted.
    """
    begin, end = chains.offsets[s], chains.offsets[s + 1]
    n, n_labels, copy = end - begin, chains.n_labels, chains.twin[s]
    where, bounds = pairs.context[begin:end], vectors.bounds
    build_potentials(visit, where, n_labels, pairs, theta[tests.split :], potentials)
    bounds[1] = n
    for part in range(1 + (copy >= 0)):
        at = begin if part == 0 else chains.offsets[copy]
        forward_backward(
            bounds[0],
            bounds[0] + 1,
            n_labels,
            bounds,
            vectors.signs[part : part + 1],
            chains.allowed[at : at + n],
            tests.head_ptr[begin : end + 1],
            tests.heads,
            tests.table,
            tests.tok_ptr[begin : end + 1],
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
            vectors.alpha[part],
            vectors.backward[part],
            vectors.marginals[part],
            vectors.log_z[part : part + 1],
            vectors.walk,
            bounds[0] + 1,
            vectors.scales,
            vectors.scratch,
            # False; a literal would have numba compile forward-backward once more.
            bounds[0] > 0,
        )
    residual = vectors.marginals[0]
    if copy >= 0:
        for i in range(n):
            for y in range(residual.shape[1]):
                residual[i, y] += vectors.marginals[1, i, y]
        return float(vectors.log_z[0] - vectors.log_z[1])
    gold = chains.labels[begin:end]
    alpha, backward = vectors.alpha[0], vectors.backward[0]
    loss = path_loss(gold, where, pairs, potentials, alpha, backward, residual)
    for i in range(n):
        residual[i, gold[i]] -= 1.0
    return float(loss)
