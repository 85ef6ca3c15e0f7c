"""A sequence by its own log-potentials, as the dual of the likelihood has it.

Every sequence has log-potentials *theta^i*: nodes [T, Yp], of which the first has the pairs with
the start label in it, and pairs [G, Y, Yp] of its groups (see `residuals`). Its marginals, entropy
and log Z follow from these alone, whatever the weights.
"""

from typing import NamedTuple

import numpy as np

from .compiled import inner
from .exp import exp_shifted
from .forward_backward import forward_backward
from .groups import Chains, ContextRows, Groups, PairTables, TokenRows, Vectors
from .memory import fill
from .potentials import add_pairs, add_scores
from .residuals import add_labels
from .residuals import add_pairs as add_pair_residuals

# By how much log-potentials of a token, or of a group, may differ: their exponentials, and products
# of two, are then normal numbers.
WIDEST = 300.0


class ChainSpace(NamedTuple):
    """Workspaces of `infer_chain`.

    mask: [Y, Yp], 1 for pairs that may follow each other; psi: [groups + 1, Y + 1, Yp], of which
    the first is the mask; shift, constant (whether there is no mask), matrix_of (ascending),
    rewritten (false): [groups + 1]; where: [>= T] int32, the matrix of a token; products: [Y, Yp];
    none: zeros [> T, > groups + 1], no_row, no_label, no_entry, no_head: empty: for tests and
    entries in `forward_backward`, of which there are none.
    """

    mask: np.ndarray
    constant: np.ndarray
    none: np.ndarray
    no_row: np.ndarray
    no_label: np.ndarray
    no_entry: np.ndarray
    no_head: np.ndarray
    psi: np.ndarray
    shift: np.ndarray
    where: np.ndarray
    matrix_of: np.ndarray
    rewritten: np.ndarray
    products: np.ndarray


class DualArrays(NamedTuple):
    """A point of the dual: see `DualPoint`."""

    node_theta: np.ndarray
    pair_theta: np.ndarray
    nodes: np.ndarray
    pairs: np.ndarray
    log_z: np.ndarray
    steps: np.ndarray


class Moves(NamedTuple):
    """Workspaces of a step of one sequence.

    change: [K] zeros; *_way, trial_*, fresh_*: [T, Yp] and [groups of a sequence, Y, Yp], the
    direction, log-potentials and residuals of a trial.
    """

    change: np.ndarray
    node_way: np.ndarray
    pair_way: np.ndarray
    trial_nodes: np.ndarray
    trial_pairs: np.ndarray
    fresh_nodes: np.ndarray
    fresh_pairs: np.ndarray


@inner
def _largest(block: np.ndarray, n_labels: int) -> float:
    """The largest of block[:, :n_labels]."""
    top = -np.inf
    for row in block:
        for y in range(n_labels):
            top = max(top, row[y])
    return top


@inner
def narrow(block: np.ndarray, n_labels: int) -> None:
    """Raise what is more than WIDEST below the largest of block[:, :n_labels]."""
    low = _largest(block, n_labels) - WIDEST
    for row in block:
        for y in range(n_labels):
            row[y] = max(row[y], low)


@inner
def _is_wide(block: np.ndarray, n_labels: int) -> bool:
    """Whether something is more than WIDEST below the largest of block[:, :n_labels]."""
    low = _largest(block, n_labels) - WIDEST
    for row in block:
        for y in range(n_labels):
            if row[y] < low:
                return True
    return False


@inner
def is_wide(
    length: int, n_groups: int, n_labels: int, nodes: np.ndarray, pairs: np.ndarray
) -> bool:
    """Whether potentials of nodes[:length], or pairs[:n_groups], are out of range."""
    found = False
    for t in range(length):
        found |= _is_wide(nodes[t : t + 1], n_labels)
    for g in range(n_groups):
        found |= _is_wide(pairs[g], n_labels)
    return found


@inner
def score_chain(
    s: int,
    chains: Chains,
    tests: TokenRows,
    pairs: PairTables,
    groups: Groups,
    rows_of: ContextRows,
    theta: np.ndarray,
    matrix: np.ndarray,
    nodes: np.ndarray,
    potentials: np.ndarray,
) -> None:
    """The log-potentials of sequence s at weights theta [K].

    matrix: [Y + 1, Yp] workspace; nodes: [>= T, Yp], potentials: [>= groups, Y, Yp], of pairs, out,
    padding 0.
    """
    n_labels, split = chains.n_labels, tests.split
    begin, first = chains.offsets[s], groups.seq_ptr[s]
    for t in range(begin, chains.offsets[s + 1]):
        row = nodes[t - begin]
        fill(row, 0, len(row), 0.0)
        add_scores(
            row,
            tests.tok_rows,
            tests.tok_ptr[t],
            tests.tok_ptr[t + 1],
            n_labels,
            tests.row_ptr,
            tests.row_labels,
            theta[:split],
        )
    # The start row of the first token's context, then the groups.
    for g in range(first - 1, groups.seq_ptr[s + 1]):
        c = rows_of.context[begin] if g < first else groups.grp_context[g]
        fill(matrix.reshape(-1), 0, matrix.size, 0.0)
        add_pairs(
            matrix,
            rows_of.ctx_rows,
            rows_of.ctx_ptr[c],
            rows_of.ctx_ptr[c + 1],
            n_labels,
            pairs.n_previous,
            pairs.pair_ptr,
            pairs.pair_places,
            theta[split:],
        )
        if g < first:
            for y in range(n_labels):
                nodes[0, y] += matrix[n_labels, y]
            continue
        for i in range(n_labels):
            for y in range(matrix.shape[1]):
                potentials[g - first, i, y] = matrix[i, y]


@inner
def _exponentiate(
    n_groups: int,
    n_labels: int,
    pairs: np.ndarray,
    mask: np.ndarray,
    psi: np.ndarray,
    shift: np.ndarray,
) -> None:
    """psi[g + 1] = exp(pairs[g] - shift[g + 1]) where mask [Y, Yp] is 1, else 0."""
    padded = psi.shape[2]
    for g in range(n_groups):
        top = -np.inf
        for i in range(n_labels):
            for y in range(n_labels):
                if mask[i, y] > 0.0:
                    top = max(top, pairs[g, i, y])
        shift[g + 1] = top
        for i in range(n_labels):
            row = psi[g + 1, i]
            for y in range(padded):
                # What is illegal may lie above the shift.
                row[y] = pairs[g, i, y] if mask[i, y] > 0.0 else top
            exp_shifted(row, padded, top)
            for y in range(padded):
                row[y] *= mask[i, y]


@inner
def _place(
    first: int, last: int, grp_ptr: np.ndarray, grp_tokens: np.ndarray, where: np.ndarray
) -> None:
    """The matrix of each token of a sequence: 1 + its group, 0 = it has none."""
    for t in range(len(where)):
        where[t] = 0
    for g in range(first, last):
        for j in range(grp_ptr[g], grp_ptr[g + 1]):
            where[grp_tokens[j]] = g - first + 1


@inner
def infer_chain(
    s: int,
    chains: Chains,
    groups: Groups,
    nodes: np.ndarray,
    pairs: np.ndarray,
    space: ChainSpace,
    vectors: Vectors,
    node_residual: np.ndarray,
    pair_residual: np.ndarray,
) -> float:
    """Log Z of sequence s, and its residuals, times its weight, by its log-potentials.

    nodes: [>= T, Yp], pairs: [>= groups, Y, Yp]; space, vectors: workspaces; node_residual,
    pair_residual: out, shaped like nodes and pairs.
    """
    n_labels, weight, bounds = chains.n_labels, chains.weights[s], vectors.bounds
    begin, end = chains.offsets[s], chains.offsets[s + 1]
    first, last = groups.seq_ptr[s], groups.seq_ptr[s + 1]
    length, n_groups = end - begin, last - first
    none, no_entry, psi = space.none, space.no_entry, space.psi
    alpha, backward, marginals = vectors.alpha, vectors.backward, vectors.marginals
    gold, log_z = chains.labels[begin:end], vectors.log_z[:1]
    _exponentiate(n_groups, n_labels, pairs, space.mask, psi, space.shift)
    places = space.where[:length]
    _place(first, last, groups.grp_ptr, groups.grp_tokens, places)
    for t in range(length):
        for y in range(backward.shape[1]):
            backward[t, y] = nodes[t, y]
    bounds[1] = length
    forward_backward(
        bounds[0],
        bounds[0] + 1,
        n_labels,
        bounds,
        vectors.signs[:1],
        chains.allowed[begin:end],
        none,
        space.no_row,
        space.no_head,
        none,
        space.no_row,
        none,
        space.no_label,
        log_z,
        places,
        space.matrix_of,
        psi,
        space.shift,
        space.constant,
        none,
        none,
        no_entry,
        no_entry,
        log_z,
        space.rewritten,
        alpha,
        backward,
        marginals,
        log_z,
        vectors.walk,
        bounds[0] + 1,
        vectors.scales,
        vectors.scratch,
        True,
    )
    fill(node_residual.reshape(-1), 0, length * node_residual.shape[1], 0.0)
    fill(pair_residual.reshape(-1), 0, n_groups * space.products.size, 0.0)
    add_labels(weight, gold, marginals[:length], node_residual)
    add_pair_residuals(
        weight,
        first,
        last,
        groups.grp_ptr,
        groups.grp_tokens,
        n_labels,
        gold,
        places,
        space.matrix_of,
        psi,
        none,
        none,
        no_entry,
        no_entry,
        log_z,
        alpha,
        backward,
        space.products,
        pair_residual,
    )
    return float(log_z[0])


@inner
def axpy(n: int, factor: float, way: np.ndarray, base: np.ndarray, out: np.ndarray) -> None:
    """out[:n] = base[:n] + factor way[:n], all flat."""
    for i in range(n):
        out[i] = base[i] + factor * way[i]


@inner
def dot(n: int, one: np.ndarray, other: np.ndarray) -> float:
    """Inner product of the first n numbers, both flat."""
    total = 0.0
    for i in range(n):
        total += one[i] * other[i]
    return total


@inner
def gold_sum(s: int, chains: Chains, groups: Groups, nodes: np.ndarray, pairs: np.ndarray) -> float:
    """Sum of nodes [>= T, Yp] and pairs [>= groups, Y, Yp] along the gold labels of sequence s."""
    gold = chains.labels[chains.offsets[s] : chains.offsets[s + 1]]
    first, total = groups.seq_ptr[s], 0.0
    for t in range(len(gold)):
        total += nodes[t, gold[t]]
    for g in range(first, groups.seq_ptr[s + 1]):
        for j in range(groups.grp_ptr[g], groups.grp_ptr[g + 1]):
            t = groups.grp_tokens[j]
            total += pairs[g - first, gold[t - 1], gold[t]]
    return total
