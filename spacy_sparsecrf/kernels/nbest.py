"""The n best paths of a sequence, by recursive enumeration (Jiménez & Marzal 1999).

A *node* is a token with a label, and one more for the end of the sequence. A *path* here leads
from the beginning to a node; it is a path to a node before, and that node. The next best path to a
node takes the next best path to the node before its last one, which is looked for when it is
needed, or the best that was not taken yet to another node.
"""

import numpy as np

from .compiled import inner, kernel

_UNKNOWN = -1  # the next best path has not been looked for
_NONE = -2  # there is none


@inner
def _find_first(
    begin: int,
    end: int,
    n_labels: int,
    scores: np.ndarray,
    context: np.ndarray,
    pairs: np.ndarray,
    value: np.ndarray,
    before: np.ndarray,
) -> None:
    """Find the best path to each node: path v leads to node v. See `find_paths`."""
    for y in range(n_labels):
        value[y] = scores[begin, y] + pairs[context[begin], n_labels, y]
        before[y] = _NONE
    for t in range(begin + 1, end):
        first = (t - 1 - begin) * n_labels
        matrix = pairs[context[t]]
        for y in range(n_labels):
            best, chosen = -np.inf, first
            for i in range(n_labels):
                candidate = value[first + i] + matrix[i, y]
                if candidate > best:
                    best, chosen = candidate, first + i
            value[first + n_labels + y] = scores[t, y] + best
            before[first + n_labels + y] = chosen
    first = (end - 1 - begin) * n_labels
    chosen = first
    for i in range(1, n_labels):
        if value[first + i] > value[chosen]:
            chosen = first + i
    value[first + n_labels] = value[chosen]
    before[first + n_labels] = chosen


@inner
def _descend(
    end_node: int,
    n_labels: int,
    node: np.ndarray,
    before: np.ndarray,
    following: np.ndarray,
    tail: np.ndarray,
    stack: np.ndarray,
) -> int:
    """Note the nodes whose next best path is to be looked for, from the end on.

    RETURNS: how many they are.
    """
    depth = 0
    v = end_node
    while True:
        stack[depth] = v
        depth += 1
        path = before[tail[v]]
        v = node[path]
        if following[path] != _UNKNOWN:
            return depth
        if v < n_labels:  # one path leads to each label of the first token
            following[path] = _NONE
            return depth


@inner
def _choose(
    n_labels: int,
    candidates: np.ndarray,
    value: np.ndarray,
    pairs: np.ndarray,
    context: np.ndarray,
    t: int,
    end: int,
    y: int,
) -> tuple[int, float]:
    """Choose the best of a node's candidates, paths to the nodes before, negative for none.

    RETURNS: the candidate, -1 where there is none, and its score with the step to the node.
    """
    best, chosen = -np.inf, -1
    for i in range(n_labels):
        if candidates[i] >= 0:
            score = value[candidates[i]]
            if t < end:
                score += pairs[context[t], i, y]
            if score > best:
                best, chosen = score, candidates[i]
    return chosen, best


@inner
def _extend(
    v: int,
    t: int,
    begin: int,
    end: int,
    n_labels: int,
    scores: np.ndarray,
    context: np.ndarray,
    pairs: np.ndarray,
    value: np.ndarray,
    before: np.ndarray,
    node: np.ndarray,
    following: np.ndarray,
    tail: np.ndarray,
    place: np.ndarray,
    candidates: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Find the next best path to node v of token t, or note that there is none.

    What follows its last path's path to the node before must be known. value, before, node,
    following: of paths, score, path to the node before, node, and next best path to it;
    tail, place: of nodes, last path found, and row in `candidates` or -1; candidates: of each label
    before, the best path that was not taken yet; counts: of paths, and of rows in use.
    """
    first = (t - 1 - begin) * n_labels
    y = v - first - n_labels
    if place[v] < 0:
        place[v] = counts[1]
        counts[1] += 1
        for i in range(n_labels):
            candidates[place[v], i] = first + i
    row = candidates[place[v]]
    taken = before[tail[v]]
    row[node[taken] - first] = following[taken]
    chosen, best = _choose(n_labels, row, value, pairs, context, t, end, y)
    if chosen < 0:
        following[tail[v]] = _NONE
        return
    path = counts[0]
    counts[0] += 1
    value[path] = best + scores[t, y] if t < end else best
    before[path], node[path] = chosen, v
    following[tail[v]] = path
    tail[v] = path


@kernel
def find_paths(
    begin: int,
    end: int,
    n_labels: int,
    scores: np.ndarray,
    context: np.ndarray,
    pairs: np.ndarray,
    labels: np.ndarray,
    totals: np.ndarray,
) -> int:
    """Find the n best paths of the sequence begin:end, at least one token; the first is Viterbi's.

    scores [N, Yp]; context [N]; pairs [C, Y + 1, Yp], row Y = start label; labels: [n, tokens]
    int32, out; totals: [n], out, scores of the paths, which descend. Paths of -inf are none.
    RETURNS: how many there are, at most n.
    """
    n, length = len(labels), labels.shape[1]
    end_node = length * n_labels
    most = end_node + 1 + n * length
    value, before = np.empty(most), np.empty(most, dtype=np.int64)
    _find_first(begin, end, n_labels, scores, context, pairs, value, before)
    node = np.arange(most)
    following = np.full(most, _UNKNOWN)
    tail = np.arange(end_node + 1)
    place = np.full(end_node + 1, -1)
    candidates = np.empty((min(end_node + 1, n * length), n_labels), dtype=np.int64)
    stack = np.empty(length + 1, dtype=np.int64)
    counts = np.array([end_node + 1, 0])
    for rank in range(n):
        if rank > 0:
            depth = _descend(end_node, n_labels, node, before, following, tail, stack)
            for d in range(depth - 1, -1, -1):
                _extend(
                    stack[d],
                    end - d,
                    begin,
                    end,
                    n_labels,
                    scores,
                    context,
                    pairs,
                    value,
                    before,
                    node,
                    following,
                    tail,
                    place,
                    candidates,
                    counts,
                )
            if following[tail[end_node]] == _NONE:
                return rank
        path = tail[end_node]
        if value[path] == -np.inf:
            return rank
        totals[rank] = value[path]
        for t in range(length - 1, -1, -1):
            path = before[path]
            labels[rank, t] = node[path] - t * n_labels
    return n
