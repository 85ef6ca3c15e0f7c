"""The search for the Lipschitz constant of a sequence's gradient, its *curvature*."""

import numpy as np

from .compiled import inner
from .example import build_potentials
from .forward import forward_loss
from .groups import Chains, Groups, PairTables, Potentials, TokenRows, Vectors

# Rounding errors of the loss, a token: where they prevail, the search would not end without it.
_ROUNDING = 1e-13
# No curvature is estimated to be larger.
_LARGEST = 1e30


@inner
def _losses(
    s: int,
    chains: Chains,
    tests: TokenRows,
    pairs: PairTables,
    theta: np.ndarray,
    potentials: Potentials,
    clock: np.ndarray,
    vectors: Vectors,
) -> float:
    """The weighted loss of sequence s at theta [K], that of its copy added; see `sag_pass`."""
    n_labels, begin = chains.n_labels, chains.offsets[s]
    length = chains.offsets[s + 1] - begin
    where = pairs.context[begin : begin + length]
    clock[0] += 1
    build_potentials(clock[0], where, n_labels, pairs, theta[tests.split :], potentials)
    loss = 0.0
    for part in (s, chains.twin[s]):
        if part < 0:
            continue
        at = chains.offsets[part]
        loss += chains.weights[part] * forward_loss(
            n_labels,
            chains.labels[at : at + length],
            chains.allowed[at : at + length],
            tests.tok_ptr[begin : begin + length + 1],
            tests.tok_rows,
            tests.row_ptr,
            tests.row_labels,
            theta[: tests.split],
            where,
            pairs.matrix_of,
            potentials.psi,
            potentials.shift,
            pairs.constant,
            pairs.ent_ptr,
            pairs.ent_start,
            pairs.ent_previous,
            pairs.ent_label,
            pairs.ent_place,
            potentials.value,
            potentials.change,
            potentials.rewritten,
            vectors.alpha,
            vectors.marginals[0],
            vectors.scratch,
        )
    return float(loss)


@inner
def search_curvature(
    curvature: float,
    loss: float,
    norm: float,
    grow: float,
    s: int,
    chains: Chains,
    tests: TokenRows,
    pairs: PairTables,
    groups: Groups,
    theta: np.ndarray,
    gradient: np.ndarray,
    trial: np.ndarray,
    potentials: Potentials,
    clock: np.ndarray,
    vectors: Vectors,
) -> tuple[float, int]:
    """Raise an estimate of a sequence's curvature until a step is as good as it foretells.

    f(w - g / L) < f(w) - |g|^2 / (2 L), else L := grow * L (algorithm 2).

    curvature: L; loss, norm: f and |g|^2 of sequence s; gradient: [K], g where the sequence has
    weights; trial: [K] workspace. The others: see `evaluate_sequence`.
    RETURNS: L, and the number of evaluations.
    """
    length = chains.offsets[s + 1] - chains.offsets[s]
    slack = _ROUNDING * length * chains.weights[s]
    own_rows, row_ptr = groups.own_rows, groups.row_ptr
    n_trials = 0
    while True:
        for j in range(groups.own_ptr[s], groups.own_ptr[s + 1]):
            for k in range(row_ptr[own_rows[j]], row_ptr[own_rows[j] + 1]):
                trial[k] = theta[k] - gradient[k] / curvature
        reached = _losses(s, chains, tests, pairs, trial, potentials, clock, vectors)
        n_trials += 1
        # Nor where the loss is not a number.
        if reached < loss - norm / (2.0 * curvature) + slack or curvature > _LARGEST:
            return curvature, n_trials
        curvature *= grow
