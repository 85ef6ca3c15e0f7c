"""Probabilities of runs of labels, from one forward and one backward pass."""

import numpy as np

from .compiled import kernel
from .log_space import log_sum


@kernel
def score_spans(
    sequence: np.ndarray,
    n_labels: int,
    scores: np.ndarray,
    context: np.ndarray,
    pairs: np.ndarray,
    alpha: np.ndarray,
    alpha_scale: np.ndarray,
    beta: np.ndarray,
    beta_scale: np.ndarray,
    log_z: np.ndarray,
    starts: np.ndarray,
    run_ptr: np.ndarray,
    runs: np.ndarray,
    bounded: bool,
    after: np.ndarray,
    found: np.ndarray,
) -> None:
    """Compute log p(y_i .. y_j = the labels of a run, y_{j+1} in a set | x) of many runs.

    With alpha, beta and the factors psi of a chain that is alpha_i(y_i) psi_{i+1}(y_i, y_{i+1}) ..
    psi_j(y_{j-1}, y_j) sum_{y in set} psi_{j+1}(y_j, y) beta_{j+1}(y) / Z. Sequences are
    independent: a run may go over their boundaries, and after the last token of a sequence the
    set does not matter.

    sequence: [N] int32, of a token; scores, context, pairs, alpha .. log_z: see `log_space`;
    starts: [M] int64, first token of a run; run_ptr [M + 1] int64, runs int32: CSR of its labels;
    bounded: whether there are sets; after: [M, Y] bool, the sets; found: [M], out.
    """
    terms = np.empty(n_labels)
    for m in range(len(starts)):
        t = starts[m]
        y = runs[run_ptr[m]]
        total = alpha[t, y] + alpha_scale[t]
        for k in range(run_ptr[m] + 1, run_ptr[m + 1]):
            t += 1
            before, y = y, runs[k]
            if sequence[t] == sequence[t - 1]:
                total += pairs[context[t], before, y] + scores[t, y]
            else:
                total += alpha[t, y] + alpha_scale[t] - log_z[sequence[t - 1]]
        last = t + 1 == len(sequence) or sequence[t + 1] != sequence[t]
        if last or not bounded:
            total += beta[t, y] + beta_scale[t]
        else:
            for ahead in range(n_labels):
                score = pairs[context[t + 1], y, ahead] + scores[t + 1, ahead]
                terms[ahead] = score + beta[t + 1, ahead] if after[m, ahead] else -np.inf
            total += log_sum(terms, n_labels) + beta_scale[t + 1]
        found[m] = min(total - log_z[sequence[t]], 0.0)
