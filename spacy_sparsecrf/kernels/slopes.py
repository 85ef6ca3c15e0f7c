"""The gradient of one sequence, and what is stored of it (*slopes*, Schmidt 2015, section 4)."""

import numpy as np

from .compiled import inner
from .residuals import exchange, scatter_sequence
from .sequence import evaluate_sequence


@inner
def square_norm(
    s: int, own_ptr: np.ndarray, own_rows: np.ndarray, all_ptr: np.ndarray, vector: np.ndarray
) -> float:
    """Sum of the squares of a vector [K] over the weights that sequence s has."""
    norm = 0.0
    for j in range(own_ptr[s], own_ptr[s + 1]):
        for k in range(all_ptr[own_rows[j]], all_ptr[own_rows[j] + 1]):
            norm += vector[k] * vector[k]
    return norm


@inner
def apply_change(
    s: int,
    own_ptr: np.ndarray,
    own_rows: np.ndarray,
    all_ptr: np.ndarray,
    pull: float,
    theta: np.ndarray,
    total: np.ndarray,
    gradient: np.ndarray,
    change: np.ndarray,
) -> None:
    """Add the change of a sequence's gradient to the sum, and -pull times it to the weights.

    gradient, change: [K], of sequence s; cleared.
    """
    for j in range(own_ptr[s], own_ptr[s + 1]):
        for k in range(all_ptr[own_rows[j]], all_ptr[own_rows[j] + 1]):
            total[k] += change[k]
            theta[k] -= pull * change[k]
            gradient[k] = 0.0
            change[k] = 0.0


@inner
def scatter(
    s: int,
    n_labels: int,
    n_previous: int,
    offsets: np.ndarray,
    tok_ptr: np.ndarray,
    tok_rows: np.ndarray,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    pair_ptr: np.ndarray,
    pair_places: np.ndarray,
    split: int,
    seq_ptr: np.ndarray,
    grp_context: np.ndarray,
    corpus_context: np.ndarray,
    ctx_ptr: np.ndarray,
    ctx_rows: np.ndarray,
    fresh_nodes: np.ndarray,
    fresh_pairs: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add the gradient of sequence s, by its fresh residuals, to `out` [K]."""
    begin, end = offsets[s], offsets[s + 1]
    scatter_sequence(
        n_labels,
        n_previous,
        tok_ptr[begin : end + 1],
        tok_rows,
        row_ptr,
        row_labels,
        grp_context[seq_ptr[s] : seq_ptr[s + 1]],
        corpus_context[begin],
        ctx_ptr,
        ctx_rows,
        pair_ptr,
        pair_places,
        fresh_nodes,
        fresh_pairs,
        out[:split],
        out[split:],
    )


@inner
def refresh(
    s: int,
    copy: int,
    n_labels: int,
    n_previous: int,
    offsets: np.ndarray,
    labels: np.ndarray,
    allowed: np.ndarray,
    sequence_weights: np.ndarray,
    head_ptr: np.ndarray,
    heads: np.ndarray,
    table: np.ndarray,
    tok_ptr: np.ndarray,
    tok_rows: np.ndarray,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    context: np.ndarray,
    matrix_of: np.ndarray,
    constant: np.ndarray,
    mat_ptr: np.ndarray,
    mat_rows: np.ndarray,
    pair_ptr: np.ndarray,
    pair_places: np.ndarray,
    ent_ptr: np.ndarray,
    ent_start: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    ent_place: np.ndarray,
    weight_ptr: np.ndarray,
    weights: np.ndarray,
    split: int,
    seq_ptr: np.ndarray,
    grp_ptr: np.ndarray,
    grp_tokens: np.ndarray,
    grp_context: np.ndarray,
    corpus_context: np.ndarray,
    ctx_ptr: np.ndarray,
    ctx_rows: np.ndarray,
    theta: np.ndarray,
    nodes: np.ndarray,
    pairs: np.ndarray,
    gradient: np.ndarray,
    change_of: np.ndarray,
    fresh_nodes: np.ndarray,
    fresh_pairs: np.ndarray,
    products: np.ndarray,
    psi: np.ndarray,
    shift: np.ndarray,
    value: np.ndarray,
    change: np.ndarray,
    rewritten: np.ndarray,
    stamp: np.ndarray,
    clock: np.ndarray,
    scratch: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    marginals: np.ndarray,
    walk: np.ndarray,
    scales: np.ndarray,
) -> float:
    """Evaluate a sequence, and store its residuals in place of those stored before.

    gradient, change_of: [K] zeros, out: the gradient of sequence s, and by how much it differs
    from the one that was stored. The others: see `sag_pass`. RETURNS: the loss, weighted.
    """
    begin, end = offsets[s], offsets[s + 1]
    first, last = seq_ptr[s], seq_ptr[s + 1]
    n_nodes = (end - begin) * nodes.shape[1]
    n_pairs = (last - first) * products.size
    loss = evaluate_sequence(
        s,
        copy,
        n_labels,
        n_previous,
        offsets,
        labels,
        allowed,
        sequence_weights,
        head_ptr,
        heads,
        table,
        tok_ptr,
        tok_rows,
        row_ptr,
        row_labels,
        context,
        matrix_of,
        constant,
        mat_ptr,
        mat_rows,
        pair_ptr,
        pair_places,
        ent_ptr,
        ent_start,
        ent_previous,
        ent_label,
        ent_place,
        weight_ptr,
        weights,
        split,
        seq_ptr,
        grp_ptr,
        grp_tokens,
        theta,
        fresh_nodes,
        fresh_pairs,
        products,
        psi,
        shift,
        value,
        change,
        rewritten,
        stamp,
        clock,
        scratch,
        alpha,
        backward,
        marginals,
        walk,
        scales,
    )
    scatter(
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
        fresh_nodes,
        fresh_pairs,
        gradient,
    )
    exchange(fresh_nodes.reshape(-1)[:n_nodes], nodes[begin:end].reshape(-1))
    exchange(fresh_pairs.reshape(-1)[:n_pairs], pairs[first:last].reshape(-1))
    scatter(
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
        fresh_nodes,
        fresh_pairs,
        change_of,
    )
    return float(loss)
