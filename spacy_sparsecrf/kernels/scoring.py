"""Scores of tokens and contexts for decoding."""

import numpy as np
from numba import njit

from .hashing import find
from .potentials import add_pairs


@njit(cache=True, nogil=True, error_model="numpy")
def token_scores(
    hashes: np.ndarray,
    columns: np.ndarray,
    slots: np.ndarray,
    keys: np.ndarray,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    values: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Score the labels of each token: scores[t, y] = sum_o mu[o, y].

    hashes: [N, P] uint64, a token's tests, 0 = none; columns: [U] int32, those to score; slots,
    keys: hash table of the model's rows; row_ptr [R + 1], row_labels [K], values [K]: the
    model's unigram weights; scores: [N, Yp], out.
    """
    scores[:, :] = 0.0
    for t in range(len(hashes)):
        for j in range(len(columns)):
            test = hashes[t, columns[j]]
            if test == np.uint64(0):
                continue
            row = find(slots, keys, test)
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
