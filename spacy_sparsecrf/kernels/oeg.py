"""Online exponentiated gradient, a sequence at a time (Collins et al. 2008, section 5)."""

import numpy as np

from .compiled import inner, kernel
from .dual_chain import (
    ChainSpace,
    DualArrays,
    Moves,
    axpy,
    dot,
    gold_sum,
    infer_chain,
    is_wide,
    score_chain,
)
from .groups import Chains, ContextRows, Groups, PairTables, Residuals, TokenRows, Vectors
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
def _move(s: int, groups: Groups, factor: float, theta: np.ndarray, change: np.ndarray) -> None:
    """Add -factor * change [K], which is cleared, to the weights that sequence s has."""
    own_rows, row_ptr = groups.own_rows, groups.row_ptr
    for j in range(groups.own_ptr[s], groups.own_ptr[s + 1]):
        for k in range(row_ptr[own_rows[j]], row_ptr[own_rows[j] + 1]):
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
) -> tuple[float, int]:
    """Ascend the dual over the sequences of `order`, one after the other.

    Of each: theta^i := theta^i + eta d, where d = s - theta^i and s are the log-potentials that the
    weights w give it: the multiplicative step along the gradient of the dual. Then w follows, which
    is (1 / l2) sum_i c_i (phi(x_i, y_i) - E_i[phi]). What the dual gains by that is

        c_i (d . (mu' - mu) - KL(new || old)) - |c_i (E_i'[phi] - E_i[phi])|^2 / (2 l2)

    without a difference of large numbers. eta is halved while that is negative, and multiplied by
    `grow` after the step.

    order: [steps] int64; small: see `_divergence`; all labels are known. In and out: theta [K] (w),
    point. Workspaces: moves, space, vectors.
    RETURNS: the gain, and how many times sequences were evaluated.
    """
    total, n_evaluations = 0.0, 0
    node_way, pair_way = moves.node_way, moves.pair_way
    trial_nodes, trial_pairs = moves.trial_nodes, moves.trial_pairs
    fresh = Residuals(moves.fresh_nodes, moves.fresh_pairs)
    way_nodes, way_pairs = node_way.reshape(-1), pair_way.reshape(-1)
    new_nodes, new_pairs = fresh.nodes.reshape(-1), fresh.pairs.reshape(-1)
    at_nodes, at_pairs = trial_nodes.reshape(-1), trial_pairs.reshape(-1)
    for s in order:
        begin, end = chains.offsets[s], chains.offsets[s + 1]
        first, last = groups.seq_ptr[s], groups.seq_ptr[s + 1]
        own_nodes = point.node_theta[begin:end].reshape(-1)
        own_pairs = point.pair_theta[first:last].reshape(-1)
        old_nodes, old_pairs = (
            point.nodes[begin:end].reshape(-1),
            point.pairs[first:last].reshape(-1),
        )
        n_nodes, n_pairs = len(own_nodes), len(own_pairs)
        score_chain(
            s, chains, tests, pairs, groups, rows_of, theta, vectors.scratch, node_way, pair_way
        )
        axpy(n_nodes, -1.0, own_nodes, way_nodes, way_nodes)
        axpy(n_pairs, -1.0, own_pairs, way_pairs, way_pairs)
        gold_way = gold_sum(s, chains, groups, node_way, pair_way)
        weight, step, gain = chains.weights[s], point.steps[s], -1.0
        # What is not a number is no gain, nor is what numbers cannot hold.
        for _ in range(_MAX_TRIALS):
            axpy(n_nodes, step, way_nodes, own_nodes, at_nodes)
            axpy(n_pairs, step, way_pairs, own_pairs, at_pairs)
            if is_wide(end - begin, last - first, chains.n_labels, trial_nodes, trial_pairs):
                step *= 0.5
                continue
            reached = infer_chain(
                s,
                chains,
                groups,
                trial_nodes,
                trial_pairs,
                space,
                vectors,
                fresh.nodes,
                fresh.pairs,
            )
            n_evaluations += 1
            # Expected minus gold along the way.
            along = dot(n_nodes, way_nodes, new_nodes) + dot(n_pairs, way_pairs, new_pairs)
            fall = point.log_z[s] - reached + step * (along / weight + gold_way)
            axpy(n_nodes, -1.0, old_nodes, new_nodes, new_nodes)
            axpy(n_pairs, -1.0, old_pairs, new_pairs, new_pairs)
            slope = dot(n_nodes, way_nodes, new_nodes) + dot(n_pairs, way_pairs, new_pairs)
            scatter(s, chains, tests, pairs, groups, rows_of, fresh, moves.change)
            gain = slope - weight * _divergence(step, slope / weight, fall, small)
            gain -= square_norm(s, groups, moves.change) / (2.0 * l2)
            _move(s, groups, 1.0 / l2 if gain >= 0.0 else 0.0, theta, moves.change)
            if gain >= 0.0:
                point.log_z[s] = reached
                break
            step *= 0.5
        if not gain >= 0.0:
            point.steps[s] *= 0.5
            continue
        total += gain
        point.steps[s] = min(grow * step, _LARGEST_STEP)
        axpy(n_nodes, step, way_nodes, own_nodes, own_nodes)
        axpy(n_pairs, step, way_pairs, own_pairs, own_pairs)
        axpy(n_nodes, 1.0, new_nodes, old_nodes, old_nodes)
        axpy(n_pairs, 1.0, new_pairs, old_pairs, old_pairs)
    return total, n_evaluations
