"""Products of a sequence's Hessian and a vector, by differentiating forward-backward."""

from typing import NamedTuple

import numpy as np

from .compiled import inner
from .groups import Chains, ContextRows, PairTables, Potentials, TokenRows, Vectors
from .memory import fill
from .potentials import add_pairs, add_scores


class TangentSpace(NamedTuple):
    """Workspaces of `add_product`.

    psi, slope, tangents: [Y + 1, Yp], potentials of a context, the derivatives of their logarithms,
    and those of probabilities; slopes, past: [T, Yp]; rows: [4, Yp].
    """

    psi: np.ndarray
    slope: np.ndarray
    tangents: np.ndarray
    slopes: np.ndarray
    past: np.ndarray
    rows: np.ndarray


@inner
def _load(
    c: int,
    n_labels: int,
    pairs: PairTables,
    potentials: Potentials,
    rows: np.ndarray,
    direction: np.ndarray,
    space: TangentSpace,
) -> None:
    """Write out the potentials of active context c, and the tangent of their logarithms.

    rows: its bigram rows; direction: [bigram weights]; space: psi and slope are written.
    """
    psi, slope = space.psi, space.slope
    matrix = potentials.psi[pairs.matrix_of[c]]
    for i in range(matrix.shape[0]):
        for y in range(matrix.shape[1]):
            psi[i, y] = matrix[i, y]
            slope[i, y] = 0.0
    for e in range(pairs.ent_ptr[c], pairs.ent_ptr[c + 1]):
        psi[pairs.ent_previous[e], pairs.ent_label[e]] = potentials.value[e]
    first = len(rows) - len(rows)  # a literal 0 would compile `add_pairs` once more
    add_pairs(
        slope,
        rows,
        first,
        len(rows),
        n_labels,
        pairs.n_previous,
        pairs.pair_ptr,
        pairs.pair_places,
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
    space: TangentSpace,
    future: np.ndarray,
    mean: float,
    token: np.ndarray,
) -> None:
    """Add dp(y', y) of the pair that ends at t to space.tangents, and dp(y) to token [Yp].

    dp(y', y) = p(y', y) (past[t - 1, y'] + f_t(y', y) + future[y] - mean), as Tsuboi 2011 has it;
    future [Yp]: E(f_{t+1} + ... | y_t).
    """
    psi, slope, slopes, past = space.psi, space.slope, space.slopes, space.past
    first = n_labels if t == 0 else 0
    for i in range(first, n_labels + 1 if t == 0 else n_labels):
        before = 0.0 if t == 0 else past[t - 1, i]
        weight = 1.0 if t == 0 else alpha[t - 1, i]
        for y in range(n_labels):
            sure = slopes[t, y] + slope[i, y] + future[y]
            dp = weight * psi[i, y] * backward[t, y] * (before + sure - mean)
            space.tangents[i, y] += dp
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
    s: int,
    chains: Chains,
    tests: TokenRows,
    pairs: PairTables,
    rows_of: ContextRows,
    direction: np.ndarray,
    potentials: Potentials,
    vectors: Vectors,
    space: TangentSpace,
    product: np.ndarray,
) -> None:
    """Add example s's weight * (Hessian of its loss) direction to product [K].

    The example was inferred last: potentials and vectors are what `infer_example` has left.
    direction: [K]; space: workspaces.
    """
    begin, weight, n_labels = chains.offsets[s], chains.weights[s], chains.n_labels
    n, split = chains.offsets[s + 1] - begin, tests.split
    psi, slope, slopes, past = space.psi, space.slope, space.slopes, space.past
    mass, future, before, token = space.rows[0], space.rows[1], space.rows[2], space.rows[3]
    tangents, pair_direction = space.tangents, direction[split:]
    for t in range(n):
        fill(slopes[t], 0, slopes.shape[1], 0.0)
        add_scores(
            slopes[t],
            tests.tok_rows,
            tests.tok_ptr[begin + t],
            tests.tok_ptr[begin + t + 1],
            n_labels,
            tests.row_ptr,
            tests.row_labels,
            direction[:split],
        )
    for part in range(1 + (chains.twin[s] >= 0)):
        alpha, backward = vectors.alpha[part], vectors.backward[part]
        loaded = -1
        # Forward, then backward over the tokens.
        for step in range(2 * n):
            t = step if step < n else 2 * n - 1 - step
            o = rows_of.context[begin + t]
            rows = rows_of.ctx_rows[rows_of.ctx_ptr[o] : rows_of.ctx_ptr[o + 1]]
            if o != loaded:
                loaded = o
                c = pairs.context[begin + t]
                _load(c, n_labels, pairs, potentials, rows, pair_direction, space)
            if step < n:
                _past(t, n_labels, alpha, psi, slope, slopes, past, mass)
                continue
            if step == n:
                fill(future, 0, n_labels, 0.0)
                mean = 0.0
                for y in range(n_labels):
                    mean += alpha[t, y] * past[t, y]
            fill(token, 0, n_labels, 0.0)
            fill(tangents.reshape(-1), 0, tangents.size, 0.0)
            _pair_tangents(t, n_labels, alpha, backward, space, future, mean, token)
            moved = tangents.reshape(-1), product[split:]
            _scatter(weight, rows, pairs.pair_ptr, pairs.pair_places, *moved)
            unigram = tests.tok_rows[tests.tok_ptr[begin + t] : tests.tok_ptr[begin + t + 1]]
            _scatter(weight, unigram, tests.row_ptr, tests.row_labels, token, product)
            if t > 0:
                _retreat(t, n_labels, backward, psi, slope, slopes, future, before)
