"""Stochastic solvers, a minibatch at a time: SGD, AdaGrad, and stochastic meta-descent.

A weight without a gradient still shrinks at each step. It is caught up when it is needed next.
"""

from typing import NamedTuple

import numpy as np

from .compiled import inner, kernel
from .hessian import TangentWorkspace, add_product
from .layout import Floats, Ints, SequenceWorkspace, Tables
from .sgd import Summed, add_gradient, collect_blocks, forget

# Below this, sums of powers are taken by a series, which is exact to rounding there.
_SMALL = 1e-5

# Rules of `minibatch_pass`.
SGD = 0
ADAGRAD = 1
NO_SUMS = np.zeros(0)


class Rule(NamedTuple):
    """How weights move.

    kind: SGD or ADAGRAD; delta: of AdaGrad; l1, l2: penalties of one step. Of SGD: shrinkage: [n +
    1], d_k = sum_{j < k} log(1 + eta_j l2); averaged: [n + 1], sum_{0 < j <= k} exp(-d_j), or zeros
    without averaging; averaging: whether it sums its iterates.
    """

    kind: int
    delta: float
    l1: float
    l2: float
    shrinkage: Floats = NO_SUMS
    averaged: Floats = NO_SUMS
    averaging: bool = False


class BlockMarks(NamedTuple):
    """Which rows a minibatch has: weights_of [rows + 1] int64, weights of each row.

    Workspaces: marks [rows] int64, all -1 first; touched, done [rows] int64, done all zero first.
    """

    weights_of: Ints
    marks: Ints
    touched: Ints
    done: Ints


@inner
def catch_up_sgd(
    begin: int, end: int, done: int, step: int, rule: Rule, theta: Floats, total: Floats
) -> None:
    """Shrink theta[begin:end], which are as after `done` steps, by those up to `step`.

    total: [K], sum of the iterates after each step.
    """
    if done == step:
        return
    shrinkage, averaged = rule.shrinkage, rule.averaged
    factor = np.exp(shrinkage[done] - shrinkage[step])
    share = np.exp(shrinkage[done]) * (averaged[step] - averaged[done])
    for k in range(begin, end):
        total[k] += share * theta[k]
        theta[k] *= factor


@inner
def step_sgd(
    begin: int, end: int, eta: float, rule: Rule, gradient: Floats, theta: Floats, total: Floats
) -> None:
    """Step to (theta - eta g) / (1 + eta l2), and clear g."""
    factor = 1.0 / (1.0 + eta * rule.l2)
    for k in range(begin, end):
        theta[k] = factor * (theta[k] - eta * gradient[k])
        gradient[k] = 0.0
    if rule.averaging:
        for k in range(begin, end):
            total[k] += theta[k]


@inner
def _shrink(weight: float, n: int, rate: float, l1: float, l2: float) -> float:
    """The proximal map of rate (l1 |w| + l2 w^2 / 2), n times.

    Each time |w| := max(|w| - a, 0) / c, a = rate l1, c = 1 + rate l2; so in all |w| := max(|w|
    c^-n - a sum_{j=1..n} c^-j, 0), of which c^-n = 1 - (c - 1) sum_j c^-j.
    """
    if weight == 0.0:
        return 0.0
    e = rate * l2
    if n * e < _SMALL:
        total = n * (1.0 - (n + 1) * e / 2.0 * (1.0 - (n + 2) * e / 3.0))
    else:
        total = -np.expm1(-n * np.log1p(e)) / e
    size = max(abs(weight) * (1.0 - e * total) - rate * l1 * total, 0.0)
    return float(np.copysign(size, weight))


@inner
def catch_up_adagrad(
    begin: int, end: int, missed: int, eta: float, rule: Rule, theta: Floats, squares: Floats
) -> None:
    """Shrink theta[begin:end] by the steps missed, at the rates eta / (delta + sqrt(squares))."""
    if missed == 0:
        return
    for k in range(begin, end):
        rate = eta / (rule.delta + np.sqrt(squares[k]))
        theta[k] = _shrink(theta[k], missed, rate, rule.l1, rule.l2)


@kernel
def catch_up_each(missed: Ints, eta: float, rule: Rule, theta: Floats, squares: Floats) -> None:
    """`catch_up_adagrad` where each weight has missed a number of its own, [K] int64."""
    for k in range(len(theta)):
        catch_up_adagrad(k, k + 1, missed[k], eta, rule, theta, squares)


@inner
def step_adagrad(
    begin: int, end: int, eta: float, rule: Rule, gradient: Floats, theta: Floats, squares: Floats
) -> None:
    """Proximal step at the rate of each weight, its square of g included, and clear g."""
    for k in range(begin, end):
        g = gradient[k]
        gradient[k] = 0.0
        squares[k] += g * g
        rate = eta / (rule.delta + np.sqrt(squares[k]))
        theta[k] = _shrink(theta[k] - rate * g, 1, rate, rule.l1, rule.l2)


@kernel
def step_all(eta: float, rule: Rule, gradient: Floats, theta: Floats, extra: Floats) -> None:
    """Step along the gradient [K] on all weights, and clear it; extra: see `minibatch_pass`."""
    if rule.kind == SGD:
        step_sgd(0, len(theta), eta, rule, gradient, theta, extra)
    else:
        step_adagrad(0, len(theta), eta, rule, gradient, theta, extra)


@inner
def _catch_up(
    rows: Ints, step: int, eta: float, rule: Rule, marks: BlockMarks, theta: Floats, extra: Floats
) -> None:
    """Bring rows up to a step; arguments as in `minibatch_pass`."""
    done = marks.done
    for row in rows:
        begin, end = marks.weights_of[row], marks.weights_of[row + 1]
        if rule.kind == SGD:
            catch_up_sgd(begin, end, done[row], step, rule, theta, extra)
        else:
            catch_up_adagrad(begin, end, step - done[row], eta, rule, theta, extra)
        done[row] = step


@inner
def _step(
    rows: Ints,
    eta: float,
    rule: Rule,
    marks: BlockMarks,
    gradient: Floats,
    theta: Floats,
    extra: Floats,
) -> None:
    """Step along the gradient [K] on the weights of rows, and clear it."""
    for row in rows:
        begin, end = marks.weights_of[row], marks.weights_of[row + 1]
        if rule.kind == SGD:
            step_sgd(begin, end, eta, rule, gradient, theta, extra)
        else:
            step_adagrad(begin, end, eta, rule, gradient, theta, extra)


@kernel
def minibatch_pass(
    order: Ints,
    batch: int,
    etas: Floats,
    rule: Rule,
    tables: Tables,
    marks: BlockMarks,
    theta: Floats,
    extra: Floats,
    summed: Summed,
    workspace: SequenceWorkspace,
) -> float:
    """One pass over examples, a minibatch at a time, with a step along each one's gradient.

    order: [n] int64 examples; batch: how many make up a minibatch; etas: [minibatches], the steps,
    of which a 0 only measures; theta: [K], in and out; extra: [K], in and out, the sum of SGD's
    iterates or AdaGrad's sum of squares; summed: zeros.
    RETURNS: the weighted sum of the losses of the examples, each before its step.
    """
    loss = 0.0
    forget(workspace)
    for number in range(len(etas)):
        eta = etas[number]
        members = order[number * batch : (number + 1) * batch]
        found = collect_blocks(members, number, tables, marks.marks, marks.touched)
        rows = marks.touched[:found]
        _catch_up(rows, number, eta, rule, marks, theta, extra)
        for s in members:
            loss += add_gradient(s, number, tables, theta, summed, workspace)
        _step(rows, eta, rule, marks, summed.gradient, theta, extra)
        for row in rows:
            marks.done[row] = number + 1
    for row in range(len(marks.done)):
        marks.touched[row] = row
    _catch_up(marks.touched, len(etas), etas[-1], rule, marks, theta, extra)
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
    workspace: SequenceWorkspace,
    changes: TangentWorkspace,
) -> float:
    """Add the gradient of examples `members`, and their Hessian times a direction, both [K].

    number: of this minibatch, > 0; summed, product: added to; the rest: see `add_gradient` and
    `add_product`.
    RETURNS: the weighted sum of the examples' losses.
    """
    loss = 0.0
    for s in members:
        loss += add_gradient(s, number, tables, theta, summed, workspace)
        add_product(s, number, tables, direction, product, workspace, changes)
    return loss


class Meta(NamedTuple):
    """How SMD adapts gains. mu: meta-gain; decay: lambda; l2: the penalty of a minibatch."""

    mu: float
    decay: float
    l2: float


class Gained(NamedTuple):
    """The weights theta [K], their gains, and v, how they depend on the logarithm of past gains."""

    theta: Floats
    gains: Floats
    v: Floats


@inner
def _step_meta(k: int, meta: Meta, gradient: float, product: float, weights: Gained) -> None:
    """Step with one weight, given its parts of g and H v without the penalty."""
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


@kernel
def catch_up_smd(missed: Ints, meta: Meta, weights: Gained) -> None:
    """Do the steps that weights have missed, [K] int64, as no example had them: g = H v = 0."""
    for k in range(len(missed)):
        # Where both are zero they stay so, and the gain as it is.
        if weights.theta[k] != 0.0 or weights.v[k] != 0.0:
            for _ in range(missed[k]):
                _step_meta(k, meta, 0.0, 0.0, weights)
