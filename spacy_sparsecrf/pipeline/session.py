"""What a component holds in its own process only: the training run, and caches."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spacy.training import Example
from spacy.util import logger

from ..errors import Errors, SparseCRFError

if TYPE_CHECKING:
    from ..decoding import Decoder
    from ..features.naming import NameRecord
    from ..model import CRFModel
    from ..streaming import Stream
    from ..training import Training
    from .learner import Learner


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
    record: of what the tests of the corpus read, or None where they have no names.
    n_uncovered: tokens that the component was initialized with although none had gold; None
        where it was not initialized in this process.
    stepped: whether the solver made its step since the last `finish_update`.
    stale: whether the solver made a step since the model was last taken from it.
    warned: whether a skew between training and prediction was warned of.
    """

    training: Training | None = None
    learner: Learner | None = None
    checkpoint: Path | None = None
    decoder: Decoder | None = None
    record: NameRecord | None = None
    n_uncovered: int | None = None
    stepped: bool = False
    stale: bool = False
    warned: bool = False

    def __reduce__(self) -> tuple[type[Session], tuple[()]]:
        """Pickle and copy as an empty session."""
        return type(self), ()

    def begin(self, name: str, training: Training, checkpoint: str | Path | None) -> None:
        """Begin a training run of component `name`, or go on with one that was cut off.

        checkpoint: the file that knows of it, or will, or None.
        RAISES: SparseCRFError if the file is of another run.
        """
        self.training = training
        self._continue(name, training, checkpoint)

    def begin_learning(self, name: str, learner: Learner, checkpoint: str | Path | None) -> None:
        """Begin a run on batches; the arguments and what it raises are those of `begin`."""
        self.learner = learner
        self._continue(name, learner.stream, checkpoint)

    def _continue(self, name: str, run: Training | Stream, checkpoint: str | Path | None) -> None:
        """Go on where the checkpoint was written, if it is there."""
        self.stale = True
        if checkpoint is None:
            return
        self.checkpoint = Path(checkpoint)
        if self.checkpoint.is_file():
            run.resume(self.checkpoint)
            logger.info("%s: continues from %s, %s", name, self.checkpoint, run.progress)

    def update(self, name: str, examples: Iterable[Example], loss: float) -> float:
        """Learn from the batch, where the run is on batches; do an iteration where it is not.

        name: of the component; loss: reported since the last evaluation.
        RETURNS: the loss to report: with that of the batch added, or the objective.
        RAISES: SparseCRFError, see `advance` and `Learner.learn`.
        """
        if self.learner is None:
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
        if self.training is None:
            raise SparseCRFError(self._no_training(name))
        if not self.stepped and not self.training.converged:
            self._step(self.training, name)
        objective = self.training.objective
        if not math.isfinite(objective):
            raise SparseCRFError(Errors.SC209.format(name=name, objective=objective))
        return objective

    def _step(self, training: Training, name: str) -> None:
        report = training.step()
        if self.checkpoint is not None:
            training.save(self.checkpoint)
        self.stepped = self.stale = True
        values = (name, report.objective, report.optimality, report.n_active)
        logger.debug("%s: objective %.6g, optimality %.3g, %d active weights", *values)
        if report.converged:
            logger.info("%s: converged: objective %.6g, optimality %.3g, %d active", *values)

    def _no_training(self, name: str) -> str:
        """Tell why there is no training run."""
        if self.n_uncovered is None:
            return Errors.SC202.format(name=name)
        return Errors.SC203.format(name=name, n_tokens=self.n_uncovered)

    def take_model(self) -> CRFModel | None:
        """Take the model from the training run, where it has a newer one."""
        run = self.training if self.learner is None else self.learner.stream
        if run is None or not self.stale:
            return None
        self.stale = False
        if self.learner is not None and self.checkpoint is not None:
            self.learner.stream.save(self.checkpoint)
        return run.model()
