"""Online exponentiated gradient, a sequence at a time (Collins et al. 2008, section 5)."""

import numpy as np

from .compiled import inner, kernel
from .dual_chain import axpy, dot, gold_sum, infer_chain, is_wide, score_chain
from .slopes import scatter, square_norm

# Step sizes that are tried for a sequence before it is left as it is.
_MAX_TRIALS = 20
# From the distribution of the weights itself no step leads on.
_LARGEST_STEP = 1.0


@inner
def _divergence(step: float, slope: float, fall: float, small: float) -> float:
    """KL(new || old) of a sequence whose log-potentials have moved by `step` times a direction d.

    KL(new || old) + KL(old || new) = step * slope with slope = d . (mu_new - mu_old). fall: the
    first, log Z_old - log Z_new + step mu_new . d, which rounding hides where it is below `small`:
    there the two are alike.
    """
    both = step * slope
    if both < small:
        return 0.5 * both
    if fall < 0.0:
        return 0.0
    # What is not a number stays that.
    return both if fall > both else fall


@inner
def _move(
    s: int,
    own_ptr: np.ndarray,
    own_rows: np.ndarray,
    all_ptr: np.ndarray,
    factor: float,
    theta: np.ndarray,
    change: np.ndarray,
) -> None:
    """Add -factor * change [K], which is cleared, to the weights that sequence s has."""
    for j in range(own_ptr[s], own_ptr[s + 1]):
        for k in range(all_ptr[own_rows[j]], all_ptr[own_rows[j] + 1]):
            # A change that is not taken need not be a number.
            if factor > 0.0:
                theta[k] -= factor * change[k]
            change[k] = 0.0


@kernel
def ascend(
    order: np.ndarray,
    grow: float,
    small: float,
    l2: float,
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
) -> tuple[float, int]:
    """Ascend the dual over the sequences of `order`, one after the other.

    Of each: theta^i := theta^i + eta d, where d = s - theta^i and s are the log-potentials that the
    weights w give it: the multiplicative step along the gradient of the dual. Then w follows, which
    is (1 / l2) sum_i c_i (phi(x_i, y_i) - E_i[phi]). What the dual gains by that is

        c_i (d . (mu' - mu) - KL(new || old)) - |c_i (E_i'[phi] - E_i[phi])|^2 / (2 l2)

    without a difference of large numbers. eta is halved while that is negative, and multiplied by
    `grow` after the step.

    order: [steps] int64; small: see `_divergence`. Of sequences and tables: see `sag_pass`; all
    labels are known. In and out: theta [K] (w), node_theta, nodes [tokens, Yp], pair_theta, pairs
    [G, Y, Yp] (log-potentials, residuals), log_z [n], steps [n] (eta). Workspaces: change [K]
    zeros; node_way, trial_nodes, fresh_nodes [T, Yp]; pair_way, trial_pairs, fresh_pairs [groups of
    a sequence, Y, Yp]; from mask on see `infer_chain`.
    RETURNS: the gain, and how many times sequences were evaluated.
    """
    total, n_evaluations = 0.0, 0
    way_nodes, way_pairs = node_way.reshape(-1), pair_way.reshape(-1)
    new_nodes, new_pairs = fresh_nodes.reshape(-1), fresh_pairs.reshape(-1)
    at_nodes, at_pairs = trial_nodes.reshape(-1), trial_pairs.reshape(-1)
    for s in order:
        begin, end, first, last = offsets[s], offsets[s + 1], seq_ptr[s], seq_ptr[s + 1]
        n_nodes, n_pairs = (end - begin) * nodes.shape[1], (last - first) * products.size
        own_nodes, own_pairs = node_theta[begin:end].reshape(-1), pair_theta[first:last].reshape(-1)
        old_nodes, old_pairs = nodes[begin:end].reshape(-1), pairs[first:last].reshape(-1)
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
        axpy(n_nodes, -1.0, own_nodes, way_nodes, way_nodes)
        axpy(n_pairs, -1.0, own_pairs, way_pairs, way_pairs)
        gold_way = gold_sum(s, offsets, labels, seq_ptr, grp_ptr, grp_tokens, node_way, pair_way)
        weight, step, gain = sequence_weights[s], steps[s], -1.0
        # What is not a number is no gain, nor is what numbers cannot hold.
        for _ in range(_MAX_TRIALS):
            axpy(n_nodes, step, way_nodes, own_nodes, at_nodes)
            axpy(n_pairs, step, way_pairs, own_pairs, at_pairs)
            if is_wide(end - begin, last - first, n_labels, trial_nodes, trial_pairs):
                step *= 0.5
                continue
            reached = infer_chain(
                s,
                n_labels,
                offsets,
                labels,
                allowed,
                weight,
                seq_ptr,
                grp_ptr,
                grp_tokens,
                trial_nodes,
                trial_pairs,
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
                fresh_nodes,
                fresh_pairs,
            )
            n_evaluations += 1
            # Expected minus gold along the way.
            along = dot(n_nodes, way_nodes, new_nodes) + dot(n_pairs, way_pairs, new_pairs)
            fall = log_z[s] - reached + step * (along / weight + gold_way)
            axpy(n_nodes, -1.0, old_nodes, new_nodes, new_nodes)
            axpy(n_pairs, -1.0, old_pairs, new_pairs, new_pairs)
            slope = dot(n_nodes, way_nodes, new_nodes) + dot(n_pairs, way_pairs, new_pairs)
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
                change,
            )
            gain = slope - weight * _divergence(step, slope / weight, fall, small)
            gain -= square_norm(s, own_ptr, own_rows, all_ptr, change) / (2.0 * l2)
            factor = 1.0 / l2 if gain >= 0.0 else 0.0
            _move(s, own_ptr, own_rows, all_ptr, factor, theta, change)
            if gain >= 0.0:
                log_z[s] = reached
                break
            step *= 0.5
        if not gain >= 0.0:
            steps[s] *= 0.5
            continue
        total += gain
        steps[s] = min(grow * step, _LARGEST_STEP)
        axpy(n_nodes, step, way_nodes, own_nodes, own_nodes)
        axpy(n_pairs, step, way_pairs, own_pairs, own_pairs)
        axpy(n_nodes, 1.0, new_nodes, old_nodes, old_nodes)
        axpy(n_pairs, 1.0, new_pairs, old_pairs, old_pairs)
    return total, n_evaluations
