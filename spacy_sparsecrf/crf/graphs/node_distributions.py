"""Distributions of one node after the other: the naive mean field, and pseudo-likelihood."""

from typing import Any

import numpy as np

from ..kernels.exp import exp_of, log_of
from ..kernels.layout import Floats
from ..kernels.numba_support import inlined, kernel
from ..kernels.small import normalise
from .network import LEAST, Network, larger, overwrite


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
                node_change = overwrite(len(scratch[0]), nodes[i], scratch[1], schedule.magnified)
                change = larger(change, node_change)
        log_z = 0.0 * potentials.log_phi[0, 0]
        for i in range(begin, end):
            for y in range(len(log_phi[i])):
                scratch[0, y] = 0.0
            _add_neighbours(i, network, scratch[0])
            for y in range(len(log_phi[i])):
                if nodes[i, y].real > LEAST:
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
