"""Iterative scaling of per-position models (Goodman 2002, figures 1 and 2)."""

from typing import NamedTuple

import numpy as np

from ...kernels.exp import exp, exp_relative, largest, log
from ...kernels.layout import Floats, Ints, Unigrams
from ...kernels.numba_support import inlined, kernel
from ...kernels.scores import score_token
from ...kernels.small import fill, normalise

# Replaces an expectation that has underflowed to zero.
_TINY = 1e-300
# Steps that multiply an expectation by more than e to this power are clamped.
_LONGEST = 30.0
# Masses of a token are normalised again if their total leaves this range: this limits cancellation
# when nearly all of the total is subtracted.
_LOW, _HIGH = 1.0 / 16.0, 16.0
# Maximum of Newton steps, which converge from one side, usually in less than ten.
_MAX_NEWTON = 100


class SweepTables(NamedTuple):
    """The feature blocks in the order of a sweep, and the tokens of each feature.

    row_features: [R] int32, feature of a block, block_ptr [R + 1], block_labels: its weights;
    col_ptr, col_tokens: CSC, tokens of a feature; most: [O] int32, of `repetitions`; token_weight:
    [N] float64; observed: [K] float64.
    """

    row_features: Ints
    block_ptr: Ints
    block_labels: Ints
    col_ptr: Ints
    col_tokens: Ints
    most: Ints
    token_weight: Floats
    observed: Floats


@inlined
def _solve(expected: float, slope: float, target: float) -> float:
    """Return the root t of expected exp(t) + slope t = target, expected > 0, slope >= 0.

    By Newton's method from the right of the root: the function is convex and increasing, so the
    iterates fall to the root.
    """
    if slope == 0.0:
        return log(max(target, _TINY) / expected)
    t = 0.0
    if target > expected:
        t = min(log(target / expected), (target - expected) / slope)
    for _ in range(_MAX_NEWTON):
        growth = expected * exp(t)
        step = (growth + slope * t - target) / (growth + slope)
        t -= step
        if not abs(step) > 1e-15 * (1.0 + abs(t)):
            break
    return float(t)


@inlined
def scaled_weight(
    weight: float, observed: float, expected: float, slowing: float, l1: float, l2: float
) -> float:
    """Move a weight w to w', the minimum of iterative scaling's bound on the objective.

    With d = w' - w the bound is, up to a constant,
    -O d + (E / f) (exp(f d) - 1) + l1 |w'| + l2 / 2 w'^2.

    f = `slowing` is the maximum sum of the features that move at once, f# or 1. The bound's
    derivative at w' is h(w') + l1 sign(w'), h(w') = E exp(f (w' - w)) - O + l2 w', and h increases:
    w' = 0 if |h(0)| <= l1; else w' has the sign of -h(0), and E exp(f d) + l2 w' = O - l1 sign(w').
    Without l1 this is Goodman's Gaussian prior (1 / sigma^2 = l2), without l2 the log of a ratio, d
    = log((O - l1 sign(w')) / E) / f; without l1 and l2, equation 2.

    RETURNS: w', or if it is far, a point on the way to it, where the bound is lower too.
    """
    expected = max(expected, _TINY)
    at_zero = expected * exp(-slowing * weight) - observed
    # A feature that never occurs has no expectation to scale.
    if not abs(at_zero) > l1 + _TINY:
        target, sign = 0.0, 0.0
        t = -slowing * weight
    else:
        sign = -1.0 if at_zero > 0.0 else 1.0
        target = observed - sign * l1
        t = _solve(expected, l2 / slowing, target - l2 * weight)
    if abs(t) > _LONGEST:
        return float(weight + np.copysign(_LONGEST, t) / slowing)
    # Rounding must not carry a weight across zero.
    return float(max(0.0, sign * (weight + t / slowing)) * sign)


@kernel
def scale_weights(
    theta: Floats,
    observed: Floats,
    expected: Floats,
    slowing: float,
    l1: float,
    l2: float,
    scaled: Floats,
) -> None:
    """Move all weights at once (Goodman 2002, figure 1); see `scaled_weight`.

    theta, observed, expected: [K] float64; slowing: f#; scaled: [K] float64, out.
    """
    for k in range(len(theta)):
        scaled[k] = scaled_weight(
            theta[k], observed=observed[k], expected=expected[k], slowing=slowing, l1=l1, l2=l2
        )


@kernel
def largest_sum(n_labels: int, unigrams: Unigrams, ones: Floats, sums: Floats) -> float:
    """Return the maximum number of features that are on at once: f# = max_{t,y} sum_i f_i(x_t, y).

    unigrams: all blocks are those of tokens; ones: [K] float64, all 1; sums: [Yp] float64, a
    workspace.
    """
    most = 0.0
    for t in range(len(unigrams.site_ptr) - 1):
        fill(sums, 0, len(sums), 0.0)
        score_token(t, n_labels, unigrams, theta=ones, scores=sums)
        most = max(most, largest(sums))
    return most


@kernel
def repetitions(col_ptr: Ints, col_tokens: Ints, most: Ints) -> None:
    """Find the maximum count of a feature at one token: most[o] = max_t f_o(x_t), else 0.

    col_ptr, col_tokens: CSC, tokens of a feature, ascending; most: [O] int32, out.
    """
    for feature in range(len(most)):
        longest = run = 0
        for j in range(col_ptr[feature], col_ptr[feature + 1]):
            same = j > col_ptr[feature] and col_tokens[j] == col_tokens[j - 1]
            run = run + 1 if same else 1
            longest = max(longest, run)
        most[feature] = longest


@kernel
def token_masses(
    first: int, last: int, n_labels: int, unigrams: Unigrams, theta: Floats, mass: Floats
) -> None:
    """Compute the label probabilities of tokens first:last, without pair potentials.

    mass: [N, Yp] float64, out: exp(s[t, y]) / z[t], padding 0.
    """
    padded = mass.shape[1]
    for t in range(first, last):
        row = mass[t]
        fill(row, 0, padded, 0.0)
        score_token(t, n_labels, unigrams, theta=theta, scores=row)
        exp_relative(row, n_labels)
        normalise(padded, row)


@inlined
def _rescale(tokens: Ints, places: Ints, factors: Floats, mass: Floats, total: Floats) -> None:
    """Multiply the masses of tokens at some labels, and update the totals of the tokens."""
    for t in tokens:
        change = 0.0
        for k in range(len(places)):
            old = mass[t, places[k]]
            new = old * factors[k]
            mass[t, places[k]] = new
            change += new - old
        total[t] += change
        if not _LOW < total[t] < _HIGH:
            normalise(mass.shape[1], mass[t])
            total[t] = 1.0


@kernel(allocates=True)
def scale_in_turn(
    by_feature: bool,
    tables: SweepTables,
    l1: float,
    l2: float,
    theta: Floats,
    mass: Floats,
    total: Floats,
) -> None:
    """Move the weights one after the other, once each (Goodman 2002, figure 2).

    by_feature: whether the weights of a feature move at once: no two are on at one label, so their
    maximum sum is that of a single one; theta: [K], in and out; mass: [N, Yp], total: [N], in
    and out, exp(s[t, y]) and z[t], both divided by the same number.
    """
    block_ptr, col_ptr = tables.block_ptr, tables.col_ptr
    factors = np.empty(mass.shape[1])
    for row in range(len(tables.row_features)):
        feature, end = tables.row_features[row], block_ptr[row + 1]
        tokens = tables.col_tokens[col_ptr[feature] : col_ptr[feature + 1]]
        slowing = np.float64(max(tables.most[feature], 1))
        width = end - block_ptr[row] if by_feature else 1
        for begin in range(block_ptr[row], end, width):
            places = tables.block_labels[begin : begin + width]
            # The expectation of each weight, then the factor by which its label's masses change.
            fill(factors, 0, width, 0.0)
            for t in tokens:
                scale = tables.token_weight[t] / total[t]
                for i in range(width):
                    factors[i] += scale * mass[t, places[i]]
            moved = False
            for i in range(width):
                k = begin + i
                scaled = scaled_weight(
                    theta[k],
                    observed=tables.observed[k],
                    expected=factors[i],
                    slowing=slowing,
                    l1=l1,
                    l2=l2,
                )
                factors[i] = exp(scaled - theta[k])
                moved |= scaled != theta[k]
                theta[k] = scaled
            if moved:
                _rescale(tokens, places, factors, mass, total)
