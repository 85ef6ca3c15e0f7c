"""Inference of the beliefs of graphs at given weights, and its arrays."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...errors import Errors, SparseCRFError, Warnings, warn
from ..corpus.numbering import Array, Floats, Ints, Longs, Mask, concatenated_ranges
from ..corpus.ragged import by_key, pointers
from ..kernels.indexing import take
from ..kernels.layout import Csr
from ..parallel import Chunks, Workers, cut, dot
from .belief_propagation import add_pairs, propagate
from .encoded_graphs import EncodedGraph, FeatureRows
from .network import (
    Beliefs,
    GraphPotentials,
    Graphs,
    Network,
    Schedule,
    exponentiate,
    order_trees,
    scatter_rows,
    score_rows,
)
from .node_distributions import condition_nodes, fit_mean_field

METHODS = ("lbp", "mean_field", "pseudo_likelihood")
_SCHEDULES = ("sweep", "parallel")
# Inference kernel of each method; kernels number methods in this order.
_INFER = dict(zip(METHODS, (propagate, fit_mean_field, condition_nodes), strict=True))
# Log potential of impossible labels and pairs; finite, as 0 times infinity is NaN.
NEVER = -1e30
_N_CHUNKS = 64

# Complex step, so small that the real part is exact to all digits.
STEP = 1e-60


@dataclass(frozen=True, kw_only=True)
class Inference:
    """The approximation of log Z and marginals of graphs.

    method: "lbp", loopy belief propagation, which is exact in forests; "mean_field";
        "pseudo_likelihood".
    schedule: order of messages: "sweep", forward and backward by node, or "parallel", all at once.
    damping: share of the old message that is kept, 0 <= damping < 1.
    limit: maximum of iterations; graphs that have not converged by then raise warning SCW370.
    tolerance: inference has converged if no message, or mean-field belief, changes by more.
    RAISES: SparseCRFError for a value that is unknown or out of range.
    """

    method: str = "lbp"
    schedule: str = "sweep"
    damping: float = 0.0
    limit: int = 200
    tolerance: float = 1e-8

    def __post_init__(self) -> None:
        for key, valid, expected in (
            ("method", self.method in METHODS, f"one of {', '.join(METHODS)}"),
            ("schedule", self.schedule in _SCHEDULES, f"one of {', '.join(_SCHEDULES)}"),
            ("damping", 0 <= self.damping < 1, "at least 0 and below 1"),
            ("limit", self.limit >= 1, "at least 1"),
            ("tolerance", self.tolerance >= 0, "at least 0"),
        ):
            if not valid:
                value = getattr(self, key)
                raise SparseCRFError(Errors.SC373.format(key=key, value=value, expected=expected))


class WeightTables(NamedTuple):
    """Weights of features for each label [O, Y] and each pair of labels [P, Y * Y]."""

    nodes: Array
    pairs: Array


class InferenceSpace(NamedTuple):
    """Potentials and beliefs, all real or all complex, and residuals.

    left: [N, Y], residuals of nodes; residual: [R, Y, Y], of rows of edges: expected minus gold.
    """

    potentials: GraphPotentials
    beliefs: Beliefs
    left: Array
    residual: Array


class GraphInference:
    """Encoded graphs laid out for inference, and workspaces for their potentials and beliefs.

    Potentials are sums of weights. graphs: encoded graphs; n_labels: Y; gold: [N] int32, labels
    that count as observed, -1 for none; permitted: [n, Y] bool, labels that the last n nodes may
    have; inference: settings.
    n_weights: K: weights of node features, then of edge features (see `EncodedGraph`); by_row: [E]
    int64, edges sorted by row; chunks, row_chunks: chunks of graphs, and of `by_row`; n_rows: R,
    rows of edges.
    """

    def __init__(
        self, graphs: EncodedGraph, n_labels: int, gold: Ints, permitted: Mask, inference: Inference
    ) -> None:
        n, n_rows = n_labels, len(graphs.pairs.indptr) - 1
        self.n_rows, self.n_labels, self.inference = n_rows, n, inference
        self._has_warned = False
        self.arrays = _laid_out(graphs, gold)
        sizes = np.diff(graphs.offsets) + np.diff(graphs.edge_offsets)
        self.chunks: Chunks = cut(sizes, _N_CHUNKS)
        self.graphs, self._permitted = graphs, permitted
        self.ties = graphs.node_ties, graphs.pair_ties
        widths = [None if tie is None else tie.shape[1] for tie in self.ties]
        self._shapes = (
            (len(graphs.node_keys), n if widths[0] is None else widths[0]),
            (len(graphs.edge_keys), n * n if widths[1] is None else widths[1]),
        )
        self.split, n_pairs = (int(np.prod(shape)) for shape in self._shapes)
        self.n_weights = self.split + n_pairs
        self._node_weights = np.repeat(graphs.weights, np.diff(graphs.offsets))
        self.by_row = np.argsort(graphs.row, kind="stable")
        per_row = np.bincount(graphs.row, minlength=n_rows)
        ends = pointers(per_row).tolist()
        self.row_chunks = [(ends[a], ends[b]) for a, b in cut(per_row, _N_CHUNKS)]
        self._score_chunks = cut(np.zeros(n_rows, np.int64), _N_CHUNKS)

    @cached_property
    def real(self) -> InferenceSpace:
        """Workspace of real numbers."""
        return self._space(np.float64)

    @cached_property
    def complex(self) -> InferenceSpace:
        """Workspace of complex numbers, whose imaginary parts are derivatives."""
        return self._space(np.complex128)

    def _space(self, dtype: Any) -> InferenceSpace:
        n, y, s = len(self.arrays.order), self.n_labels, len(self.arrays.offsets) - 1

        def of_nodes() -> Array:
            return np.zeros((n, y), dtype)

        def of_rows() -> Array:
            return np.zeros((self.n_rows, y, y), dtype)

        return InferenceSpace(
            potentials=GraphPotentials(
                log_phi=of_nodes(),
                log_psi=of_rows(),
                phi=of_nodes(),
                psi=of_rows(),
                node_shift=np.zeros(n),
                edge_shift=np.zeros(self.n_rows),
            ),
            beliefs=Beliefs(
                nodes=of_nodes(),
                messages=np.zeros((2 * len(self.arrays.ends), y), dtype),
                log_z=np.zeros(s, dtype),
                changes=np.zeros(s),
                iterations=np.zeros(s, np.int64),
            ),
            left=of_nodes(),
            residual=of_rows(),
        )

    def warn(self, space: InferenceSpace, graphs: slice = slice(None)) -> None:
        """Warn, once, if beliefs of some graphs have not converged."""
        changes, n = space.beliefs.changes[graphs], self.inference.limit
        open_ = ~(changes <= self.inference.tolerance)
        if not self._has_warned and open_.any():
            self._has_warned = True
            counts = {"n": int(open_.sum()), "of": len(changes), "limit": n}
            warn(Warnings.SCW370.format(**counts, change=float(changes[open_].max())))

    def tables(self, theta: Array) -> WeightTables:
        """Return the weights theta [K] by label and by label pair."""
        nodes, pairs = (
            np.ascontiguousarray(table if tie is None else table @ tie.T)
            for table, tie in zip(self._divided(theta), self.ties, strict=True)
        )
        return WeightTables(nodes, pairs)

    def _divided(self, theta: Array) -> WeightTables:
        """Return views of numbers by weight [K]: the weights of nodes, and of edges, by feature."""
        nodes, pairs = theta[: self.split], theta[self.split :]
        return WeightTables(nodes.reshape(self._shapes[0]), pairs.reshape(self._shapes[1]))

    def score_pairs(self, rows: Longs, tables: WeightTables, space: InferenceSpace) -> None:
        """Compute the potentials of rows [n] of edges."""
        flat = space.potentials.log_psi.reshape(self.n_rows, self.n_labels**2)
        score_rows(rows, self.graphs.pairs, tables.pairs, flat)
        psi = space.potentials.log_psi[rows]
        shift = psi.real.max(axis=(1, 2), initial=-np.inf)
        chosen = psi.reshape(len(psi), self.n_labels**2)
        exponentiate(chosen, shift, chosen)
        space.potentials.edge_shift[rows] = shift
        space.potentials.psi[rows] = psi

    def infer(
        self, first: int, last: int, tables: WeightTables, space: InferenceSpace, best: bool = False
    ) -> None:
        """Score the nodes of graphs first:last, and infer; rows of edges must be scored before.

        best: whether beliefs are max-marginals (max-product) instead of marginals.
        """
        begin, end = (int(self.graphs.offsets[s]) for s in (first, last))
        potentials, nodes = space.potentials, np.arange(begin, end)
        score_rows(nodes, self.graphs.nodes, tables.nodes, potentials.log_phi)
        log_phi = potentials.log_phi[begin:end]
        restricted = self.graphs.n_nodes - len(self._permitted)
        if end > restricted:
            permitted = self._permitted[max(begin - restricted, 0) : end - restricted]
            log_phi[len(log_phi) - len(permitted) :][~permitted] = NEVER
        shift = log_phi.real.max(axis=1, initial=-np.inf)
        potentials.node_shift[begin:end] = shift
        exponentiate(log_phi, shift, potentials.phi[begin:end])
        settings = self.inference
        network = Network(
            graphs=self.arrays,
            potentials=potentials,
            beliefs=space.beliefs,
            schedule=Schedule(
                parallel=settings.schedule == "parallel",
                best=best,
                damping=settings.damping,
                tolerance=settings.tolerance,
                limit=settings.limit,
                magnified=1.0 / STEP,
            ),
            scratch=np.zeros((3 + self.n_labels, self.n_labels), log_phi.dtype),
        )
        _INFER[settings.method](first, last, network)

    def infer_all(self, theta: Array, workers: Workers, best: bool = False) -> InferenceSpace:
        """Infer beliefs of all graphs at weights theta [K], and return their workspace."""
        tables, space = self.tables(theta), self.real
        workers.map(
            lambda first, last: self.score_pairs(np.arange(first, last), tables, space),
            self._score_chunks,
        )
        workers.map(
            lambda first, last: self.infer(first, last, tables, space, best=best), self.chunks
        )
        self.warn(space)
        return space

    def add_pairs(self, edges: Longs, space: InferenceSpace) -> None:
        """Add the residuals of edges [n] to their rows, from the beliefs in the workspace."""
        method = METHODS.index(self.inference.method)
        pair = np.zeros((self.n_labels, self.n_labels), space.residual.dtype)
        add_pairs(
            edges,
            method,
            graphs=self.arrays,
            psi=space.potentials.psi,
            beliefs=space.beliefs,
            pair=pair,
            residual=space.residual,
        )

    def settle(self, nodes: slice, edges: slice, space: InferenceSpace) -> float:
        """Write residuals of nodes. RETURNS: the weighted score of gold labels, including edges."""
        gold, potentials = self.arrays.gold, space.potentials
        weights, left = self._node_weights[nodes], space.left[nodes]
        left[:] = weights[:, None] * space.beliefs.nodes[nodes]
        labelled = np.flatnonzero(gold[nodes] >= 0)
        labels, gold_weights = gold[nodes][labelled], weights[labelled]
        left[labelled, labels] -= gold_weights
        score = dot(gold_weights, potentials.log_phi.real[nodes][labelled, labels])
        pairs = gold[self.graphs.ends[edges]]
        is_gold = (pairs >= 0).all(axis=1)
        a, b = pairs[is_gold].T
        of_edges = potentials.log_psi.real[self.graphs.row[edges][is_gold], a, b]
        return score + dot(self.arrays.weights[edges][is_gold], of_edges)

    def scatter(
        self,
        nodes: Longs,
        rows: Longs,
        *,
        node_residual: Array,
        pair_residual: Array,
        total: Array,
        power: int = 1,
    ) -> None:
        """Add residuals of nodes [n] and of rows [m] of edges to the totals [K] of their weights.

        node_residual, pair_residual: of all nodes and rows, multiplied by feature values to this
        power.
        """
        totals = self._divided(total)
        _scatter(
            nodes,
            self.graphs.nodes,
            residual=node_residual,
            total=totals.nodes,
            tie=self.ties[0],
            power=power,
        )
        _scatter(
            rows,
            self.graphs.pairs,
            residual=pair_residual,
            total=totals.pairs,
            tie=self.ties[1],
            power=power,
        )

    def curvature(self) -> Floats:
        """Return the curvature of all weights; see `graphs.graph_loss.GraphLoss.curvature`."""
        graphs, p = self.graphs, self.real.beliefs.nodes
        nodes = np.maximum(self._node_weights, 0.0)[:, None] * p * (1.0 - p)
        n_pairs = self.n_labels**2
        edges = np.bincount(graphs.row, np.maximum(self.arrays.weights, 0.0), self.n_rows)
        pairs = np.repeat(edges[:, None] * (1.0 - 1.0 / n_pairs) / n_pairs, n_pairs, axis=1)
        total = np.zeros(self.n_weights)
        self.scatter(
            np.arange(len(p)),
            np.arange(self.n_rows),
            node_residual=nodes,
            pair_residual=pairs,
            total=total,
            power=2,
        )
        return total


def _scatter(
    chosen: Longs,
    rows: FeatureRows,
    *,
    residual: Array,
    total: Array,
    tie: Floats | None,
    power: int,
) -> None:
    """Do `GraphInference.scatter` for chosen nodes, or rows of edges, [n].

    rows: their features; total: [O, W], by feature; tie: [.., W], see `EncodedGraph`.
    """
    if power != 1:
        rows = rows._replace(values=rows.values**power)
    if tie is None:
        scatter_rows(chosen, rows, residual.reshape(-1, total.shape[1]), total)
        return
    untied = np.zeros((len(total), len(tie)), total.dtype)
    scatter_rows(chosen, rows, residual.reshape(-1, len(tie)), untied)
    total += untied @ tie**power


def _laid_out(graphs: EncodedGraph, gold: Ints) -> Graphs:
    """Return the arrays of graphs for kernels. gold: see `GraphInference`."""
    ends, n = graphs.ends, graphs.n_nodes
    # Message h leaves node ends.ravel()[h].
    half_ptr, halves = by_key(ends.ravel(), n)
    order, rank = np.empty(n, np.int32), np.empty(n, np.int32)
    arrays = Graphs(
        offsets=graphs.offsets,
        edge_offsets=graphs.edge_offsets,
        ends=ends,
        half_ptr=half_ptr,
        halves=halves,
        order=order,
        rank=rank,
        row=graphs.row,
        gold=gold,
        weights=np.repeat(graphs.weights, np.diff(graphs.edge_offsets)),
    )
    order_trees(
        0,
        graphs.n_graphs,
        arrays,
        parent=np.full(n, -1, np.int32),
        is_tree=np.zeros(n, np.bool_),
        queue=np.empty(n, np.int32),
    )
    rank[order] = np.arange(n, dtype=np.int32)
    return arrays


def selected(graphs: EncodedGraph, chosen: Longs) -> EncodedGraph:
    """Return the chosen graphs [n], in the given order; a graph may be chosen twice."""
    if np.array_equal(chosen, np.arange(graphs.n_graphs)):
        return graphs
    n_nodes = np.diff(graphs.offsets)[chosen]
    n_edges = np.diff(graphs.edge_offsets)[chosen]
    nodes = concatenated_ranges(graphs.offsets[:-1][chosen], n_nodes)
    edges = concatenated_ranges(graphs.edge_offsets[:-1][chosen], n_edges)
    offsets = pointers(n_nodes)
    shift = np.repeat(offsets[:-1] - graphs.offsets[:-1][chosen], n_edges)
    entries = np.arange(len(graphs.nodes.features), dtype=np.int32)
    features = take(Csr(graphs.nodes.indptr, entries), nodes)
    return replace(
        graphs,
        offsets=offsets,
        edge_offsets=pointers(n_edges),
        labels=graphs.labels[nodes],
        weights=graphs.weights[chosen],
        ends=(graphs.ends[edges] + shift[:, None]).astype(np.int32),
        nodes=FeatureRows(
            features.indptr,
            graphs.nodes.features[features.indices],
            graphs.nodes.values[features.indices],
        ),
        row=graphs.row[edges],
    )
