"""Potentials that are kept while weights change, and evaluated anew where they depend on them."""

from typing import Any

import numpy as np

from .compiled import inner, kernel
from .entries import correct
from .memory import fill
from .potentials import add_scores, context_matrices
from .products import evidence_of


@kernel
def weigh_tokens(
    tokens: np.ndarray,
    n_labels: int,
    allowed: np.ndarray,
    tok_ptr: np.ndarray,
    tok_rows: np.ndarray,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    theta: np.ndarray,
    evidence: np.ndarray,
    top: np.ndarray,
) -> None:
    """Exponentiate the unigram scores of some tokens: evidence[t] = exp(scores_t - top[t]).

    tokens: int32; allowed, tok_*, row_*, theta: as in `forward_backward`; evidence: [N, Yp], out,
    0 where padded or not allowed; top: [N] float64, out.
    """
    for t in tokens:
        row = evidence[t]
        fill(row, 0, len(row), 0.0)
        add_scores(row, tok_rows, tok_ptr[t], tok_ptr[t + 1], n_labels, row_ptr, row_labels, theta)
        top[t] = evidence_of(row, n_labels, allowed[t])


@inner
def refresh_block(
    tokens: np.ndarray,
    unigram: int,
    bigram: int,
    n_labels: int,
    n_previous: int,
    allowed: np.ndarray,
    tok_ptr: np.ndarray,
    tok_rows: np.ndarray,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    row_mat_ptr: np.ndarray,
    row_matrices: np.ndarray,
    row_ctx_ptr: np.ndarray,
    row_contexts: np.ndarray,
    mat_ptr: np.ndarray,
    mat_rows: np.ndarray,
    pair_ptr: np.ndarray,
    pair_places: np.ndarray,
    matrix_of: np.ndarray,
    ent_ptr: np.ndarray,
    ent_start: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    weight_ptr: np.ndarray,
    weights: np.ndarray,
    theta: np.ndarray,
    pair_theta: np.ndarray,
    psi: np.ndarray,
    psi_shift: np.ndarray,
    value: np.ndarray,
    change: np.ndarray,
    rewritten: np.ndarray,
    evidence: np.ndarray,
    top: np.ndarray,
) -> None:
    """Evaluate anew the potentials that depend on the weights of a block.

    unigram, bigram: the block's rows, -1 = none; row_mat_*, row_ctx_*: CSR, matrices of a bigram
    row, and contexts with entries that depend on it; theta, pair_theta: unigram and bigram weights;
    the rest as in `weigh_tokens`, `context_matrices` and `entries.correct`.
    """
    if unigram >= 0:
        weigh_tokens(
            tokens,
            n_labels,
            allowed,
            tok_ptr,
            tok_rows,
            row_ptr,
            row_labels,
            theta,
            evidence,
            top,
        )
    if bigram < 0:
        return
    for j in range(row_mat_ptr[bigram], row_mat_ptr[bigram + 1]):
        m: Any = np.int64(row_matrices[j])
        context_matrices(
            m,
            m + 1,
            n_labels,
            n_previous,
            mat_ptr,
            mat_rows,
            pair_ptr,
            pair_places,
            pair_theta,
            psi,
            psi_shift,
        )
    for j in range(row_ctx_ptr[bigram], row_ctx_ptr[bigram + 1]):
        c: Any = np.int64(row_contexts[j])
        correct(
            c,
            c + 1,
            matrix_of,
            ent_ptr,
            ent_start,
            ent_previous,
            ent_label,
            weight_ptr,
            weights,
            pair_theta,
            psi,
            value,
            change,
            rewritten,
        )
