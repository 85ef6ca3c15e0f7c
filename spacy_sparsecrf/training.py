"""One training run of a batch solver: an encoded corpus, a solver's state, the model so far."""

import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .checkpoint import digest, fields_of, load, save
from .corpus import EncodedCorpus, places
from .errors import SparseCRFWarning, Warnings
from .loss.chain import ChainLoss
from .loss.local import local_corpus
from .loss.parts import Part, cluster_bounds, cluster_parts
from .model import CRFModel, WeightTable, check_clusters, check_kind, n_clusters
from .parallel import Workers
from .penalty import ElasticNet
from .run import Run
from .solvers.base import BatchSolver, StepReport, check_supported

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]


class Training:
    """Trains a linear-chain CRF, or a per-position model, on a corpus, an outer iteration a step.

    corpus: what to learn from; labels: strings of the label ids; solver: a batch solver; l1, l2:
    the penalty; n_threads: 0 = one a core; dtype: how the model stores weights;
    precision, observed_only: see `ChainLoss`; kind: "chain", or "maxent" or "memm" for the loss of
    a per-position model (see `loss.local`); clusters: of labels, with "maxent" (see `loss.parts`),
    0 for none; init: weights to continue from (those of tests and labels that this corpus does
    not have, or the model cannot have, are dropped).
    RAISES: SparseCRFError for bad penalties, threads or clusters, a penalty or kind of model that
    the solver cannot minimise, or a corpus without gold labels.
    """

    def __init__(
        self,
        corpus: EncodedCorpus,
        labels: Sequence[str],
        solver: BatchSolver,
        *,
        l1: float,
        l2: float,
        n_threads: int = 0,
        dtype: str = "float32",
        precision: str = "float64",
        observed_only: bool = False,
        kind: str = "chain",
        clusters: int = 0,
        init: CRFModel | None = None,
    ) -> None:
        check_clusters(check_kind(kind), clusters)
        self._corpus = corpus
        self._labels = tuple(labels)
        self._dtype = dtype
        self._kind = kind
        self._bounds = cluster_bounds(len(self._labels), clusters)
        self._options = {
            "precision": precision,
            "observed_only": observed_only,
            "kind": kind,
            "clusters": clusters,
        }
        self._penalty = ElasticNet(l1, l2)
        check_supported(solver, self._penalty, kind)
        self._solver = solver
        workers = Workers(n_threads)
        self._runs = []
        for part in self._divide(corpus):
            loss = ChainLoss(part.corpus, part.n_labels, workers, precision, observed_only)
            self._runs.append(Run(part, loss, self._penalty, solver))
        self.n_potential = sum(run.n_potential for run in self._runs)
        if init is not None:
            self.begin(*self._coordinates_of(init))

    def begin(self, coordinates: Longs, theta: Floats, l1: float | None = None) -> None:
        """Begin, or begin anew, with given weights instead of the solver's warm start.

        coordinates: [n] int64, distinct; theta: [n] float64; l1: another one, or None.
        """
        if l1 is not None:
            self._penalty = ElasticNet(l1, self._penalty.l2)
        for run in self._runs:
            run.begin(coordinates, theta, self._penalty)

    def change_l1(self, l1: float) -> None:
        """Go on from the weights so far with another l1 > 0; before the first step only take it.

        RAISES: SparseCRFError for a penalty that the solver cannot minimise.
        """
        self._penalty = ElasticNet(l1, self._penalty.l2)
        check_supported(self._solver, self._penalty, self._kind)
        for run in self._runs:
            run.change(self._penalty)

    def largest_gradient(self) -> float:
        """The smallest l1 at which all weights are zero; see `ChainLoss.largest_gradient`."""
        return max(run.largest_gradient() for run in self._runs)

    def _divide(self, corpus: EncodedCorpus) -> list[Part]:
        """The problems that are to be solved, each with its corpus."""
        whole = self._cut(corpus)
        if self._bounds:
            return cluster_parts(whole, self._bounds)
        return [Part(whole, len(self._labels))]

    def _cut(self, corpus: EncodedCorpus) -> EncodedCorpus:
        """The corpus as the kind of model sees it."""
        if self._kind == "chain":
            return corpus
        if self._kind == "maxent" and len(corpus.bigram_keys):
            message = Warnings.SCW340.format(n=len(corpus.bigram_keys))
            warnings.warn(message, SparseCRFWarning, stacklevel=3)
        return local_corpus(corpus, len(self._labels), pairs=self._kind == "memm")

    @property
    def converged(self) -> bool:
        """Whether further steps change nothing."""
        return all(run.converged for run in self._runs)

    @property
    def objective(self) -> float:
        """Loss plus penalty at the current weights; infinite before the first step."""
        return sum(run.objective for run in self._runs)

    def step(self) -> StepReport:
        """Do one outer iteration; the first has the warm start in it.

        Parts that have converged rest until all have.
        """
        rest = not self.converged
        n_sequences = sum(run.n_sequences for run in self._runs)
        reports, passes = [], 0.0
        for run in self._runs:
            report = run.reached if rest and run.converged else run.step()
            passes += report.passes * (run.n_sequences / n_sequences)
            reports.append(report)
        return StepReport(
            objective=sum(report.objective for report in reports),
            optimality=max(report.optimality for report in reports),
            n_active=sum(report.n_active for report in reports),
            passes=passes,
            converged=self.converged,
        )

    def save(self, path: Path) -> None:
        """Write the state of the run to a file, once it has begun; see `resume`."""
        values = {
            f"{i}.{name}": value
            for i, run in enumerate(self._runs)
            for name, value in run.values().items()
        }
        if values:
            save(path, self._identity(), values)

    def resume(self, path: Path) -> None:
        """Go on where a run was saved: to the same weights, bit for bit.

        path: of `save`, by a run with the same corpus, labels and settings, save n_threads.
        RAISES: SparseCRFError for another file, or one of another run.
        """
        values = load(path, self._identity())
        for i, run in enumerate(self._runs):
            prefix = f"{i}."
            own = {k.removeprefix(prefix): v for k, v in values.items() if k.startswith(prefix)}
            run.restore(own)

    def _identity(self) -> dict[str, Any]:
        """What a run and its continuation must have in common."""
        return {
            "corpus": self._corpus_digest,
            "labels": list(self._labels),
            "solver": [type(self._solver).__name__, *map(str, vars(self._solver).items())],
            "l1": repr(self._penalty.l1),
            "l2": repr(self._penalty.l2),
            **self._options,
        }

    @cached_property
    def _corpus_digest(self) -> str:
        return digest(*map(np.asarray, fields_of(self._corpus).values()))

    @property
    def weights(self) -> tuple[Longs, Floats]:
        """Coordinates [n] int64, ascending, and values [n] float64 of the non-zero weights."""
        return self._joined([run.weights for run in self._runs])

    def _joined(self, parts: list[tuple[Longs, Floats]]) -> tuple[Longs, Floats]:
        """The weights of all runs, ascending."""
        if not self._bounds:
            return parts[0]
        coordinates, theta = _concatenated(parts)
        order = np.argsort(coordinates)
        return coordinates[order], theta[order]

    @property
    def _n_outcomes(self) -> int:
        return len(self._labels) + n_clusters(self._bounds)

    @property
    def _n_previous(self) -> int:
        return len(self._labels) + int(self._corpus.start_label)

    def model(self) -> CRFModel:
        """The model with the weights that are active now, polished where the solver says so.

        Polished each time that it is taken: spaCy's loop keeps the model that it has evaluated
        best, not the last. Training goes on from the weights as they were.
        """
        coordinates, theta = self._joined([run.polished() for run in self._runs])
        n, n_outcomes = len(self._labels), self._n_outcomes
        split = len(self._corpus.unigram_keys) * n_outcomes
        unigram = coordinates < split
        pairs = coordinates[~unigram] - split
        return CRFModel(
            self._labels,
            self._dtype,
            self._table(
                self._corpus.unigram_keys,
                coordinates[unigram] // n_outcomes,
                None,
                coordinates[unigram] % n_outcomes,
                theta[unigram],
            ),
            self._table(
                self._corpus.bigram_keys,
                pairs // (n * self._n_previous),
                pairs // n % self._n_previous,
                pairs % n,
                theta[~unigram],
            ),
            self._kind,
            self._bounds,
        )

    def _table(
        self,
        keys: NDArray[np.uint64],
        tests: Longs,
        previous: Longs | None,
        labels: Longs,
        theta: Floats,
    ) -> WeightTable:
        """Pack the weights of one kind; those that underflow the stored type are dropped."""
        values = theta.astype(self._dtype)
        kept = values != 0.0
        # Stored in ascending order of hash; inside a test in that of the coordinates.
        order = np.flatnonzero(kept)[np.argsort(keys[tests[kept]], kind="stable")]
        active, first = np.unique(keys[tests[order]], return_index=True)
        pairs = np.empty(0, np.uint16) if previous is None else previous[order].astype(np.uint16)
        return WeightTable(
            keys=active,
            indptr=np.append(first, len(order)).astype(np.int64),
            previous=pairs,
            labels=labels[order].astype(np.uint16),
            values=values[order],
        )

    def _coordinates_of(self, model: CRFModel) -> tuple[Longs, Floats]:
        """Coordinates and weights of a model's tests and labels that this corpus has."""
        n = len(self._labels)
        here = {label: i for i, label in enumerate(self._labels)}
        relabel = np.array([here.get(label, -1) for label in model.labels], np.int64)
        clusters = np.arange(n, n + n_clusters(model.bounds))
        if (model.labels, model.bounds) != (self._labels, self._bounds):
            # Clusters of other labels are others.
            clusters = np.full_like(clusters, -1)
        outcome = np.concatenate((relabel, clusters))[model.unigram.labels]
        tables = [(model.unigram, self._corpus.unigram_keys, 0, outcome, self._n_outcomes)]
        if self._kind != "maxent":
            start = n if self._corpus.start_label else -1
            previous = np.append(relabel, start)[model.bigram.previous]
            label = relabel[model.bigram.labels]
            pair = np.where((previous >= 0) & (label >= 0), previous * n + label, -1)
            keys, base = self._corpus.bigram_keys, len(self._corpus.unigram_keys) * n
            tables.append((model.bigram, keys, base, pair, self._n_previous * n))
        parts = []
        for table, keys, base, place, width in tables:
            test = np.repeat(places(keys, table.keys), np.diff(table.indptr))
            known = (test >= 0) & (place >= 0)
            coordinates = base + test[known] * width + place[known]
            parts.append((coordinates, table.values[known].astype(np.float64)))
        return _concatenated(parts)


def _concatenated(parts: list[tuple[Longs, Floats]]) -> tuple[Longs, Floats]:
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
