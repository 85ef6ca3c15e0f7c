"""Marginal probabilities of labels, for decoding."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def _normalise(row: np.ndarray) -> None:
    """Divide a row by its sum."""
    total = 0.0
    for y in range(len(row)):
        total += row[y]
    for y in range(len(row)):
        row[y] /= total


@njit(cache=True, nogil=True, error_model="numpy")
def _exponentiate(matrix: np.ndarray) -> None:
    """Exponentiate a row or matrix relative to its maximum, in place."""
    flat = matrix.reshape(-1)
    top = flat.max()
    for i in range(len(flat)):
        flat[i] = np.exp(flat[i] - top)


@njit(cache=True, nogil=True, error_model="numpy")
def marginals(
    offsets: np.ndarray,
    scores: np.ndarray,
    context: np.ndarray,
    pairs: np.ndarray,
    forward: np.ndarray,
) -> None:
    """Compute p(y_t = y | x) of each token by scaled forward-backward (Lavergne 2010, section 4.2).

    offsets [S + 1]; scores [N, Y], overwritten by the probabilities; context [N]; pairs [C, Y + 1,
    Y], row Y = start label, overwritten; forward: [N, Y] workspace. The slow, simple relative of
    the training kernel `forward_backward`.
    """
    n_labels = scores.shape[1]
    for c in range(len(pairs)):
        _exponentiate(pairs[c, :n_labels])
        _exponentiate(pairs[c, n_labels])
    backward = np.empty(n_labels)
    product = np.empty(n_labels)
    for s in range(len(offsets) - 1):
        begin, end = offsets[s], offsets[s + 1]
        for t in range(begin, end):
            _exponentiate(scores[t])
            matrix = pairs[context[t]]
            if t == begin:
                forward[t] = matrix[n_labels]
            else:
                forward[t] = 0.0
                for i in range(n_labels):
                    for y in range(n_labels):
                        forward[t, y] += forward[t - 1, i] * matrix[i, y]
            for y in range(n_labels):
                forward[t, y] *= scores[t, y]
            _normalise(forward[t])
        backward[:] = 1.0
        for t in range(end - 1, begin - 1, -1):
            product[:] = scores[t] * backward
            scores[t] = forward[t] * backward
            _normalise(scores[t])
            if t > begin:
                for i in range(n_labels):
                    backward[i] = 0.0
                    for y in range(n_labels):
                        backward[i] += pairs[context[t], i, y] * product[y]
                _normalise(backward)
