"""The first point of the dual."""

import numpy as np

from .compiled import kernel
from .dual_chain import (
    ChainSpace,
    DualArrays,
    Moves,
    axpy,
    dot,
    gold_sum,
    infer_chain,
    narrow,
    score_chain,
)
from .groups import Chains, ContextRows, Groups, PairTables, TokenRows, Vectors


@kernel
def begin_chains(
    chains: Chains,
    tests: TokenRows,
    pairs: PairTables,
    groups: Groups,
    rows_of: ContextRows,
    theta: np.ndarray,
    point: DualArrays,
    moves: Moves,
    space: ChainSpace,
    vectors: Vectors,
) -> float:
    """Evaluate all sequences by log-potentials to which those that weights give are added.

    What is out of range is raised to it.

    theta: [K], the weights; point: its node_theta and pair_theta are in and out, nodes, pairs and
    log_z are out.
    RETURNS: the sum of the sequences' entropies, times their weights.
    """
    total, n_labels = 0.0, chains.n_labels
    node_way, pair_way = moves.node_way, moves.pair_way
    for s in range(len(point.log_z)):
        begin, end = chains.offsets[s], chains.offsets[s + 1]
        first, last = groups.seq_ptr[s], groups.seq_ptr[s + 1]
        own_nodes, own_pairs = point.node_theta[begin:end], point.pair_theta[first:last]
        nodes, residuals = point.nodes[begin:end], point.pairs[first:last]
        score_chain(
            s, chains, tests, pairs, groups, rows_of, theta, vectors.scratch, node_way, pair_way
        )
        flat_nodes, flat_pairs = own_nodes.reshape(-1), own_pairs.reshape(-1)
        axpy(len(flat_nodes), 1.0, node_way.reshape(-1), flat_nodes, flat_nodes)
        axpy(len(flat_pairs), 1.0, pair_way.reshape(-1), flat_pairs, flat_pairs)
        for t in range(end - begin):
            narrow(own_nodes[t : t + 1], n_labels)
        for g in range(last - first):
            narrow(own_pairs[g], n_labels)
        log_z = infer_chain(
            s, chains, groups, own_nodes, own_pairs, space, vectors, nodes, residuals
        )
        point.log_z[s] = log_z
        total += chains.weights[s] * (log_z - gold_sum(s, chains, groups, own_nodes, own_pairs))
        total -= dot(len(flat_nodes), flat_nodes, nodes.reshape(-1))
        total -= dot(len(flat_pairs), flat_pairs, residuals.reshape(-1))
    return total
