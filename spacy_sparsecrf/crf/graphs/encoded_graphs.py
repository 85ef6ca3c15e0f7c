"""Graphs as arrays: nodes with labels, edges between nodes, features of nodes and of edges."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ...errors import Errors, SparseCRFError
from ..corpus.encoded import MISSING
from ..corpus.numbering import Floats, Hashes, Ints, Longs, Mask, distinct_rows, number_features
from ..corpus.ragged import pointers, row_numbers


class Observed(NamedTuple):
    """Features of n nodes, or of n edges.

    hashes: [n, P] uint64, of features, or of names of real values; 0 for none. Edges of different
    types have features with different hashes: only edges of one type share weights. values: [n, P]
    float64, finite, or None if all are 1.
    """

    hashes: Hashes
    values: Floats | None = None


class FeatureRows(NamedTuple):
    """Features of nodes or edges by row: CSR.

    indptr: [R + 1] int64; features: [nnz] int32; values: [nnz] float64.
    """

    indptr: Longs
    features: Ints
    values: Floats


@dataclass(frozen=True)
class EncodedGraph:
    """A batch of S graphs with N nodes and E edges.

    The score of labels y is sum_i sum_o x_i[o] mu[o, y_i] + sum_ij sum_o x_ij[o] lam[o, y_i, y_j].

    offsets, edge_offsets: [S + 1] int64, nodes and edges of a graph.
    labels: [N] int32, sets: [Q, Y] bool, as in `EncodedCorpus`.
    weights: [S] float64, >= 0, of a graph's log-likelihood.
    ends: [E, 2] int32, the nodes of an edge.
    nodes: features of nodes; pairs: features of edges, distinct rows; row: [E] int32, row of an
        edge; node_keys, edge_keys: [O] uint64, hashes of features.
    node_ties: [Y, W], mu[o, y] = sum_w node_ties[y, w] theta[o, w], or None if each label has a
        separate weight; pair_ties: [Y * Y, W], the same for label pairs.
    RAISES: SparseCRFError for an edge from a node to itself, or to another graph.
    """

    offsets: Longs
    edge_offsets: Longs
    labels: Ints
    weights: Floats
    ends: Ints
    nodes: FeatureRows
    row: Ints
    pairs: FeatureRows
    node_keys: Hashes
    edge_keys: Hashes
    sets: Mask = field(default_factory=lambda: np.zeros((0, 0), np.bool_))
    node_ties: Floats | None = None
    pair_ties: Floats | None = None

    def __post_init__(self) -> None:
        graph = row_numbers(self.edge_offsets)
        begin, end = self.offsets[graph], self.offsets[graph + 1]
        outside = ((self.ends < begin[:, None]) | (self.ends >= end[:, None])).any(axis=1)
        circular = self.ends[:, 0] == self.ends[:, 1]
        for wrong, error in (outside, Errors.SC371), (circular, Errors.SC372):
            if wrong.any():
                e = int(np.argmax(wrong))
                nodes = (self.ends[e] - begin[e]).tolist()
                edge = e - int(self.edge_offsets[graph[e]])
                raise SparseCRFError(error.format(edge=edge, graph=int(graph[e]), nodes=nodes))

    @property
    def n_graphs(self) -> int:
        """Number of graphs S."""
        return len(self.weights)

    @property
    def n_nodes(self) -> int:
        """Number of nodes N."""
        return len(self.labels)


class AddedGraph(NamedTuple):
    """The arguments of `GraphBuilder.add`."""

    nodes: Observed
    ends: Ints
    edges: Observed
    labels: Ints
    weight: float


class GraphBuilder:
    """Collects graphs into an `EncodedGraph`."""

    def __init__(self) -> None:
        self._added: list[AddedGraph] = []

    def add(
        self,
        nodes: Observed,
        ends: Ints,
        edges: Observed,
        labels: Ints | None = None,
        weight: float = 1.0,
    ) -> None:
        """Append a graph of n nodes and m edges.

        nodes: of n nodes; ends: [m, 2] integers, nodes from 0; edges: of m edges; labels: [n], gold
        label ids, -1 if missing, default: all missing; weight: of the graph's log-likelihood.
        RAISES: SparseCRFError for arrays of inconsistent lengths, or values that are not finite.
        """
        n, ends = len(nodes.hashes), np.asarray(ends, np.int32).reshape(-1, 2)
        labels = np.full(n, MISSING) if labels is None else np.asarray(labels)
        values = [features.values for features in (nodes, edges) if features.values is not None]
        fits = len(labels) == n and len(ends) == len(edges.hashes)
        if not fits or not all(np.isfinite(array).all() for array in values):
            raise SparseCRFError(Errors.SC370.format(graph=len(self._added)))
        graph = AddedGraph(
            nodes=nodes, ends=ends, edges=edges, labels=labels.astype(np.int32), weight=weight
        )
        self._added.append(graph)

    def build(
        self, node_ties: Floats | None = None, pair_ties: Floats | None = None
    ) -> EncodedGraph:
        """Return the graphs added so far, with numbered features; ties: see `EncodedGraph`.

        RAISES: SparseCRFError if no graph was added, and for invalid edges.
        """
        if not self._added:
            raise SparseCRFError(Errors.SC302)
        graphs = self._added
        offsets = pointers([len(graph.labels) for graph in graphs])
        edge_offsets = pointers([len(graph.ends) for graph in graphs])
        ends = [graph.ends + begin for graph, begin in zip(graphs, offsets[:-1], strict=True)]
        hashes, values = _joined([graph.nodes for graph in graphs])
        node_keys, nodes = _rows(hashes, values)
        hashes, values = _joined([graph.edges for graph in graphs])
        representatives, row = distinct_rows(np.hstack((hashes, values.view(np.uint64))))
        edge_keys, pairs = _rows(hashes[representatives], values[representatives])
        return EncodedGraph(
            offsets=offsets.astype(np.int64),
            edge_offsets=edge_offsets.astype(np.int64),
            labels=np.concatenate([graph.labels for graph in graphs]),
            weights=np.array([graph.weight for graph in graphs], dtype=np.float64),
            ends=np.concatenate(ends).astype(np.int32),
            nodes=nodes,
            row=row,
            pairs=pairs,
            node_keys=node_keys,
            edge_keys=edge_keys,
            node_ties=node_ties,
            pair_ties=pair_ties,
        )


def _joined(parts: Sequence[Observed]) -> tuple[Hashes, Floats]:
    """Concatenate the hashes and values of all parts, padded to the widest part."""
    width = max(part.hashes.shape[1] for part in parts)
    hashes, values = [], []
    for part in parts:
        numbers = 1.0 if part.values is None else part.values
        more = (0, 0), (0, width - part.hashes.shape[1])
        hashes.append(np.pad(part.hashes, more))
        values.append(np.pad(np.where(part.hashes != 0, numbers, 0.0), more))
    return np.concatenate(hashes), np.concatenate(values)


def _rows(hashes: Hashes, values: Floats) -> tuple[Hashes, FeatureRows]:
    """Return the keys of the features, and the rows."""
    keys, indptr, features = number_features(hashes)
    return keys, FeatureRows(indptr, features, values[hashes != 0])
