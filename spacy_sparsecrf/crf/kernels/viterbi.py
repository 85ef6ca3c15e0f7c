"""Best paths: Viterbi decoding, existence of valid paths, and the n best paths.

The n best paths are found by recursive enumeration (Jiménez & Marzal 1999). A *node* is a token
with a label; one more node is the end of the sequence. A *path* leads from the beginning to a node:
it is a path to a previous node, and that node. The next best path to a node extends either the next
best path to the previous node of its last path, which is computed on demand, or the best unused
path to another previous node.
"""

from typing import NamedTuple

import numpy as np

from .layout import Flags, Floats, Ints, Scored, Search
from .numba_support import inlined, kernel
from .small import fill

_UNKNOWN = -1  # the next best path has not been computed
_NONE = -2  # there is none


@inlined
def _advance_all(
    n_labels: int, previous: Floats, matrix: Floats, slack: Floats, best: Floats
) -> None:
    """Compute best[y] = max_i previous[i] + matrix[i, y] over the i that can attain the maximum."""
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


@inlined
def _advance_groups(
    previous: Floats, matrix: Floats, slack: Floats, search: Search, best: Floats
) -> None:
    """Apply `_advance_all` to groups of rows, each with a separate bound."""
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


@inlined
def _add_rare(previous: Floats, matrix: Floats, search: Search, best: Floats) -> None:
    """Raise best[y] of rare labels y to the maximum over the rows of their lists."""
    rare_ptr, rare_rows = search.rare_ptr, search.rare_rows
    for k in range(len(search.rare)):
        y = search.rare[k]
        for j in range(rare_ptr[k], rare_ptr[k + 1]):
            candidate = previous[rare_rows[j]] + matrix[rare_rows[j], y]
            best[y] = candidate if candidate > best[y] else best[y]


@inlined
def _before(n_labels: int, previous: Floats, matrix: Floats, y: int, favourite: int) -> int:
    """Return the label before y on the best path: argmax_i previous[i] + matrix[i, y]."""
    label = favourite
    best = previous[label] + matrix[label, y]
    for i in range(n_labels):
        candidate = previous[i] + matrix[i, y]
        if candidate > best:
            best = candidate
            label = i
    return label


@inlined
def _best_of(n_labels: int, scores: Floats, favourite: int) -> int:
    """Return the label with the highest score; numpy's argmax takes longer to load."""
    label = favourite
    for y in range(n_labels):
        if scores[y] > scores[label]:
            label = y
    return label


@inlined
def best_path(
    begin: int, end: int, scored: Scored, slack: Floats, search: Search, best: Floats, labels: Ints
) -> None:
    """Find the best labels of the sequence begin:end, at least one token; see `viterbi`."""
    n_labels, scores, context, pairs = scored.n_labels, scored.scores, scored.context, scored.pairs
    # A loop over all rows is faster than a loop over a list of rows.
    one_group = len(search.group_ptr) == 2 and len(search.group_rows) == n_labels
    start = pairs[context[begin], n_labels]
    for y in range(len(best)):
        scores[begin, y] += start[y]
    for t in range(begin + 1, end):
        c = context[t]
        previous, matrix = scores[t - 1], pairs[c]
        if one_group:
            _advance_all(n_labels, previous, matrix, slack[c], best)
        else:
            _advance_groups(previous, matrix, slack[c], search, best)
        if len(search.rare):
            _add_rare(previous, matrix, search, best)
        for y in range(len(best)):
            scores[t, y] += best[y]
    y = _best_of(n_labels, scores[end - 1], search.favourite)
    labels[end - 1] = y
    for t in range(end - 1, begin, -1):
        y = _before(n_labels, scores[t - 1], pairs[context[t]], y, search.favourite)
        labels[t - 1] = y


@kernel
def viterbi(scored: Scored, slack: Floats, search: Search, best: Floats, labels: Ints) -> None:
    """Find each sequence's best labels: argmax_y sum_t scores[t, y_t] + pairs[c_t, y_{t-1}, y_t].

    scored: scores of the best partial paths overwrite its scores; slack: [C, Yp], of
    `decoding.transitions.Transitions.finish`; best: [Yp] float64, a workspace; labels: [N] int32,
    out. The favourite label wins a tie, else the lowest. There are no back pointers: recomputing
    the previous labels of one path is cheaper than storing them for every label.
    """
    offsets = scored.offsets
    for s in range(len(offsets) - 1):
        if offsets[s] < offsets[s + 1]:
            best_path(offsets[s], offsets[s + 1], scored, slack, search, best, labels)


@kernel(allocates=True)
def find_possible(
    offsets: Ints, permitted: Flags, valid: Flags, ends: Flags, possible: Flags
) -> None:
    """Find which sequences have a path of permitted labels and valid transitions.

    offsets [S + 1]; permitted [N, Y] bool; valid [Y + 1, >= Y] bool, valid transitions, row Y: from
    the start; ends [Y] bool, labels that may be last; possible: [S] bool, out, true for a sequence
    without tokens.
    """
    n_labels = len(ends)
    reached = np.empty(n_labels, dtype=np.bool_)
    previous = np.empty(n_labels, dtype=np.bool_)
    for s in range(len(offsets) - 1):
        for t in range(offsets[s], offsets[s + 1]):
            if t == offsets[s]:
                for y in range(n_labels):
                    reached[y] = permitted[t, y] and valid[n_labels, y]
                continue
            for y in range(n_labels):
                previous[y] = reached[y]
                reached[y] = False
            for i in range(n_labels):
                if previous[i]:
                    for y in range(n_labels):
                        reached[y] |= valid[i, y] and permitted[t, y]
        is_possible = offsets[s] == offsets[s + 1]
        if not is_possible:
            for y in range(n_labels):
                is_possible |= reached[y] and ends[y]
        possible[s] = is_possible


class Paths(NamedTuple):
    """Paths found so far; path v < nodes is the best to node v.

    value: float64, score; prefix: int64, path to the previous node, _NONE for a first token; node:
    int64, last node; following: int64, next best path to it, _UNKNOWN or _NONE.
    """

    value: Floats
    prefix: Ints
    node: Ints
    following: Ints


class Nodes(NamedTuple):
    """Nodes, and the paths found to them.

    tail: [nodes] int64, last path found; row_of: [nodes] int64, row in `candidates` or -1;
    candidates: [rows, Y] int64, best unused path to each previous label, negative for none; counts:
    [2] int64, of paths, and of rows in use.
    """

    tail: Ints
    row_of: Ints
    candidates: Ints
    counts: Ints


@inlined
def _find_first(
    begin: int, end: int, scored: Scored, favourite: int, value: Floats, prefix: Ints
) -> None:
    """Find the best path to each node: path v leads to node v. See `find_paths`."""
    n_labels, scores, context, pairs = scored.n_labels, scored.scores, scored.context, scored.pairs
    for y in range(n_labels):
        value[y] = scores[begin, y] + pairs[context[begin], n_labels, y]
        prefix[y] = _NONE
    for t in range(begin + 1, end):
        base = (t - 1 - begin) * n_labels
        matrix = pairs[context[t]]
        for y in range(n_labels):
            i = _before(n_labels, value[base : base + n_labels], matrix, y, favourite)
            value[base + n_labels + y] = scores[t, y] + (value[base + i] + matrix[i, y])
            prefix[base + n_labels + y] = base + i
    base = (end - 1 - begin) * n_labels
    chosen = base + _best_of(n_labels, value[base : base + n_labels], favourite)
    value[base + n_labels] = value[chosen]
    prefix[base + n_labels] = chosen


@inlined
def _descend(end_node: int, n_labels: int, paths: Paths, tail: Ints, stack: Ints) -> int:
    """List the nodes whose next best path is needed, from the end backwards.

    RETURNS: their number.
    """
    depth = 0
    v = end_node
    while True:
        stack[depth] = v
        depth += 1
        path = paths.prefix[tail[v]]
        v = paths.node[path]
        if paths.following[path] != _UNKNOWN:
            return depth
        if v < n_labels:  # one path leads to each label of the first token
            paths.following[path] = _NONE
            return depth


@inlined
def _choose(candidates: Ints, value: Floats, steps: Ints, y: int) -> tuple[int, float]:
    """Choose the best candidate of a node, a path to a previous node, negative for none.

    steps: [Y + 1, Yp], pair scores, no rows at the end node; y: label of the node.
    RETURNS: the candidate, or -1, and its score with the step to the node.
    """
    best, chosen = -np.inf, -1
    for i in range(len(candidates)):
        if candidates[i] >= 0:
            score = value[candidates[i]]
            if len(steps):
                score += steps[i, y]
            if score > best:
                best, chosen = score, candidates[i]
    return chosen, best


@inlined
def _extend(
    v: int, t: int, begin: int, end: int, scored: Scored, paths: Paths, nodes: Nodes
) -> None:
    """Find the next best path to node v of token t, or record that there is none.

    The next best path to the previous node of its last path must be known.
    """
    n_labels, tail, row_of, counts = scored.n_labels, nodes.tail, nodes.row_of, nodes.counts
    base = (t - 1 - begin) * n_labels
    y = v - base - n_labels
    if row_of[v] < 0:
        row_of[v] = counts[1]
        counts[1] += 1
        for i in range(n_labels):
            nodes.candidates[row_of[v], i] = base + i
    row = nodes.candidates[row_of[v]]
    taken = paths.prefix[tail[v]]
    row[paths.node[taken] - base] = paths.following[taken]
    # The end node has no pair scores.
    c = scored.context[t] if t < end else 0
    steps = scored.pairs[c, : n_labels if t < end else 0]
    chosen, best = _choose(row, paths.value, steps, y)
    if chosen < 0:
        paths.following[tail[v]] = _NONE
        return
    path = counts[0]
    counts[0] += 1
    paths.value[path] = best + scored.scores[t, y] if t < end else best
    paths.prefix[path], paths.node[path] = chosen, v
    paths.following[tail[v]] = path
    tail[v] = path


@kernel(allocates=True)
def find_paths(
    begin: int, end: int, scored: Scored, favourite: int, labels: Ints, totals: Floats
) -> int:
    """Find the n best paths of the sequence begin:end, at least one token; the first is Viterbi's.

    labels: [n, tokens] int32, out; totals: [n], out, scores of the paths, descending. Paths of
    score -inf do not count. RETURNS: the number of paths, at most n.
    """
    n, length, n_labels = len(labels), labels.shape[1], scored.n_labels
    end_node = length * n_labels
    most = end_node + 1 + n * length
    value, prefix = np.empty(most), np.empty(most, dtype=np.int64)
    _find_first(begin, end, scored, favourite, value, prefix)
    paths = Paths(value, prefix, np.arange(most), np.full(most, _UNKNOWN))
    nodes = Nodes(
        np.arange(end_node + 1),
        np.full(end_node + 1, -1),
        np.empty((min(end_node + 1, n * length), n_labels), dtype=np.int64),
        np.array([end_node + 1, 0]),
    )
    stack = np.empty(length + 1, dtype=np.int64)
    for rank in range(n):
        if rank > 0:
            depth = _descend(end_node, n_labels, paths, nodes.tail, stack)
            for d in range(depth - 1, -1, -1):
                _extend(stack[d], end - d, begin, end, scored, paths, nodes)
            if paths.following[nodes.tail[end_node]] == _NONE:
                return rank
        path = nodes.tail[end_node]
        if value[path] == -np.inf:
            return rank
        totals[rank] = value[path]
        for t in range(length - 1, -1, -1):
            path = prefix[path]
            labels[rank, t] = paths.node[path] - t * n_labels
    return n
