"""Scores of tokens and contexts for decoding."""

import numpy as np
from numba import njit

from .potentials import add_pairs


@njit(cache=True, nogil=True, error_model="numpy")
def token_scores(
    rows: np.ndarray,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    values: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Score the labels of each token: scores[t, y] = sum_o mu[o, y].

    rows: [N, U] int32, model rows of a token's tests, -1 = not in the model; row_ptr [R + 1],
    row_labels [K], values [K]: the model's unigram weights; scores: [N, Yp], out.
    """
    scores[:, :] = 0.0
    for t in range(len(rows)):
        for j in range(rows.shape[1]):
            row = rows[t, j]
            if row >= 0:
                for k in range(row_ptr[row], row_ptr[row + 1]):
                    scores[t, row_labels[k]] += values[k]


@njit(cache=True, nogil=True, error_model="numpy")
def pair_scores(
    ctx_ptr: np.ndarray,
    ctx_rows: np.ndarray,
    row_ptr: np.ndarray,
    row_places: np.ndarray,
    values: np.ndarray,
    pairs: np.ndarray,
) -> None:
    """Score the label pairs of each context: pairs[c, y', y] = sum_o lam[o, y', y].

    ctx_ptr, ctx_rows: CSR of a context's model rows; row_places: [K] int32 y' * Yp + y; pairs:
    [C, Y + 1, Yp], out.
    """
    pairs[:, :, :] = 0.0
    for c in range(len(ctx_ptr) - 1):
        add_pairs(pairs[c], ctx_rows, ctx_ptr[c], ctx_ptr[c + 1], row_ptr, row_places, values)
