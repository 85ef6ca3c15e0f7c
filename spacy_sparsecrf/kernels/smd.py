"""Minibatches of stochastic meta-descent (Vishwanathan et al. 2006)."""

import numpy as np

from .compiled import inner, kernel
from .gradient import add_gradient
from .tangent import add_product


@kernel
def add_gradient_and_product(
    members: np.ndarray,
    visit: int,
    token_context: np.ndarray,
    ctx_ptr: np.ndarray,
    ctx_rows: np.ndarray,
    n_labels: int,
    n_previous: int,
    offsets: np.ndarray,
    twin: np.ndarray,
    labels: np.ndarray,
    allowed: np.ndarray,
    sequence_weights: np.ndarray,
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
    theta: np.ndarray,
    direction: np.ndarray,
    gradient: np.ndarray,
    product: np.ndarray,
    nothing: np.ndarray,
    no_dues: np.ndarray,
    dense: np.ndarray,
    slope: np.ndarray,
    tangents: np.ndarray,
    slopes: np.ndarray,
    past: np.ndarray,
    vectors: np.ndarray,
    tokens: np.ndarray,
    psi: np.ndarray,
    shift: np.ndarray,
    value: np.ndarray,
    change: np.ndarray,
    rewritten: np.ndarray,
    stamp: np.ndarray,
    sums: np.ndarray,
    residual: np.ndarray,
    scratch: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    marginals: np.ndarray,
    walk: np.ndarray,
    scales: np.ndarray,
    bounds: np.ndarray,
    signs: np.ndarray,
    log_z: np.ndarray,
) -> float:
    """Add the gradient of examples `members`, and their Hessian times a direction, both [K].

    visit: number of this minibatch, > 0; direction: [K]; gradient, product: [K], added to;
    token_context, ctx_ptr, ctx_rows: see `collect_rows`; dense, slope, tangents, slopes, past,
    vectors: workspaces of `add_product`; the rest: see `add_gradient`.
    RETURNS: the weighted sum of the examples' losses.
    """
    loss = 0.0
    for s in members:
        loss += add_gradient(
            s,
            visit,
            n_labels,
            n_previous,
            offsets,
            twin,
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
            theta,
            gradient,
            nothing,
            no_dues,
            tokens,
            psi,
            shift,
            value,
            change,
            rewritten,
            stamp,
            sums,
            residual,
            scratch,
            alpha,
            backward,
            marginals,
            walk,
            scales,
            bounds,
            signs,
            log_z,
        )
        begin, end = offsets[s], offsets[s + 1]
        n_parts = 1 + (twin[s] >= 0)
        add_product(
            sequence_weights[s],
            n_parts,
            n_labels,
            n_previous,
            tok_ptr[begin : end + 1],
            tok_rows,
            row_ptr,
            row_labels,
            context[begin:end],
            matrix_of,
            token_context[begin:end],
            ctx_ptr,
            ctx_rows,
            pair_ptr,
            pair_places,
            ent_ptr,
            ent_previous,
            ent_label,
            split,
            direction,
            psi,
            value,
            alpha,
            backward,
            dense,
            slope,
            slopes,
            past,
            vectors,
            tangents,
            product,
        )
    return loss


@inner
def _step(
    k: int,
    mu: float,
    decay: float,
    l2: float,
    gradient: float,
    product: float,
    theta: np.ndarray,
    gains: np.ndarray,
    v: np.ndarray,
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
    gradient: np.ndarray,
    product: np.ndarray,
    theta: np.ndarray,
    gains: np.ndarray,
    v: np.ndarray,
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
    missed: np.ndarray,
    mu: float,
    decay: float,
    l2: float,
    theta: np.ndarray,
    gains: np.ndarray,
    v: np.ndarray,
) -> None:
    """Do the steps that weights have missed, [K] int64, as no example had them: g = H v = 0."""
    for k in range(len(theta)):
        # Where both are zero they stay so, and the gain as it is.
        if theta[k] != 0.0 or v[k] != 0.0:
            for _ in range(missed[k]):
                _step(k, mu, decay, l2, 0.0, 0.0, theta, gains, v)
