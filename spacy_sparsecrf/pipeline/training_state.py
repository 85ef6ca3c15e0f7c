"""What a component holds in its own process only: the training run, and caches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import logger

from ..corpus.gold import weighted
from ..errors import Errors, SparseCRFError, Warnings, warn
from ..progress import progress
from ..targets.base import string_ids
from ..training.checkpoint import EvaluationLog
from .annotating import Expected
from .encoding import LabelIds, encode_corpus
from .settings import Setup

if TYPE_CHECKING:
    from ..decoding.decoder import Decoder
    from ..features.naming import NameRecord
    from ..model.model import CRFModel
    from ..training.streaming import Stream
    from ..training.training import Training
    from .overlap import ChainDecoders


Method = TypeVar("Method", bound=Callable[..., Any])

# The words of the one Doc that spaCy makes up where `nlp.initialize` is given no examples.
_MADE_UP = ("x", "y", "z")


class Seen:
    """The examples that `initialize` has read, all that a batch solver learns from.

    It keeps a hash of the words of each gold Doc.
    """

    def __init__(self) -> None:
        self._hashes: set[int] = set()
        self._n = 0
        self._warned = False

    def watch(self, examples: Iterable[Example]) -> Iterator[Example]:
        """Yield the examples, and remember them."""
        for example in examples:
            self._hashes.add(_hash_of(example.reference))
            self._n += 1
            yield example

    @property
    def made_up(self) -> bool:
        """Whether there was nothing but the Doc that spaCy makes up where it gets no examples."""
        return self._n == 1 and self._hashes == {hash(string_ids(_MADE_UP).tobytes())}

    def warn_of_others(self, name: str, examples: Iterable[Example]) -> None:
        """Warn, once, if the first of some examples is none of those that were read.

        One of a batch is enough: batches of other examples follow each other. name: of the
        component that is updated with them, and does not learn from them.
        """
        first = None if self._warned else next(iter(examples), None)
        if first is None or not self._n or _hash_of(first.reference) in self._hashes:
            return
        self._warned = True
        warn(Warnings.SCW207.format(name=name, n=self._n, text=first.reference.text[:60]))


def _hash_of(doc: Doc) -> int:
    """A hash of a Doc's words, the same for Docs of any vocab in this process."""
    return hash(doc.to_array("ORTH").tobytes())


def within_memory(method: Method) -> Method:
    """Let a component's method say what can be done where memory is refused."""

    @wraps(method)
    def coded(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except MemoryError as error:
            raise SparseCRFError(Errors.SC224.format(name=self.name)) from error

    return cast("Method", coded)


@dataclass
class OnlineTrainer:
    """What turns Examples of a batch of spaCy's loop into steps of the solver.

    label_ids: fixed; label_weights: [Y] float64, or None; n_batches: so far.
    """

    stream: Stream
    setup: Setup
    label_ids: LabelIds
    label_weights: NDArray[np.float64] | None
    n_batches: int = 0

    def learn(self, examples: Iterable[Example]) -> float:
        """Featurise and encode a batch, and make the solver's steps on it.

        RETURNS: the batch's loss, see `Stream.learn`; 0 where no token has a gold label.
        RAISES: SparseCRFError for a gold label that is not known, or weights without bounds.
        """
        with progress("Learning from batches", "batches") as shown:
            shown.done = self.n_batches
            self.n_batches += 1
            compiled = encode_corpus(examples, self.setup.features, self.setup, self.label_ids)
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
    rows: what the loop was told of the run, also before that was cut off.
    decoder: of the last prediction, or None; of no use once the model has changed.
    first_decoder: of two stages, that of the first model.
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
    learner: OnlineTrainer | None = None
    checkpoint: Path | None = None
    rows: EvaluationLog = field(default_factory=EvaluationLog)
    decoder: Decoder | ChainDecoders | None = None
    first_decoder: Decoder | None = None
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

    @property
    def is_new(self) -> bool:
        """Whether no training has begun in this process."""
        return self.n_uncovered is None and self.learner is None

    def begin(
        self, name: str, run: Training | OnlineTrainer, checkpoint: str | Path | None
    ) -> None:
        """Begin a training run of component `name`, or go on with one that was cut off.

        checkpoint: the file that knows of it, or will, or None.
        RAISES: SparseCRFError if the file is of another run.
        """
        self.stale = True
        if isinstance(run, OnlineTrainer):
            self.learner = run
        else:
            self.training = run
        if checkpoint is None:
            return
        self.checkpoint = Path(checkpoint)
        if self.checkpoint.is_file():
            resumed = run.stream if isinstance(run, OnlineTrainer) else run
            self.rows = resumed.resume(self.checkpoint)
            counts = name, self.checkpoint, resumed.progress, len(self.rows.losses)
            logger.info("%s: continues from %s, %s, after %d steps are told again", *counts)

    def update(self, name: str, examples: Iterable[Example], loss: float) -> float:
        """Learn from the batch, where the run is on batches; else do one iteration.

        The latter unless one was done since `finish_update`, or none is needed.
        name: of the component; loss: reported since the last evaluation.
        RETURNS: the loss to report: with that of the batch added, or the objective.
        RAISES: SparseCRFError as `OnlineTrainer.learn` does, if there is no corpus, or if the
            objective is not finite: that would only fail later, when spaCy writes meta.json.
        """
        if self.learner is not None:
            self.stale = True
            if self.rows.is_replayed:
                return loss + self.rows.replay()
            return loss + self.rows.add(self.learner.learn(examples))
        training = self.training_run(name)
        self.seen.warn_of_others(name, examples)
        if not self.stepped and (self.rows.is_replayed or not training.converged):
            if self.rows.is_replayed:
                self.rows.replay()
            else:
                self._step(name, training)
            self.stepped = self.stale = True
        objective = self.rows.loss if self.rows.is_replayed else training.objective
        if not math.isfinite(objective):
            raise SparseCRFError(Errors.SC209.format(name=name, objective=objective))
        return objective

    def _step(self, name: str, training: Training) -> None:
        """Do one iteration of component `name`."""
        with progress("Training"):
            report = training.step()
            self.rows.add(training.objective)
            if self.checkpoint is not None and math.isfinite(training.objective):
                training.save(self.checkpoint, self.rows)
        values = name, report.objective, report.optimality, report.n_active
        logger.debug("%s: objective %.6g, optimality %.3g, %d active weights", *values)
        if report.converged:
            logger.info("%s: converged: objective %.6g, optimality %.3g, %d active", *values)

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
        # Who goes on without a step has what was reached.
        if self.rows.is_replayed and self.rows.done:
            return self.rows.model()
        model = run.model()
        if self.checkpoint is not None and self.rows.keep(model) and self.learner is not None:
            self.learner.stream.save(self.checkpoint, self.rows)
        return model
