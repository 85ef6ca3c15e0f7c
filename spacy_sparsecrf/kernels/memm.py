"""Maximum entropy Markov models: normalisation at each label before."""

import numpy as np

from .compiled import kernel
from .exp import exp_shifted, largest
from .memory import fill


@kernel
def normalise_steps(
    offsets: np.ndarray,
    n_labels: int,
    scores: np.ndarray,
    context: np.ndarray,
    pairs: np.ndarray,
) -> None:
    """Subtract from a label's score how the step from it is normalised.

    With s = scores and log p(y | y', x, t) = s[t, y] + pairs[c_t, y', y] - log Z_t(y') a path has
    the log-probability sum_t (s[t, y_t] - log Z_{t+1}(y_t)) + pairs[c_t, y_{t-1}, y_t], less that
    of the first step, the same for all paths: with these scores, it is that of a chain.

    offsets [S + 1]; scores [N, Yp], in and out; context [N]; pairs [C, Y + 1, Yp], row Y = start
    label; the padding is not read.
    """
    padded = scores.shape[1]
    row = np.empty(padded)
    for s in range(len(offsets) - 1):
        for t in range(offsets[s] + 1, offsets[s + 1]):
            matrix = pairs[context[t]]
            for i in range(n_labels):
                for y in range(padded):
                    row[y] = scores[t, y] + matrix[i, y]
                fill(row, n_labels, padded, row[0])
                top = largest(row)
                exp_shifted(row, padded, top)
                total = 0.0
                for y in range(n_labels):
                    total += row[y]
                scores[t - 1, i] -= top + np.log(total)
