"""Stochastic average gradient, a sequence at a time (Schmidt et al. 2015, algorithm 1)."""

import numpy as np

from .compiled import kernel
from .lazy import catch_up, catch_up_all
from .lipschitz import search_curvature
from .sag_rules import (
    BALANCED,
    UNIFORM,
    curvature_share,
    draw,
    first_estimate,
    seen_first,
    step_size,
)
from .sampling import set_leaf
from .slopes import apply_change, refresh, square_norm


@kernel
def sag_pass(
    draws: np.ndarray,
    mode: int,
    saga: bool,
    fresh: float,
    revisit: float,
    grow: float,
    least_norm: float,
    caution: float,
    l1: float,
    decay: float,
    n_labels: int,
    n_previous: int,
    offsets: np.ndarray,
    labels: np.ndarray,
    allowed: np.ndarray,
    sequence_weights: np.ndarray,
    copies: np.ndarray,
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
    own_ptr: np.ndarray,
    own_rows: np.ndarray,
    all_ptr: np.ndarray,
    theta: np.ndarray,
    total: np.ndarray,
    nodes: np.ndarray,
    pairs: np.ndarray,
    curvatures: np.ndarray,
    common: np.ndarray,
    sums: np.ndarray,
    tops: np.ndarray,
    order: np.ndarray,
    reached: np.ndarray,
    shrunk: np.ndarray,
    moved: np.ndarray,
    gradient: np.ndarray,
    change_of: np.ndarray,
    trial: np.ndarray,
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
) -> int:
    """Steps over len(draws) sequences that are drawn with replacement.

    Of each: do the steps that its weights have missed (see `lazy`); evaluate it and exchange its
    residuals with those stored; estimate its curvature L_i; and count the step w := (1 - alpha
    lambda) w - (alpha / m) d, proximal for l1, which its weights and all others do when next seen.

    draws: [steps, 2] float64, uniform in [0, 1); mode: UNIFORM, GROWING or BALANCED; saga: whether
    steps are unbiased (proposition 1); fresh, revisit: see `first_estimate`; grow, least_norm: of
    the search, which is left out where |g|^2 is not larger; caution: steps are divided by it; l1:
    penalty of the summed loss; decay: lambda, penalty of the mean loss. Sequences s < n are drawn:
    offsets [S + 1], labels [N], allowed [N, W], sequence_weights [S], copies [n] (constrained
    copy, -1 = none). Weights are in the tables of `forward_backward`, `context_matrices` and
    `entries.correct`; seq_ptr [n + 1], grp_ptr, grp_tokens, grp_context: groups (see `residuals`),
    of contexts of the corpus; corpus_context [N], ctx_ptr, ctx_rows: bigram rows of those; own_ptr,
    own_rows: rows of a sequence, of which all_ptr [R + 1] has the weights.
    In and out: theta, total [K] (w and d), nodes [tokens, Yp] and pairs [G, Y, Yp] (residuals
    stored), curvatures [n] (L_i, 0 = not seen yet), common [1] (UNIFORM: L_g, else the first L).
    Workspaces: sums, tops (tree of curvatures, filled), order [n] int64, reached [R] zeros,
    shrunk, moved [steps + 1] zeros first, gradient, change_of [K] zeros, trial [K], fresh_nodes
    [T, Yp], fresh_pairs [groups of a sequence, Y, Yp], products [Y, Yp], clock [1], the others as
    in `sgd_pass`.
    RETURNS: how many times the forward pass alone was run, in line searches.
    """
    n, n_forward = len(copies), 0
    n_seen = seen_first(curvatures, order)
    for i in range(len(draws)):
        share = curvature_share(mode, n_seen, n)
        s, probability = draw(draws[i], mode, n_seen, order, sums)
        for j in range(own_ptr[s], own_ptr[s + 1]):
            catch_up(own_rows[j], i, all_ptr, theta, total, l1, reached, shrunk, moved)
        copy = copies[s]
        loss = refresh(
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
            grp_context,
            corpus_context,
            ctx_ptr,
            ctx_rows,
            theta,
            nodes,
            pairs,
            gradient,
            change_of,
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
        norm = square_norm(s, own_ptr, own_rows, all_ptr, gradient)
        searched = norm > least_norm
        mean = sums[1] / n_seen if n_seen > 0 else 0.0
        curvature = common[0]
        if mode != UNIFORM:
            by_mean = mode == BALANCED
            # Without a search, nothing would stop an estimate's fall.
            factor = revisit if searched else 1.0
            curvature = first_estimate(curvatures[s], mean, by_mean, common[0], fresh, factor)
        if searched:
            curvature, n_trials = search_curvature(
                curvature,
                loss,
                norm,
                grow,
                s,
                copy,
                n_labels,
                n_previous,
                offsets,
                labels,
                allowed,
                sequence_weights,
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
                own_ptr,
                own_rows,
                all_ptr,
                theta,
                gradient,
                trial,
                psi,
                shift,
                value,
                change,
                rewritten,
                stamp,
                clock,
                alpha,
                marginals[0],
                scratch,
            )
            n_forward += n_trials
        n_seen += curvatures[s] == 0.0
        curvatures[s] = curvature
        set_leaf(sums, tops, s, curvature)
        largest, mean = tops[1], sums[1] / n_seen
        if mode == UNIFORM:
            largest = curvature
            common[0] = curvature * 2.0 ** (-1.0 / n) if searched else curvature
        step = step_size(share, largest, mean, decay, saga, n) / caution
        move, kept = step / (n if saga else n_seen), 1.0 - step * decay
        shrunk[i + 1] = shrunk[i] + np.log(kept)
        moved[i + 1] = kept * moved[i] + move
        # Of SAGA's step: the lazy one, which follows, has the new gradient with weight 1.
        pull = (1.0 / probability - 1.0) * move / kept if saga else 0.0
        apply_change(s, own_ptr, own_rows, all_ptr, pull, theta, total, gradient, change_of)
    catch_up_all(len(draws), all_ptr, theta, total, l1, reached, shrunk, moved)
    return n_forward
