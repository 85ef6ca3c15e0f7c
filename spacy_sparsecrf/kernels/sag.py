"""Stochastic average gradient, a sequence at a time (Schmidt et al. 2015, algorithm 1)."""

from typing import NamedTuple

import numpy as np

from .compiled import kernel
from .groups import (
    Chains,
    ContextRows,
    Groups,
    PairTables,
    Potentials,
    Residuals,
    TokenRows,
    Vectors,
)
from .lazy import catch_up, catch_up_all
from .lipschitz import search_curvature
from .sag_rules import (
    BALANCED,
    UNIFORM,
    Rules,
    curvature_share,
    draw,
    first_estimate,
    seen_first,
    step_size,
)
from .sampling import set_leaf
from .slopes import apply_change, refresh, square_norm


class Progress(NamedTuple):
    """Workspaces that are new to each pass.

    sums, tops: tree of curvatures, filled; order: [n] int64; reached: [R] int64 zeros; shrunk,
    moved: [steps + 1], zeros first (see `lazy`).
    """

    sums: np.ndarray
    tops: np.ndarray
    order: np.ndarray
    reached: np.ndarray
    shrunk: np.ndarray
    moved: np.ndarray


@kernel
def sag_pass(
    draws: np.ndarray,
    rules: Rules,
    chains: Chains,
    tests: TokenRows,
    pairs: PairTables,
    groups: Groups,
    rows_of: ContextRows,
    theta: np.ndarray,
    total: np.ndarray,
    stored: Residuals,
    curvatures: np.ndarray,
    common: np.ndarray,
    progress: Progress,
    gradient: np.ndarray,
    change_of: np.ndarray,
    trial: np.ndarray,
    fresh: Residuals,
    products: np.ndarray,
    potentials: Potentials,
    clock: np.ndarray,
    vectors: Vectors,
) -> int:
    """Steps over len(draws) sequences that are drawn with replacement.

    Of each: do the steps that its weights have missed (see `lazy`); evaluate it and exchange its
    residuals with those stored; estimate its curvature L_i; and count the step w := (1 - alpha
    lambda) w - (alpha / m) d, proximal for l1, which its weights and all others do when next seen.

    draws: [steps, 2] float64, uniform in [0, 1), of the n sequences that have curvatures. In and
    out: theta, total [K] (w and d), stored, curvatures [n] (L_i, 0 = not seen yet), common [1]
    (UNIFORM: L_g, else the first L). Workspaces: gradient, change_of [K] zeros, trial [K], fresh
    [T], [groups of a sequence], products [Y, Yp], clock [1] int64, potentials, vectors.
    RETURNS: how many times the forward pass alone was run, in line searches.
    """
    mode, n, n_forward = rules.mode, len(curvatures), 0
    sums, shrunk, moved = progress.sums, progress.shrunk, progress.moved
    reached, l1, row_ptr = progress.reached, rules.l1, groups.row_ptr
    n_seen = seen_first(curvatures, progress.order)
    for i in range(len(draws)):
        share = curvature_share(mode, n_seen, n)
        s, probability = draw(draws[i], mode, n_seen, progress.order, sums)
        for j in range(groups.own_ptr[s], groups.own_ptr[s + 1]):
            row = groups.own_rows[j]
            catch_up(row, i, row_ptr, theta, total, l1, reached, shrunk, moved)
        loss = refresh(
            s,
            chains,
            tests,
            pairs,
            groups,
            rows_of,
            theta,
            stored,
            gradient,
            change_of,
            fresh,
            products,
            potentials,
            clock,
            vectors,
        )
        norm = square_norm(s, groups, gradient)
        searched = norm > rules.least_norm
        mean = sums[1] / n_seen if n_seen > 0 else 0.0
        curvature = common[0]
        if mode != UNIFORM:
            by_mean = mode == BALANCED
            # Without a search, nothing would stop an estimate's fall.
            factor = rules.revisit if searched else 1.0
            curvature = first_estimate(curvatures[s], mean, by_mean, common[0], rules.fresh, factor)
        if searched:
            curvature, n_trials = search_curvature(
                curvature,
                loss,
                norm,
                rules.grow,
                s,
                chains,
                tests,
                pairs,
                groups,
                theta,
                gradient,
                trial,
                potentials,
                clock,
                vectors,
            )
            n_forward += n_trials
        n_seen += curvatures[s] == 0.0
        curvatures[s] = curvature
        set_leaf(sums, progress.tops, s, curvature)
        largest, mean = progress.tops[1], sums[1] / n_seen
        if mode == UNIFORM:
            largest = curvature
            common[0] = curvature * 2.0 ** (-1.0 / n) if searched else curvature
        step = step_size(share, largest, mean, rules.decay, rules.saga, n) / rules.caution
        move, kept = step / (n if rules.saga else n_seen), 1.0 - step * rules.decay
        shrunk[i + 1] = shrunk[i] + np.log(kept)
        moved[i + 1] = kept * moved[i] + move
        # Of SAGA's step: the lazy one, which follows, has the new gradient with weight 1.
        pull = (1.0 / probability - 1.0) * move / kept if rules.saga else 0.0
        apply_change(s, groups, pull, theta, total, gradient, change_of)
    catch_up_all(len(draws), row_ptr, theta, total, l1, reached, shrunk, moved)
    return n_forward
