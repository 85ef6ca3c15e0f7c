"""Block coordinate descent: all weights of a test at once (Lavergne 2010, section 3.4)."""

from typing import Any

import numpy as np

from .blocks import Blocks, BlockSpace, Kept, measure_block, visit_block
from .compiled import inner, kernel
from .groups import Chains, PairTables, Potentials, TokenRows
from .memory import fill, lent
from .refresh import refresh_block

# A step must bring this share of the decrease that the gradient promises (Tseng & Yun 2009).
_ARMIJO = 0.1
# Doublings of kappa for one block, after which its weights stay as they were.
_MAX_TRIALS = 60


@kernel
def order_levels(
    block_ptr: np.ndarray,
    block_tokens: np.ndarray,
    sequence_of: np.ndarray,
    last_level: np.ndarray,
    level: np.ndarray,
) -> None:
    """Give each block the lowest level above those of all earlier blocks with a common sequence.

    Blocks of one level have no sequence in common, and going up through the levels does the same
    as going through the blocks in order. block_ptr, block_tokens: CSR, tokens of a block;
    sequence_of: [N]; last_level: [S] int64, zeros; level: [B] int64, out, from 1.
    """
    for b in range(len(level)):
        highest = 0
        for j in range(block_ptr[b], block_ptr[b + 1]):
            highest = max(highest, last_level[sequence_of[block_tokens[j]]])
        level[b] = highest + 1
        for j in range(block_ptr[b], block_ptr[b + 1]):
            last_level[sequence_of[block_tokens[j]]] = highest + 1


@inner
def _slope(weight: float, smooth: float, l1: float) -> float:
    """Magnitude of the pseudo-gradient; smooth: gradient of loss + l2."""
    if weight == 0.0:
        return max(abs(smooth) - l1, 0.0)
    return abs(smooth + (l1 if weight > 0.0 else -l1))


@inner
def _propose(
    part: np.ndarray,
    l1: float,
    l2: float,
    kappa: float,
    common: bool,
    gradient: np.ndarray,
    curvature: np.ndarray,
    old: np.ndarray,
    theta: np.ndarray,
) -> tuple[bool, float]:
    """Minimise the model of the weights part[0]:part[1] (Lavergne 2010, equations 9 to 11).

    theta = s(h old - g, l1) / (h + l2), s the soft threshold. h is the curvature, the sum of
    p (1 - p), times kappa, but at least kappa |v|, v the pseudo-gradient: no weight moves by more
    than 1 / kappa, not even one without curvature. common: whether h is multiplied by max(1, max
    |g / curvature|) over the part, as Wapiti does. kappa: infinite to go back.
    RETURNS: whether a weight moves; change that the gradient promises, <= 0.
    """
    damping = 1.0
    for k in range(part[0], part[1]):
        theta[k] = old[k]
        if common and curvature[k] > 1e-9 * abs(gradient[k]):
            damping = max(damping, abs(gradient[k]) / curvature[k])
    moved, promised = False, 0.0
    for k in range(part[0], part[1]):
        slope = _slope(old[k], gradient[k] + l2 * old[k], l1)
        if slope == 0.0 or kappa == np.inf:
            continue
        h = kappa * max(damping * curvature[k], slope)
        z = h * old[k] - gradient[k]
        theta[k] = np.sign(z) * max(abs(z) - l1, 0.0) / (h + l2)
        moved = moved or theta[k] != old[k]
        promised += gradient[k] * (theta[k] - old[k]) + _rise(old[k], theta[k], l1, l2)
    return moved, promised


@inner
def _rise(old: float, new: float, l1: float, l2: float) -> float:
    """Change of the penalty of one weight."""
    return l1 * (abs(new) - abs(old)) + 0.5 * l2 * (new - old) * (new + old)


@inner
def _change_of_rest(
    part: np.ndarray,
    l1: float,
    l2: float,
    observed: np.ndarray,
    old: np.ndarray,
    theta: np.ndarray,
) -> float:
    """Change of the objective without log Z: penalties, less the scores of gold labels."""
    total = 0.0
    for k in range(part[0], part[1]):
        total += _rise(old[k], theta[k], l1, l2) - (theta[k] - old[k]) * observed[k]
    return total


@inner
def _begin_part(
    row: int,
    origin: int,
    row_ptr: np.ndarray,
    observed: np.ndarray,
    theta: np.ndarray,
    kappa: np.ndarray,
    least_kappa: float,
    part: np.ndarray,
    old: np.ndarray,
    gradient: np.ndarray,
    curvature: np.ndarray,
) -> float:
    """Find the weights of a row, part[0]:part[1], none for -1, and clear their sums.

    RETURNS: their kappa: the largest, as weights may have joined the row.
    """
    part[0] = part[1] = origin
    if row >= 0:
        part[0], part[1] = origin + row_ptr[row], origin + row_ptr[row + 1]
    largest = least_kappa
    for k in range(part[0], part[1]):
        old[k], gradient[k], curvature[k] = theta[k], -observed[k], 0.0
        # Infinite where a block had to go back.
        if kappa[k] < np.inf:
            largest = max(largest, kappa[k])
    return largest


@kernel
def descend_blocks(
    order: np.ndarray,
    blocks: Blocks,
    chains: Chains,
    tests: TokenRows,
    pairs: PairTables,
    observed: np.ndarray,
    l1: float,
    l2: float,
    least_kappa: float,
    common: bool,
    noise: float,
    theta: np.ndarray,
    kappa: np.ndarray,
    potentials: Potentials,
    kept: Kept,
    space: BlockSpace,
) -> None:
    """Descend on blocks, one after the other; none raises the objective by more than its rounding.

    Of each, visit the sequences, propose new weights and evaluate the objective there. While it
    does not fall enough, kappa doubles; it halves again where the first trial does.

    order: [n] int64, blocks; observed: [K] empirical counts; least_kappa, common: see `_propose`;
    noise: rounding error of one token's log-potential. In and out: theta, kappa [K], kappa alike
    for a block's weights of one kind; potentials, at theta; kept; space.
    """
    theta, tests, potentials = lent(theta), lent(tests), lent(potentials)
    kept, space = lent(kept), lent(space)
    split, work = tests.split, (space.old, space.gradient, space.curvature)
    unigrams, bigrams = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    kappas = np.zeros(2)
    for b in order:
        u: Any = np.int64(blocks.unigram[b])
        r: Any = np.int64(blocks.bigram[b])
        tokens = blocks.tokens[blocks.ptr[b] : blocks.ptr[b + 1]]
        rest_of = observed, theta, kappa, least_kappa
        kappas[0] = _begin_part(u, 0, tests.row_ptr, *rest_of, unigrams, *work)
        kappas[1] = _begin_part(r, split, pairs.pair_ptr, *rest_of, bigrams, *work)
        visit_block(
            tokens,
            unigrams,
            bigrams,
            blocks.sequence_of,
            chains,
            tests,
            pairs,
            potentials,
            kept,
            space,
        )
        for trial in range(_MAX_TRIALS):
            moved, promised, rest = False, 0.0, 0.0
            for i, part in enumerate((unigrams, bigrams)):
                moved_here, promised_here = _propose(
                    part,
                    l1,
                    l2,
                    kappas[i],
                    common,
                    space.gradient,
                    space.curvature,
                    space.old,
                    theta,
                )
                moved, promised = moved or moved_here, promised + promised_here
                rest += _change_of_rest(part, l1, l2, observed, space.old, theta)
            if not moved and trial == 0:
                break
            refresh_block(tokens, u, r, blocks, chains, tests, pairs, theta, potentials, kept)
            log_z, size = measure_block(
                tokens, blocks.sequence_of, chains, pairs, potentials, kept, space
            )
            if not moved:
                break
            if log_z + rest <= _ARMIJO * promised + noise * size:
                kappas *= 0.5 if trial == 0 else 1.0
                break
            # At last the weights go back to where they were.
            kappas *= 2.0 if trial < _MAX_TRIALS - 2 else np.inf
        fill(kappa, unigrams[0], unigrams[1], kappas[0])
        fill(kappa, bigrams[0], bigrams[1], kappas[1])
