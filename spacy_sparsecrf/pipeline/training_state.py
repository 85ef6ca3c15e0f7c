"""Training runs of a component: start, steps, checkpoints and resuming.

A `Session` holds the training run and caches, which never leave the component's process.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast
from weakref import ref

from spacy.language import Language
from spacy.training import Example
from spacy.util import logger

from ..corpus.encoded import EncodedCorpus
from ..corpus.gold import InvalidGoldError, describe
from ..errors import Errors, SparseCRFError, Warnings, warn
from ..features.naming import NameRecord
from ..model.model import CRFModel
from ..progress import progress
from ..progress import report as report_line
from ..training.checkpoint import EvaluationLog
from .annotating import Expected
from .batchers import finish_run, warn_of_rare_evaluations
from .continued import Continued
from .encoding import EncodedExamples
from .seen import Seen
from .settings import Features, Setup
from .stacking import learn_first

if TYPE_CHECKING:
    from ..decoding.decoder import Decoder
    from ..training.training import Training

Method = TypeVar("Method", bound=Callable[..., Any])


class InitialModels(NamedTuple):
    """Models of earlier runs. start: initial weights; prior: centre of the penalty; or None.

    checkpoint: the file of an interrupted run, or None.
    """

    start: CRFModel | None = None
    prior: CRFModel | None = None
    checkpoint: str | Path | None = None


def start_run(
    setup: Setup,
    read: Features,
    record: NameRecord | None,
    compiled: EncodedExamples,
    earlier: InitialModels,
    nlp: Language | None,
) -> Training | None:
    """Begin a training run. Imports numba.

    setup: of the component; read: hashed the features of the corpus, see `with_template_tree`;
    record: record of feature names, or None; compiled: the corpus; nlp: the pipeline, or None.
    RETURNS: the run, or None if no token has a gold label.
    RAISES: SparseCRFError for a corpus or settings that cannot be used for training.
    """
    corpus = compiled.corpus
    if corpus is None:
        return None
    compiled.warn_of_gold(setup.name)
    warn_of_rare_evaluations(setup.name, nlp)
    return _start_training(setup, read, record, corpus, compiled, earlier)


def _start_training(
    setup: Setup,
    read: Features,
    record: NameRecord | None,
    corpus: EncodedCorpus,
    compiled: EncodedExamples,
    earlier: InitialModels,
) -> Training:
    """Begin a batch run, in stages if there is a schedule, after any first-stage model."""
    from ..training.training import Training

    name, labels, settings = setup.name, compiled.labels, setup.settings
    learning = settings.learning
    valid = setup.valid_transitions(labels) if learning.constrained else None
    if learning.constrained and valid is None:
        warn(Warnings.SCW350.format(name=name))
    given = {
        "n_threads": settings.n_threads,
        "observed_only": learning.observed_only,
        "label_weights": learning.weights_of(name, labels),
        "valid": valid,
        "warm_start": learning.warm_start.of(setup.solver),
        "polish": learning.polish.of(),
        **settings.problem,
    }
    make_training = _kind_of_training(setup, read, corpus, compiled)
    with _doc_named(compiled):
        if learning.stack.folds and record is not None:
            make = partial(
                Training, labels=labels, solver=setup.solver, **given | learning.stack.penalty
            )
            corpus, given["first"] = learn_first(setup, record, corpus, labels, make)
        given |= {"init": earlier.start, "prior": earlier.prior}
        begin = partial(make_training, corpus=corpus, labels=labels, solver=setup.solver, **given)
        training = begin()
    training.restart = begin
    counts = name, training.n_sequences, compiled.n_tokens, len(labels), training.size
    logger.info("%s: %d sequences, %d tokens, %d labels, %s", *counts)
    return training


def _kind_of_training(
    setup: Setup, read: Features, corpus: EncodedCorpus, compiled: EncodedExamples
) -> Callable[..., Training]:
    """Choose the type of a run: plain, in stages, or on a partitioned corpus."""
    from ..features.template_hierarchy import TemplateTreeRecord
    from ..training.staged import StagedTraining
    from ..training.training import Training

    if isinstance(read, TemplateTreeRecord):
        report = partial(logger.info, "%s: %s", setup.name)
        stages = setup.settings.learning.stages
        return partial(StagedTraining, tree=read.tree(corpus), stages=stages, report=report)
    if compiled.partition is not None:
        return compiled.partition.training()
    return Training


@contextmanager
def _doc_named(compiled: EncodedExamples) -> Iterator[None]:
    """Report invalid gold labels by their Doc instead of by the sequence in the corpus.

    compiled: the labels and the corpus. RAISES: SparseCRFError.
    """
    try:
        yield
    except InvalidGoldError as error:
        found = error.found
        number = bisect_right(compiled.docs, found.token, key=itemgetter(0))
        first = compiled.docs[number - 1][0] if number else 0
        place = f"the training Doc that begins {compiled.docs[number][1]!r}"
        message = describe(found, found.token - first, compiled.labels, place)
        raise SparseCRFError(message) from None


@dataclass
class Session:
    """The training run and caches of a component; a copy or a pickle of it is empty.

    Corpus and solver state can be as large as memory allows, so they are never sent to
    worker processes. spaCy's Cython base ignores `__getstate__` of a component, hence this
    holder.

    training: the batch training run, or None if there is no corpus.
    continued: the state of training without a corpus, or None.
    checkpoint: file to which a run is saved after each step; or None.
    rows: losses and models that spaCy's loop has received, also before an interruption.
    decoder: of the last prediction, or None; it is replaced once the model has changed.
    first_decoder: decoder of the first-stage model, or None.
    seen: the examples that `initialize` has read; empty if it was not called in this process.
    grow: begins a training run on given examples, from a given model; None before `initialize`.
    record: record of the corpus's feature names, or None if features have no names.
    n_uncovered: number of training tokens, for the error if none has a gold label; None if the
        component was not initialized in this process.
    run: weak reference to the pipeline in spaCy's loop, for `finish_run`, or None.
    stepped: whether the solver made its step since the last `finish_update`.
    stale: whether the solver made a step since the model was last taken from it.
    warned: whether the warning about a skew between training and prediction was raised.
    evaluated: whether the Docs of an evaluation were checked.
    is_empty: whether the warning about a model without weights was raised.
    expected: the attributes that Docs should have in prediction; None before the first prediction.
    """

    training: Training | None = None
    continued: Continued | None = None
    checkpoint: Path | None = None
    rows: EvaluationLog = field(default_factory=EvaluationLog)
    decoder: Decoder | None = None
    first_decoder: Decoder | None = None
    seen: Seen = field(default_factory=Seen)
    grow: Callable[[list[Example], CRFModel], Training] | None = None
    record: NameRecord | None = None
    n_uncovered: int | None = None
    run: ref[Language] | None = None
    stepped: bool = False
    stale: bool = False
    warned: bool = False
    evaluated: bool = False
    is_empty: bool = False
    expected: Expected | None = None

    def __reduce__(self) -> tuple[type[Session], tuple[()]]:
        """Pickle and copy as an empty session."""
        return type(self), ()

    @property
    def is_new(self) -> bool:
        """Whether no training has begun in this process."""
        return self.n_uncovered is None

    @property
    def lacks_corpus(self) -> bool:
        """Whether the component was not initialized in this process, or without examples."""
        return self.is_new or self.seen.made_up

    @property
    def is_training(self) -> bool:
        """Whether there is a training run."""
        return self.training is not None or self.continued is not None

    def begin(self, name: str, run: Training, checkpoint: str | Path | None) -> None:
        """Begin a training run of component `name`, or resume an interrupted one.

        checkpoint: the file of the run, which may not exist yet, or None.
        RAISES: SparseCRFError if the file belongs to a different run.
        """
        self.stale = True
        self.training = run
        if checkpoint is None:
            return
        self.checkpoint = Path(checkpoint)
        if self.checkpoint.is_file():
            self.rows = run.resume(self.checkpoint)
            counts = name, self.checkpoint, run.progress, len(self.rows.losses)
            logger.info("%s: resumes from %s, %s, after replaying %d steps", *counts)

    def update(self, name: str, examples: Iterable[Example]) -> float:
        """Do one iteration, unless one was done since `finish_update`, or after convergence.

        name: of the component. RETURNS: the objective.
        RAISES: SparseCRFError if there is no corpus, or if the objective is not finite, which would
            only fail later, when spaCy writes meta.json.
        """
        training = self.training_run(name)
        if self.seen.collect(name, examples) and not self.stepped:
            training = self._extend(name, training)
        if not self.stepped and (self.rows.is_replayed or not training.converged):
            if self.rows.is_replayed:
                self.rows.replay()
            else:
                self._step(name, training)
            self.stepped = self.stale = True
        if training.converged and not self.rows.is_replayed:
            finish_run(self.run)
        objective = self.rows.loss if self.rows.is_replayed else training.objective
        if not math.isfinite(objective):
            raise SparseCRFError(Errors.SC209.format(name=name, objective=objective))
        return objective

    def _extend(self, name: str, training: Training) -> Training:
        """Extend the corpus of component `name` with unseen examples; keep the current weights.

        RETURNS: the new run; the current run, with a warning, if it cannot learn from them.
        """
        grow = cast("Callable[[list[Example], CRFModel], Training]", self.grow)
        try:
            self.training = grow(self.seen.all, training.model())
        except SparseCRFError as error:
            self.seen.warn_of_ignored(name, list(self.seen.new.values()), error)
            return training
        self.seen.extend()
        self.stale = True
        return self.training

    def _step(self, name: str, training: Training) -> None:
        """Do one iteration of component `name`."""
        # The decoder belongs to an earlier model.
        self.decoder = None
        with progress("Training"):
            report = training.step()
            training.rest()
            self.rows.add(training.objective)
            if self.checkpoint is not None and math.isfinite(training.objective):
                training.save(self.checkpoint, self.rows)
        values = name, report.objective, report.gap, report.optimality, report.n_active
        form = "%s: objective %.6g, gap at most %.3g, optimality %.3g, %d active weights"
        logger.debug(form, *values)
        if report.converged:
            line = f"{name}: converged after {len(self.rows.losses)} iterations"
            if math.isfinite(report.gap):
                above = 100.0 * report.gap / max(abs(report.objective), 1e-300)
                line += f", at most {above:.2g} % above the minimum"
            report_line(line if self.run is None else f"{line}: training ends")

    def training_run(self, name: str) -> Training:
        """Return the batch run of component `name`. RAISES: SparseCRFError if there is none."""
        if self.training is not None:
            return self.training
        if self.n_uncovered is None:
            raise SparseCRFError(Errors.SC202.format(name=name))
        if self.seen.made_up:
            raise SparseCRFError(Errors.SC202.format(name=name))
        values = {"n_tokens": self.n_uncovered, "remedy": self.seen.remedy}
        raise SparseCRFError(Errors.SC203.format(name=name, **values))

    def take_model(self, name: str, l1: float) -> CRFModel | None:
        """Return the model of the training run of component `name` if it is newer, else None.

        If unseen examples were collected, one iteration learns from them first.
        l1: the penalty, for a warning if the model has no weights.
        """
        if self.training is not None and self.seen.new:
            self._step(name, self._extend(name, self.training))
        run = self.training
        if run is None or not self.stale:
            return None
        self.stale = False
        # Replayed steps have their own models. Before any step, a resumed run has its last model.
        if self.rows.is_replayed and self.rows.done:
            return self.rows.model()
        model = run.model()
        if self.rows.done and not (model.n_active or len(model.labels) < 2 or self.is_empty):
            self.is_empty = True
            warn(Warnings.SCW218.format(name=name, l1=l1))
        if self.checkpoint is not None:
            self.rows.keep(model)
        return model


def within_memory(method: Method) -> Method:
    """Decorate a component's method to raise a coded error if it runs out of memory."""

    @wraps(method)
    def coded(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except MemoryError as error:
            raise SparseCRFError(Errors.SC224.format(name=self.name)) from error

    return cast("Method", coded)
