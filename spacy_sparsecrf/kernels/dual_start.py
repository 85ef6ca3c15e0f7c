"""The first point of the dual."""

import numpy as np

from .compiled import kernel
from .dual_chain import axpy, dot, gold_sum, infer_chain, narrow, score_chain


@kernel
def begin_chains(
    n_labels: int,
    n_previous: int,
    offsets: np.ndarray,
    labels: np.ndarray,
    allowed: np.ndarray,
    sequence_weights: np.ndarray,
    tok_ptr: np.ndarray,
    tok_rows: np.ndarray,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    pair_ptr: np.ndarray,
    pair_places: np.ndarray,
    split: int,
    seq_ptr: np.ndarray,
    grp_ptr: np.ndarray,
    grp_tokens: np.ndarray,
    grp_context: np.ndarray,
    corpus_context: np.ndarray,
    ctx_ptr: np.ndarray,
    ctx_rows: np.ndarray,
    own_ptr: np.ndarray,
    own_rows: np.ndarray,
    all_ptr: np.ndarray,
    theta: np.ndarray,
    node_theta: np.ndarray,
    pair_theta: np.ndarray,
    nodes: np.ndarray,
    pairs: np.ndarray,
    log_z: np.ndarray,
    steps: np.ndarray,
    change: np.ndarray,
    node_way: np.ndarray,
    pair_way: np.ndarray,
    trial_nodes: np.ndarray,
    trial_pairs: np.ndarray,
    fresh_nodes: np.ndarray,
    fresh_pairs: np.ndarray,
    mask: np.ndarray,
    constant: np.ndarray,
    none: np.ndarray,
    no_row: np.ndarray,
    no_label: np.ndarray,
    no_entry: np.ndarray,
    no_head: np.ndarray,
    psi: np.ndarray,
    shift: np.ndarray,
    where: np.ndarray,
    matrix_of: np.ndarray,
    rewritten: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    marginals: np.ndarray,
    walk: np.ndarray,
    scales: np.ndarray,
    matrix: np.ndarray,
    products: np.ndarray,
) -> float:
    """Evaluate all sequences by log-potentials to which those that weights give are added.

    What is out of range is raised to it.

    theta: [K], the weights; node_theta, pair_theta: in and out; nodes, pairs, log_z: out. The
    arguments are those of `oeg.ascend`, of which steps, change, trial and fresh ones are not used.
    RETURNS: the sum of the sequences' entropies, times their weights.
    """
    total = 0.0
    for s in range(len(log_z)):
        begin, end, first, last = offsets[s], offsets[s + 1], seq_ptr[s], seq_ptr[s + 1]
        n_nodes, n_pairs = (end - begin) * nodes.shape[1], (last - first) * products.size
        own_nodes, own_pairs = node_theta[begin:end], pair_theta[first:last]
        score_chain(
            s,
            n_labels,
            n_previous,
            offsets,
            tok_ptr,
            tok_rows,
            row_ptr,
            row_labels,
            pair_ptr,
            pair_places,
            split,
            seq_ptr,
            grp_context,
            corpus_context,
            ctx_ptr,
            ctx_rows,
            theta,
            matrix,
            node_way,
            pair_way,
        )
        flat_nodes, flat_pairs = own_nodes.reshape(-1), own_pairs.reshape(-1)
        axpy(n_nodes, 1.0, node_way.reshape(-1), flat_nodes, flat_nodes)
        axpy(n_pairs, 1.0, pair_way.reshape(-1), flat_pairs, flat_pairs)
        for t in range(end - begin):
            narrow(own_nodes[t : t + 1], n_labels)
        for g in range(last - first):
            narrow(own_pairs[g], n_labels)
        log_z[s] = infer_chain(
            s,
            n_labels,
            offsets,
            labels,
            allowed,
            sequence_weights[s],
            seq_ptr,
            grp_ptr,
            grp_tokens,
            own_nodes,
            own_pairs,
            mask,
            constant,
            none,
            no_row,
            no_label,
            no_entry,
            no_head,
            psi,
            shift,
            where,
            matrix_of,
            rewritten,
            alpha,
            backward,
            marginals,
            walk,
            scales,
            matrix,
            products,
            nodes[begin:end],
            pairs[first:last],
        )
        gold = gold_sum(s, offsets, labels, seq_ptr, grp_ptr, grp_tokens, own_nodes, own_pairs)
        total += sequence_weights[s] * (log_z[s] - gold)
        total -= dot(n_nodes, flat_nodes, nodes[begin:end].reshape(-1))
        total -= dot(n_pairs, flat_pairs, pairs[first:last].reshape(-1))
    return total
