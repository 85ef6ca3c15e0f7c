"""Stochastic solvers with minibatches: SGD, AdaGrad, and stochastic meta-descent (SMD).

Missed steps of weights are applied lazily (see `lazy`).
"""

from typing import NamedTuple

import numpy as np

from .exp import exp, expm1, log1p
from .hessian import TangentWorkspace, add_product
from .layout import Floats, Ints, SequenceWorkspace, Tables
from .lazy import advance
from .numba_support import inlined, kernel
from .sgd import Summed, add_gradient, collect_blocks, forget

# Below this, sums of powers are computed by a series, which is exact up to rounding.
_SMALL = 1e-5

# Rules of `minibatch_pass`.
SGD = 0
ADAGRAD = 1
NO_SUMS = np.zeros(0)


class StepRule(NamedTuple):
    """An update rule of weights.

    kind: SGD or ADAGRAD; delta: constant of AdaGrad; l1, l2: penalties of one step. For SGD only:
    shrinkage: [n + 1], d_k = sum_{j < k} log(1 + eta_j l2); averaged: [n + 1], sum_{0 < j <= k}
    exp(-d_j), or zeros without averaging; averaging: whether iterates are summed.
    """

    kind: int
    delta: float
    l1: float
    l2: float
    shrinkage: Floats = NO_SUMS
    averaged: Floats = NO_SUMS
    averaging: bool = False


class BlockMarks(NamedTuple):
    """The feature blocks of a minibatch; weights_of: [blocks + 1] int64, weights of a block.

    Workspaces: marks [blocks] int64, initially -1; touched, done [blocks] int64, `done` initially
    zero.
    """

    weights_of: Ints
    marks: Ints
    touched: Ints
    done: Ints


class Moving(NamedTuple):
    """Arguments of a step eta, or of missed steps.

    gradient, theta: [K]; extra: [K], the sum of SGD's iterates or AdaGrad's sum of squares.
    """

    rule: StepRule
    eta: float
    gradient: Floats
    theta: Floats
    extra: Floats


@kernel
def sum_shrinkage(
    etas: Floats, l2: float, averaging: bool, shrinkage: Floats, averaged: Floats
) -> None:
    """Compute the sums `shrinkage` and `averaged` of `StepRule`.

    etas: [n]; shrinkage, averaged: [n + 1], out, except the first element of each, which is given;
    without `averaging`, all elements of `averaged` equal the first.
    """
    for k in range(len(etas)):
        shrinkage[k + 1] = shrinkage[k] + log1p(etas[k] * l2)
        averaged[k + 1] = averaged[k] + (exp(-shrinkage[k + 1]) if averaging else 0.0)


@inlined
def shrink_sgd(begin: int, end: int, past: int, now: int, moving: Moving) -> None:
    """Shrink theta[begin:end] by the steps past:now, and add the iterates to their sum."""
    if past == now:
        return
    shrinkage, averaged = moving.rule.shrinkage, moving.rule.averaged
    theta, total = moving.theta, moving.extra
    factor = exp(shrinkage[past] - shrinkage[now])
    share = exp(shrinkage[past]) * (averaged[now] - averaged[past])
    for k in range(begin, end):
        total[k] += share * theta[k]
        theta[k] *= factor


@inlined
def step_sgd(begin: int, end: int, past: int, now: int, moving: Moving) -> None:
    """Step to (theta - eta g) / (1 + eta l2), and clear g."""
    rule, eta, gradient, theta, total = moving
    factor = 1.0 / (1.0 + eta * rule.l2)
    for k in range(begin, end):
        theta[k] = factor * (theta[k] - eta * gradient[k])
        gradient[k] = 0.0
    if rule.averaging:
        for k in range(begin, end):
            total[k] += theta[k]


@inlined
def _shrink(weight: float, n: int, rate: float, l1: float, l2: float) -> float:
    """Apply the proximal map of rate (l1 |w| + l2 w^2 / 2) n times.

    Once: |w| := max(|w| - a, 0) / c with a = rate l1, c = 1 + rate l2. n times: |w| := max(|w| c^-n
    - a sum_{j=1..n} c^-j, 0), where c^-n = 1 - (c - 1) sum_j c^-j.
    """
    if weight == 0.0:
        return 0.0
    e = rate * l2
    if n * e < _SMALL:
        total = n * (1.0 - (n + 1) * e / 2.0 * (1.0 - (n + 2) * e / 3.0))
    else:
        total = -expm1(-n * log1p(e)) / e
    size = max(abs(weight) * (1.0 - e * total) - rate * l1 * total, 0.0)
    return float(np.copysign(size, weight))


@inlined
def shrink_adagrad(begin: int, end: int, past: int, now: int, moving: Moving) -> None:
    """Shrink theta[begin:end] by the steps past:now, at the rates eta / (delta + sqrt(squares))."""
    if past == now:
        return
    rule, eta, _, theta, squares = moving
    for k in range(begin, end):
        rate = eta / (rule.delta + np.sqrt(squares[k]))
        theta[k] = _shrink(theta[k], now - past, rate, rule.l1, rule.l2)


@inlined
def step_adagrad(begin: int, end: int, past: int, now: int, moving: Moving) -> None:
    """Take a proximal step at the rate of each weight, after adding g^2 to its sum; clear g."""
    rule, eta, gradient, theta, squares = moving
    for k in range(begin, end):
        g = gradient[k]
        gradient[k] = 0.0
        squares[k] += g * g
        rate = eta / (rule.delta + np.sqrt(squares[k]))
        theta[k] = _shrink(theta[k] - rate * g, 1, rate, rule.l1, rule.l2)


@kernel
def step_all(moving: Moving) -> None:
    """Take a step on all weights along the gradient [K], and clear it."""
    if moving.rule.kind == SGD:
        step_sgd(0, len(moving.theta), 0, 1, moving)
    else:
        step_adagrad(0, len(moving.theta), 0, 1, moving)


@inlined
def _shrink_rows(rows: Ints, now: int, marks: BlockMarks, moving: Moving) -> None:
    if moving.rule.kind == SGD:
        advance(rows, now, marks.done, marks.weights_of, shrink_sgd, moving)
    else:
        advance(rows, now, marks.done, marks.weights_of, shrink_adagrad, moving)


@inlined
def _step_rows(rows: Ints, now: int, marks: BlockMarks, moving: Moving) -> None:
    if moving.rule.kind == SGD:
        advance(rows, now, marks.done, marks.weights_of, step_sgd, moving)
    else:
        advance(rows, now, marks.done, marks.weights_of, step_adagrad, moving)


@kernel
def minibatch_pass(
    order: Ints,
    batch: int,
    etas: Floats,
    rule: StepRule,
    tables: Tables,
    marks: BlockMarks,
    theta: Floats,
    extra: Floats,
    summed: Summed,
    work: SequenceWorkspace,
) -> float:
    """Pass over examples once, with a step along the gradient of each minibatch.

    order: [n] int64 examples; batch: examples per minibatch; etas: [minibatches], step sizes, 0
    only measures; theta: [K], in and out; extra: [K], in and out, see `Moving`; summed: zeros on
    entry.
    RETURNS: the weighted sum of the losses of the examples, each before its step.
    """
    loss, n_blocks = 0.0, len(marks.done)
    forget(work)
    for number in range(len(etas)):
        moving = Moving(rule, etas[number], summed.gradient, theta, extra)
        members = order[number * batch : (number + 1) * batch]
        found = collect_blocks(members, number, tables, marks.marks, marks.touched)
        rows = marks.touched[:found]
        _shrink_rows(rows, number, marks, moving)
        for s in members:
            loss += add_gradient(s, number, tables, theta, summed, work)
        _step_rows(rows, number + 1, marks, moving)
    for row in range(n_blocks):
        marks.touched[row] = row
    last = Moving(rule, etas[-1], summed.gradient, theta, extra)
    _shrink_rows(marks.touched, len(etas), marks, last)
    return loss


@kernel
def add_gradient_and_product(
    members: Ints,
    number: int,
    tables: Tables,
    theta: Floats,
    direction: Floats,
    summed: Summed,
    product: Floats,
    work: SequenceWorkspace,
    changes: TangentWorkspace,
) -> float:
    """Add the gradient of examples `members`, and their Hessian times a direction, both [K].

    number: number of the minibatch, > 0; summed, product: added to; other arguments: see
    `add_gradient` and `add_product`.
    RETURNS: the weighted sum of the examples' losses.
    """
    loss = 0.0
    for s in members:
        loss += add_gradient(s, number, tables, theta, summed, work)
        add_product(s, number, tables, direction, product, work, changes)
    return loss


class Meta(NamedTuple):
    """Settings of SMD. mu: meta-gain; decay: lambda; l2: the penalty of a minibatch."""

    mu: float
    decay: float
    l2: float


class Gained(NamedTuple):
    """Weights theta [K], their gains, and v, their derivatives in the logarithms of past gains."""

    theta: Floats
    gains: Floats
    v: Floats


@inlined
def _step_meta(k: int, meta: Meta, gradient: float, product: float, weights: Gained) -> None:
    """Update one weight, given its elements of g and H v without the penalty."""
    mu, decay, l2 = meta
    theta, gains, v = weights
    g = gradient + l2 * theta[k]
    curved = product + l2 * v[k]
    gains[k] *= max(0.5, 1.0 - mu * g * v[k])
    theta[k] -= gains[k] * g
    v[k] = decay * v[k] - gains[k] * (g + decay * curved)


@kernel
def step_smd(meta: Meta, gradient: Floats, product: Floats, weights: Gained) -> None:
    """Adapt the gains, step, adapt v (Vishwanathan 2006, equations 19 to 21), and clear g and Hv.

    eta := eta max(1/2, 1 - mu g v), theta := theta - eta g, v := lambda v - eta (g + lambda H v),
    all [K]. The penalty is not yet in gradient and product.
    """
    for k in range(len(gradient)):
        _step_meta(k, meta, gradient[k], product[k], weights)
        gradient[k] = 0.0
        product[k] = 0.0
