"""Viterbi decoding."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def viterbi(
    offsets: np.ndarray,
    n_labels: int,
    scores: np.ndarray,
    context: np.ndarray,
    pairs: np.ndarray,
    pointers: np.ndarray,
    labels: np.ndarray,
) -> None:
    """Find each sequence's best labels: argmax_y sum_t scores[t, y_t] + pairs[c_t, y_{t-1}, y_t].

    offsets [S + 1]; scores [N, Yp], overwritten by the scores of the best partial paths;
    context [N]; pairs [C, Y + 1, Yp], row Y = start label; pointers [N, Yp] int16 workspace;
    labels [N] int32, out. The lowest label wins a tie.
    """
    best = np.empty(scores.shape[1])
    for s in range(len(offsets) - 1):
        begin, end = offsets[s], offsets[s + 1]
        if begin == end:
            continue
        for y in range(n_labels):
            scores[begin, y] += pairs[context[begin], n_labels, y]
        for t in range(begin + 1, end):
            matrix = pairs[context[t]]
            back = pointers[t]
            best[:] = scores[t - 1, 0] + matrix[0]
            back[:] = 0
            for i in range(1, n_labels):
                partial = scores[t - 1, i]
                for y in range(len(best)):
                    candidate = partial + matrix[i, y]
                    better = candidate > best[y]
                    best[y] = candidate if better else best[y]
                    back[y] = i if better else back[y]
            for y in range(n_labels):
                scores[t, y] += best[y]
        y = int(np.argmax(scores[end - 1, :n_labels]))
        for t in range(end - 1, begin, -1):
            labels[t] = y
            y = pointers[t, y]
        labels[begin] = y
