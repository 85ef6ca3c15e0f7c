"""Training in stages: runs in turn, each on the features that a schedule has admitted so far."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..corpus.encoded import EncodedCorpus
from ..corpus.numbering import Mask
from ..corpus.schedule import Stage, TemplateTree
from ..corpus.transform import reduced, with_distinct_contexts
from ..loss.chain import places_of
from ..model.coordinates import coordinates_of
from ..model.model import CRFModel, WeightNames
from ..solvers.base import CONVERGED, NO_STEPS, BatchSolver, Longs, StepReport
from . import checkpoint
from .run import Polish
from .training import CHAIN, NOT_POLISHED, Problem, Training


class _Beginning(NamedTuple):
    """The beginning of a stage, from which a resumed run repeats it.

    number: of the stage, from 0; admitted: [U + B] bool, features that may have weights; limited:
    [n] int64, ascending, feature * Y + y: the labels of features that may have weights for these
    labels only; model: initial weights, or None; identity: of the whole run, "" in the first stage.
    """

    number: int
    admitted: Mask
    limited: Longs
    model: CRFModel | None
    identity: str = ""


class InTurn:
    """A `Training` for each stage of a schedule, in turn (see `corpus.schedule`).

    corpus, labels, solver, problem, options: as for `Training`, without clusters.
    Features with weights in `init` or `prior` are admitted from the start. tree: of the corpus;
    stages: of the schedule; report: called at the beginning of each stage, with its number, from 1,
    the number of stages, and the numbers of weights that may be, and are, non-zero.

    A stage begins with the step after the last step of the previous stage, from its weights.
    """

    def __init__(
        self,
        corpus: EncodedCorpus,
        labels: Sequence[str],
        solver: BatchSolver,
        *,
        tree: TemplateTree,
        stages: Sequence[Stage],
        report: Callable[[int, int, int, int], object] = lambda *_: None,
        problem: Problem = CHAIN,
        init: CRFModel | None = None,
        **options: Any,
    ) -> None:
        self._corpus, self._tree, self._stages = corpus, tree, tuple(stages)
        self._problem, self._notify, self.n_sequences = problem, report, corpus.n_sequences
        keys = corpus.unigram_keys, corpus.bigram_keys
        self._names = WeightNames(*keys, tuple(labels), (), corpus.start_label, problem.kind)
        self._widths, self._solver = corpus.widths(len(labels)), solver
        self._train: Callable[..., Training]
        self._train = partial(Training, labels=labels, solver=solver, **options)
        admitted = tree.stage == 0
        for known in (init, options.get("prior")):
            if known is not None:
                admitted[self._active(known)[0]] = True
        self._beginning = _Beginning(0, admitted, np.empty(0, np.int64), init)
        self._training: Training | None = None
        self._n_steps, self.size = 0, self._run.size
        self.report: StepReport

    @property
    def _run(self) -> Training:
        """The run of the stage, on the admitted features; begun if it is not yet."""
        if self._training is None:
            _, admitted, limited, model, _ = self._beginning
            features, n_labels = np.flatnonzero(admitted), len(self._names.labels)
            feature, label = np.divmod(limited, n_labels)
            own = np.searchsorted(features, feature) * n_labels + label
            corpus = with_distinct_contexts(reduced(self._corpus, features))
            problem = replace(self._problem, limited=own)
            self._training = self._train(corpus, problem=problem, init=model)
        return self._training

    @property
    def _is_over(self) -> bool:
        """True if the stage has ended or has no steps left."""
        steps = self._stages[self._beginning.number].steps
        return bool(self._run.end) or 0 < steps <= self._n_steps

    @property
    def end(self) -> str:
        """The end of the last stage, "" = it has not ended; see `StepReport`."""
        if self._beginning.number < len(self._stages) - 1 or not self._is_over:
            return ""
        return self._run.end or NO_STEPS

    @property
    def converged(self) -> bool:
        """True if the last stage has converged."""
        return self.end == CONVERGED

    @property
    def objective(self) -> float:
        """See `Training`."""
        return self._run.objective

    def step(self) -> StepReport:
        """Do one outer iteration; if the stage is over, begin the next stage first."""
        if self._is_over and not self.end:
            self._advance()
        if not self._n_steps:
            stage = self._beginning.number + 1, len(self._stages)
            self._notify(*stage, self._n_admitted(), len(self._run.weights[0]))
        self._n_steps += 1
        # A stage without new features has nothing to do if the last one has ended.
        is_idle = self._run.end and not self.end
        report = self.report if is_idle else self._run.step()
        self.report = replace(report, converged=self.converged, end=self.end)
        return self.report

    def _advance(self) -> None:
        """Begin the next stage; without new features, the run goes on."""
        number, before, limited, *_ = self._beginning
        number, model = number + 1, self._run.model(NOT_POLISHED, "float64")
        n_labels = len(self._names.labels)
        admitted, pairs = self._admit(number, model)
        pairs = pairs[~before[pairs // n_labels]]
        admitted[pairs // n_labels] = True
        limited, after = np.union1d(limited, pairs), before | admitted
        self._beginning = _Beginning(number, after, limited, model, self._identity)
        self._n_steps = 0
        if (admitted & ~before).any():
            self.close()
            # Free its arrays before those of the next run are created.
            self._training = None

    def _admit(self, number: int, model: CRFModel) -> tuple[Mask, Longs]:
        """Return the features [U + B] that a stage admits with all labels, and pairs with labels.

        model: with the weights at the end of the last stage. See `TemplateTree.admitted`.
        """
        stage, n_labels = self._stages[number], len(self._names.labels)
        features, coordinates = self._active(model)
        n = n_labels if stage.admit == "labels" else 1
        # A coordinate modulo the number of labels is the label.
        active = np.unique(features * n + coordinates % n_labels % n)
        admitted, pairs = self._tree.admitted(number, stage.require, active, n)
        if n == n_labels:
            return admitted, pairs
        admitted[pairs] = True
        return admitted, pairs[:0]

    def _active(self, model: CRFModel) -> tuple[Longs, Longs]:
        """Return the feature, from 0 to U + B, and the coordinate of each weight of a model."""
        coordinates, _ = coordinates_of(self._names, model)
        return places_of(coordinates, len(self._corpus.unigram_keys), self._widths)[0], coordinates

    def _n_admitted(self) -> int:
        """Return the number of weights that the admitted features may have."""
        _, admitted, limited, *_ = self._beginning
        n_labels, n_unigram = len(self._names.labels), len(self._corpus.unigram_keys)
        n_weights = np.full(len(admitted), n_labels, np.int64)
        n_weights[n_unigram:] = 0 if self._problem.kind == "maxent" else self._widths[1]
        feature = limited // n_labels
        total = n_weights[admitted].sum() - n_weights[np.unique(feature)].sum()
        return int(total + (n_weights[feature] // n_labels).sum())

    @property
    def _identity(self) -> str:
        """The digest of the schedule and of the run of the first stage."""
        if self._beginning.identity:
            return self._beginning.identity
        stages = [f"{s.steps} {s.require} {s.admit}" for s in self._stages]
        tree = checkpoint.digest(*vars(self._tree).values())
        values = {"first": self._run.identity, "schedule": [*stages, tree]}
        return checkpoint.identity_of(self._solver, values)

    def save(self, path: Path) -> None:
        """Write the beginning of the stage, unless it is the first; see `resume`."""
        if (model := self._beginning.model) is not None and self._beginning.number:
            stored = np.frombuffer(model.to_bytes(), np.uint8)
            values = {**self._beginning._asdict(), "model": stored}
            checkpoint.save(path, self._identity, values)

    def resume(self, path: Path) -> None:
        """Repeat a saved stage, with bit-identical results. Arguments: see `Training.resume`."""
        values = checkpoint.load(path, self._identity)
        values["model"] = CRFModel().from_bytes(values["model"].tobytes())
        self._beginning = _Beginning(*(values[name] for name in _Beginning._fields))
        self._training, self._n_steps = None, 0

    def model(self, polish: Polish | None = None) -> CRFModel:
        """Return the model with the current weights; see `Training`."""
        return self._run.model(polish)

    def close(self) -> None:
        """End the threads of the run."""
        if self._training is not None:
            self._training.close()


Trainer: TypeAlias = Training | InTurn
"""What a component trains with."""
