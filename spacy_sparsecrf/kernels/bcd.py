"""Block coordinate descent: all weights of a test at once (Lavergne 2010, section 3.4)."""

from typing import Any

import numpy as np

from .blocks import measure_block, visit_block
from .compiled import inner, kernel
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
    block_unigram: np.ndarray,
    block_bigram: np.ndarray,
    block_ptr: np.ndarray,
    block_tokens: np.ndarray,
    n_labels: int,
    n_previous: int,
    split: int,
    sequence_of: np.ndarray,
    offsets: np.ndarray,
    sequence_weights: np.ndarray,
    allowed: np.ndarray,
    tok_ptr: np.ndarray,
    tok_rows: np.ndarray,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    row_mat_ptr: np.ndarray,
    row_matrices: np.ndarray,
    row_ctx_ptr: np.ndarray,
    row_contexts: np.ndarray,
    mat_ptr: np.ndarray,
    mat_rows: np.ndarray,
    pair_ptr: np.ndarray,
    pair_places: np.ndarray,
    context: np.ndarray,
    matrix_of: np.ndarray,
    constant: np.ndarray,
    ent_ptr: np.ndarray,
    ent_start: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    ent_place: np.ndarray,
    weight_ptr: np.ndarray,
    weights: np.ndarray,
    observed: np.ndarray,
    l1: float,
    l2: float,
    least_kappa: float,
    common: bool,
    noise: float,
    theta: np.ndarray,
    kappa: np.ndarray,
    psi: np.ndarray,
    psi_shift: np.ndarray,
    value: np.ndarray,
    change: np.ndarray,
    rewritten: np.ndarray,
    evidence: np.ndarray,
    top: np.ndarray,
    alpha: np.ndarray,
    beta: np.ndarray,
    scale: np.ndarray,
    alpha_end: np.ndarray,
    beta_begin: np.ndarray,
    partial: np.ndarray,
    old: np.ndarray,
    gradient: np.ndarray,
    curvature: np.ndarray,
    product: np.ndarray,
    scratch: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Descend on blocks, one after the other; none raises the objective by more than its rounding.

    Of each, visit the sequences, propose new weights and evaluate the objective there. While it
    does not fall enough, kappa doubles; it halves again where the first trial does.

    order: [n] int64, blocks; block_unigram, block_bigram: [B] int32, rows of a block, -1 = none;
    block_ptr, block_tokens: CSR, tokens of a block. observed: [K] empirical counts; least_kappa,
    common: see `_propose`; noise: rounding error of one token's log-potential. theta, kappa [K]: in
    and out, kappa alike for a block's weights of one kind. Workspaces: old, gradient, curvature
    [K]. The rest is as in `visit_block` and `refresh_block`, potentials being those at theta.
    """
    alpha, beta, evidence, psi = lent(alpha), lent(beta), lent(evidence), lent(psi)
    tok_rows, row_ptr, row_labels = lent(tok_rows), lent(row_ptr), lent(row_labels)
    theta, scratch, product = lent(theta), lent(scratch), lent(product)
    unigrams, bigrams = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    kappas = np.zeros(2)
    for b in order:
        u: Any = np.int64(block_unigram[b])
        r: Any = np.int64(block_bigram[b])
        tokens = block_tokens[block_ptr[b] : block_ptr[b + 1]]
        work = old, gradient, curvature
        kappas[0] = _begin_part(u, 0, row_ptr, observed, theta, kappa, least_kappa, unigrams, *work)
        kappas[1] = _begin_part(
            r, split, pair_ptr, observed, theta, kappa, least_kappa, bigrams, *work
        )
        visit_block(
            tokens,
            unigrams,
            bigrams,
            sequence_of,
            offsets,
            sequence_weights,
            row_labels,
            pair_places,
            split,
            n_labels,
            context,
            matrix_of,
            psi,
            psi_shift,
            constant,
            ent_ptr,
            ent_start,
            ent_previous,
            ent_label,
            ent_place,
            value,
            change,
            rewritten,
            evidence,
            top,
            alpha,
            beta,
            scale,
            alpha_end,
            beta_begin,
            partial,
            gradient,
            curvature,
            product,
            scratch,
            counts,
        )
        for trial in range(_MAX_TRIALS):
            moved, promised, rest = False, 0.0, 0.0
            for i, part in enumerate((unigrams, bigrams)):
                moved_here, promised_here = _propose(
                    part, l1, l2, kappas[i], common, gradient, curvature, old, theta
                )
                moved, promised = moved or moved_here, promised + promised_here
                rest += _change_of_rest(part, l1, l2, observed, old, theta)
            if not moved and trial == 0:
                break
            refresh_block(
                tokens,
                u,
                r,
                n_labels,
                n_previous,
                allowed,
                tok_ptr,
                tok_rows,
                row_ptr,
                row_labels,
                row_mat_ptr,
                row_matrices,
                row_ctx_ptr,
                row_contexts,
                mat_ptr,
                mat_rows,
                pair_ptr,
                pair_places,
                matrix_of,
                ent_ptr,
                ent_start,
                ent_previous,
                ent_label,
                weight_ptr,
                weights,
                theta[:split],
                theta[split:],
                psi,
                psi_shift,
                value,
                change,
                rewritten,
                evidence,
                top,
            )
            log_z, size = measure_block(
                tokens,
                sequence_of,
                offsets,
                sequence_weights,
                n_labels,
                context,
                matrix_of,
                psi,
                psi_shift,
                constant,
                ent_ptr,
                ent_start,
                ent_previous,
                ent_label,
                change,
                rewritten,
                evidence,
                top,
                alpha,
                beta,
                scale,
                alpha_end,
                beta_begin,
                partial,
                scratch,
                counts,
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
