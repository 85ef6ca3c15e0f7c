"""Block coordinate descent: all weights of a feature at once (Lavergne 2010, section 3.4)."""

from typing import NamedTuple

import numpy as np

from ...kernels.layout import Floats, Ints
from ...kernels.numba_support import inlined, kernel
from ...kernels.small import fill, position
from .blocks import Block, BlockSpace, Sweep, evaluate_block, measure_block, refresh_block

# A step must achieve this share of the decrease predicted by the gradient (Tseng & Yun 2009).
_ARMIJO = 0.1
# Doublings of kappa for one block, after which its weights are restored.
_MAX_TRIALS = 60


class BcdSettings(NamedTuple):
    """Settings of the descent.

    l1, l2: the penalty; least_kappa, common: see `_propose`; noise: rounding error of one token's
    log-potential.
    """

    l1: float
    l2: float
    least_kappa: float
    common: bool
    noise: float


class BlockWeights(NamedTuple):
    """The weights [K]: theta; kappa, equal within a feature block; observed counts."""

    theta: Floats
    kappa: Floats
    observed: Floats


@inlined
def _slope(weight: float, smooth: float, l1: float) -> float:
    """Return the magnitude of the pseudo-gradient; smooth: gradient of loss + l2."""
    if weight == 0.0:
        return max(abs(smooth) - l1, 0.0)
    return abs(smooth + (l1 if weight > 0.0 else -l1))


@inlined
def _propose(
    part: Ints, kappa: float, settings: BcdSettings, theta: Floats, space: BlockSpace
) -> tuple[bool, float]:
    """Minimise the model of the weights part[0]:part[1] (Lavergne 2010, equations 9 to 11).

    theta = s(h old - g, l1) / (h + l2), s the soft threshold. h is the curvature, the sum of p (1 -
    p), times kappa, but at least kappa |v|, v the pseudo-gradient: no weight moves by more than 1 /
    kappa, even without curvature. common: whether h is multiplied by max(1, max |g / curvature|)
    over the part, as in Wapiti. kappa: infinite to restore the weights.
    RETURNS: whether a weight moves; change predicted by the gradient, <= 0.
    """
    l1, l2 = settings.l1, settings.l2
    gradient, curvature, old = space.gradient, space.curvature, space.old
    damping = 1.0
    for k in range(part[0], part[1]):
        theta[k] = old[k]
        if settings.common and curvature[k] > 1e-9 * abs(gradient[k]):
            damping = max(damping, abs(gradient[k]) / curvature[k])
    moved, predicted = False, 0.0
    for k in range(part[0], part[1]):
        slope = _slope(old[k], gradient[k] + l2 * old[k], l1)
        if slope == 0.0 or kappa == np.inf:
            continue
        h = kappa * max(damping * curvature[k], slope)
        z = h * old[k] - gradient[k]
        theta[k] = np.sign(z) * max(abs(z) - l1, 0.0) / (h + l2)
        moved = moved or theta[k] != old[k]
        predicted += gradient[k] * (theta[k] - old[k]) + _rise(old[k], theta[k], settings)
    return moved, predicted


@inlined
def _rise(old: float, new: float, settings: BcdSettings) -> float:
    """Return the change of the penalty of one weight."""
    linear = settings.l1 * (abs(new) - abs(old))
    return linear + 0.5 * settings.l2 * (new - old) * (new + old)


@inlined
def _change_of_rest(part: Ints, settings: BcdSettings, weights: BlockWeights, old: Floats) -> float:
    """Return the change of the objective without log Z: penalties, less scores of gold labels."""
    total, theta = 0.0, weights.theta
    for k in range(part[0], part[1]):
        total += _rise(old[k], theta[k], settings) - (theta[k] - old[k]) * weights.observed[k]
    return total


@inlined
def _begin_part(
    i: int,
    row: int,
    origin: int,
    block_ptr: Ints,
    least: float,
    weights: BlockWeights,
    space: BlockSpace,
) -> float:
    """Set parts[i] to the weights of a feature block, none for row = -1, and clear their sums.

    least: the minimum kappa. RETURNS: the largest kappa of the weights, as some may be new.
    """
    parts, largest = space.parts, least
    parts[i, 0] = parts[i, 1] = origin
    if row >= 0:
        parts[i, 0], parts[i, 1] = origin + block_ptr[row], origin + block_ptr[row + 1]
    for k in range(parts[i, 0], parts[i, 1]):
        space.old[k], space.curvature[k] = weights.theta[k], 0.0
        space.gradient[k] = -weights.observed[k]
        # Infinite if the weights of the block were restored.
        if weights.kappa[k] < np.inf:
            largest = max(largest, weights.kappa[k])
    return largest


@inlined
def _block(b: int, sweep: Sweep) -> Block:
    """Return block b, whose weights are the parts in the sweep's space."""
    blocks, tables, parts = sweep.blocks, sweep.tables, sweep.space.parts
    split, n_inner = tables.unigrams.split, sweep.pairs.n_labels * len(sweep.space.product)
    labels = tables.unigrams.block_labels[parts[0, 0] : parts[0, 1]]
    places = tables.bigrams.block_places[parts[1, 0] - split : parts[1, 1] - split]
    middle = position(places, n_inner)
    tokens = blocks.tokens[blocks.ptr[b] : blocks.ptr[b + 1]]
    return Block(
        tokens=tokens,
        unigram=parts[0, 0],
        labels=labels,
        bigram=parts[1, 0],
        places=places[:middle],
        starts=places[middle:],
    )


@inlined
def _descend_block(
    b: int, block: Block, settings: BcdSettings, weights: BlockWeights, sweep: Sweep
) -> None:
    """Descend on block b, after `evaluate_block`; its kappas in the workspace are in and out."""
    space, parts, kappas = sweep.space, sweep.space.parts, sweep.space.kappas
    for trial in range(_MAX_TRIALS):
        moved, predicted, other_terms = False, 0.0, 0.0
        for i in range(2):
            part, theta = parts[i], weights.theta
            moved_here, predicted_here = _propose(
                part, kappas[i], settings, theta=theta, space=space
            )
            moved, predicted = moved or moved_here, predicted + predicted_here
            other_terms += _change_of_rest(part, settings, weights, space.old)
        if not moved and trial == 0:
            break
        refresh_block(b, weights.theta, sweep)
        log_z, size = measure_block(block, sweep)
        if not moved:
            break
        factor = 2.0 if trial < _MAX_TRIALS - 2 else np.inf
        enough = log_z + other_terms <= _ARMIJO * predicted + settings.noise * size
        if enough:
            factor = 0.5 if trial == 0 else 1.0
        # An infinite kappa restores the weights.
        for i in range(2):
            kappas[i] *= factor
        if enough:
            break


@kernel
def descend_blocks(order: Ints, settings: BcdSettings, weights: BlockWeights, sweep: Sweep) -> None:
    """Descend on blocks, one after the other; none raises the objective, except by rounding.

    For each, evaluate its sequences, propose new weights and evaluate the objective there. kappa
    doubles until the objective falls enough, and halves if the first trial succeeds.

    order: [n] int64, blocks. In and out: weights; sweep, at theta.
    """
    blocks, tables, space = sweep.blocks, sweep.tables, sweep.space
    parts, kappas, split = space.parts, space.kappas, tables.unigrams.split
    for b in order:
        u, r, least = blocks.unigram[b], blocks.bigram[b], settings.least_kappa
        kappas[0] = _begin_part(
            0,
            row=u,
            origin=0,
            block_ptr=tables.unigrams.block_ptr,
            least=least,
            weights=weights,
            space=space,
        )
        kappas[1] = _begin_part(
            1,
            row=r,
            origin=split,
            block_ptr=tables.bigrams.block_ptr,
            least=least,
            weights=weights,
            space=space,
        )
        block = _block(b, sweep)
        evaluate_block(block, sweep)
        _descend_block(b, block, settings, weights=weights, sweep=sweep)
        for i in range(2):
            fill(weights.kappa, parts[i, 0], parts[i, 1], kappas[i])
