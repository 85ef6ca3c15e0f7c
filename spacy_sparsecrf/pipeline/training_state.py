"""Training runs of a component: start, steps, checkpoints and resuming."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy.util import logger

from ..crf.corpus.gold import InvalidGoldError
from ..crf.model.model import CRFModel
from ..errors import Errors, SparseCRFError, Warnings, printable, warn
from ..progress import Task
from ..progress import report as report_line
from .data_checks import DataChecks
from .encoding import EncodedExamples, Job
from .features.naming import NameRecord
from .serialization import Earlier
from .settings import NotCopied, Setup
from .trained import no_model

if TYPE_CHECKING:
    from ..crf.solvers.solver import StepReport
    from ..crf.training.training import Training
    from ..distributed.partitioned_loss import Partition
    from .stacking.driver import Stack


def driver_of(setup: Setup) -> Stack | None:
    """Return the driver that the settings of a component select; None for one run."""
    stack = setup.settings.learning.stack
    if not stack.folds:
        return None
    from .stacking.driver import Stack

    return Stack(setup, stack)


def begin(
    job: Job,
    driver: Stack | None,
    read: EncodedExamples,
    earlier: Earlier,
    checkpoint: str | Path | None,
) -> TrainingState:
    """Begin a training run, or resume an interrupted one. Imports numba.

    job, read: the corpus; driver: see `driver_of`; earlier: models of earlier runs; checkpoint: the
    file of the run, which may not exist yet, or None.
    RAISES: SparseCRFError for a corpus or settings that cannot be used for training, if no token
        has a gold label, without earlier models or in another Doc than the dummy Doc of spaCy, and
        if the file belongs to a different run.
    """
    setup, checks, name = job.setup, job.checks, job.setup.name
    record = job.record if setup.settings.learning.store_feature_names else None
    names = record and (read.partition or record)
    if read.corpus is None:
        if not (checks.made_up or earlier.labels):
            values = {"n_tokens": checks.n["tokens"], "remedy": checks.remedy}
            raise SparseCRFError(Errors.SC203.format(name=name, **values))
        return TrainingState(None, names, checks)
    with Task("Preparing training"), _doc_named(checks, read.labels):
        train = _training(setup, read)
        runs = train if driver is None else driver.runs(train, job.record)
        restart = partial(runs, init=earlier.init, prior=earlier.prior)
        run = restart()
    logger.info(
        "%s: %d sequences, %d tokens, %d labels, %s",
        name,
        run.n_sequences,
        checks.n["tokens"],
        len(read.labels),
        run.size,
    )
    path = None if checkpoint is None else Path(checkpoint)
    state = TrainingState(run, names, checks, restart=restart, checkpoint=path)
    if path is not None and path.is_file():
        run.resume(path)
        logger.info("%s: resumes from %s, objective %.6g", name, printable(path), run.objective)
        warn(Warnings.SCW229.format(name=name, path=path))
        # The first row of the log repeats the last one of the interrupted run.
        state.stepped = True
    return state


def _training(setup: Setup, read: EncodedExamples) -> partial[Any]:
    """Return a function that begins a run on a corpus, with the settings of a component."""
    from ..crf.training.run import Polish
    from ..crf.training.training import Problem, Training

    assert read.corpus is not None
    name, labels, settings = setup.name, read.labels, setup.settings
    learning = settings.learning
    valid = setup.transitions_of(labels) if learning.constrained else None
    if learning.constrained and valid is None:
        warn(Warnings.SCW350.format(name=name))
    warm_start = learning.warm_start.model_dump(exclude_none=True)
    problem = Problem(
        kind=settings.model,
        clusters=learning.clusters,
        precision=learning.precision,
        observed_only=learning.observed_only,
        label_weights=learning.weights_of(name, labels),
        valid=valid,
    )
    make_loss = None
    if read.partition is not None:
        from ..distributed.partition import partitioned_loss

        make_loss = partial(partitioned_loss, read.partition, labels, problem)
    return partial(
        Training,
        read.corpus,
        labels=labels,
        solver=setup.solver,
        l1=settings.l1,
        l2=settings.l2,
        problem=problem,
        warm_start=replace(setup.solver.warm_start, **warm_start),
        polish=Polish(**dict(learning.polish)),
        dtype=learning.dtype,
        n_threads=settings.n_threads,
        make_loss=make_loss,
    )


@contextmanager
def _doc_named(checks: DataChecks, labels: Sequence[str]) -> Iterator[None]:
    """Report invalid gold labels by their Doc instead of by the sequence in the corpus.

    checks: of the corpus, with its Docs. RAISES: SparseCRFError.
    """
    try:
        yield
    except InvalidGoldError as error:
        transition = error.transition
        number = bisect_right(checks.docs, transition.token, key=itemgetter(0))
        first_token = checks.docs[number - 1][0] if number else 0
        doc = f"the training Doc that begins {checks.docs[number][1]!r}"
        raise InvalidGoldError(transition, transition.token - first_token, labels, doc) from None


@dataclass
class TrainingState(NotCopied):
    """The training run of a component.

    Corpus and solver state can be as large as memory allows, so they are never sent to worker
    processes.

    trainer: the run, or None if it was ended before its first step or there are no examples.
    record: names the features of the corpus, or None if features have no names.
    checks: of the examples that come later.
    restart: before the first step, begins another run; its arguments override those of this one.
    checkpoint: file to which the run is saved after each step, or None.
    stepped: whether the run made its step since the last `finish_update`.
    """

    trainer: Training | None
    record: NameRecord | Partition | None
    checks: DataChecks
    restart: Callable[..., Training] | None = None
    checkpoint: Path | None = None
    stepped: bool = False


def first_model(setup: Setup, state: TrainingState, earlier: Earlier) -> CRFModel:
    """Return the model of a component before the first step; state, earlier: see `begin`."""
    model = earlier.init or earlier.prior
    if state.trainer is not None and (model is not None or state.stepped):
        return state.trainer.model()
    return no_model(setup) if model is None else model


def report_step(setup: Setup, report: StepReport, model: CRFModel) -> None:
    """Log a step of a component; at the end of its run also a warning if no weight is left."""
    logger.debug(
        "%s: objective %.6g, gap at most %.3g, optimality %.3g, %d active weights",
        setup.name,
        report.objective,
        report.gap,
        report.optimality,
        report.n_active,
    )
    if not report.end:
        return
    if not model.n_active and len(model.labels) > 1:
        warn(Warnings.SCW218.format(name=setup.name, l1=setup.settings.l1))
    report_line(f"{setup.name}: {report.outcome}")
