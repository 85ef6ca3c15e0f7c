"""Stochastic average gradient, a sequence at a time (Schmidt et al. 2015, algorithm 1)."""

from typing import Any, NamedTuple

from ...kernels.example_gradients import forget
from ...kernels.exp import exp, log
from ...kernels.factors import leave_factors, scatter, square_norm
from ...kernels.layout import Factors, Floats, Grouped, Ints, SequenceBlocks, SequenceWorkspace
from ...kernels.lazy import advance
from ...kernels.numba_support import inlined, kernel
from ...kernels.sequence import example_loss, infer_example
from .sag_updates import (
    BALANCED,
    PAIRED,
    UNIFORM,
    Pending,
    Rules,
    Steps,
    curvature_share,
    draw,
    first_estimate,
    repeat_steps,
    set_leaf,
    step_size,
)

# Rounding errors of the loss for each token: a slack without which the search might not end.
_ROUNDING = 1e-13
_LN2 = 0.6931471805599453
# A search stops at estimates of the curvature above this.
_LARGEST = 1e30


class Average(NamedTuple):
    """The current point of SAG.

    theta, total: [K] float64, weights w, and the sum d of stored gradients; stored: residuals of
    all sequences; curvatures: [n] float64, L_i, 0 = not seen yet; common: [1] float64, L_g of
    uniform draws, else the first L.
    """

    theta: Floats
    total: Floats
    stored: Factors
    curvatures: Floats
    common: Floats


class Progress(NamedTuple):
    """Workspaces of one pass.

    sums, tops: tree of curvatures, filled (see `set_leaf`); order: [n] int64, the n_seen sequences
    with a curvature first; steps: zeros.
    """

    sums: Floats
    tops: Floats
    order: Ints
    n_seen: int
    steps: Steps


class GradientExchange(NamedTuple):
    """Workspaces for replacing the stored gradient of a sequence.

    See Schmidt 2015, section 4. gradient: [K] float64, the new gradient; change: [K] float64, its
    difference from the stored one; between steps, gradient and change are zero; trial: [K] float64,
    weights; pairs: [groups of a sequence, Y, Yp] float64, residuals; work: with those of labels.
    """

    gradient: Floats
    change: Floats
    trial: Floats
    pairs: Floats
    work: SequenceWorkspace


@inlined
def _exchange(keeps: bool, fresh: Floats, stored: Floats) -> None:
    """Store `fresh` if it is kept, and set it to its difference from the old numbers; [n] each."""
    for i in range(len(stored)):
        old = float(stored[i])
        if keeps:
            stored[i] = fresh[i]
            # The stored number may be rounded.
            fresh[i] = stored[i]
        fresh[i] -= old


@inlined
def _refresh(
    s: int, number: int, keeps: bool, grouped: Grouped, average: Average, exchange: GradientExchange
) -> float:
    """Evaluate a sequence, and replace its stored residuals if the new ones are kept.

    number: of the step, see `build_for_tokens`; exchange: change, and if kept gradient, are out.
    RETURNS: the loss, weighted.
    """
    tables, groups, work = grouped.tables, grouped.groups, exchange.work
    sequences, split, theta = tables.sequences, tables.unigrams.split, average.theta
    begin, end = sequences.offsets[s], sequences.offsets[s + 1]
    stored_pairs = average.stored.pairs[groups.seq_ptr[s] : groups.seq_ptr[s + 1]]
    loss = infer_example(
        s, number, tables, theta=theta[:split], pair_theta=theta[split:], work=work
    )
    fresh = Factors(work.vectors.marginals, exchange.pairs)
    leave_factors(s, sequences.context[begin:end], grouped, work=work, residuals=fresh)
    if keeps:
        scatter(s, grouped, fresh, exchange.gradient)
    _exchange(keeps, fresh.nodes.reshape(-1), average.stored.nodes[begin:end].reshape(-1))
    _exchange(keeps, fresh.pairs.reshape(-1), stored_pairs.reshape(-1))
    scatter(s, grouped, fresh, exchange.change)
    return float(sequences.weights[s] * loss)


@inlined
def _pull_alone(
    s: int, number: int, pull: float, grouped: Grouped, average: Average, exchange: GradientExchange
) -> None:
    """Add -pull times the change of a sequence's gradient to the weights; the memory stays."""
    gradient, _, change, pairs, work = exchange
    sequence_blocks, weight_ptr = grouped.sequence_blocks, grouped.sequence_blocks.weight_ptr
    rows = sequence_blocks.rows[sequence_blocks.ptr[s] : sequence_blocks.ptr[s + 1]]
    for row in rows:
        change[weight_ptr[row] : weight_ptr[row + 1]] = 0.0
    exchange = GradientExchange(
        gradient=gradient, change=change, trial=change, pairs=pairs, work=work
    )
    _refresh(s, number, False, grouped=grouped, average=average, exchange=exchange)
    for row in rows:
        for k in range(weight_ptr[row], weight_ptr[row + 1]):
            average.theta[k] -= pull * change[k]


@inlined
def _find_curvature(
    s: int,
    number: int,
    loss: float,
    mean: float,
    rules: Rules,
    grouped: Grouped,
    average: Average,
    exchange: GradientExchange,
) -> tuple[float, int]:
    """Raise an estimate of a sequence's curvature until a step lowers the loss as predicted.

    f(w - g / L) < f(w) - |g|^2 / (2 L), else L := 2 L (algorithm 2).

    number: of the first trial, see `build_for_tokens`; loss: f of sequence s; mean: mean of the
    curvatures of sequences seen, 0 = none; average: with the last L of sequence s, 0 = not seen
    yet, and L_g or the first L; exchange: with g at the weights of the sequence.
    RETURNS: L, and the number of evaluations, 0 if there was no search.
    """
    gradient, trial, common = exchange.gradient, exchange.trial, average.common[0]
    sequences, split = grouped.tables.sequences, grouped.tables.unigrams.split
    sequence_blocks, weight_ptr = grouped.sequence_blocks, grouped.sequence_blocks.weight_ptr
    length, weight = sequences.offsets[s + 1] - sequences.offsets[s], sequences.weights[s]
    norm, slack = square_norm(s, sequence_blocks, gradient), _ROUNDING * length * weight
    curvature = common
    searched = norm > rules.least_norm
    if rules.mode != UNIFORM:
        # Without a search, nothing would stop the estimate from falling.
        factor = rules.revisit if searched else 1.0
        by_mean = rules.mode >= BALANCED
        old = average.curvatures[s]
        curvature = first_estimate(old, mean=mean, by_mean=by_mean, initial=common, decay=factor)
    n_trials = 0
    while searched:
        for row in sequence_blocks.rows[sequence_blocks.ptr[s] : sequence_blocks.ptr[s + 1]]:
            for k in range(weight_ptr[row], weight_ptr[row + 1]):
                trial[k] = average.theta[k] - gradient[k] / curvature
        reached = weight * example_loss(
            s,
            number + n_trials,
            grouped.tables,
            theta=trial[:split],
            pair_theta=trial[split:],
            work=exchange.work,
        )
        n_trials += 1
        # Also stop if the loss is not a number, or an estimate from a file does not grow.
        grows = 0.0 < curvature <= _LARGEST
        if reached < loss - norm / (2.0 * curvature) + slack or not grows:
            break
        curvature *= 2.0
    return curvature, n_trials


@inlined
def _apply_change(
    s: int,
    sequence_blocks: SequenceBlocks,
    pull: float,
    average: Average,
    exchange: GradientExchange,
) -> None:
    """Add `change` to the sum d, and -pull * change to the weights; clear the gradients."""
    theta, total, weight_ptr = average.theta, average.total, sequence_blocks.weight_ptr
    for row in sequence_blocks.rows[sequence_blocks.ptr[s] : sequence_blocks.ptr[s + 1]]:
        for k in range(weight_ptr[row], weight_ptr[row + 1]):
            total[k] += exchange.change[k]
            theta[k] -= pull * exchange.change[k]
            exchange.gradient[k] = 0.0
            exchange.change[k] = 0.0


@inlined
def _count_step(
    i: int,
    share: float,
    n_seen: int,
    curvature: float,
    searched: bool,
    rules: Rules,
    common: Floats,
    progress: Progress,
) -> tuple[float, float]:
    """Record step i, which weights apply when they are next needed.

    share: of draws by curvature; curvature: of the sequence that was drawn; common: in and out, L_g
    of uniform draws, which falls after a search.
    RETURNS: alpha / m, and 1 - alpha lambda.
    """
    n, steps = len(progress.order), progress.steps
    largest, mean = progress.tops[1], progress.sums[1] / n_seen
    if rules.mode == UNIFORM:
        largest = curvature
        common[0] = curvature * exp(-_LN2 / n) if searched else curvature
    step = step_size(share, largest=largest, mean=mean, rules=rules, n=n) / rules.caution
    move, shrinkage = step / (n if rules.saga else n_seen), 1.0 - step * rules.decay
    steps.shrunk[i + 1] = steps.shrunk[i] + log(shrinkage)
    steps.moved[i + 1] = shrinkage * steps.moved[i] + move
    return move, shrinkage


@inlined
def _catch_up(rows: Any, step: int, sequence_blocks: SequenceBlocks, pending: Pending) -> None:
    """Apply the steps before `step` that the weights of feature blocks have missed."""
    advance(
        rows,
        step,
        reached=pending.steps.reached,
        block_ptr=sequence_blocks.weight_ptr,
        update=repeat_steps,
        values=pending,
    )


@kernel
def sag_pass(
    draws: Floats,
    rules: Rules,
    grouped: Grouped,
    average: Average,
    progress: Progress,
    exchange: GradientExchange,
) -> int:
    """Do steps over len(draws) sequences, drawn with replacement.

    For each: apply the steps that its weights have missed (see `sag_updates`); evaluate it and
    replace its stored residuals; estimate its curvature L_i; record the step w := (1 - alpha
    lambda) w - (alpha / m) d, proximal for l1, which weights apply when next needed. PAIRED: this
    sequence is of the memory only; a second one, of probability p, takes its place in the step.

    draws: [steps, 2] float64, uniform in [0, 1), PAIRED [steps, 4]; average: in and out.
    RETURNS: the number of other evaluations: of line searches, and of second sequences.
    """
    curvatures, sums, steps = average.curvatures, progress.sums, progress.steps
    sequence_blocks, n_forward, n_seen = grouped.sequence_blocks, 0, progress.n_seen
    pending = Pending(average.theta, average.total, rules.l1, steps)
    forget(exchange.work)
    mode, n, order = rules.mode, len(curvatures), progress.order
    for i in range(len(draws)):
        share = curvature_share(mode, n_seen, n)
        s, probability = draw(draws[i], mode, share, n_seen=n_seen, order=order, sums=sums)
        rows = sequence_blocks.rows[sequence_blocks.ptr[s] : sequence_blocks.ptr[s + 1]]
        _catch_up(rows, i, sequence_blocks=sequence_blocks, pending=pending)
        loss = _refresh(s, i + n_forward, True, grouped=grouped, average=average, exchange=exchange)
        mean = sums[1] / n_seen if n_seen > 0 else 0.0
        curvature, n_trials = _find_curvature(
            s, i + 1 + n_forward, loss, mean, rules, grouped, average, exchange
        )
        n_forward += n_trials
        n_seen += curvatures[s] == 0.0
        curvatures[s] = curvature
        set_leaf(sums, progress.tops, s, curvature)
        move, shrinkage = _count_step(
            i, share, n_seen, curvature, n_trials > 0, rules, average.common, progress
        )
        j = s
        if mode == PAIRED:
            j, probability = draw(draws[i, 2:], mode, n_seen / n, n_seen, order, sums)
        if j != s:
            n_forward += 1
            rows = sequence_blocks.rows[sequence_blocks.ptr[j] : sequence_blocks.ptr[j + 1]]
            _catch_up(rows, i, sequence_blocks=sequence_blocks, pending=pending)
            apart = move / (shrinkage * probability)
            _pull_alone(j, i + n_forward, apart, grouped, average, exchange)
        # The rest of SAGA's step: the lazy step, which follows, has the new gradient with weight 1.
        weight = 1.0 / probability if j == s else 0.0
        pull = (weight - 1.0) * move / shrinkage if rules.saga else 0.0
        _apply_change(s, sequence_blocks, pull, average=average, exchange=exchange)
    _catch_up(range(len(steps.reached)), len(draws), sequence_blocks, pending)
    return n_forward
