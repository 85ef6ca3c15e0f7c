"""Graphs for kernels: their arrays, the scores of their rows of features, and orders of nodes.

Kernels also accept complex potentials. The imaginary part of every number is then its derivative
along a direction (Vishwanathan 2006, equation 12). Comparisons use the real part.
"""

from typing import NamedTuple

from ..kernels.exp import exp_of
from ..kernels.layout import Floats, Ints
from ..kernels.numba_support import inlined, kernel
from .encoded_graphs import FeatureRows

# Lower bound of messages, so that quotients by messages are finite.
LEAST = 1e-300


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


@kernel
def exponentiate(scores: Floats, shift: Floats, powers: Floats) -> None:
    """Exponentiate scores minus the shifts of their rows: powers[i] = exp(scores[i] - shift[i]).

    scores: [n, m] float64 or complex128; shift: [n] float64; powers: [n, m], out, or `scores`.
    """
    for i in range(len(scores)):
        for j in range(scores.shape[1]):
            powers[i, j] = exp_of(scores[i, j] - shift[i])


@inlined
def larger(a: float, b: float) -> float:
    """Return the larger of two numbers; NaN if either is NaN."""
    return a if b <= a or a != a else b


@inlined(forceinline=True)
def overwrite(n: int, old: Floats, new: Floats, magnified: float) -> float:
    """Overwrite n old numbers by new ones; return the largest change, NaN if a change is NaN."""
    largest = 0.0
    for y in range(n):
        change = new[y] - old[y]
        old[y] = new[y]
        size = max(abs(change.real), abs(change.imag) * magnified)
        largest = larger(largest, size)
    return largest
