"""What a component holds in its own process only: the training run, and caches."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from spacy.training import Example
from spacy.util import logger

from ..corpus.gold import weighted
from ..errors import Errors, SparseCRFError
from .compiling import LabelIds, compile_corpus
from .seen import Seen
from .settings import Setup
from .upstream import Expected

if TYPE_CHECKING:
    from ..decoding.decoder import Decoder
    from ..features.naming import NameRecord
    from ..model.model import CRFModel
    from ..solvers.base import StepReport
    from ..training.streaming import Stream
    from ..training.training import Training


@dataclass
class Learner:
    """What turns Examples of a batch of spaCy's loop into steps of the solver.

    label_ids: fixed; label_weights: [Y] float64, or None.
    """

    stream: Stream
    setup: Setup
    label_ids: LabelIds
    label_weights: NDArray[np.float64] | None

    def learn(self, examples: Iterable[Example]) -> float:
        """Featurise and encode a batch, and make the solver's steps on it.

        RETURNS: the batch's loss, see `Stream.learn`; 0 where no token has a gold label.
        RAISES: SparseCRFError for a gold label that is not known, or weights without bounds.
        """
        compiled = compile_corpus(examples, self.setup.features, self.setup, self.label_ids)
        corpus = compiled.corpus
        if corpus is not None and self.label_weights is not None:
            corpus = weighted(corpus, self.label_weights)
        if corpus is None or not corpus.weights.any():
            return 0.0
        loss = self.stream.learn(corpus)
        logger.debug("learnt from %s", self.stream.progress)
        return loss


@dataclass
class Session:
    """Training run and caches of a component; a copy or a pickle of it is an empty one.

    Corpus and solver state can be as large as memory allows, so they are never sent to
    worker processes. spaCy's Cython base ignores `__getstate__` of a component, hence this
    holder.

    training: the batch training run, or None where there is no corpus.
    learner: of a run on the batches of the loop, in place of `training`, or None.
    checkpoint: where each step of a batch run is saved, and a run on batches each time that the
        model is taken from it; or None.
    decoder: of the last prediction, or None; of no use once the model has changed.
    seen: the examples that `initialize` has read; none where it was not called in this process.
    record: of what the tests of the corpus read, or None where they have no names.
    n_uncovered: tokens that the component was initialized with although none had gold; None
        where it was not initialized in this process.
    stepped: whether the solver made its step since the last `finish_update`.
    stale: whether the solver made a step since the model was last taken from it.
    warned: whether a skew between training and prediction was warned of.
    expected: the attributes that Docs should have in prediction; None until the first one.
    """

    training: Training | None = None
    learner: Learner | None = None
    checkpoint: Path | None = None
    decoder: Decoder | None = None
    seen: Seen = field(default_factory=Seen)
    record: NameRecord | None = None
    n_uncovered: int | None = None
    stepped: bool = False
    stale: bool = False
    warned: bool = False
    expected: Expected | None = None

    def __reduce__(self) -> tuple[type[Session], tuple[()]]:
        """Pickle and copy as an empty session."""
        return type(self), ()

    def begin(self, name: str, run: Training | Learner, checkpoint: str | Path | None) -> None:
        """Begin a training run of component `name`, or go on with one that was cut off.

        checkpoint: the file that knows of it, or will, or None.
        RAISES: SparseCRFError if the file is of another run.
        """
        self.stale = True
        if isinstance(run, Learner):
            self.learner = run
        else:
            self.training = run
        if checkpoint is None:
            return
        self.checkpoint = Path(checkpoint)
        if self.checkpoint.is_file():
            resumed = run.stream if isinstance(run, Learner) else run
            resumed.resume(self.checkpoint)
            logger.info("%s: continues from %s, %s", name, self.checkpoint, resumed.progress)

    def update(self, name: str, examples: Iterable[Example], loss: float) -> float:
        """Learn from the batch, where the run is on batches; do an iteration where it is not.

        name: of the component; loss: reported since the last evaluation.
        RETURNS: the loss to report: with that of the batch added, or the objective.
        RAISES: SparseCRFError, see `advance` and `Learner.learn`.
        """
        if self.learner is None:
            if self.training is not None:
                self.seen.warn_of_others(name, examples)
            return self.advance(name)
        self.stale = True
        return loss + self.learner.learn(examples)

    def advance(self, name: str) -> float:
        """Do one iteration, unless one was done since `finish_update` or none is needed.

        name: of the component.
        RETURNS: the objective of the current weights.
        RAISES: SparseCRFError if there is no corpus, or the objective is not finite: that
            would only fail later, when spaCy writes meta.json.
        """
        training = self.training_run(name)
        if not self.stepped and not training.converged:
            report = training.step()
            if self.checkpoint is not None:
                training.save(self.checkpoint)
            self.stepped = self.stale = True
            _log(name, report)
        objective = training.objective
        if not math.isfinite(objective):
            raise SparseCRFError(Errors.SC209.format(name=name, objective=objective))
        return objective

    def training_run(self, name: str) -> Training:
        """The batch training run of component `name`. RAISES: SparseCRFError if there is none."""
        if self.training is not None:
            return self.training
        if self.n_uncovered is None:
            raise SparseCRFError(Errors.SC202.format(name=name))
        if self.seen.made_up:
            raise SparseCRFError(Errors.SC222.format(name=name))
        raise SparseCRFError(Errors.SC203.format(name=name, n_tokens=self.n_uncovered))

    def take_model(self) -> CRFModel | None:
        """Take the model from the training run, where it has a newer one."""
        run = self.training if self.learner is None else self.learner.stream
        if run is None or not self.stale:
            return None
        self.stale = False
        if self.learner is not None and self.checkpoint is not None:
            self.learner.stream.save(self.checkpoint)
        return run.model()


def _log(name: str, report: StepReport) -> None:
    values = (name, report.objective, report.optimality, report.n_active)
    logger.debug("%s: objective %.6g, optimality %.3g, %d active weights", *values)
    if report.converged:
        logger.info("%s: converged: objective %.6g, optimality %.3g, %d active", *values)
