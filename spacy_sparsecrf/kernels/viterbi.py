"""Viterbi decoding."""

import numpy as np

from .compiled import inner, kernel

# Far above what rounding changes in scores below 1e9, far below what weights differ by.
MARGIN = 1e-6


@inner
def _find_slack(
    n_labels: int,
    matrix: np.ndarray,
    frequent: np.ndarray,
    group_ptr: np.ndarray,
    group_rows: np.ndarray,
    low: np.ndarray,
    slack: np.ndarray,
) -> None:
    """Find the slack of one matrix; low: [Yp] workspace. See `finish_pairs`."""
    for g in range(len(group_ptr) - 1):
        low[:] = np.inf
        for j in range(group_ptr[g], group_ptr[g + 1]):
            row = matrix[group_rows[j]]
            for y in range(n_labels):
                low[y] = min(low[y], row[y])
        for j in range(group_ptr[g], group_ptr[g + 1]):
            row = matrix[group_rows[j]]
            most = 0.0
            for y in range(n_labels):
                # What is illegal in one row of a group is so in all.
                if frequent[y] and low[y] > -np.inf:
                    most = max(most, row[y] - low[y])
            slack[group_rows[j]] = most + MARGIN


@kernel
def finish_pairs(
    n_labels: int,
    prune: bool,
    pairs: np.ndarray,
    masked: bool,
    legal: np.ndarray,
    frequent: np.ndarray,
    group_ptr: np.ndarray,
    group_rows: np.ndarray,
    low: np.ndarray,
    slack: np.ndarray,
) -> None:
    """Make pair scores ready for `viterbi`.

    pairs: [C, Y + 1, Yp]; the padding, and with a mask what is not legal, is overwritten by -inf,
    so that it never wins; masked, legal, frequent, group_*: see `transitions.Transitions`.
    low: [Yp] float64, a workspace.
    slack: [C, Yp], out: by how much the previous label y' may lag behind the best one of its group
    and still be before the best path to a frequent label, max_y (pairs[c, y', y] -
    min_i pairs[c, i, y]), i in the group; inf without pruning, which is slower than no pruning
    where a context has few tokens.
    """
    for c in range(len(pairs)):
        matrix = pairs[c]
        matrix[:, n_labels:] = -np.inf
        if masked:
            for i in range(n_labels + 1):
                for y in range(n_labels):
                    matrix[i, y] = matrix[i, y] if legal[i, y] else -np.inf
        slack[c, :] = np.inf
        if prune:
            _find_slack(n_labels, matrix, frequent, group_ptr, group_rows, low, slack[c])


@inner
def _advance_all(
    n_labels: int, previous: np.ndarray, matrix: np.ndarray, slack: np.ndarray, best: np.ndarray
) -> None:
    """Max-plus product best[y] = max_i previous[i] + matrix[i, y], of those i that can win."""
    top = previous[0]
    for i in range(1, n_labels):
        top = max(top, previous[i])
    best[:] = -np.inf
    for i in range(n_labels):
        partial = previous[i]
        if partial + slack[i] >= top:
            for y in range(len(best)):
                candidate = partial + matrix[i, y]
                best[y] = candidate if candidate > best[y] else best[y]


@inner
def _advance_groups(
    previous: np.ndarray,
    matrix: np.ndarray,
    slack: np.ndarray,
    group_ptr: np.ndarray,
    group_rows: np.ndarray,
    best: np.ndarray,
) -> None:
    """As `_advance_all`, of the rows of groups, each of which knows what can win in it."""
    best[:] = -np.inf
    for g in range(len(group_ptr) - 1):
        top = -np.inf
        for j in range(group_ptr[g], group_ptr[g + 1]):
            top = max(top, previous[group_rows[j]])
        for j in range(group_ptr[g], group_ptr[g + 1]):
            i = group_rows[j]
            partial = previous[i]
            if partial + slack[i] >= top:
                for y in range(len(best)):
                    candidate = partial + matrix[i, y]
                    best[y] = candidate if candidate > best[y] else best[y]


@inner
def _add_rare(
    previous: np.ndarray,
    matrix: np.ndarray,
    rare: np.ndarray,
    rare_ptr: np.ndarray,
    rare_rows: np.ndarray,
    best: np.ndarray,
) -> None:
    """Let best[y] of rare labels y be at least that of each row in their lists."""
    for k in range(len(rare)):
        y = rare[k]
        for j in range(rare_ptr[k], rare_ptr[k + 1]):
            candidate = previous[rare_rows[j]] + matrix[rare_rows[j], y]
            best[y] = candidate if candidate > best[y] else best[y]


@inner
def _before(n_labels: int, previous: np.ndarray, matrix: np.ndarray, y: int) -> int:
    """The lowest label before y on the best path: argmax_i previous[i] + matrix[i, y]."""
    label = 0
    best = previous[0] + matrix[0, y]
    for i in range(1, n_labels):
        candidate = previous[i] + matrix[i, y]
        if candidate > best:
            best = candidate
            label = i
    return label


@inner
def _lowest_best(n_labels: int, scores: np.ndarray) -> int:
    """The lowest label with the highest score; numpy's argmax would take longer to load."""
    label = 0
    for y in range(1, n_labels):
        if scores[y] > scores[label]:
            label = y
    return label


@kernel
def viterbi(
    offsets: np.ndarray,
    n_labels: int,
    scores: np.ndarray,
    context: np.ndarray,
    pairs: np.ndarray,
    slack: np.ndarray,
    group_ptr: np.ndarray,
    group_rows: np.ndarray,
    rare: np.ndarray,
    rare_ptr: np.ndarray,
    rare_rows: np.ndarray,
    best: np.ndarray,
    labels: np.ndarray,
) -> None:
    """Find each sequence's best labels: argmax_y sum_t scores[t, y_t] + pairs[c_t, y_{t-1}, y_t].

    offsets [S + 1]; scores [N, Yp], overwritten by the scores of the best partial paths;
    context [N]; pairs [C, Y + 1, Yp], row Y = start label, and slack [C, Yp], of `finish_pairs`;
    group_*, rare*: see `transitions.Transitions`; best: [Yp] float64, a workspace; labels [N]
    int32, out. The lowest label wins a tie. There are no back pointers: to find the label before
    each label of one path again is cheaper than to note it for every label.
    """
    # A loop over all rows is faster than one over a list of them.
    one_group = len(group_ptr) == 2 and len(group_rows) == n_labels
    for s in range(len(offsets) - 1):
        begin, end = offsets[s], offsets[s + 1]
        if begin == end:
            continue
        start = pairs[context[begin], n_labels]
        for y in range(len(best)):
            scores[begin, y] += start[y]
        for t in range(begin + 1, end):
            c = context[t]
            before, matrix = scores[t - 1], pairs[c]
            if one_group:
                _advance_all(n_labels, before, matrix, slack[c], best)
            else:
                _advance_groups(before, matrix, slack[c], group_ptr, group_rows, best)
            if len(rare):
                _add_rare(before, matrix, rare, rare_ptr, rare_rows, best)
            for y in range(len(best)):
                scores[t, y] += best[y]
        y = _lowest_best(n_labels, scores[end - 1])
        labels[end - 1] = y
        for t in range(end - 1, begin, -1):
            y = _before(n_labels, scores[t - 1], pairs[context[t]], y)
            labels[t - 1] = y
