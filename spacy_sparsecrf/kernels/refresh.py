"""Potentials that are kept while weights change, and evaluated anew where they depend on them."""

from typing import Any

import numpy as np

from .blocks import Blocks, Kept
from .compiled import inner, kernel
from .entries import correct
from .groups import Chains, PairTables, Potentials, TokenRows
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
    blocks: Blocks,
    chains: Chains,
    tests: TokenRows,
    pairs: PairTables,
    theta: np.ndarray,
    potentials: Potentials,
    kept: Kept,
) -> None:
    """Evaluate anew the potentials that depend on the weights of a block.

    tokens: of the block; unigram, bigram: its rows, -1 = none; theta: [K]; potentials, and evidence
    and top of `kept`: in and out.
    """
    if unigram >= 0:
        weigh_tokens(
            tokens,
            chains.n_labels,
            chains.allowed,
            tests.tok_ptr,
            tests.tok_rows,
            tests.row_ptr,
            tests.row_labels,
            theta[: tests.split],
            kept.evidence,
            kept.top,
        )
    if bigram < 0:
        return
    pair_theta = theta[tests.split :]
    for j in range(blocks.mat_ptr[bigram], blocks.mat_ptr[bigram + 1]):
        m: Any = np.int64(blocks.matrices[j])
        context_matrices(
            m,
            m + 1,
            chains.n_labels,
            pairs.n_previous,
            pairs.mat_ptr,
            pairs.mat_rows,
            pairs.pair_ptr,
            pairs.pair_places,
            pair_theta,
            potentials.psi,
            potentials.shift,
        )
    for j in range(blocks.ctx_ptr[bigram], blocks.ctx_ptr[bigram + 1]):
        c: Any = np.int64(blocks.contexts[j])
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
            pair_theta,
            potentials.psi,
            potentials.value,
            potentials.change,
            potentials.rewritten,
        )
