"""Updates of a row of weights from the gradient of a minibatch, and what they missed meanwhile.

A weight without a gradient still shrinks at each step. It is caught up when it is needed next.
"""

import numpy as np

from .compiled import inner, kernel
from .layout import Floats, Ints

# Below this, sums of powers are taken by a series, which is exact to rounding there.
_SMALL = 1e-5


@inner
def catch_up_sgd(
    begin: int,
    end: int,
    done: int,
    step: int,
    shrinkage: Floats,
    averaged: Floats,
    theta: Floats,
    total: Floats,
) -> None:
    """Shrink theta[begin:end], which are as after `done` steps, by those up to `step`.

    shrinkage: [n + 1], d_k = sum_{j < k} log(1 + eta_j l2 / n); averaged: [n + 1], sum_{0 < j <=
    k} exp(-d_j), or zeros without averaging; total: [K], sum of the iterates after each step.
    """
    if done == step:
        return
    factor = np.exp(shrinkage[done] - shrinkage[step])
    share = np.exp(shrinkage[done]) * (averaged[step] - averaged[done])
    for k in range(begin, end):
        total[k] += share * theta[k]
        theta[k] *= factor


@inner
def step_sgd(
    begin: int,
    end: int,
    eta: float,
    l2: float,
    averaging: bool,
    gradient: Floats,
    theta: Floats,
    total: Floats,
) -> None:
    """Step to (theta - eta g) / (1 + eta l2), and clear g; l2: the penalty of one step."""
    factor = 1.0 / (1.0 + eta * l2)
    for k in range(begin, end):
        theta[k] = factor * (theta[k] - eta * gradient[k])
        gradient[k] = 0.0
    if averaging:
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
    begin: int,
    end: int,
    missed: int,
    eta: float,
    delta: float,
    l1: float,
    l2: float,
    theta: Floats,
    squares: Floats,
) -> None:
    """Shrink theta[begin:end] by the steps missed, at the rates eta / (delta + sqrt(squares))."""
    if missed == 0:
        return
    for k in range(begin, end):
        rate = eta / (delta + np.sqrt(squares[k]))
        theta[k] = _shrink(theta[k], missed, rate, l1, l2)


@kernel
def catch_up_each(
    missed: Ints, eta: float, delta: float, l1: float, l2: float, theta: Floats, squares: Floats
) -> None:
    """`catch_up_adagrad` where each weight has missed a number of its own, [K] int64."""
    for k in range(len(theta)):
        catch_up_adagrad(k, k + 1, missed[k], eta, delta, l1, l2, theta, squares)


@inner
def step_adagrad(
    begin: int,
    end: int,
    eta: float,
    delta: float,
    l1: float,
    l2: float,
    gradient: Floats,
    theta: Floats,
    squares: Floats,
) -> None:
    """Proximal step at the rate of each weight, its square of g included, and clear g."""
    for k in range(begin, end):
        g = gradient[k]
        gradient[k] = 0.0
        squares[k] += g * g
        rate = eta / (delta + np.sqrt(squares[k]))
        theta[k] = _shrink(theta[k] - rate * g, 1, rate, l1, l2)
