"""Minibatches of stochastic meta-descent (Vishwanathan et al. 2006)."""

from .compiled import inner, kernel
from .descent import Paid
from .hessian import Turn, add_product
from .layout import Floats, Ints, Tables, Visit
from .sgd import add_gradient


@kernel
def add_gradient_and_product(
    members: Ints,
    number: int,
    tables: Tables,
    theta: Floats,
    direction: Floats,
    gradients: tuple[Paid, Paid],
    product: Floats,
    visit: Visit,
    turn: Turn,
) -> float:
    """Add the gradient of examples `members`, and their Hessian times a direction, both [K].

    number: of this minibatch, > 0; direction: [K]; gradients: of unigram and of bigram weights;
    product: [K], added to; the rest: see `add_gradient` and `add_product`.
    RETURNS: the weighted sum of the examples' losses.
    """
    unigram, bigram = gradients
    loss = 0.0
    for s in members:
        loss += add_gradient(s, number, tables, theta, unigram, bigram, visit)
        add_product(s, number, tables, direction, product, visit, turn)
    return loss


@inner
def _step(
    k: int,
    mu: float,
    decay: float,
    l2: float,
    gradient: float,
    product: float,
    theta: Floats,
    gains: Floats,
    v: Floats,
) -> None:
    """Step with one weight, given its parts of g and H v without the penalty."""
    g = gradient + l2 * theta[k]
    curved = product + l2 * v[k]
    gains[k] *= max(0.5, 1.0 - mu * g * v[k])
    theta[k] -= gains[k] * g
    v[k] = decay * v[k] - gains[k] * (g + decay * curved)


@kernel
def step_smd(
    mu: float,
    decay: float,
    l2: float,
    gradient: Floats,
    product: Floats,
    theta: Floats,
    gains: Floats,
    v: Floats,
) -> None:
    """Adapt the gains, step, adapt v (Vishwanathan 2006, equations 19 to 21), and clear g and Hv.

    eta := eta max(1/2, 1 - mu g v), theta := theta - eta g, v := lambda v - eta (g + lambda H v),
    all [K]. mu: meta-gain; decay: lambda; l2: of a minibatch, not yet in gradient and product.
    """
    for k in range(len(theta)):
        _step(k, mu, decay, l2, gradient[k], product[k], theta, gains, v)
        gradient[k] = 0.0
        product[k] = 0.0


@kernel
def catch_up_smd(
    missed: Ints, mu: float, decay: float, l2: float, theta: Floats, gains: Floats, v: Floats
) -> None:
    """Do the steps that weights have missed, [K] int64, as no example had them: g = H v = 0."""
    for k in range(len(theta)):
        # Where both are zero they stay so, and the gain as it is.
        if theta[k] != 0.0 or v[k] != 0.0:
            for _ in range(missed[k]):
                _step(k, mu, decay, l2, 0.0, 0.0, theta, gains, v)
