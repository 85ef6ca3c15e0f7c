"""Training runs of a component: start, steps, checkpoints and resuming."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy.util import logger

from ..corpus.encoded import EncodedCorpus
from ..corpus.gold import InvalidGoldError, describe
from ..errors import Errors, SparseCRFError, Warnings, warn
from ..features.naming import NameRecord
from ..model.model import CRFModel
from ..progress import progress
from ..progress import report as report_line
from .data_checks import DataChecks
from .reader import EncodedExamples, Job
from .serialization import Earlier
from .settings import Setup
from .stack import learn_first

if TYPE_CHECKING:
    from ..distributed.loss import Partition
    from ..training.stages import Trainer


def begin(
    setup: Setup, read: EncodedExamples, job: Job, earlier: Earlier, checkpoint: str | Path | None
) -> TrainingState:
    """Begin a training run, or resume an interrupted one. Imports numba.

    setup: of the component; read: the corpus, and job: what it was read by; earlier: models of
    earlier runs; checkpoint: the file of the run, which may not exist yet, or None.
    RAISES: SparseCRFError for a corpus or settings that cannot be used for training, and if the
        file belongs to a different run.
    """
    checks, record = job.checks, job.record if setup.settings.needs_names else None
    names = record and (read.partition or record)
    if read.corpus is None:
        return TrainingState(None, names, checks)
    with progress("Preparing training"):
        run, restart = _start_training(setup, read, read.corpus, job, earlier)
    path = None if checkpoint is None else Path(checkpoint)
    state = TrainingState(run, names, checks, restart, path)
    if path is None or not path.is_file():
        return state
    run.resume(path)
    logger.info("%s: resumes from %s, %s", setup.name, path, run.progress)
    warn(Warnings.SCW229.format(name=setup.name, path=path))
    # The first row of the log repeats the last one of the interrupted run.
    return replace(state, stepped=True)


def _start_training(
    setup: Setup, read: EncodedExamples, corpus: EncodedCorpus, job: Job, earlier: Earlier
) -> tuple[Trainer, Callable[..., Trainer]]:
    """Begin a batch run, in stages if there is a schedule, after any first-stage model.

    RETURNS: the run, and a function that begins another one; its arguments override this run's.
    """
    from ..training.training import Problem, Training

    name, labels, settings = setup.name, read.labels, setup.settings
    learning = settings.learning
    valid = setup.valid_transitions(labels) if learning.constrained else None
    if learning.constrained and valid is None:
        warn(Warnings.SCW350.format(name=name))
    given: dict[str, Any] = {
        "l1": settings.l1,
        "l2": settings.l2,
        "problem": Problem(
            kind=settings.model,
            clusters=learning.clusters,
            precision=learning.precision,
            observed_only=learning.observed_only,
            label_weights=learning.weights_of(name, labels),
            valid=valid,
        ),
        "warm_start": learning.warm_start.of(setup.solver),
        "polish": learning.polish.of(),
        "dtype": learning.dtype,
        "n_threads": settings.n_threads,
    }
    make_training = _kind_of_training(setup, read, corpus, job)
    with _doc_named(job.checks, labels):
        if learning.stack.folds and job.record is not None:
            make = partial(
                Training, labels=labels, solver=setup.solver, **given | learning.stack.penalty
            )
            corpus, first = learn_first(setup, job.record, corpus, labels, make)
            given["problem"] = replace(given["problem"], first=first)
        given |= {"init": earlier.init, "prior": earlier.prior}
        begin = partial(make_training, corpus=corpus, labels=labels, solver=setup.solver, **given)
        training = begin()
    counts = name, training.n_sequences, job.checks.n_tokens, len(labels), training.size
    logger.info("%s: %d sequences, %d tokens, %d labels, %s", *counts)
    return training, begin


def _kind_of_training(
    setup: Setup, read: EncodedExamples, corpus: EncodedCorpus, job: Job
) -> Callable[..., Trainer]:
    """Choose the type of a run: plain, in stages, or on a partitioned corpus."""
    from ..training.stages import InTurn
    from ..training.training import Training

    if job.tree is not None:
        report = partial(logger.info, "%s: %s", setup.name)
        stages = setup.settings.learning.stages
        return partial(InTurn, tree=job.tree.tree(corpus), stages=stages, report=report)
    if read.partition is not None:
        from ..distributed.training import PartitionedTraining

        return partial(PartitionedTraining, partition=read.partition)
    return Training


@contextmanager
def _doc_named(checks: DataChecks, labels: Sequence[str]) -> Iterator[None]:
    """Report invalid gold labels by their Doc instead of by the sequence in the corpus.

    checks: of the corpus, with its Docs. RAISES: SparseCRFError.
    """
    try:
        yield
    except InvalidGoldError as error:
        found = error.found
        number = bisect_right(checks.docs, found.token, key=itemgetter(0))
        first = checks.docs[number - 1][0] if number else 0
        place = f"the training Doc that begins {checks.docs[number][1]!r}"
        message = describe(found, found.token - first, labels, place)
        raise SparseCRFError(message) from None


@dataclass
class TrainingState:
    """The training run of a component; a copy or a pickle of it is None.

    Corpus and solver state can be as large as memory allows, so they are never sent to worker
    processes.

    trainer: the run, or None if no token of the corpus has a gold label.
    record: names the features of the corpus, or None if features have no names.
    checks: of the examples that come later.
    restart: begins another run; its arguments override those of this one.
    checkpoint: file to which the run is saved after each step, or None.
    stepped: whether the run made its step since the last `finish_update`.
    """

    trainer: Trainer | None
    record: NameRecord | Partition | None
    checks: DataChecks
    restart: Callable[..., Trainer] | None = None
    checkpoint: Path | None = None
    stepped: bool = False

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """Pickle and copy as None."""
        return type(None), ()

    def training_run(self, name: str) -> Trainer:
        """Return the run of component `name`. RAISES: SparseCRFError without gold labels."""
        if self.trainer is None:
            values = {"n_tokens": self.checks.n_tokens, "remedy": self.checks.remedy}
            raise SparseCRFError(Errors.SC203.format(name=name, **values))
        return self.trainer

    def step(self, setup: Setup) -> CRFModel:
        """Do one iteration of a component. RETURNS: the model.

        RAISES: SparseCRFError if the objective is not finite, which would only fail later, when
            spaCy writes meta.json.
        """
        name, training = setup.name, self.training_run(setup.name)
        with progress("Training"):
            report = training.step()
            training.rest()
            if not math.isfinite(training.objective):
                message = Errors.SC209.format(name=name, objective=training.objective)
                raise SparseCRFError(message)
            if self.checkpoint is not None:
                training.save(self.checkpoint)
        self.stepped = True
        values = name, report.objective, report.gap, report.optimality, report.n_active
        form = "%s: objective %.6g, gap at most %.3g, optimality %.3g, %d active weights"
        logger.debug(form, *values)
        model = training.model()
        if report.converged:
            if not model.n_active and len(model.labels) > 1:
                warn(Warnings.SCW218.format(name=name, l1=setup.settings.l1))
            line = f"{name}: converged"
            if math.isfinite(report.gap):
                above = 100.0 * report.gap / max(abs(report.objective), 1e-300)
                line += f", at most {above:.2g} % above the minimum"
            report_line(line)
        return model


def with_labels(model: CRFModel, labels: Sequence[str]) -> CRFModel:
    """Return a model with further labels; labels: those of the model, and others behind them."""
    new = labels[len(model.labels) :]
    if not new:
        return model
    found = copy(model)
    for label in new:
        found.add_label(label)
    return found
