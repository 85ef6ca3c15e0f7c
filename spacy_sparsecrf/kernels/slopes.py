"""The gradient of one sequence, and what is stored of it (*slopes*, Schmidt 2015, section 4)."""

import numpy as np

from .compiled import inner, kernel
from .groups import (
    Chains,
    ContextRows,
    Groups,
    PairTables,
    Potentials,
    Residuals,
    TokenRows,
    Vectors,
)
from .residuals import exchange, scatter_sequence
from .sequence import evaluate_sequence


@inner
def square_norm(s: int, groups: Groups, vector: np.ndarray) -> float:
    """Sum of the squares of a vector [K] over the weights that sequence s has."""
    own_rows, row_ptr, norm = groups.own_rows, groups.row_ptr, 0.0
    for j in range(groups.own_ptr[s], groups.own_ptr[s + 1]):
        for k in range(row_ptr[own_rows[j]], row_ptr[own_rows[j] + 1]):
            norm += vector[k] * vector[k]
    return norm


@inner
def apply_change(
    s: int,
    groups: Groups,
    pull: float,
    theta: np.ndarray,
    total: np.ndarray,
    gradient: np.ndarray,
    change: np.ndarray,
) -> None:
    """Add the change of a sequence's gradient to the sum, and -pull times it to the weights.

    gradient, change: [K], of sequence s; cleared.
    """
    own_rows, row_ptr = groups.own_rows, groups.row_ptr
    for j in range(groups.own_ptr[s], groups.own_ptr[s + 1]):
        for k in range(row_ptr[own_rows[j]], row_ptr[own_rows[j] + 1]):
            total[k] += change[k]
            theta[k] -= pull * change[k]
            gradient[k] = 0.0
            change[k] = 0.0


@inner
def scatter(
    s: int,
    chains: Chains,
    tests: TokenRows,
    pairs: PairTables,
    groups: Groups,
    rows_of: ContextRows,
    fresh: Residuals,
    out: np.ndarray,
) -> None:
    """Add the gradient of sequence s, by its fresh residuals, to `out` [K]."""
    begin, end = chains.offsets[s], chains.offsets[s + 1]
    scatter_sequence(
        chains.n_labels,
        pairs.n_previous,
        tests.tok_ptr[begin : end + 1],
        tests.tok_rows,
        tests.row_ptr,
        tests.row_labels,
        groups.grp_context[groups.seq_ptr[s] : groups.seq_ptr[s + 1]],
        rows_of.context[begin],
        rows_of.ctx_ptr,
        rows_of.ctx_rows,
        pairs.pair_ptr,
        pairs.pair_places,
        fresh.nodes,
        fresh.pairs,
        out[: tests.split],
        out[tests.split :],
    )


@kernel
def scatter_all(
    chains: Chains,
    tests: TokenRows,
    pairs: PairTables,
    groups: Groups,
    rows_of: ContextRows,
    residuals: Residuals,
    out: np.ndarray,
) -> None:
    """Add the gradient of all sequences, by their residuals, to `out` [K]."""
    for s in range(len(groups.seq_ptr) - 1):
        nodes = residuals.nodes[chains.offsets[s] : chains.offsets[s + 1]]
        own = Residuals(nodes, residuals.pairs[groups.seq_ptr[s] : groups.seq_ptr[s + 1]])
        scatter(s, chains, tests, pairs, groups, rows_of, own, out)


@inner
def refresh(
    s: int,
    chains: Chains,
    tests: TokenRows,
    pairs: PairTables,
    groups: Groups,
    rows_of: ContextRows,
    theta: np.ndarray,
    stored: Residuals,
    gradient: np.ndarray,
    change_of: np.ndarray,
    fresh: Residuals,
    products: np.ndarray,
    potentials: Potentials,
    clock: np.ndarray,
    vectors: Vectors,
) -> float:
    """Evaluate a sequence, and store its residuals in place of those stored before.

    gradient, change_of: [K] zeros, out: the gradient of sequence s, and by how much it differs
    from the one that was stored. The others: see `evaluate_sequence`.
    RETURNS: the loss, weighted.
    """
    begin, end = chains.offsets[s], chains.offsets[s + 1]
    first, last = groups.seq_ptr[s], groups.seq_ptr[s + 1]
    n_nodes = (end - begin) * stored.nodes.shape[1]
    n_pairs = (last - first) * products.size
    loss = evaluate_sequence(
        s, chains, tests, pairs, groups, theta, fresh, products, potentials, clock, vectors
    )
    scatter(s, chains, tests, pairs, groups, rows_of, fresh, gradient)
    exchange(fresh.nodes.reshape(-1)[:n_nodes], stored.nodes[begin:end].reshape(-1))
    exchange(fresh.pairs.reshape(-1)[:n_pairs], stored.pairs[first:last].reshape(-1))
    scatter(s, chains, tests, pairs, groups, rows_of, fresh, change_of)
    return float(loss)
