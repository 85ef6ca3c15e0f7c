"""Products of a sequence's Hessian and a vector, by differentiating forward-backward."""

import numpy as np

from .compiled import inner
from .memory import fill
from .potentials import add_pairs, add_scores


@inner
def _load(
    c: int,
    matrix: np.ndarray,
    ent_ptr: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    value: np.ndarray,
    rows: np.ndarray,
    n_labels: int,
    n_previous: int,
    pair_ptr: np.ndarray,
    pair_places: np.ndarray,
    direction: np.ndarray,
    psi: np.ndarray,
    slope: np.ndarray,
) -> None:
    """Write out the potentials of active context c, and the tangent of their logarithms.

    matrix: [Y + 1, Yp] of the context; rows: its bigram rows; direction: [bigram weights]; psi,
    slope: [Y + 1, Yp], out.
    """
    for i in range(matrix.shape[0]):
        for y in range(matrix.shape[1]):
            psi[i, y] = matrix[i, y]
            slope[i, y] = 0.0
    for e in range(ent_ptr[c], ent_ptr[c + 1]):
        psi[ent_previous[e], ent_label[e]] = value[e]
    first = len(rows) - len(rows)  # a literal 0 would compile `add_pairs` once more
    add_pairs(
        slope,
        rows,
        first,
        len(rows),
        n_labels,
        n_previous,
        pair_ptr,
        pair_places,
        direction,
    )


@inner
def _past(
    t: int,
    n_labels: int,
    alpha: np.ndarray,
    psi: np.ndarray,
    slope: np.ndarray,
    slopes: np.ndarray,
    past: np.ndarray,
    mass: np.ndarray,
) -> None:
    """past[t, y] = E(f_1 + ... + f_t | y_t = y, x_1..t), f the slopes of log-potentials."""
    if t == 0:
        for y in range(n_labels):
            past[0, y] = slopes[0, y] + slope[n_labels, y]
        return
    fill(mass, 0, n_labels, 0.0)
    fill(past[t], 0, n_labels, 0.0)
    for i in range(n_labels):
        for y in range(n_labels):
            p = alpha[t - 1, i] * psi[i, y]
            mass[y] += p
            past[t, y] += p * (past[t - 1, i] + slope[i, y])
    for y in range(n_labels):
        past[t, y] = slopes[t, y] + (past[t, y] / mass[y] if mass[y] > 0.0 else 0.0)


@inner
def _pair_tangents(
    t: int,
    n_labels: int,
    alpha: np.ndarray,
    backward: np.ndarray,
    psi: np.ndarray,
    slope: np.ndarray,
    slopes: np.ndarray,
    past: np.ndarray,
    future: np.ndarray,
    mean: float,
    tangents: np.ndarray,
    token: np.ndarray,
) -> None:
    """Add dp(y', y) of the pair that ends at t to tangents [Y + 1, Yp], and dp(y) to token [Yp].

    dp(y', y) = p(y', y) (past[t - 1, y'] + f_t(y', y) + future[y] - mean), as Tsuboi 2011 has it;
    future [Yp]: E(f_{t+1} + ... | y_t).
    """
    first = n_labels if t == 0 else 0
    for i in range(first, n_labels + 1 if t == 0 else n_labels):
        before = 0.0 if t == 0 else past[t - 1, i]
        weight = 1.0 if t == 0 else alpha[t - 1, i]
        for y in range(n_labels):
            sure = slopes[t, y] + slope[i, y] + future[y]
            dp = weight * psi[i, y] * backward[t, y] * (before + sure - mean)
            tangents[i, y] += dp
            token[y] += dp


@inner
def _retreat(
    t: int,
    n_labels: int,
    backward: np.ndarray,
    psi: np.ndarray,
    slope: np.ndarray,
    slopes: np.ndarray,
    future: np.ndarray,
    before: np.ndarray,
) -> None:
    """Turn future [Yp], of token t, into that of t - 1; before: [Yp] workspace."""
    for i in range(n_labels):
        mass, total = 0.0, 0.0
        for y in range(n_labels):
            p = psi[i, y] * backward[t, y]
            mass += p
            total += p * (slopes[t, y] + slope[i, y] + future[y])
        before[i] = total / mass if mass != 0.0 else 0.0
    for i in range(n_labels):
        future[i] = before[i]


@inner
def _scatter(
    weight: float,
    rows: np.ndarray,
    row_ptr: np.ndarray,
    places: np.ndarray,
    values: np.ndarray,
    product: np.ndarray,
) -> None:
    """product[k] += weight * values[place of k] for the weights of rows."""
    for row in rows:
        for k in range(row_ptr[row], row_ptr[row + 1]):
            product[k] += weight * values[places[k]]


@inner
def add_product(
    weight: float,
    n_parts: int,
    n_labels: int,
    n_previous: int,
    tok_ptr: np.ndarray,
    tok_rows: np.ndarray,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    context: np.ndarray,
    matrix_of: np.ndarray,
    token_context: np.ndarray,
    ctx_ptr: np.ndarray,
    ctx_rows: np.ndarray,
    pair_ptr: np.ndarray,
    pair_places: np.ndarray,
    ent_ptr: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    split: int,
    direction: np.ndarray,
    matrices: np.ndarray,
    value: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    psi: np.ndarray,
    slope: np.ndarray,
    slopes: np.ndarray,
    past: np.ndarray,
    vectors: np.ndarray,
    tangents: np.ndarray,
    product: np.ndarray,
) -> None:
    """Add weight * (Hessian of an example's loss) direction to product [K].

    The example was inferred last: matrices, value, alpha, backward are what `infer_example` has
    left. tok_ptr, context, token_context: of its tokens; direction: [K]. Workspaces: psi, slope,
    tangents [Y + 1, Yp], slopes, past [T, Yp], vectors [4, Yp].
    """
    n = len(context)
    mass, future, before, token = vectors[0], vectors[1], vectors[2], vectors[3]
    pair_direction = direction[split:]
    for t in range(n):
        fill(slopes[t], 0, slopes.shape[1], 0.0)
        add_scores(
            slopes[t],
            tok_rows,
            tok_ptr[t],
            tok_ptr[t + 1],
            n_labels,
            row_ptr,
            row_labels,
            direction[:split],
        )
    for part in range(n_parts):
        loaded = -1
        # Forward, then backward over the tokens.
        for step in range(2 * n):
            t = step if step < n else 2 * n - 1 - step
            o = token_context[t]
            rows = ctx_rows[ctx_ptr[o] : ctx_ptr[o + 1]]
            if o != loaded:
                loaded = o
                c = context[t]
                _load(
                    c,
                    matrices[matrix_of[c]],
                    ent_ptr,
                    ent_previous,
                    ent_label,
                    value,
                    rows,
                    n_labels,
                    n_previous,
                    pair_ptr,
                    pair_places,
                    pair_direction,
                    psi,
                    slope,
                )
            if step < n:
                _past(t, n_labels, alpha[part], psi, slope, slopes, past, mass)
                continue
            if step == n:
                fill(future, 0, n_labels, 0.0)
                mean = 0.0
                for y in range(n_labels):
                    mean += alpha[part, t, y] * past[t, y]
            fill(token, 0, n_labels, 0.0)
            fill(tangents.reshape(-1), 0, tangents.size, 0.0)
            _pair_tangents(
                t,
                n_labels,
                alpha[part],
                backward[part],
                psi,
                slope,
                slopes,
                past,
                future,
                mean,
                tangents,
                token,
            )
            _scatter(weight, rows, pair_ptr, pair_places, tangents.reshape(-1), product[split:])
            unigram = tok_rows[tok_ptr[t] : tok_ptr[t + 1]]
            _scatter(weight, unigram, row_ptr, row_labels, token, product)
            if t > 0:
                _retreat(t, n_labels, backward[part], psi, slope, slopes, future, before)
