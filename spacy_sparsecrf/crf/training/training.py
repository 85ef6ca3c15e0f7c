"""One training run of a batch solver: encoded corpus, solver state and current model."""

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ... import compatible
from ...errors import Errors, SparseCRFError, Warnings, warn
from ...schema import reported_as
from ..corpus.coordinates import NO_COORDINATES, Coordinates, Weights
from ..corpus.encoded import MISSING, EncodedCorpus
from ..corpus.gold import check_gold, check_paths
from ..corpus.numbering import Floats, Longs, Mask
from ..corpus.transform import weighted, without_idle
from ..loss.chain_loss import ChainLoss
from ..loss.per_token import local_corpus, warn_of_pairs
from ..loss.protocols import Loss
from ..loss.size import check_fits, total
from ..loss.subproblems import OutcomePart, cluster_bounds, cluster_parts
from ..loss.workspace import LIMITS, Limits
from ..loss.wrappers import Shifted, observed_only
from ..memory import available_memory
from ..model.model import CRFModel, WeightNames, check_kind
from ..model.weights_of_run import coordinates_of, summed, with_rest
from ..parallel import Workers
from ..penalty import ElasticNet
from ..solvers.solver import CONVERGED, BatchSolver, StepReport
from ..solvers.warm_start import WarmStart
from . import checkpoint
from .run import Polish, Run, RunState

# A sub-problem and its corpus; None for the whole problem.
Part = tuple[OutcomePart | None, EncodedCorpus]

NOT_POLISHED = Polish()


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """The loss of a training run and how it is computed; the penalty is separate.

    precision, valid, limits: see `ChainLoss`; observed_only: whether features have weights only for
    gold labels (or gold label pairs) with which they occur; also: coordinates [n] that count as
    observed there; label_weights: [Y] float64, weights of sequences by gold label (see `weighted`),
    None = 1; kind: "chain", or "maxent" or "memm" for a per-position model (see `loss.per_token`);
    clusters: number of label clusters with "maxent" (see `loss.subproblems`), 0 = none.
    RAISES: SparseCRFError for an unknown kind; for clusters or valid transitions that the kind
        does not support.
    """

    precision: str = "float64"
    observed_only: bool = False
    also: Longs = field(default_factory=NO_COORDINATES.copy)
    label_weights: Floats | None = None
    valid: Mask | None = None
    kind: str = "chain"
    clusters: int = 0
    limits: Limits = LIMITS

    def __post_init__(self) -> None:
        check_kind(self.kind)

    def identity(self) -> dict[str, Any]:
        """Return the values that identify the problem, as JSON; limits change only rounding."""
        values = {setting.name: getattr(self, setting.name) for setting in fields(self)}
        del values["limits"]
        return {
            name: checkpoint.digest(value) if isinstance(value, np.ndarray) else value
            for name, value in values.items()
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
    n_threads: number of threads, 0 = one per core; make_loss: returns the loss of the corpus
    without the options of weights, None for that of a chain or per-position model.
    RAISES: SparseCRFError for an invalid penalty or number of threads or clusters; for a penalty,
    kind of model, real-valued features or prior that the solver does not support; for invalid gold
    labels; for valid transitions without a path of some length; for a corpus without gold labels or
    weight; for a prior without common features.

    The corpus is not stored, so that it can be freed. n_sequences: number of its sequences.
    """

    def __init__(
        self,
        corpus: EncodedCorpus,
        labels: Sequence[str],
        solver: BatchSolver[Any],
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
        make_loss: Callable[[EncodedCorpus], Loss] | None = None,
    ) -> None:
        # Copies: labels that are added to the model later do not affect this run.
        self._prior, self._labels = copy(prior), tuple(labels)
        self._problem, self._dtype = problem, dtype
        n_clusters = problem.clusters
        self._names = WeightNames(
            corpus.unigram_keys,
            bigram_keys=corpus.bigram_keys,
            labels=self._labels,
            bounds=cluster_bounds(len(self._labels), n_clusters) if n_clusters else (),
            start_label=corpus.start_label,
            kind=problem.kind,
        )
        self._penalty = ElasticNet(l1, l2)
        self._solver, self._polish = solver, polish
        self._warm_start = warm_start or solver.warm_start
        self._check_compatible(corpus)
        self._origin = None if prior is None else origin_of(prior, self._names)
        if problem.valid is not None:
            check_paths(problem.valid)
            check_gold(corpus, self._labels, problem.valid)
        if problem.kind == "maxent":
            warn_of_pairs(corpus)
        weights = None if init is None else summed(coordinates_of(self._names, init))
        required = [known.coordinates for known in (weights, self._origin) if known is not None]
        known = np.concatenate((NO_COORDINATES, *required))
        parts: Sequence[Part] = [(None, corpus)]
        if make_loss is None:
            parts, workers = self._divide(corpus), Workers(n_threads)
            losses = [self._chain_loss(part, inner, known, workers) for part, inner in parts]
        else:
            losses = [make_loss(corpus)]
        self._parts = [part for part, _ in parts]
        losses = [self._limited(loss, part) for part, loss in zip(self._parts, losses, strict=True)]
        self.size = total([loss.size(l1, getattr(solver, "history", 0)) for loss in losses])
        check_fits(self.size, available_memory(), len(self._labels), l1)
        self.n_sequences = corpus.n_sequences if make_loss is None else losses[0].n_sequences
        self._runs = [Run(loss, self._penalty, solver, self._warm_start) for loss in losses]
        self._warn_of_idle()
        if weights is not None:
            self._begin(weights)

    def _begin(self, weights: Weights) -> None:
        """Begin the runs from weights of the model."""
        if self._origin is not None:
            weights = summed(weights, self._origin._replace(values=-self._origin.values))
        for part, run in zip(self._parts, self._runs, strict=True):
            run.begin(weights if part is None else part.local_weights(weights))

    def close(self) -> None:
        """End the threads of the run, or release the workers."""
        for run in self._runs:
            run.loss.close()

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
        changed = {
            setting.name
            for setting in fields(solver)
            if getattr(solver, setting.name) != setting.default
        }
        idle = solver.idle(self._penalty) if changed else {}
        warnings = [(key, getattr(solver, key), idle[key]) for key in idle if key in changed]
        if self._penalty.l1 == 0.0 and start.epochs:
            for key in (setting.name for setting in fields(start)):
                if (value := getattr(start, key)) != getattr(solver.warm_start, key):
                    warnings.append((f"warm_start.{key}", value, "l1 = 0 has no warm start"))
        for name, value, reason in warnings:
            warn(Warnings.SCW342.format(name=name, value=value, reason=reason))

    def _chain_loss(
        self, part: OutcomePart | None, corpus: EncodedCorpus, known: Longs, workers: Workers
    ) -> Loss:
        """Return the loss of a sub-problem.

        known: coordinates [n] int64 of initial weights, whose features are kept.
        """
        problem, n_labels, l1 = self._problem, len(self._labels), self._penalty.l1
        if part is not None:
            n_labels, known = part.n_labels, part.within(known)
        if l1 > 0.0:
            features, _ = Coordinates.of(corpus, n_labels).locate(known)
            corpus = without_idle(corpus, l1, features)
        return ChainLoss(
            corpus,
            n_labels,
            workers,
            precision=problem.precision,
            valid=problem.valid,
            limits=problem.limits,
        )

    def _limited(self, loss: Loss, part: OutcomePart | None) -> Loss:
        """Return the loss of a sub-problem with the options of its weights."""
        problem = self._problem
        if self._origin is not None:
            loss = Shifted(loss, self._origin)
        if problem.observed_only:
            loss = observed_only(loss, problem.also if part is None else part.within(problem.also))
        return loss

    def _divide(self, corpus: EncodedCorpus) -> Sequence[Part]:
        """Return the sub-problems to solve, None for the whole problem, each with its corpus."""
        problem = self._problem
        if problem.kind != "chain":
            corpus = local_corpus(corpus, len(self._labels), pairs=problem.kind == "memm")
        if problem.label_weights is not None:
            corpus = weighted(corpus, problem.label_weights)
        if not corpus.weights.any() and (corpus.labels != MISSING).any():
            raise SparseCRFError(Errors.SC356)
        if not problem.clusters:
            return [(None, corpus)]
        parts = cluster_parts(corpus, self._names.bounds)
        return [part for part in parts if part[1].weights.any()] or parts

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
        is_going_on = not self.end
        n_sequences = sum(run.loss.n_sequences for run in self._runs)
        reports, passes = [], 0.0
        for run in self._runs:
            report = run.reached() if is_going_on and run.end else run.step()
            passes += report.passes * (run.loss.n_sequences / n_sequences)
            reports.append(report)
        n_active, end = sum(report.n_active for report in reports), self.end
        self.report = StepReport(
            objective=math.fsum(report.objective for report in reports),
            optimality=max(report.optimality for report in reports),
            n_active=n_active if self._origin is None else len(self.weights.coordinates),
            passes=passes,
            converged=end == CONVERGED,
            gap=math.fsum(report.gap for report in reports),
            end=end,
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
        values = checkpoint.load(path, self.identity)
        with reported_as(Errors.SC318, (ValueError, KeyError, TypeError), path=path):
            states = checkpoint.states_of(
                values, len(self._runs), run_state=RunState, solver_state=self._solver.state_type
            )
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
        arrays = [array for run in self._runs for array in run.loss.arrays]
        return checkpoint.digest(self._names.unigram_keys, self._names.bigram_keys, *arrays)

    @property
    def weights(self) -> Weights:
        """The non-zero weights of the model."""
        return self._polished(NOT_POLISHED)

    def _polished(self, polish: Polish) -> Weights:
        """Return `weights`, polished; runs keep the unpolished ones."""
        of_parts: list[Weights] = []
        for part, run in zip(self._parts, self._runs, strict=True):
            weights = run.polished(polish)
            if part is not None:
                of_parts.append(Weights(part.to_global(weights.coordinates), weights.values))
                continue
            if self._origin is None or run.state is None:
                return weights
            coordinates, theta = summed(weights, self._origin)
            active = theta != 0.0
            return Weights(coordinates[active], theta[active])
        coordinates, theta = map(np.concatenate, zip(*of_parts, strict=True))
        order = np.argsort(coordinates)
        return Weights(coordinates[order], theta[order])

    def model(self, polish: Polish | None = None, dtype: str | None = None) -> CRFModel:
        """Return the model with the current weights, polished; default: as the run says.

        Each returned model is polished, because spaCy's loop keeps the model with the best
        evaluation, not the last one. Training continues from the unpolished weights.
        """
        weights = self._polished(polish or self._polish)
        model = CRFModel.of_weights(
            self._names, weights.coordinates, weights.values, dtype or self._dtype
        )
        return model if self._prior is None else with_rest(self._names, model, self._prior)


def origin_of(prior: CRFModel, names: WeightNames) -> Weights:
    """Return a prior's weights. RAISES: SparseCRFError if the prior has none here."""
    weights = summed(coordinates_of(names, prior))
    if prior.n_active and not len(weights.coordinates):
        raise SparseCRFError(Errors.SC368)
    return weights
