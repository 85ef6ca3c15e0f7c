"""Toy graphs as corpora."""

from typing import Any

import numpy as np

from spacy_sparsecrf.crf.graphs.encoded_graphs import EncodedGraph, GraphBuilder, Observed

from ..reference import ToyGraph


def encoded(graphs: list[ToyGraph], weights: Any = None, ties: Any = ()) -> EncodedGraph:
    builder = GraphBuilder()
    for i, graph in enumerate(graphs):
        nodes = Observed(np.tile(np.array([5, 3], np.uint64), (len(graph.nodes), 1)), graph.nodes)
        hashes = np.tile(np.array([9, 7], np.uint64), (len(graph.edges), 1))
        # A number that is zero is the same as an absent feature.
        hashes[graph.numbers == 0.0] = 0
        builder.add(
            nodes,
            np.array(graph.edges),
            Observed(hashes.reshape(-1, 2), graph.numbers),
            graph.labels,
            weights[i] if weights else 1.0,
        )
    return builder.build(*ties)
