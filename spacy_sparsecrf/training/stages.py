"""A training run that admits features in stages, by a schedule."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..corpus.encoded import EncodedCorpus, Mask
from ..corpus.schedule import Stage, TemplateTree
from ..corpus.transform import reduced, with_distinct_contexts
from ..errors import SparseCRFError
from ..loss.subproblems import Part, ReducedPart, places_of
from ..model.model import CRFModel
from ..solvers.base import BatchSolver, Floats, Longs, StepReport, fields_of
from .checkpoint import digest
from .training import Training


@dataclass(frozen=True)
class StageReport:
    """Sizes of the model at the beginning or the end of a stage.

    number: number of the stage, from 1; of: number of stages; ended: whether the stage ends; then
    numbers of features and of their weights: potential: of templates of this and earlier stages;
    admitted: that may be non-zero; active: that are non-zero.
    """

    number: int
    of: int
    ended: bool
    potential: tuple[int, int]
    admitted: tuple[int, int]
    active: tuple[int, int]

    def __str__(self) -> str:
        names = "potential", "admitted", "active"
        counts = self.potential, self.admitted, self.active
        shown = (
            f"{n_weights} {name} weights of {n_features} features"
            for name, (n_features, n_weights) in zip(names, counts, strict=True)
        )
        return f"stage {self.number} of {self.of} {'ends' if self.ended else 'begins'}: " + (
            ", ".join(shown)
        )


class StagedTraining(Training):
    """Training run in stages, each on the features admitted so far (see `corpus.schedule`).

    corpus, labels, solver, options: as for `Training`, l1 > 0, and without clusters. Features with
    weights in `init` or `prior` are admitted from the start. tree: of the corpus; stages: of the
    schedule; report: called at the beginning and the end of each stage.

    The problem of a stage contains only the admitted features. A stage begins with the step after
    the last step of the previous stage, from its weights.
    """

    # The problem contains only admitted features anyway.
    _leaves_out = False

    def __init__(
        self,
        corpus: EncodedCorpus,
        labels: Sequence[str],
        solver: BatchSolver,
        *,
        tree: TemplateTree,
        stages: Sequence[Stage],
        report: Callable[[StageReport], None] = lambda report: None,
        init: CRFModel | None = None,
        prior: CRFModel | None = None,
        **options: Any,
    ) -> None:
        self._tree, self._stages, self._notify = tree, tuple(stages), report
        self._number = self._n_steps = 0
        self._last = np.empty(0, np.int64), np.empty(0)
        self._admitted: Mask = tree.stage == 0
        # Features admitted with some labels only, see `TemplateTree.admitted_labels`.
        self._with_labels = np.empty(0, np.int64)
        for known in (each for each in (init, prior) if each is not None):
            unigram = np.isin(corpus.unigram_keys, known.unigram.keys)
            self._admitted |= np.append(unigram, np.isin(corpus.bigram_keys, known.bigram.keys))
        self._whole = Part(corpus, len(labels))
        super().__init__(corpus, labels, solver, init=init, prior=prior, **options)
        everything = np.ones(len(tree.stage), np.bool_)
        self.n_potential = self._count(everything)[1]

    def _divide(self, corpus: EncodedCorpus) -> list[Part]:
        """Return the problem restricted to the admitted features."""
        features = np.flatnonzero(self._admitted)
        (part,) = super()._divide(with_distinct_contexts(reduced(corpus, features)))
        return [ReducedPart(part.corpus, part.n_labels, self._whole, features, self._with_labels)]

    @property
    def converged(self) -> bool:
        """True if the last stage has converged or has no steps left."""
        return self._number == len(self._stages) - 1 and self._is_over

    @property
    def _is_over(self) -> bool:
        """True if the stage has converged or has no steps left."""
        steps = self._stages[self._number].steps
        return super().converged or 0 < steps <= self._n_steps

    @property
    def progress(self) -> str:
        """Short description of the state of the run."""
        return f"stage {self._number + 1} of {len(self._stages)}, {super().progress}"

    def step(self) -> StepReport:
        """Do one outer iteration; if the stage is over, begin the next stage first."""
        if self._is_over and not self.converged:
            self._advance()
        if not self._n_steps:
            self._notify(self._report(ended=False))
        self._n_steps += 1
        report = super().step()
        if self._is_over:
            self._notify(self._report(ended=True))
        return report

    def _advance(self) -> None:
        """Begin the next stage."""
        weights = self.weights
        self._number, self._n_steps = self._number + 1, 0
        more = self._admit(weights[0]) & ~self._admitted
        if not more.any():
            return
        before, self._admitted = self._admitted, self._admitted | more
        # Free the arrays of the runs before creating the next runs.
        self._last, self._runs = weights, []
        try:
            self._runs = self._make_runs()
        except SparseCRFError:
            # The next step tries again; until then the model has these weights.
            self._number, self._admitted = self._number - 1, before
            raise
        self.begin(*weights)

    def _joined(self, of_runs: list[tuple[Longs, Floats]]) -> tuple[Longs, Floats]:
        """Return the weights of the run, or the last ones if the next stage could not begin."""
        return super()._joined(of_runs) if of_runs else self._last

    def _admit(self, coordinates: Longs) -> Mask:
        """Return the features [U + B] that the stage admits; coordinates: of non-zero weights."""
        stage, n_labels = self._stages[self._number], len(self._labels)
        features = self._features_of(coordinates)
        if stage.admit == "features":
            active = np.zeros(len(self._tree.stage), np.bool_)
            active[features] = True
            return self._tree.admitted(self._number, stage.require, active)
        # A coordinate modulo the number of labels is the label.
        pairs = np.unique(features * n_labels + coordinates % n_labels)
        found = self._tree.admitted_labels(self._number, stage.require, pairs, n_labels)
        admitted, with_labels = found
        with_labels = with_labels[~self._admitted[with_labels // n_labels]]
        self._with_labels = np.union1d(self._with_labels, with_labels)
        admitted[with_labels // n_labels] = True
        return admitted

    def _features_of(self, coordinates: Longs) -> Longs:
        """Return the features, from 0 to U + B, of weights [n]."""
        n_unigram = len(self._corpus.unigram_keys)
        return places_of(coordinates, n_unigram, self._whole.widths)[0]

    def _count(self, features: Mask, with_labels: Longs | None = None) -> tuple[int, int]:
        """Count the features in a mask [U + B] that may have weights, and these weights.

        with_labels: as in `TemplateTree.admitted_labels`; default: none.
        """
        n_labels, n_unigram = len(self._labels), len(self._corpus.unigram_keys)
        n_weights = np.full(len(features), n_labels, np.int64)
        n_weights[n_unigram:] = 0 if self._problem.kind == "maxent" else self._whole.widths[1]
        counted = features & (n_weights > 0)
        total = int(n_weights[counted].sum())
        if with_labels is not None:
            limited = with_labels // n_labels
            total -= int(n_weights[np.unique(limited)].sum())
            total += int((n_weights[limited] // n_labels).sum())
        return int(np.count_nonzero(counted)), total

    def _report(self, *, ended: bool) -> StageReport:
        coordinates, _ = self.weights
        return StageReport(
            self._number + 1,
            len(self._stages),
            ended,
            self._count((self._tree.stage <= self._number) | self._admitted),
            self._count(self._admitted, self._with_labels),
            (len(np.unique(self._features_of(coordinates))), len(coordinates)),
        )

    def _others(self) -> dict[str, Any]:
        own = {"stage": np.array(self._number), "n_steps": np.array(self._n_steps)}
        return {**own, "with_labels": self._with_labels, "admitted": self._admitted}

    def _restore(self, values: dict[str, Any]) -> None:
        self._number, self._n_steps = values["stage"], values["n_steps"]
        if (values["admitted"] != self._admitted).any():
            self._admitted, self._with_labels = values["admitted"], values["with_labels"]
            self._runs = []
            self._runs = self._make_runs()
        super()._restore(values)

    def _identity(self) -> dict[str, Any]:
        stages = [f"{s.steps} {s.require} {s.admit}" for s in self._stages]
        return {
            **super()._identity(),
            "schedule": [*stages, digest(*fields_of(self._tree).values())],
        }
