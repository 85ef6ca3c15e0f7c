"""Belief propagation in general graphs: messages, and their beliefs of nodes and edges.

Messages are the rows of one array: row 2e goes from the first node of edge e to its second node,
row 2e + 1 back.
"""

from typing import Any

import numpy as np

from ..kernels.exp import log_of
from ..kernels.layout import Floats, Ints
from ..kernels.numba_support import inlined, kernel
from ..kernels.small import normalise, reciprocal
from .network import LEAST, Beliefs, Graphs, Network, larger, overwrite

# Number of messages that are multiplied before the product is normalised.
_TOGETHER = 8

PROPAGATION, MEAN_FIELD, PSEUDO = 0, 1, 2


@inlined(forceinline=True)
def _believe(
    i: int, n_labels: int, network: Network, belief: Floats, measured: bool = False
) -> Any:
    """Multiply a node's potential [Y] by all incoming messages, and normalise.

    RETURNS: the log of the normaliser if `measured`, else 0.
    """
    graphs, phi = network.graphs, network.potentials.phi
    for y in range(n_labels):
        belief[y] = phi[i, y]
    scale = 0.0 * phi[0, 0]
    begin, end = graphs.half_ptr[i], graphs.half_ptr[i + 1]
    for k in range(begin, end + 1):
        if k == end or (k - begin) % _TOGETHER == _TOGETHER - 1:
            total = normalise(n_labels, belief)
            if measured:
                scale += log_of(total)
        if k < end:
            back = network.beliefs.messages[graphs.halves[k] ^ 1]
            for y in range(n_labels):
                belief[y] *= back[y]
    return scale


@inlined(forceinline=True)
def _send(
    h: int, n_labels: int, belief: Floats, psi: Floats, network: Network, new: Floats
) -> None:
    """Compute message h from its node's belief; psi: [Y, Y]; new: [Y], out."""
    old, cavity, schedule = network.beliefs.messages, network.scratch[0], network.schedule
    back = old[h ^ 1]
    if n_labels == 2:
        # Multiply instead of dividing, which is slow: the common factor is normalised away.
        cavity[0], cavity[1] = belief[0] * back[1], belief[1] * back[0]
    else:
        for y in range(n_labels):
            cavity[y] = belief[y] / back[y]
    sum_of_new = 0.0 * belief[0]
    for b in range(n_labels):
        total = 0.0 * belief[0]
        for a in range(n_labels):
            value = cavity[a] * (psi[b, a] if h & 1 else psi[a, b])
            if not schedule.best:
                total += value
            elif value.real > total.real:
                total = value
        new[b] = total
        sum_of_new += total
    damping = schedule.damping
    factor = (1.0 - damping) * reciprocal(sum_of_new)
    for y in range(n_labels):
        new[y] = factor * new[y] + damping * old[h, y]
        if new[y].real < LEAST:
            new[y] = LEAST


@inlined(forceinline=True)
def _pass_on(i: int, is_forward: bool, n_labels: int, network: Network) -> float:
    """Send messages from node i to all its neighbours later in the order, or to all earlier ones.

    RETURNS: the largest change.
    """
    graphs, beliefs, new = network.graphs, network.beliefs, network.scratch[1]
    belief, largest = beliefs.nodes[i], 0.0
    _believe(i, n_labels, network, belief)
    for k in range(graphs.half_ptr[i], graphs.half_ptr[i + 1]):
        h = graphs.halves[k]
        e = h >> 1
        if (graphs.rank[graphs.ends[e, 1 - (h & 1)]] > graphs.rank[i]) == is_forward:
            psi = network.potentials.psi[graphs.row[e]]
            _send(h, n_labels, belief=belief, psi=psi, network=network, new=new)
            change = overwrite(n_labels, beliefs.messages[h], new, network.schedule.magnified)
            largest = larger(largest, change)
    return largest


@inlined(forceinline=True)
def _pass_all(s: int, n_labels: int, network: Network) -> float:
    """Update all messages of graph s at once, from the beliefs before the update."""
    graphs, nodes, largest = network.graphs, network.beliefs.nodes, 0.0
    for i in range(graphs.offsets[s], graphs.offsets[s + 1]):
        _believe(i, n_labels, network, nodes[i])
    for e in range(graphs.edge_offsets[s], graphs.edge_offsets[s + 1]):
        psi = network.potentials.psi[graphs.row[e]]
        for side in range(2):
            belief, new = nodes[graphs.ends[e, side]], network.scratch[1 + side]
            _send(2 * e + side, n_labels, belief=belief, psi=psi, network=network, new=new)
        for side in range(2):
            message, new = network.beliefs.messages[2 * e + side], network.scratch[1 + side]
            change = overwrite(n_labels, message, new, network.schedule.magnified)
            largest = larger(largest, change)
    return largest


@inlined(forceinline=True)
def _iterate(s: int, n_labels: int, network: Network) -> float:
    """Run one iteration: all messages at once, or a backward sweep and then a forward sweep."""
    if network.schedule.parallel:
        return _pass_all(s, n_labels, network)
    graphs, largest = network.graphs, 0.0
    begin, end = graphs.offsets[s], graphs.offsets[s + 1]
    for k in range(end - begin):
        change = _pass_on(graphs.order[end - 1 - k], False, n_labels, network)
        largest = larger(largest, change)
    for k in range(begin, end):
        largest = larger(largest, _pass_on(graphs.order[k], True, n_labels, network))
    return largest


@inlined
def pair_belief(e: int, psi: Floats, ends: Ints, beliefs: Beliefs, pair: Floats) -> Any:
    """Fill pair [Y, Y] with the unnormalised belief of edge e, and return its sum."""
    belief_a, belief_b = beliefs.nodes[ends[e, 0]], beliefs.nodes[ends[e, 1]]
    there, back = beliefs.messages[2 * e], beliefs.messages[2 * e + 1]
    total = 0.0 * psi[0, 0]
    for a in range(len(belief_a)):
        for b in range(len(belief_b)):
            pair[a, b] = belief_a[a] / back[a] * psi[a, b] * belief_b[b] / there[b]
            total += pair[a, b]
    return total


@kernel
def propagate(first: int, last: int, network: Network) -> None:
    """Run belief propagation on graphs first:last until convergence (Yedidia et al. 2003).

        m_ij(y') ~ sum_y psi_ij(y, y') b_i(y) / m_ji(y),  b_i ~ phi_i prod_j m_ji
        log Z = sum_i log Z_i + sum_ij log (Z_ij / (Z_i Z_j))

    log Z is the Bethe approximation. It is stationary in the messages at a fixed point, and exact
    in forests.
    """
    graphs, potentials, beliefs, schedule, scratch = network
    n_labels = scratch.shape[1]
    for s in range(first, last):
        begin, end = graphs.edge_offsets[s], graphs.edge_offsets[s + 1]
        for h in range(2 * begin, 2 * end):
            for y in range(n_labels):
                beliefs.messages[h, y] = 1.0 / n_labels
        change, n = np.inf, 0
        while n < schedule.limit and not change <= schedule.tolerance:
            # The constant unrolls the loops over labels in all inlined functions.
            change = _iterate(s, 2, network) if n_labels == 2 else _iterate(s, n_labels, network)
            n += 1
        log_z = 0.0 * potentials.log_phi[0, 0]
        for i in range(graphs.offsets[s], graphs.offsets[s + 1]):
            log_z += potentials.node_shift[i]
            log_z += _believe(i, n_labels, network, beliefs.nodes[i], measured=True)
        for e in range(begin, end):
            psi = potentials.psi[graphs.row[e]]
            total = pair_belief(e, psi, graphs.ends, beliefs, pair=scratch[3:])
            log_z += log_of(total) + potentials.edge_shift[graphs.row[e]]
        beliefs.log_z[s], beliefs.changes[s], beliefs.iterations[s] = log_z, change, n


@kernel
def add_pairs(
    edges: Ints,
    method: int,
    graphs: Graphs,
    psi: Floats,
    beliefs: Beliefs,
    pair: Floats,
    residual: Floats,
) -> None:
    """Add expected minus gold label pairs of edges [n] to the residuals [R, Y, Y] of their rows.

    method: PROPAGATION, MEAN_FIELD or PSEUDO; pair: [Y, Y], a workspace.
    """
    gold, nodes = graphs.gold, beliefs.nodes
    for e in edges:
        weight, total = graphs.weights[e], residual[graphs.row[e]]
        i, j = graphs.ends[e, 0], graphs.ends[e, 1]
        if method == PSEUDO:
            for y in range(len(total)):
                total[y, gold[j]] += weight * nodes[i, y]
                total[gold[i], y] += weight * nodes[j, y]
            total[gold[i], gold[j]] -= weight
        elif method == MEAN_FIELD:
            for a in range(len(total)):
                for b in range(len(total)):
                    total[a, b] += weight * nodes[i, a] * nodes[j, b]
        else:
            total_belief = pair_belief(e, psi[graphs.row[e]], graphs.ends, beliefs, pair=pair)
            scale = weight * reciprocal(total_belief)
            for a in range(len(total)):
                for b in range(len(total)):
                    total[a, b] += scale * pair[a, b]
        if gold[i] >= 0 and gold[j] >= 0:
            total[gold[i], gold[j]] -= weight
