"""One training run of a batch solver: encoded corpus, solver state and current model."""

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import compatible
from ..corpus.encoded import MISSING, EncodedCorpus
from ..corpus.gold import check_gold
from ..corpus.transform import weighted, without_idle
from ..errors import Errors, SparseCRFError, Warnings, warn
from ..loss.chain import NO_COORDINATES, ChainLoss, permits, places_of
from ..loss.per_token import corpus_of_kind, warn_of_pairs
from ..loss.size import available_memory, check_fits, measure, total
from ..loss.subproblems import OutcomePart, cluster_bounds, cluster_parts
from ..loss.workspace import LIMITS, Limits
from ..model.coordinates import coordinates_of, summed, with_rest
from ..model.model import CRFModel, WeightNames, check_kind
from ..parallel import Workers
from ..penalty import ElasticNet
from ..solvers.base import CONVERGED, BatchSolver, Floats, Longs, StepReport
from ..solvers.warm_start import WarmStart
from . import checkpoint
from .run import Polish, Run, RunState

Parts = Sequence[OutcomePart | None]

NOT_POLISHED = Polish()


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """The loss of a training run and how it is computed; the penalty is separate.

    precision, observed_only, valid, also, limits: see `ChainLoss`; label_weights: [Y] float64,
    weights of sequences by gold label (see `weighted`), None = 1; limited: features that have
    weights for some labels only, see `loss.chain.permits`; kind: "chain", or "maxent" or "memm"
    for a per-position model (see `loss.per_token`); clusters: number of label clusters with
    "maxent" (see `loss.subproblems`), 0 = none.
    RAISES: SparseCRFError for an unknown kind; for clusters or valid transitions that the kind
        does not support.
    """

    precision: str = "float64"
    observed_only: bool = False
    also: Longs = field(default_factory=NO_COORDINATES.copy)
    label_weights: Floats | None = None
    limited: Longs = field(default_factory=NO_COORDINATES.copy)
    valid: NDArray[np.bool_] | None = None
    kind: str = "chain"
    clusters: int = 0
    limits: Limits = LIMITS

    def __post_init__(self) -> None:
        check_kind(self.kind)

    def identity(self) -> dict[str, Any]:
        """Return the values that identify the problem, as JSON; limits change only rounding."""
        return {
            name: checkpoint.digest(value) if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
            if name != "limits"
        }


CHAIN = Problem()


class Training:
    """Training run of a linear-chain CRF or per-position model; a step is an outer iteration.

    corpus: training corpus; labels: label strings by id; solver: a batch solver; l1, l2: the
    penalty; problem: the loss; init: model with initial weights (weights of features and labels
    that this corpus or this kind of model does not have are dropped); prior: model with the weights
    w0 that the penalty is centred on, l1 |w - w0|_1 + (l2 / 2) |w - w0|_2^2, w0 = 0 for features
    and labels that it does not have. Features of the prior that are not in the corpus keep their
    weights. warm_start: computes the first weights if l1 > 0 and there is no `init`, None for the
    default of the solver; polish: applied to each returned model; dtype: of the stored weights;
    n_threads: number of threads, 0 = one per core.
    RAISES: SparseCRFError for an invalid penalty or number of threads or clusters; for a penalty,
    kind of model, real-valued features or prior that the solver does not support; for invalid gold
    labels; for a corpus without gold labels or weight; for a prior without common features.

    The corpus is not stored, so that it can be freed. n_sequences: number of its sequences.
    """

    def __init__(
        self,
        corpus: EncodedCorpus,
        labels: Sequence[str],
        solver: BatchSolver,
        *,
        l1: float,
        l2: float,
        problem: Problem = CHAIN,
        init: CRFModel | None = None,
        prior: CRFModel | None = None,
        warm_start: WarmStart | None = None,
        polish: Polish = NOT_POLISHED,
        dtype: str = "float32",
        n_threads: int = 0,
    ) -> None:
        # Copies: labels that are added to the model later do not affect this run.
        self.n_sequences, self._prior = corpus.n_sequences, copy(prior)
        self._labels = tuple(labels)
        self._problem, self._dtype = problem, dtype
        n = problem.clusters
        self._bounds = cluster_bounds(len(self._labels), n) if n else ()
        keys = corpus.unigram_keys, corpus.bigram_keys
        start, kind = corpus.start_label, problem.kind
        self._names = WeightNames(*keys, self._labels, self._bounds, start, kind)
        self._penalty = ElasticNet(l1, l2)
        self._solver, self._polish = solver, polish
        self._warm_start = warm_start or solver.warm_start
        self._check_compatible(corpus)
        self._origin = None if prior is None else origin_of(prior, self._names)
        if problem.valid is not None:
            check_gold(corpus, self._labels, problem.valid)
        self._workers = Workers(n_threads)
        if problem.kind == "maxent":
            warn_of_pairs(corpus)
        weights = None if init is None else summed(coordinates_of(self._names, init))
        known = [each[0] for each in (weights, self._origin) if each is not None]
        self._parts, self._runs = self._make_runs(corpus, np.concatenate((NO_COORDINATES, *known)))
        self.n_potential = self.size.n_potential
        self._warn_of_idle()
        if weights is not None:
            for part, run in zip(self._parts, self._runs, strict=True):
                run.begin(*(weights if part is None else part.local_weights(*weights)))

    def close(self) -> None:
        """End the threads of the run; another step starts new ones."""
        self._workers.close()

    def _check_compatible(self, corpus: EncodedCorpus) -> None:
        """Check the facts of this run. RAISES: SparseCRFError."""
        problem = self._problem
        facts = compatible.facts_of_run(
            kind=problem.kind,
            l1=self._penalty.l1,
            l2=self._penalty.l2,
            clusters=problem.clusters,
            constrained=problem.valid is not None,
            prior=self._prior is not None,
            solver=self._solver,
            corpus=corpus,
        )
        compatible.check(facts, solver=self._solver)

    def _warn_of_idle(self) -> None:
        """Warn of settings that differ from their defaults, but have no effect in this run."""
        solver, start = self._solver, self._warm_start
        given = {own.name for own in fields(solver) if getattr(solver, own.name) != own.default}
        idle = solver.idle(self._penalty) if given else {}
        found = [(key, getattr(solver, key), idle[key]) for key in idle if key in given]
        if self._penalty.l1 == 0.0 and start.epochs:
            for key in (own.name for own in fields(start)):
                if (value := getattr(start, key)) != getattr(solver.warm_start, key):
                    found.append((f"warm_start.{key}", value, "l1 = 0 has no warm start"))
        for name, value, reason in found:
            warn(Warnings.SCW342.format(name=name, value=value, reason=reason))

    def _make_runs(self, whole: EncodedCorpus, known: Longs) -> tuple[Parts, list[Run]]:
        """Return the sub-problems, and a run for each, which is not yet started.

        known: coordinates [n] int64 of initial weights, whose features are kept.
        RAISES: SparseCRFError if memory does not suffice.
        """
        l1, problem, runs, permitted = self._penalty.l1, self._problem, list[Run](), None
        settings = self._workers, problem.precision, problem.observed_only, problem.valid
        if len(problem.limited):
            widths = whole.widths(len(self._labels))
            permitted = partial(permits, problem.limited, len(whole.unigram_keys), widths)
        parts = self._divide(whole)
        for part, corpus in parts:
            also, kept, n = problem.also, known, len(self._labels)
            if part is not None:
                n, also, kept = part.n_labels, part.own(also), part.own(kept)
            if l1 > 0.0:
                features, _ = places_of(kept, len(corpus.unigram_keys), corpus.widths(n))
                corpus = without_idle(corpus, l1, features)
            limits = permitted, also, problem.limits
            loss = ChainLoss(corpus, n, *settings, *limits, prior=self._origin)
            own = self._penalty, self._solver, self._warm_start
            runs.append(Run(loss, *own, corpus.n_sequences))
        history = getattr(self._solver, "history", 0)
        self.size = total([measure(run.loss, l1, history) for run in runs])
        check_fits(self.size, available_memory(), len(self._labels), l1)
        return [part for part, _ in parts], runs

    def _divide(self, whole: EncodedCorpus) -> Sequence[tuple[OutcomePart | None, EncodedCorpus]]:
        """Return the sub-problems to solve, None for the whole problem, each with its corpus."""
        kind = self._problem.kind
        if kind != "chain":
            whole = corpus_of_kind(whole, len(self._labels), kind)
        if self._problem.label_weights is not None:
            whole = weighted(whole, self._problem.label_weights)
        if not whole.weights.any() and (whole.labels != MISSING).any():
            raise SparseCRFError(Errors.SC356)
        if not self._bounds:
            return [(None, whole)]
        parts = cluster_parts(whole, self._bounds)
        return [each for each in parts if each[1].weights.any()] or parts

    @property
    def end(self) -> str:
        """The end of the run, "" = not all sub-problems have ended; see `StepReport`."""
        ends = {run.end for run in self._runs}
        return "" if "" in ends else max(ends)

    @property
    def converged(self) -> bool:
        """True if all sub-problems have converged."""
        return self.end == CONVERGED

    @property
    def objective(self) -> float:
        """Loss plus penalty at the current weights; infinite before the first step."""
        return math.fsum(run.objective for run in self._runs)

    def step(self) -> StepReport:
        """Do one outer iteration; the first one includes the warm start.

        Sub-problems that have ended are skipped until all have.
        """
        rest = not self.end
        n_sequences = sum(run.n_sequences for run in self._runs)
        reports, passes = [], 0.0
        for run in self._runs:
            report = run.reached() if rest and run.end else run.step()
            passes += report.passes * (run.n_sequences / n_sequences)
            reports.append(report)
        self.report = StepReport(
            objective=math.fsum(report.objective for report in reports),
            optimality=max(report.optimality for report in reports),
            n_active=sum(report.n_active for report in reports),
            passes=passes,
            converged=self.converged,
            gap=math.fsum(report.gap for report in reports),
            end=self.end,
        )
        return self.report

    def save(self, path: Path) -> None:
        """Write a checkpoint, if the run has begun; see `resume`."""
        states = [run.state for run in self._runs]
        if None not in states:
            checkpoint.save(path, self.identity, checkpoint.values_of(states))

    def resume(self, path: Path) -> None:
        """Resume a saved run, with bit-identical results.

        path: file from `save` with the same corpus, labels and settings; n_threads and settings
        that end a run may differ.
        RAISES: SparseCRFError for a damaged file, or a file of another type or another run.
        """
        values, types = checkpoint.load(path, self.identity), (RunState, self._solver.state_type)
        states = checkpoint.states_of(values, len(self._runs), *types)
        for run, state in zip(self._runs, states, strict=True):
            run.resume(state)

    @property
    def identity(self) -> str:
        """The digest of what a resumed run must share."""
        values = {
            "corpus": self._corpus_digest,
            "labels": list(self._labels),
            "penalty": [repr(self._penalty.l1), repr(self._penalty.l2)],
            **self._problem.identity(),
            "prior": "" if self._origin is None else checkpoint.digest(*self._origin),
        }
        return checkpoint.identity_of(self._solver, values)

    @cached_property
    def _corpus_digest(self) -> str:
        arrays = [each for run in self._runs for each in run.loss.arrays]
        return checkpoint.digest(self._names.unigram_keys, self._names.bigram_keys, *arrays)

    @property
    def weights(self) -> tuple[Longs, Floats]:
        """Coordinates [n] int64, ascending, and values [n] float64 of the non-zero weights."""
        return self._polished(NOT_POLISHED)

    def _polished(self, polish: Polish) -> tuple[Longs, Floats]:
        """Return `weights`, polished; runs keep the unpolished ones."""
        found = []
        for part, run in zip(self._parts, self._runs, strict=True):
            coordinates, theta = polish(run.loss, run.weights)
            if part is None:
                return coordinates, theta
            found.append((part.to_global(coordinates), theta))
        coordinates, theta = map(np.concatenate, zip(*found, strict=True))
        order = np.argsort(coordinates)
        return coordinates[order], theta[order]

    def model(self, polish: Polish | None = None, dtype: str | None = None) -> CRFModel:
        """Return the model with the current weights, polished; default: as the run says.

        Each returned model is polished, because spaCy's loop keeps the model with the best
        evaluation, not the last one. Training continues from the unpolished weights.
        """
        weights = self._polished(polish or self._polish)
        model = CRFModel.of_weights(self._names, *weights, dtype or self._dtype)
        return model if self._prior is None else with_rest(self._names, model, self._prior)


def origin_of(prior: CRFModel, names: WeightNames) -> tuple[Longs, Floats]:
    """Return coordinates [n] int64, ascending, and values [n] of a prior's weights.

    RAISES: SparseCRFError if the prior has no weights here.
    """
    found = summed(coordinates_of(names, prior))
    if prior.n_active and not len(found[0]):
        raise SparseCRFError(Errors.SC368)
    return found
