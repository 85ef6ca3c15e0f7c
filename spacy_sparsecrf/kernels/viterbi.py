"""Viterbi decoding, and whether sequences have a path at all."""

import numpy as np

from .compiled import fill, inner, kernel
from .layout import Flags, Floats, Ints, Scored, Search


@inner
def _advance_all(
    n_labels: int, previous: Floats, matrix: Floats, slack: Floats, best: Floats
) -> None:
    """Max-plus product best[y] = max_i previous[i] + matrix[i, y], of those i that can win."""
    top = previous[0]
    for i in range(1, n_labels):
        top = max(top, previous[i])
    fill(best, 0, len(best), -np.inf)
    for i in range(n_labels):
        partial = previous[i]
        if partial + slack[i] >= top:
            for y in range(len(best)):
                candidate = partial + matrix[i, y]
                best[y] = candidate if candidate > best[y] else best[y]


@inner
def _advance_groups(
    previous: Floats, matrix: Floats, slack: Floats, search: Search, best: Floats
) -> None:
    """As `_advance_all`, of the rows of groups, each of which knows what can win in it."""
    group_ptr, group_rows = search.group_ptr, search.group_rows
    fill(best, 0, len(best), -np.inf)
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
def _add_rare(previous: Floats, matrix: Floats, search: Search, best: Floats) -> None:
    """Let best[y] of rare labels y be at least that of each row in their lists."""
    rare_ptr, rare_rows = search.rare_ptr, search.rare_rows
    for k in range(len(search.rare)):
        y = search.rare[k]
        for j in range(rare_ptr[k], rare_ptr[k + 1]):
            candidate = previous[rare_rows[j]] + matrix[rare_rows[j], y]
            best[y] = candidate if candidate > best[y] else best[y]


@inner
def _before(n_labels: int, previous: Floats, matrix: Floats, y: int) -> int:
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
def _lowest_best(n_labels: int, scores: Floats) -> int:
    """The lowest label with the highest score; numpy's argmax would take longer to load."""
    label = 0
    for y in range(1, n_labels):
        if scores[y] > scores[label]:
            label = y
    return label


@inner
def best_path(
    begin: int,
    end: int,
    scored: Scored,
    slack: Floats,
    search: Search,
    best: Floats,
    labels: Ints,
) -> None:
    """Find the best labels of the sequence begin:end, at least one token; see `viterbi`."""
    n_labels, scores, context, pairs = scored.n_labels, scored.scores, scored.context, scored.pairs
    # A loop over all rows is faster than one over a list of them.
    one_group = len(search.group_ptr) == 2 and len(search.group_rows) == n_labels
    start = pairs[context[begin], n_labels]
    for y in range(len(best)):
        scores[begin, y] += start[y]
    for t in range(begin + 1, end):
        c = context[t]
        before, matrix = scores[t - 1], pairs[c]
        if one_group:
            _advance_all(n_labels, before, matrix, slack[c], best)
        else:
            _advance_groups(before, matrix, slack[c], search, best)
        if len(search.rare):
            _add_rare(before, matrix, search, best)
        for y in range(len(best)):
            scores[t, y] += best[y]
    y = _lowest_best(n_labels, scores[end - 1])
    labels[end - 1] = y
    for t in range(end - 1, begin, -1):
        y = _before(n_labels, scores[t - 1], pairs[context[t]], y)
        labels[t - 1] = y


@kernel
def viterbi(scored: Scored, slack: Floats, search: Search, best: Floats, labels: Ints) -> None:
    """Find each sequence's best labels: argmax_y sum_t scores[t, y_t] + pairs[c_t, y_{t-1}, y_t].

    scored: its scores are overwritten by those of the best partial paths; slack: [C, Yp], of
    `decoding.legal.Transitions.finish`; best: [Yp] float64, a workspace; labels: [N] int32, out.
    The lowest label wins a tie. There are no back pointers: to find the label before each label of
    one path again is cheaper than to note it for every label.
    """
    offsets = scored.offsets
    for s in range(len(offsets) - 1):
        if offsets[s] < offsets[s + 1]:
            best_path(offsets[s], offsets[s + 1], scored, slack, search, best, labels)


@kernel(allocates=True)
def find_possible(
    offsets: Ints,
    permitted: Flags,
    legal: Flags,
    ends: Flags,
    possible: Flags,
) -> None:
    """Tell which sequences have a path of permitted labels and legal transitions.

    offsets [S + 1]; permitted [N, Y] bool; legal [Y + 1, >= Y] bool, row Y = may begin; ends [Y]
    bool, may end; possible: [S] bool, out; a sequence without tokens is possible.
    """
    n_labels = len(ends)
    reached = np.empty(n_labels, dtype=np.bool_)
    before = np.empty(n_labels, dtype=np.bool_)
    for s in range(len(offsets) - 1):
        for t in range(offsets[s], offsets[s + 1]):
            if t == offsets[s]:
                for y in range(n_labels):
                    reached[y] = permitted[t, y] and legal[n_labels, y]
                continue
            for y in range(n_labels):
                before[y] = reached[y]
                reached[y] = False
            for i in range(n_labels):
                if before[i]:
                    for y in range(n_labels):
                        reached[y] |= legal[i, y] and permitted[t, y]
        found = offsets[s] == offsets[s + 1]
        if not found:
            for y in range(n_labels):
                found |= reached[y] and ends[y]
        possible[s] = found
