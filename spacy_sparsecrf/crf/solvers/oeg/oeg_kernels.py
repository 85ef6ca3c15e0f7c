"""Online exponentiated gradient, a sequence at a time (Collins et al. 2008, section 5)."""

from typing import NamedTuple

from ...kernels.factors import scatter, square_norm
from ...kernels.layout import Factors, Floats, Grouped, Ints, SequenceBlocks
from ...kernels.numba_support import inlined, kernel
from .dual import (
    ChainSpace,
    Moves,
    axpy,
    dot,
    factors_of,
    first_factors,
    gold_sum,
    infer_chain,
    is_wide,
    score_chain,
)

# Step sizes to try for a sequence before it is left unchanged.
_MAX_TRIALS = 20
# Factor of a step size after a step; the paper does not give it.
_GROW = 1.05
# A full step leads to the distribution at the weights; nothing is beyond it.
_LARGEST_STEP = 1.0


class DualArrays(NamedTuple):
    """A point of the dual: see `DualPoint`.

    theta, residuals: of all sequences; log_z, steps: [n] float64.
    """

    theta: Factors
    residuals: Factors
    log_z: Floats
    steps: Floats


@kernel
def begin_chains(
    grouped: Grouped, theta: Floats, point: DualArrays, moves: Moves, space: ChainSpace
) -> None:
    """Add the log-potentials at given weights to those of all sequences, and evaluate them.

    Log-potentials below the range are raised to its lower end.

    theta: [K], the weights; point: its theta is in and out, residuals and log_z are out.
    """
    n_labels = grouped.tables.sequences.n_labels
    for s in range(len(point.log_z)):
        chain = factors_of(s, grouped, point.theta)
        residuals = factors_of(s, grouped, point.residuals)
        scores = first_factors(chain, moves.way)
        score_chain(s, grouped, theta, matrix=space.work.pair_sums, scores=scores)
        axpy(1.0, scores, chain, chain)
        is_wide(n_labels, chain, True)
        point.log_z[s] = infer_chain(s, grouped, chain, space=space, residuals=residuals)


@kernel
def sum_entropies(grouped: Grouped, point: DualArrays) -> float:
    """Return the sum of the sequences' entropies, times their weights."""
    weights, total = grouped.tables.sequences.weights, 0.0
    for s in range(len(point.log_z)):
        chain = factors_of(s, grouped, point.theta)
        total += weights[s] * (point.log_z[s] - gold_sum(s, grouped, chain))
        total -= dot(chain, factors_of(s, grouped, point.residuals))
    return total


@inlined
def _divergence(step: float, slope: float, fall: float, small: float) -> float:
    """Return KL(new || old) of a sequence whose log-potentials have moved by `step` times d.

    KL(new || old) + KL(old || new) = step * slope with slope = d . (mu_new - mu_old). fall: the
    first term, log Z_old - log Z_new + step mu_new . d. If the sum is below `small`, rounding hides
    `fall`, but the two terms are nearly equal: half of the sum is returned.
    """
    symmetric = step * slope
    if symmetric < small:
        return 0.5 * symmetric
    if fall < 0.0:
        return 0.0
    # NaN stays NaN.
    return symmetric if fall > symmetric else fall


@inlined
def _move(
    s: int, sequence_blocks: SequenceBlocks, factor: float, theta: Floats, change: Floats
) -> None:
    """Add -factor * change [K] to the weights of sequence s, and clear the change."""
    weight_ptr = sequence_blocks.weight_ptr
    for row in sequence_blocks.rows[sequence_blocks.ptr[s] : sequence_blocks.ptr[s + 1]]:
        for k in range(weight_ptr[row], weight_ptr[row + 1]):
            # A rejected change may be NaN.
            if factor > 0.0:
                theta[k] -= factor * change[k]
            change[k] = 0.0


@inlined
def _gain_of(
    s: int,
    step: float,
    gold_way: float,
    small: float,
    l2: float,
    grouped: Grouped,
    theta: Floats,
    point: DualArrays,
    moves: Moves,
    space: ChainSpace,
) -> tuple[float, float]:
    """Return the gain of the dual by a step of sequence s to the log-potentials of `moves.trial`.

    gold_way: sum of the direction along gold labels; moves: `way`, `trial` and `fresh` are of the
    sequence; in the end, `fresh` is the change of its residuals; theta: [K], moved if the gain is
    not negative. RETURNS: the gain, and log Z at the trial.
    """
    change, way, fresh = moves.change, moves.way, moves.fresh
    weight = grouped.tables.sequences.weights[s]
    reached = infer_chain(s, grouped, moves.trial, space=space, residuals=fresh)
    # Expected minus gold along the way.
    along = dot(way, fresh)
    fall = point.log_z[s] - reached + step * (along / weight + gold_way)
    axpy(-1.0, factors_of(s, grouped, point.residuals), fresh, fresh)
    slope = dot(way, fresh)
    scatter(s, grouped, fresh, change)
    gain = slope - weight * _divergence(step, slope / weight, fall, small)
    gain -= square_norm(s, grouped.sequence_blocks, change) / (2.0 * l2)
    factor = 1.0 / l2 if gain >= 0.0 else 0.0
    _move(s, grouped.sequence_blocks, factor, theta=theta, change=change)
    return gain, reached


@kernel
def ascend(
    order: Ints,
    small: float,
    l2: float,
    grouped: Grouped,
    theta: Floats,
    point: DualArrays,
    moves: Moves,
    space: ChainSpace,
) -> int:
    """Ascend the dual over the sequences of `order`, one after the other.

    For each: theta^i := theta^i + eta d, where d = s - theta^i, and s are its log-potentials at the
    weights w: the multiplicative step along the gradient of the dual. Then w is updated to (1 / l2)
    sum_i c_i (phi(x_i, y_i) - E_i[phi]). The gain of the dual is

        c_i (d . (mu' - mu) - KL(new || old)) - |c_i (E_i'[phi] - E_i[phi])|^2 / (2 l2)

    without a difference of large numbers. eta is halved while the gain is negative, and multiplied
    by _GROW after the step.

    order: [steps] int64; small: see `_divergence`; all labels are known. In and out: theta [K] (w),
    point.
    RETURNS: the number of evaluations of a sequence.
    """
    n_evaluations, n_labels = 0, grouped.tables.sequences.n_labels
    for s in order:
        chain, old = factors_of(s, grouped, point.theta), factors_of(s, grouped, point.residuals)
        way, trial = first_factors(chain, moves.way), first_factors(chain, moves.trial)
        now = Moves(moves.change, way, trial, first_factors(chain, moves.fresh))
        score_chain(s, grouped, theta, matrix=space.work.pair_sums, scores=way)
        axpy(-1.0, chain, way, way)
        gold_way = gold_sum(s, grouped, now.way)
        step, gain, reached = point.steps[s], -1.0, 0.0
        # NaN and overflow are no gain.
        for _ in range(_MAX_TRIALS):
            axpy(step, now.way, chain, now.trial)
            if not is_wide(n_labels, now.trial, False):
                n_evaluations += 1
                gain, reached = _gain_of(
                    s,
                    step,
                    gold_way=gold_way,
                    small=small,
                    l2=l2,
                    grouped=grouped,
                    theta=theta,
                    point=point,
                    moves=now,
                    space=space,
                )
                if gain >= 0.0:
                    break
            step *= 0.5
        if not gain >= 0.0:
            point.steps[s] *= 0.5
            continue
        point.log_z[s] = reached
        point.steps[s] = min(_GROW * step, _LARGEST_STEP)
        axpy(step, now.way, chain, chain)
        axpy(1.0, now.fresh, old, old)
    return n_evaluations
