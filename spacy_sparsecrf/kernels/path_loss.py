"""The loss of one sequence, from what forward-backward has left."""

import numpy as np

from .compiled import inner
from .groups import PairTables, Potentials
from .search import position


@inner
def pair_potential(matrix: np.ndarray, place: int, places: np.ndarray, values: np.ndarray) -> float:
    """Potential of a pair of labels: the value of the context's entry at its place, if any."""
    e = position(places, place)
    if e < len(places) and places[e] == place:
        return float(values[e])
    return float(matrix.reshape(-1)[place])


@inner
def path_loss(
    labels: np.ndarray,
    context: np.ndarray,
    pairs: PairTables,
    potentials: Potentials,
    alpha: np.ndarray,
    backward: np.ndarray,
    marginals: np.ndarray,
) -> float:
    """-log p(y | x) of a sequence's gold labels, as the product of p(y_t | y_{t-1})."""
    psi, ent_ptr, loss = potentials.psi, pairs.ent_ptr, 0.0
    start = psi.shape[1] - 1
    for i in range(len(labels)):
        y = labels[i]
        c = context[i]
        previous = start if i == 0 else labels[i - 1]
        first, last = ent_ptr[c], ent_ptr[c + 1]
        place = previous * psi.shape[2] + y
        places, values = pairs.ent_place[first:last], potentials.value[first:last]
        pair = backward[i, y] * pair_potential(psi[pairs.matrix_of[c]], place, places, values)
        before = 1.0
        if i > 0:
            pair *= alpha[i - 1, previous]
            before = marginals[i - 1, previous]
        loss += np.log(max(before, 1e-300)) - np.log(max(pair, 1e-300))
    return loss
