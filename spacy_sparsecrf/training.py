"""One training run of a batch solver: an encoded corpus, a solver's state, the model so far."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .checkpoint import digest, fields_of, load, save
from .corpus import EncodedCorpus
from .loss.chain import ChainLoss
from .model import CRFModel, WeightTable
from .parallel import Workers
from .penalty import ElasticNet
from .solvers.base import BatchSolver, StepReport, check_supported
from .stages import polish, warm_start
from .working_set import WorkingSet

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]


class Training:
    """Trains a linear-chain CRF on a corpus, one outer iteration a step.

    corpus: what to learn from; labels: strings of the label ids; solver: a batch solver; l1, l2:
    the penalty; n_threads: 0 = one a core; dtype: how the model stores weights;
    precision, observed_only: see `ChainLoss`; init: weights to
    continue from (those of tests and labels that this corpus does not have are dropped).
    RAISES: SparseCRFError for bad penalties or threads, a penalty that the solver cannot minimise,
    or a corpus without gold labels.
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
        init: CRFModel | None = None,
    ) -> None:
        self._corpus = corpus
        self._labels = tuple(labels)
        self._dtype = dtype
        self._options = {"precision": precision, "observed_only": observed_only}
        self._penalty = ElasticNet(l1, l2)
        check_supported(solver, self._penalty)
        self._solver = solver
        self._loss = ChainLoss(
            corpus, len(self._labels), Workers(n_threads), precision, observed_only
        )
        self._working_set: WorkingSet | None = None
        self.n_potential = self._loss.n_potential
        if init is not None:
            self._working_set = self._start(self._coordinates_of(init))

    @property
    def converged(self) -> bool:
        """Whether further steps change nothing."""
        return self._working_set is not None and self._working_set.converged

    @property
    def objective(self) -> float:
        """Loss plus penalty at the current weights; infinite before the first step."""
        return np.inf if self._working_set is None else self._working_set.objective

    def step(self) -> StepReport:
        """Do one outer iteration; the first has the warm start in it."""
        n_epochs = 0
        if self._working_set is None:
            sparse = self._penalty.l1 > 0.0
            n_epochs = self._solver.warm_start_epochs if sparse else 0
            first = warm_start(self._loss, self._penalty, n_epochs, self._solver.seed)
            if self._solver.stochastic and n_epochs == 0 and sparse:
                coordinates = self._loss.descent_coordinates()
                first = coordinates, np.zeros(len(coordinates))
            self._working_set = self._start(first)
        report = self._working_set.step()
        return replace(report, passes=report.passes + n_epochs)

    def save(self, path: Path) -> None:
        """Write the state of the run to a file, once it has begun; see `resume`."""
        if self._working_set is not None:
            save(path, self._identity(), self._working_set.values())

    def resume(self, path: Path) -> None:
        """Go on where a run was saved: to the same weights, bit for bit.

        path: of `save`, by a run with the same corpus, labels and settings, save n_threads.
        RAISES: SparseCRFError for another file, or one of another run.
        """
        values = load(path, self._identity())
        parts = self._loss, self._penalty, self._solver
        self._working_set = WorkingSet.restore(*parts, values)

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

    def _start(self, initial: tuple[Longs, Floats]) -> WorkingSet:
        return WorkingSet(self._loss, self._penalty, self._solver, initial)

    @property
    def weights(self) -> tuple[Longs, Floats]:
        """Coordinates [n] int64, ascending, and values [n] float64 of the non-zero weights."""
        if self._working_set is None:
            return np.empty(0, np.int64), np.empty(0)
        return self._working_set.weights

    @property
    def _n_previous(self) -> int:
        return len(self._labels) + int(self._corpus.start_label)

    def model(self) -> CRFModel:
        """The model with the weights that are active now, polished where the solver says so.

        Polished each time that it is taken: spaCy's loop keeps the model that it has evaluated
        best, not the last. Training goes on from the weights as they were.
        """
        solver = self._solver
        coordinates, theta = polish(
            self._loss, self.weights, solver.polish_iterations, solver.polish_l2
        )
        n = len(self._labels)
        split = len(self._corpus.unigram_keys) * n
        unigram = coordinates < split
        pairs = coordinates[~unigram] - split
        return CRFModel(
            self._labels,
            self._dtype,
            self._table(
                self._corpus.unigram_keys,
                coordinates[unigram] // n,
                None,
                coordinates[unigram] % n,
                theta[unigram],
            ),
            self._table(
                self._corpus.bigram_keys,
                pairs // (n * self._n_previous),
                pairs // n % self._n_previous,
                pairs % n,
                theta[~unigram],
            ),
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
        here = {label: i for i, label in enumerate(self._labels)}
        # The last entry maps the start label.
        relabel = np.array([*(here.get(label, -1) for label in model.labels), -1], np.int64)
        relabel[-1] = len(self._labels) if self._corpus.start_label else -1
        n = len(self._labels)
        parts = []
        for table, keys, base, n_previous in (
            (model.unigram, self._corpus.unigram_keys, 0, 1),
            (
                model.bigram,
                self._corpus.bigram_keys,
                len(self._corpus.unigram_keys) * n,
                self._n_previous,
            ),
        ):
            test = np.repeat(_places(keys, table.keys), np.diff(table.indptr))
            label = relabel[:-1][table.labels]
            pair = relabel[table.previous] if n_previous > 1 else np.zeros_like(label)
            known = (test >= 0) & (label >= 0) & (pair >= 0)
            coordinates = base + (test * n_previous + pair) * n + label
            parts.append((coordinates[known], table.values[known].astype(np.float64)))
        coordinates = np.concatenate([part[0] for part in parts])
        order = np.argsort(coordinates)
        return coordinates[order], np.concatenate([part[1] for part in parts])[order]


def _places(keys: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> Longs:
    """Position of each wanted key among distinct keys, -1 where it is not there."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(keys)
    place = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    return np.where(keys[place] == wanted, place, -1)
