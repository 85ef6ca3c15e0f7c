"""Inference in general graphs: belief propagation, mean field and pseudo-likelihood.

Messages are the rows of one array: row 2e goes from the first node of edge e to its second node,
row 2e + 1 back. Kernels also accept complex potentials. The imaginary part of every result is then
its derivative along a direction (Vishwanathan 2006, equation 12). Comparisons use the real part.
"""

from typing import Any, NamedTuple

import numpy as np

from ..kernels.exp import exp_of, log_of
from ..kernels.layout import Floats, Ints
from ..kernels.numba_support import inlined, kernel
from ..kernels.small import normalise, reciprocal
from .encoded_graphs import FeatureRows

# Lower bound of messages, so that quotients by messages are finite.
_LEAST = 1e-300
# Number of messages that are multiplied before the product is normalised.
_TOGETHER = 8

PROPAGATION, MEAN_FIELD, PSEUDO = 0, 1, 2


class Graphs(NamedTuple):
    """A batch of graphs: N nodes, E edges, Y labels, R distinct rows of edge features.

    offsets, edge_offsets: [S + 1] int64, nodes and edges of each graph; ends: [E, 2] int32, nodes
    of an edge; half_ptr [N + 1] int64, halves [2 E] int32: CSR, outgoing messages of a node; order:
    [N] int32, nodes of each graph in the order of sweeps; rank: [N] int32, position of a node in
    `order`; row: [E] int32, row of an edge's potential; gold: [N] int32, observed labels, -1 for
    none; weights: [E] float64, weight of an edge's graph.
    """

    offsets: Ints
    edge_offsets: Ints
    ends: Ints
    half_ptr: Ints
    halves: Ints
    order: Ints
    rank: Ints
    row: Ints
    gold: Ints
    weights: Floats


class GraphPotentials(NamedTuple):
    """Potentials of nodes [N, Y] and of edges [R, Y, Y], and their logarithms.

    phi, psi: exp of log_phi - node_shift [N], and of log_psi - edge_shift [R].
    """

    log_phi: Floats
    log_psi: Floats
    phi: Floats
    psi: Floats
    node_shift: Floats
    edge_shift: Floats


class Beliefs(NamedTuple):
    """Results of inference.

    nodes: [N, Y], probabilities; messages: [2 E, Y]; log_z: [S], log Z, or the method's substitute;
    changes: [S], largest change of a message or belief in the last iteration; iterations: [S]
    int64.
    """

    nodes: Floats
    messages: Floats
    log_z: Floats
    changes: Floats
    iterations: Ints


class Schedule(NamedTuple):
    """The order and damping of messages.

    parallel: whether all messages are updated at once, else in a backward and a forward sweep;
    best: max-product instead of sum-product; damping: share of the old message that is kept;
    tolerance: largest change of a message at convergence; limit: maximum number of iterations;
    magnified: factor of derivatives in comparisons.
    """

    parallel: bool
    best: bool
    damping: float
    tolerance: float
    limit: int
    magnified: float


class Network(NamedTuple):
    """Graphs with their potentials, results and schedule; scratch: [3 + Y, Y], a workspace."""

    graphs: Graphs
    potentials: GraphPotentials
    beliefs: Beliefs
    schedule: Schedule
    scratch: Floats


@kernel
def score_rows(chosen: Ints, rows: FeatureRows, table: Floats, scores: Floats) -> None:
    """Score chosen rows [n], scores[r] = sum of value * table[feature].

    table: [O, W]; scores: [R, W], out.
    """
    indptr, features, values = rows
    for r in chosen:
        for y in range(scores.shape[1]):
            scores[r, y] = 0.0
        for j in range(indptr[r], indptr[r + 1]):
            for y in range(scores.shape[1]):
                scores[r, y] += values[j] * table[features[j], y]


@kernel
def scatter_rows(chosen: Ints, rows: FeatureRows, residual: Floats, table: Floats) -> None:
    """Add the residuals [R, W] of chosen rows [n] to their features: `score_rows` transposed."""
    indptr, features, values = rows
    for r in chosen:
        for j in range(indptr[r], indptr[r + 1]):
            for y in range(residual.shape[1]):
                table[features[j], y] += values[j] * residual[r, y]


@kernel
def order_trees(
    first: int, last: int, graphs: Graphs, parent: Ints, is_tree: Ints, queue: Ints
) -> None:
    """Order the nodes of graphs first:last: trees first, breadth first, so that one sweep is exact.

    The other nodes follow in their original order. graphs: `order`, out; parent: [N] int32, -1,
    is_tree: [N] bool, and queue: [N] int32, workspaces.
    """
    for s in range(first, last):
        begin, end = graphs.offsets[s], graphs.offsets[s + 1]
        n_ordered = begin
        for root in range(begin, end):
            if parent[root] >= 0:
                continue
            head, tail = n_ordered, n_ordered + 1
            queue[head], parent[root], n_halves = root, root, 0
            while head < tail:
                i = queue[head]
                head += 1
                for k in range(graphs.half_ptr[i], graphs.half_ptr[i + 1]):
                    h = graphs.halves[k]
                    j = graphs.ends[h >> 1, 1 - (h & 1)]
                    n_halves += 1
                    if parent[j] < 0:
                        parent[j] = i
                        queue[tail] = j
                        tail += 1
            for k in range(n_ordered, tail):
                is_tree[queue[k]] = n_halves == 2 * (tail - n_ordered - 1)
            n_ordered = tail
        position = begin
        for k in range(begin, end):
            if is_tree[queue[k]]:
                graphs.order[position] = queue[k]
                position += 1
        for i in range(begin, end):
            if not is_tree[i]:
                graphs.order[position] = i
                position += 1


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
        if new[y].real < _LEAST:
            new[y] = _LEAST


@inlined
def _larger(a: float, b: float) -> float:
    """Return the larger of two numbers; NaN if either is NaN."""
    return a if b <= a or a != a else b


@inlined(forceinline=True)
def _replace(n: int, old: Floats, new: Floats, magnified: float) -> float:
    """Overwrite n old numbers by new ones; return the largest change, NaN if a change is NaN."""
    largest = 0.0
    for y in range(n):
        change = new[y] - old[y]
        old[y] = new[y]
        size = max(abs(change.real), abs(change.imag) * magnified)
        largest = _larger(largest, size)
    return largest


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
            change = _replace(n_labels, beliefs.messages[h], new, network.schedule.magnified)
            largest = _larger(largest, change)
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
            change = _replace(n_labels, message, new, network.schedule.magnified)
            largest = _larger(largest, change)
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
        largest = _larger(largest, change)
    for k in range(begin, end):
        largest = _larger(largest, _pass_on(graphs.order[k], True, n_labels, network))
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
def exponentiate(scores: Floats, shift: Floats, powers: Floats) -> None:
    """Exponentiate scores minus the shifts of their rows: powers[i] = exp(scores[i] - shift[i]).

    scores: [n, m] float64 or complex128; shift: [n] float64; powers: [n, m], out, or `scores`.
    """
    for i in range(len(scores)):
        for j in range(scores.shape[1]):
            powers[i, j] = exp_of(scores[i, j] - shift[i])


@inlined
def _exponentiate(scores: Floats, belief: Floats) -> Any:
    """Write the softmax of scores [Y] to `belief`, and return the log normaliser."""
    shift = scores[0].real
    for y in range(1, len(scores)):
        shift = max(shift, scores[y].real)
    for y in range(len(scores)):
        belief[y] = exp_of(scores[y] - shift)
    return shift + log_of(normalise(len(scores), belief))


@inlined
def _add_neighbours(i: int, network: Network, scores: Floats) -> None:
    """Add to scores [Y] of node i its edges' log potentials, expected over neighbours' beliefs."""
    graphs = network.graphs
    for k in range(graphs.half_ptr[i], graphs.half_ptr[i + 1]):
        h = graphs.halves[k]
        psi, back = network.potentials.log_psi[graphs.row[h >> 1]], h & 1
        other = network.beliefs.nodes[graphs.ends[h >> 1, 1 - back]]
        for a in range(len(scores)):
            for b in range(len(scores)):
                scores[a] += (psi[b, a] if back else psi[a, b]) * other[b]


@kernel
def fit_mean_field(first: int, last: int, network: Network) -> None:
    """Run the naive mean field on graphs first:last, updating one node after the other.

        b_i ~ phi_i exp(sum_j E_{b_j} log psi_ij),  log Z >= E_b log(phi psi) + sum_i H(b_i)

    Initial beliefs ignore edges.
    """
    graphs, potentials, beliefs, schedule, scratch = network
    nodes, log_phi = beliefs.nodes, potentials.log_phi
    for s in range(first, last):
        begin, end = graphs.offsets[s], graphs.offsets[s + 1]
        for i in range(begin, end):
            _exponentiate(log_phi[i], nodes[i])
        change, n = np.inf, 0
        while n < schedule.limit and not change <= schedule.tolerance:
            change, n = 0.0, n + 1
            for k in range(begin, end):
                i = graphs.order[k]
                for y in range(len(log_phi[i])):
                    scratch[0, y] = log_phi[i, y]
                _add_neighbours(i, network, scratch[0])
                _exponentiate(scratch[0], scratch[1])
                node_change = _replace(len(scratch[0]), nodes[i], scratch[1], schedule.magnified)
                change = _larger(change, node_change)
        log_z = 0.0 * potentials.log_phi[0, 0]
        for i in range(begin, end):
            for y in range(len(log_phi[i])):
                scratch[0, y] = 0.0
            _add_neighbours(i, network, scratch[0])
            for y in range(len(log_phi[i])):
                if nodes[i, y].real > _LEAST:
                    # Each edge is counted at both of its nodes.
                    score = log_phi[i, y] + 0.5 * scratch[0, y]
                    log_z += nodes[i, y] * (score - log_of(nodes[i, y]))
        beliefs.log_z[s], beliefs.changes[s], beliefs.iterations[s] = log_z, change, n


@kernel
def condition_nodes(first: int, last: int, network: Network) -> None:
    """Find each node's distribution given gold labels of its neighbours, in graphs first:last.

    log_z is sum_i log z_i - sum_ij log psi_ij(gold) (Vishwanathan 2006, equations 13 to 15): minus
    the score of gold labels, it is the negative log pseudo-likelihood.
    """
    graphs, potentials, beliefs, _, scratch = network
    gold, log_psi, scores = graphs.gold, potentials.log_psi, scratch[0]
    for s in range(first, last):
        log_z = 0.0 * potentials.log_phi[0, 0]
        for i in range(graphs.offsets[s], graphs.offsets[s + 1]):
            for y in range(len(scores)):
                scores[y] = potentials.log_phi[i, y]
            for k in range(graphs.half_ptr[i], graphs.half_ptr[i + 1]):
                h = graphs.halves[k]
                psi, back = log_psi[graphs.row[h >> 1]], h & 1
                other = gold[graphs.ends[h >> 1, 1 - back]]
                for y in range(len(scores)):
                    scores[y] += psi[other, y] if back else psi[y, other]
            log_z += _exponentiate(scores, beliefs.nodes[i])
        for e in range(graphs.edge_offsets[s], graphs.edge_offsets[s + 1]):
            a, b = gold[graphs.ends[e, 0]], gold[graphs.ends[e, 1]]
            log_z -= log_psi[graphs.row[e], a, b]
        beliefs.log_z[s], beliefs.changes[s], beliefs.iterations[s] = log_z, 0.0, 1


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
