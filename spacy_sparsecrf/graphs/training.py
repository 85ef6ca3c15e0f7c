"""Training of chains with additional edges between tokens of a sequence (skip chains)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..corpus.encoded import EncodedCorpus
from ..corpus.numbering import find_keys
from ..errors import Errors, SparseCRFError
from ..loss.lattice import Csr, Floats, Longs
from ..loss.size import Size, available_memory, check_fits
from ..loss.subproblems import Part
from ..pipeline.graph_settings import Inference
from ..solvers.base import BatchSolver, Need
from ..training.checkpoint import digest
from ..training.training import Training
from ..training.working_set import Run
from .encoded import EncodedGraph, FeatureRows, Links
from .loss import GraphLoss

# Requirements of solvers that support only chains.
_OF_CHAINS: frozenset[Need] = frozenset(("single tokens", "memory", "all sequences"))
# Vectors of weights that a solver holds, without its history.
_N_VECTORS = 16


@dataclass(frozen=True)
class GraphPart(Part):
    """A problem of graphs; places: [K] int64, coordinate in the chain of each weight."""

    places: Longs

    def to_global(self, coordinates: Longs) -> Longs:
        """Return chain coordinates, [n] int64, of graph coordinates."""
        found: Longs = self.places[coordinates]
        return found

    def to_local(self, coordinates: Longs) -> Longs:
        """Return graph coordinates, [n] int64, of chain coordinates; -1 if there is none."""
        return find_keys(self.places, coordinates)


class GraphRun(Run):
    """Minimises the loss of graphs; the initial working set contains the observed features."""

    def _warm_up(self) -> int:
        first = self.loss.descent_coordinates()
        self._start(first, np.zeros(len(first)))
        return 0


class GraphTraining(Training):
    """Trains a model with edges between tokens; each step is an outer iteration.

    links: edges beyond the chain; inference: settings for log Z; others: see `Training`.
    RAISES: SparseCRFError as `Training`, and for a solver or settings that support only chains.
    """

    def __init__(
        self,
        corpus: EncodedCorpus,
        labels: Sequence[str],
        solver: BatchSolver,
        *,
        links: Links,
        inference: Inference,
        **options: Any,
    ) -> None:
        if solver.requires & _OF_CHAINS:
            raise SparseCRFError(Errors.SC376.format(solver=type(solver).__name__))
        for key, value, needed in ("observed_only", "true", "false"), ("prior", "a pipeline", '""'):
            if options.get(key):
                values = {"key": f"learning] {key}", "value": value, "needed": needed}
                raise SparseCRFError(Errors.SC377.format(**values))
        self._links, self._inference = links, inference
        keys = np.concatenate((corpus.bigram_keys, links.keys))
        super().__init__(replace(corpus, bigram_keys=keys), labels, solver, **options)

    def _make_runs(self, known: Longs | None = None) -> list[Run]:
        (part,) = self._divide(self._corpus)
        corpus, n = part.corpus, part.n_labels
        graphs, places = linked(corpus, self._links, n)
        loss: Any = GraphLoss(graphs, n, self._workers, self._inference)
        n_observed = len(corpus.unigram_keys) + len(corpus.bigram_keys)
        history = getattr(self._solver, "history", 0)
        arrays = 8 * (
            n**2 * 3 * loss.field.n_rows + n * (6 * corpus.n_tokens + 2 * len(graphs.ends))
        )
        n_bytes = arrays + 8 * (_N_VECTORS + history) * loss.n_potential
        self.size = Size(n_observed, loss.n_potential, loss.n_potential, n_bytes)
        check_fits(self.size, available_memory(), n, self._penalty.l1)
        whole = GraphPart(corpus, n, places)
        return [GraphRun(whole, loss, self._penalty, self._solver)]

    def _joined(self, of_runs: list[tuple[Longs, Floats]]) -> tuple[Longs, Floats]:
        coordinates, theta = of_runs[0]
        order = np.argsort(coordinates)
        return coordinates[order], theta[order]

    def _identity(self) -> dict[str, Any]:
        links = digest(self._links.ends, self._links.kinds, self._links.keys)
        return {**super()._identity(), "links": links, "inference": vars(self._inference)}


def linked(corpus: EncodedCorpus, links: Links, n_labels: int) -> tuple[EncodedGraph, Longs]:
    """Return the graphs of a corpus, and the chain coordinate [K] int64 of each of their weights.

    corpus: its last bigram features are the features of links. At the first token of a sequence, a
    bigram feature becomes a node feature, as the previous label is the start label.
    """
    y, n_kinds = n_labels, len(links.keys)
    n_unigram, n_bigram = len(corpus.unigram_keys), len(corpus.bigram_keys)
    n_starts = n_bigram if corpus.start_label else 0
    lengths = np.diff(corpus.offsets)
    begins = corpus.offsets[:-1][lengths > 0]
    contexts = Csr(corpus.ctx_indptr, corpus.ctx_indices)
    first = contexts.take(corpus.context[begins].astype(np.int64))
    if not (links.chain and corpus.start_label):
        begins, first = begins[:0], first.take(begins[:0])
    nodes = _node_rows(corpus, begins, first)
    ends, edge_offsets, row = links.edges(corpus.offsets, corpus.context, len(contexts))
    own_features = np.arange(n_bigram - n_kinds, n_bigram)
    features = np.concatenate((contexts.indices, own_features)).astype(np.int32)
    indptr = np.append(contexts.indptr, contexts.indptr[-1] + 1 + np.arange(n_kinds))
    graphs = EncodedGraph(
        offsets=corpus.offsets,
        edge_offsets=edge_offsets,
        labels=corpus.labels,
        weights=corpus.weights,
        ends=ends.astype(np.int32),
        nodes=nodes,
        row=row,
        pairs=FeatureRows(indptr, features, np.ones(len(features))),
        node_keys=np.concatenate((corpus.unigram_keys, corpus.bigram_keys[:n_starts])),
        edge_keys=corpus.bigram_keys,
        sets=corpus.sets,
    )
    # By feature of a pair: (feature * P + y') * Y + y, after all unigram weights.
    n_previous = y + int(corpus.start_label)
    pairs = n_unigram * y + np.arange(n_bigram)[:, None] * n_previous * y
    starts = (pairs + y * y + np.arange(y))[:n_starts]
    places = np.arange(n_unigram * y), starts.ravel(), (pairs + np.arange(y * y)).ravel()
    return graphs, np.concatenate(places)


def _node_rows(corpus: EncodedCorpus, begins: Longs, first: Csr) -> FeatureRows:
    """Return the features of tokens: unigram, real-valued, and bigram where a sequence begins."""
    token, value = np.nonzero(corpus.values) if len(corpus.value_features) else (begins[:0],) * 2
    tokens: list[Longs] = [
        np.repeat(np.arange(corpus.n_tokens), np.diff(corpus.uni_indptr)),
        token,
        np.repeat(begins, np.diff(first.indptr)),
    ]
    features: list[Any] = [
        corpus.uni_indices,
        corpus.value_features[value],
        len(corpus.unigram_keys) + first.indices.astype(np.int64),
    ]
    numbers = corpus.values[token, value] if len(token) else np.empty(0)
    values = [np.ones(len(features[0])), numbers, np.ones(len(features[2]))]
    by_token = np.argsort(np.concatenate(tokens), kind="stable")
    counts = sum(np.bincount(each, minlength=corpus.n_tokens) for each in tokens)
    return FeatureRows(
        np.append(0, np.cumsum(counts)).astype(np.int64),
        np.concatenate(features).astype(np.int32)[by_token],
        np.concatenate(values).astype(np.float64)[by_token],
    )
