"""Stochastic solvers with minibatches: SGD, SGD-L1, AdaGrad, and stochastic meta-descent (SMD).

Missed steps of weights are applied lazily (see `lazy`).
"""

from typing import Any, NamedTuple

import numpy as np

from .example_gradients import add_gradient, forget
from .exp import exp, expm1, log1p
from .hessian import TangentWorkspace, add_product
from .layout import Floats, Ints, SequenceWorkspace, Tables
from .lazy import advance
from .numba_support import inlined, kernel

# Below this, sums of powers are computed by a series, which is exact up to rounding.
_SMALL = 1e-5

# Rules of `minibatch_pass`.
SGD = 0
ADAGRAD = 1
SGD_L1 = 2
NO_SUMS = np.zeros(0)


class StepRule(NamedTuple):
    """An update rule of weights.

    kind: SGD, ADAGRAD or SGD_L1; delta: constant of AdaGrad; l1, l2: penalties of one step;
    averaging: whether SGD sums its iterates. shrinkage, cumulated: [n + 1], of n steps. For SGD:
    d_k = sum_{j < k} log(1 + eta_j l2), and sum_{0 < j <= k} exp(-d_j), or zeros without averaging.
    For SGD-L1: the l2 and l1 rates before step k, sums of eta_j l2 and of eta_j l1.
    """

    kind: int
    delta: float
    l1: float
    l2: float
    shrinkage: Floats = NO_SUMS
    cumulated: Floats = NO_SUMS
    averaging: bool = False


class Visited(NamedTuple):
    """The feature blocks, bigram blocks after all unigram blocks.

    weights_of: [blocks + 1] int64, weights of a block; done: [blocks] int64, in and out, number of
    steps that a block has taken.
    """

    weights_of: Ints
    done: Ints


class Moving(NamedTuple):
    """Arguments of a step eta, or of missed steps.

    gradient, theta: [K]; extra: [K], the sum of SGD's iterates, AdaGrad's sum of squares, or the l1
    penalty that a weight has received in SGD-L1.
    """

    rule: StepRule
    eta: float
    gradient: Floats
    theta: Floats
    extra: Floats


@kernel
def sum_shrinkage(
    etas: Floats, l2: float, averaging: bool, shrinkage: Floats, cumulated: Floats
) -> None:
    """Compute the sums `shrinkage` and `cumulated` of `StepRule` for SGD.

    etas: [n]; shrinkage, cumulated: [n + 1], out, except the first element of each, which is given;
    without `averaging`, all elements of `cumulated` equal the first.
    """
    for k in range(len(etas)):
        shrinkage[k + 1] = shrinkage[k] + log1p(etas[k] * l2)
        cumulated[k + 1] = cumulated[k] + (exp(-shrinkage[k + 1]) if averaging else 0.0)


@inlined
def shrink_sgd(begin: int, end: int, past: int, now: int, moving: Moving) -> None:
    """Shrink theta[begin:end] by the steps past:now, and add the iterates to their sum."""
    shrinkage, cumulated = moving.rule.shrinkage, moving.rule.cumulated
    theta, total = moving.theta, moving.extra
    factor = exp(shrinkage[past] - shrinkage[now])
    share = exp(shrinkage[past]) * (cumulated[now] - cumulated[past])
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


@inlined
def step_sgd_l1(begin: int, end: int, past: int, now: int, moving: Moving) -> None:
    """Step to w - eta g, shrink by the l2 rates past:now, apply the l1 penalty due, and clear g.

    With u = cumulated[now] and q = received: w := max(0, w - (u + q)) for w > 0, min(0, w + (u -
    q)) for w < 0, and q += the change (Tsuruoka 2009, section 3.2; Lavergne 2010, equation 8,
    prints one sign wrong). Both signs without a branch, so that the loop vectorises: the penalty is
    the weight itself, clamped to the rest of u for either sign.
    """
    rule, eta, gradient, theta, received = moving
    factor, due = exp(rule.shrinkage[past] - rule.shrinkage[now]), rule.cumulated[now]
    for k in range(begin, end):
        weight = factor * (theta[k] - eta * gradient[k])
        gradient[k] = 0.0
        positive = max(due + received[k], 0.0)
        negative = min(received[k] - due, 0.0)
        clipped = weight - min(max(weight, negative), positive)
        received[k] += clipped - weight
        theta[k] = clipped


@kernel
def step_all(number: int, moving: Moving) -> None:
    """Take step `number` on all weights along the gradient [K], and clear it."""
    n_weights = len(moving.theta)
    if moving.rule.kind == SGD:
        step_sgd(0, n_weights, number, number + 1, moving)
    elif moving.rule.kind == ADAGRAD:
        step_adagrad(0, n_weights, number, number + 1, moving)
    else:
        step_sgd_l1(0, n_weights, number, number + 1, moving)


@inlined
def _advance_examples(
    members: Ints, now: int, tables: Tables, blocks: Visited, update: Any, moving: Moving
) -> None:
    """Bring the feature blocks of examples up to date."""
    sequences, unigrams, context_blocks = tables.sequences, tables.unigrams, tables.context_blocks
    n = len(unigrams.block_ptr) - 1
    unigram_steps, unigram_ptr = blocks.done[:n], blocks.weights_of[: n + 1]
    bigram_steps, bigram_ptr = blocks.done[n:], blocks.weights_of[n:]
    for s in members:
        for t in range(sequences.offsets[s], sequences.offsets[s + 1]):
            rows = unigrams.site_blocks[unigrams.site_ptr[t] : unigrams.site_ptr[t + 1]]
            advance(rows, now, unigram_steps, unigram_ptr, update, moving)
            c = context_blocks.context[t]
            rows = context_blocks.blocks[context_blocks.ptr[c] : context_blocks.ptr[c + 1]]
            advance(rows, now, bigram_steps, bigram_ptr, update, moving)


# A branch for each rule, around its loops: a branch for each feature block doubles their time.
@inlined
def _shrink_examples(
    members: Ints, now: int, tables: Tables, blocks: Visited, moving: Moving
) -> None:
    """Apply the missed steps to the weights of examples; SGD-L1 applies them with the next step."""
    if moving.rule.kind == SGD:
        _advance_examples(members, now, tables, blocks, shrink_sgd, moving)
    elif moving.rule.kind == ADAGRAD:
        _advance_examples(members, now, tables, blocks, shrink_adagrad, moving)


@inlined
def _step_examples(
    members: Ints, now: int, tables: Tables, blocks: Visited, moving: Moving
) -> None:
    """Take a step on the weights of examples."""
    if moving.rule.kind == SGD:
        _advance_examples(members, now, tables, blocks, step_sgd, moving)
    elif moving.rule.kind == ADAGRAD:
        _advance_examples(members, now, tables, blocks, step_adagrad, moving)
    else:
        _advance_examples(members, now, tables, blocks, step_sgd_l1, moving)


@kernel
def minibatch_pass(
    order: Ints,
    batch: int,
    etas: Floats,
    rule: StepRule,
    tables: Tables,
    blocks: Visited,
    theta: Floats,
    extra: Floats,
    gradient: Floats,
    work: SequenceWorkspace,
) -> float:
    """Pass over examples once, with a step along the gradient of each minibatch.

    order: [n] int64 examples; batch: examples per minibatch; etas: [minibatches], step sizes;
    theta: [K], in and out; extra: [K], in and out, see `Moving`; gradient: [K], zeros.
    RETURNS: the weighted sum of the losses of the examples, each before its step.
    """
    loss = 0.0
    forget(work)
    for number in range(len(etas)):
        moving = Moving(rule, etas[number], gradient, theta, extra)
        members = order[number * batch : (number + 1) * batch]
        _shrink_examples(members, number, tables, blocks, moving)
        for s in members:
            loss += add_gradient(s, number, tables, theta, gradient, work)
        _step_examples(members, number + 1, tables, blocks, moving)
    return loss


@kernel
def finish_pass(now: int, blocks: Visited, moving: Moving) -> None:
    """Apply the steps that weights have missed before step `now`; the gradient is zero."""
    rows, weights_of = range(len(blocks.done)), blocks.weights_of
    if moving.rule.kind == SGD:
        advance(rows, now, blocks.done, weights_of, shrink_sgd, moving)
    elif moving.rule.kind == ADAGRAD:
        advance(rows, now, blocks.done, weights_of, shrink_adagrad, moving)
    else:
        advance(rows, now, blocks.done, weights_of, step_sgd_l1, moving)


@kernel
def add_gradient_and_product(
    members: Ints,
    number: int,
    tables: Tables,
    theta: Floats,
    direction: Floats,
    gradient: Floats,
    product: Floats,
    work: SequenceWorkspace,
    changes: TangentWorkspace,
) -> float:
    """Add the gradient of examples `members`, and their Hessian times a direction, both [K].

    number: number of the minibatch, > 0; gradient, product: added to; other arguments: see
    `add_gradient` and `add_product`.
    RETURNS: the weighted sum of the examples' losses.
    """
    loss = 0.0
    for s in members:
        loss += add_gradient(s, number, tables, theta, gradient, work)
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


@kernel
def step_smd(meta: Meta, gradient: Floats, product: Floats, weights: Gained) -> None:
    """Adapt the gains, step, adapt v (Vishwanathan 2006, equations 19 to 21), and clear g and Hv.

    eta := eta max(1/2, 1 - mu g v), theta := theta - eta g, v := lambda v - eta (g + lambda H v),
    all [K]. The penalty is not yet in gradient and product.
    """
    mu, decay, l2 = meta
    theta, gains, v = weights
    for k in range(len(gradient)):
        g = gradient[k] + l2 * theta[k]
        curved = product[k] + l2 * v[k]
        gains[k] *= max(0.5, 1.0 - mu * g * v[k])
        theta[k] -= gains[k] * g
        v[k] = decay * v[k] - gains[k] * (g + decay * curved)
        gradient[k] = 0.0
        product[k] = 0.0
