"""Online training on batches of a corpus that is never loaded as a whole."""

from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..corpus.encoded import EncodedCorpus
from ..errors import Errors, SparseCRFError
from ..loss.chain import ChainLoss
from ..loss.per_token import corpus_of_kind, warn_of_pairs
from ..loss.working import WorkingLoss
from ..model.coordinates import Keys, WeightNames, summed
from ..model.model import CRFModel, check_clusters, check_kind
from ..parallel import Workers
from ..penalty import ElasticNet
from ..solvers.base import Floats, Longs, check_supported, unsupported
from ..solvers.streaming import Batch, Columns, StreamSolver, Terms
from .checkpoint import (
    ROWS,
    EvaluationLog,
    digest,
    expect,
    identity_of,
    loaded,
    prefixed,
    save,
    without_prefix,
)
from .weight_store import WeightStore

Stores = tuple[WeightStore, WeightStore]

# Default number of examples that count as a pass over a streamed corpus.
DEFAULT_HORIZON = 10_000
# A separate seed for the order in which calibration visits its sample.
_CALIBRATION = 2**32


class Stream:
    """Online training run of a linear-chain CRF or per-position model, on batches of sequences.

    The objective is l1 |w|_1 + l2 / 2 |w|_2^2 + the loss of N examples, N being the horizon.
    Weights are created when needed, as if they had been zero from the beginning. With l1, a feature
    gets weights for labels (or label pairs) that occur with it in a batch, and all its weights once
    it has a quarter of them. Without l1, it gets all its weights when it first occurs. The set of
    labels is fixed. Examples are visited in a single thread.

    sample: some first sequences, to calibrate the step size; labels: label strings by id; solver: a
    streaming solver; whole: whether the sample is the whole corpus, whose size is then the horizon
    unless the solver sets one; init: model with initial weights; other arguments: see `Training`.
    RAISES: SparseCRFError for settings that the solver, or online training, does not support.
    """

    def __init__(
        self,
        sample: EncodedCorpus,
        labels: Sequence[str],
        solver: StreamSolver,
        *,
        l1: float,
        l2: float,
        dtype: str = "float32",
        precision: str = "float64",
        kind: str = "chain",
        clusters: int = 0,
        whole: bool = False,
        init: CRFModel | None = None,
        prior: CRFModel | None = None,
    ) -> None:
        check_clusters(check_kind(kind), clusters)
        if clusters:
            raise SparseCRFError(Errors.SC383.format(clusters=clusters))
        penalty = ElasticNet(l1, l2)
        lacking = unsupported(
            penalty, kind, values=len(sample.value_features) > 0, shifted=prior is not None
        )
        check_supported(solver, lacking)
        warn_of_pairs(sample, kind)
        self._labels = tuple(labels)
        self._solver, self._prior = solver, copy(prior)
        self._dtype = dtype
        self._precision = precision
        self._kind = kind
        self._start_label = sample.start_label
        self._workers = Workers(1)
        solver.check_streamable()
        self._totals = solver.begin_stream(penalty)
        self._n_updates = 0
        self._stores = self._new_stores(init)
        loss = self._loss(sample)
        horizon = solver.horizon or (loss.n_examples if whole else DEFAULT_HORIZON)
        self._terms = Terms(penalty, horizon)
        if self._totals.get("eta") == 0.0:
            # A temporary view: weights that only the sample needs are discarded.
            view = self._view(self._new_stores(init), sample, loss)
            batch = Batch(view.working, self._rng(_CALIBRATION))
            columns = self._caught_up(*view.read())
            solver.calibrate_stream(batch, columns, self._totals, self._terms)

    def _new_stores(self, init: CRFModel | None) -> Stores:
        """Create stores of unigram and bigram weights; init: model with first weights, or None."""
        n, solver = len(self._labels), self._solver
        widths = n, n * (n + int(self._start_label))
        kinds = solver.stream_columns, solver.stream_marks
        stores = WeightStore(widths[0], *kinds), WeightStore(widths[1], *kinds)
        if init is not None:
            for store, table in zip(stores, (init.unigram, init.bigram), strict=True):
                store.rows(table.keys, self._marks)
            weights = self._names(stores[0].keys, stores[1].keys).coordinates_of(init)
            coordinates, theta = self._with_prior(weights, stores, -1.0)
            split = stores[0].n_features * n
            unigram = coordinates < split
            for store, base, own in ((stores[0], 0, unigram), (stores[1], split, ~unigram)):
                slots = store.add(*np.divmod(coordinates[own] - base, store.width))
                store.write(slots, {"theta": theta[own]})
        return stores

    def _names(self, unigram_keys: Keys, bigram_keys: Keys) -> WeightNames:
        keys = unigram_keys, bigram_keys
        return WeightNames(*keys, self._labels, (), self._start_label, self._kind)

    @property
    def _marks(self) -> dict[str, float]:
        """The marks of features whose weights are up to date."""
        return {name: self._totals[name] for name in self._solver.stream_marks}

    @property
    def n_features(self) -> int:
        """Number of features seen so far."""
        return sum(store.n_features for store in self._stores)

    @property
    def n_weights(self) -> int:
        """Number of stored weights, zero or not."""
        return sum(store.n_weights for store in self._stores)

    @property
    def progress(self) -> str:
        """Short description of the state of the run."""
        counts = f"{self.n_features} features, {self.n_weights} weights held"
        return f"{self._n_updates} batches, {counts}"

    def learn(self, corpus: EncodedCorpus) -> float:
        """Visit the examples of a batch once, in a random order.

        corpus: the batch; sequences without gold labels are ignored.
        RETURNS: the result of the solver's `learn`: a sum of losses, or of errors.
        RAISES: SparseCRFError if training diverges; the weights are then unchanged.
        """
        seen = corpus_of_kind(corpus, len(self._labels), self._kind)
        if not (seen.labels >= 0).any():
            return 0.0
        view = self._view(self._stores, corpus, self._loss(corpus))
        columns, totals = self._caught_up(*view.read()), dict(self._totals)
        batch = Batch(view.working, self._rng(self._n_updates))
        value = self._solver.learn(batch, columns, totals, self._terms)
        if not (np.isfinite(value) and np.isfinite(columns["theta"]).all()):
            raise SparseCRFError(Errors.SC338.format(solver=type(self._solver).__name__))
        self._totals = totals
        self._n_updates += 1
        view.write(columns, self._marks)
        if self._solver.must_settle(totals):
            self._settle()
        return value

    def _loss(self, corpus: EncodedCorpus) -> ChainLoss:
        n, origin = len(self._labels), None
        own = corpus_of_kind(corpus, n, self._kind)
        if self._prior is not None:
            names = self._names(corpus.unigram_keys, corpus.bigram_keys)
            origin = summed(names.coordinates_of(self._prior))
        return ChainLoss(own, n, self._workers, self._precision, prior=origin)

    def _view(self, stores: Stores, corpus: EncodedCorpus, loss: ChainLoss) -> "StreamView":
        n_bigram = 0 if self._kind == "maxent" else len(corpus.bigram_keys)
        keys = corpus.unigram_keys, corpus.bigram_keys[:n_bigram]
        return StreamView(stores, keys, loss, self._terms.penalty.l1 == 0.0, self._marks)

    def _caught_up(self, columns: Columns, since: Columns) -> Columns:
        """Bring stored columns of weights up to date; since: the marks of their features."""
        self._solver.catch_up(columns, since, self._totals, self._terms)
        return columns

    def _rng(self, number: int) -> np.random.Generator:
        return np.random.default_rng([self._solver.seed, number])

    def _settled(self, store: WeightStore) -> Columns:
        """Return copies of the columns of all weights, brought up to date."""
        return self._caught_up(*store.read(np.arange(store.n_weights)))

    def _settle(self) -> None:
        """Bring all weights up to date, so that the running totals can be reset."""
        columns = [self._settled(store) for store in self._stores]
        self._solver.settled(self._totals)
        for store, values in zip(self._stores, columns, strict=True):
            store.write(np.arange(store.n_weights), values)
            store.mark(np.arange(store.n_features), self._marks)

    @property
    def weights(self) -> tuple[Longs, Floats]:
        """Coordinates [n] int64, ascending, and values [n] float64 of the non-zero weights.

        Coordinates assume a corpus with the features in order of arrival.
        """
        coordinates, values, base = [], [], 0
        for store in self._stores:
            theta = self._solver.stream_weights(self._settled(store), self._totals)
            active = np.flatnonzero(theta)
            active = active[np.argsort(store.coordinates[active])]
            coordinates.append(base + store.coordinates[active])
            values.append(theta[active])
            base += store.n_features * store.width
        found = np.concatenate(coordinates), np.concatenate(values)
        return self._with_prior(found, self._stores, 1.0)

    def _with_prior(
        self, weights: tuple[Longs, Floats], stores: Stores, factor: float
    ) -> tuple[Longs, Floats]:
        """Add the prior's weights of the features seen so far, times a factor, to weights."""
        if self._prior is None:
            return weights
        names = self._names(stores[0].keys, stores[1].keys)
        coordinates, theta = names.coordinates_of(self._prior)
        return summed(weights, (coordinates, factor * theta))

    def model(self) -> CRFModel:
        """Return the model with the current weights; the run is not changed."""
        names = self._names(self._stores[0].keys, self._stores[1].keys)
        return names.model(*self.weights, self._dtype, rest=self._prior)

    def save(self, path: Path, rows: EvaluationLog | None = None) -> None:
        """Write a checkpoint, if the run has begun; see `Training.save`."""
        if not self._n_updates:
            return
        values = prefixed("totals.", self._totals) | {"n_updates": self._n_updates}
        for i, store in enumerate(self._stores):
            values |= prefixed(f"{i}.", store.values())
        save(path, self._identity(), values, rows)

    def resume(self, path: Path) -> EvaluationLog:
        """Resume a saved run: the same batches then give bit-identical weights.

        path: file written by `save` with the same labels, settings and horizon.
        RETURNS: the evaluation log of that run.
        RAISES: SparseCRFError for a damaged file, or a file of another type or another run.
        """
        with loaded(path, self._identity()) as values:
            totals = without_prefix("totals.", values)
            of_stores = [without_prefix(f"{i}.", values) for i in range(len(self._stores))]
            expect(totals, {name: type(value) for name, value in self._totals.items()}, {})
            n_updates = {"n_updates": values.pop("n_updates", None)}
            expect(n_updates, {"n_updates": int}, {})
            of_log = without_prefix(ROWS, values)
            rows = EvaluationLog.of(of_log, self._labels, path)
            if len(of_log) + len(totals) + sum(map(len, of_stores)) != len(values):
                raise ValueError(f"it has {', '.join(values)}"[:500])
            self._totals, self._n_updates = totals, n_updates["n_updates"]
            self._stores = self._new_stores(None)
            for store, own in zip(self._stores, of_stores, strict=True):
                store.restore(own)
        return rows

    def _identity(self) -> dict[str, Any]:
        """Return the values that a resumed run must share."""
        prior = self._prior
        return {
            "stream": True,
            "labels": list(self._labels),
            **identity_of(self._solver, self._terms.penalty),
            "horizon": self._terms.horizon,
            "precision": self._precision,
            "kind": self._kind,
            "start_label": self._start_label,
            "prior": "" if prior is None else digest(np.frombuffer(prior.to_bytes(), np.uint8)),
        }


class StreamView:
    """The weights of a batch's features: their numbers in the loss, and their slots in the stores.

    stores: of unigram and of bigram features; keys: [O] uint64 each, the unigram and the bigram
    features by their number in the batch; loss: of the batch; dense: whether all potential weights
    are needed; marks: of new features.
    working: the loss on these weights.
    """

    def __init__(
        self,
        stores: Stores,
        keys: tuple[NDArray[np.uint64], NDArray[np.uint64]],
        loss: ChainLoss,
        dense: bool,
        marks: dict[str, float],
    ) -> None:
        found, base = [], 0
        for store, own in zip(stores, keys, strict=True):
            rows = store.rows(own, marks)
            owner, slots = store.slots(rows)
            known = owner * store.width + store.coordinates[slots] % store.width
            found.append((store, rows, base, known, slots))
            base += len(own) * store.width
        if dense:
            coordinates = loss.all_coordinates()
        else:
            known = np.concatenate([base + known for _, _, base, known, _ in found])
            coordinates = loss.descent_coordinates(known)
        self.working: WorkingLoss = loss.restrict(coordinates, stochastic=True)
        split = int(np.searchsorted(coordinates, found[1][2]))
        # For each type of feature: the store, rows and slots, and the range of its weights in [K].
        self._kinds = [
            (store, rows, _placed(store, rows, coordinates[span] - base, known, slots), span)
            for (store, rows, base, known, slots), span in zip(
                found, (slice(None, split), slice(split, None)), strict=True
            )
        ]

    def read(self) -> tuple[Columns, Columns]:
        """Return stored columns of the weights, and marks of their features, [K] each."""
        both = [store.read(slots) for store, _, slots, _ in self._kinds]
        columns, since = (
            {name: np.concatenate((a[name], b[name])) for name in a}
            for a, b in zip(*both, strict=True)
        )
        return columns, since

    def write(self, columns: Columns, marks: dict[str, float]) -> None:
        """Store the columns of the weights, [K] each, and the marks of their features."""
        for store, rows, slots, span in self._kinds:
            store.write(slots, {name: values[span] for name, values in columns.items()})
            store.mark(rows, marks)


def _placed(
    store: WeightStore, rows: Longs, coordinates: Longs, known: Longs, slots: Longs
) -> Longs:
    """Return the slots of coordinates [n]; add weights that are not among `known`."""
    placed: Longs = np.full(len(coordinates), -1)
    placed[np.searchsorted(coordinates, known)] = slots
    new = placed < 0
    feature, place = np.divmod(coordinates[new], store.width)
    placed[new] = store.add(rows[feature], place)
    return placed
