"""Regularisation paths: train the sparse CRF of one pipeline repeatedly, and evaluate it."""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from confection import Config
from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import (
    create_before_to_disk_callback,
    create_evaluation_callback,
    update_meta,
)
from spacy.util import get_sourced_components, load_model_from_config, registry, resolve_dot_names

from ..atomic_write import replace_folder
from ..errors import Errors, SparseCRFError
from ..pipeline.batchers import learners
from ..pipeline.component import SparseCRFPipe

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..model.model import CRFModel
    from ..solvers.base import StepReport
    from .regularization_path import Solution


@dataclass(frozen=True)
class PathPoint:
    """A model of the path.

    solution: the result of training; model: the trained model; size: bytes of the saved model;
    score: of the development data, weighted by [training.score_weights]; scores: of the pipeline,
    by name; seconds: wall time of training since the previous point; weights: of the training run,
    see `Training.weights`.
    """

    solution: "Solution"
    model: "CRFModel"
    size: int
    score: float
    scores: dict[str, Any]
    seconds: float
    weights: "tuple[NDArray[np.int64], NDArray[np.float64]]"


class InitializedPipeline:
    """An initialized pipeline with one sparse CRF to train, and its evaluation.

    config: as for `spacy train`, not interpolated; name: of the component, see `name_of_crf`;
    score_weights: of [training], without null weights.
    """

    def __init__(self, config: Config, name: str) -> None:
        self.name = name
        self.nlp = init_nlp(config)
        self.pipe = cast(SparseCRFPipe, self.nlp.get_pipe(name))
        self._resolved = self.nlp.config.interpolate()
        self.settings: dict[str, Any] = registry.resolve(
            self._resolved["training"], schema=ConfigSchemaTraining
        )
        weights: dict[str, float | None] = self.settings["score_weights"]
        self.score_weights = {key: value for key, value in weights.items() if value is not None}

    def corpus(self, key: str) -> Callable[[Language], Iterable[Example]]:
        """Return the reader of "train_corpus" or "dev_corpus"."""
        (found,) = resolve_dot_names(self._resolved, [self.settings[key]])
        return cast("Callable[[Language], Iterable[Example]]", found)

    def evaluate(
        self, corpus: Callable[[Language], Iterable[Example]]
    ) -> tuple[float, dict[str, Any]]:
        """Return the model's weighted score on a corpus, as in `spacy train`, and all scores.

        RAISES: SparseCRFError if none of the scores has a weight.
        """
        # Created for each point: the callback drops the weights of scores that were missing once.
        evaluate = create_evaluation_callback(self.nlp, corpus, self.score_weights)
        score, scores = evaluate()
        if not any(scores.get(key) is not None for key, w in self.score_weights.items() if w):
            weights = ", ".join(self.score_weights) or "{}"
            raise SparseCRFError(Errors.SC709.format(weights=weights, known=", ".join(scores)))
        return float(score), scores


class PipelinePath(InitializedPipeline):
    """An initialized pipeline whose sparse CRF is trained along the regularisation path.

    config: as for `spacy train`, not interpolated; l1s: values of l1, see `check_l1s`, or None for
    n_points from the l1 at which all weights are zero down to the l1 of the config.
    RAISES: SparseCRFError if the pipeline does not have exactly one sparse CRF to train, its solver
    has no exact solution for each l1, or its `initialize` fails.
    """

    def __init__(self, config: Config, l1s: Sequence[float] | None, n_points: int) -> None:
        from .regularization_path import begin_at_zero, check_l1s, falling_l1s

        l1s = None if l1s is None else check_l1s(l1s)
        name = name_of_crf(load_model_from_config(config, auto_fill=True), config)
        if l1s is not None:
            config = Config(config).copy()
            # Omits features that cannot have weights at the smallest l1.
            config["components"][name]["l1"] = l1s[-1]
        super().__init__(config, name)
        self._training = self.pipe.training_run()
        self.highest = self._training.largest_gradient()
        if l1s is None:
            l1s = falling_l1s(self.highest, self.pipe.settings.l1, n_points)
            begin_at_zero(self._training)
        self.l1s = l1s
        self._dev = self.corpus("dev_corpus")

    def points(
        self, window: float | None = None, on_step: "Callable[[StepReport], None] | None" = None
    ) -> Iterator[PathPoint]:
        """Train and evaluate at each l1; [training] max_steps limits each.

        window: see `regularization_path.follow`; on_step: called after each outer iteration.
        RAISES: SparseCRFError as `evaluate` and `regularization_path.follow`.
        """
        from .regularization_path import follow

        start = time.perf_counter()
        max_steps = self.settings["max_steps"]
        for solution in follow(self._training, self.l1s, max_steps, window, on_step):
            yield self._reached(solution, time.perf_counter() - start)
            start = time.perf_counter()

    def finish(
        self, point: PathPoint, on_step: "Callable[[StepReport], None] | None" = None
    ) -> PathPoint:
        """Train the model of a point to convergence and evaluate it, unless it has converged."""
        from .regularization_path import finish

        solution = point.solution
        if solution.converged:
            return point
        start, max_steps = time.perf_counter(), self.settings["max_steps"]
        end = finish(self._training, solution.l1, point.weights, max_steps, on_step)
        n_steps, passes = solution.n_steps + end.n_steps, solution.passes + end.passes
        end = replace(end, n_steps=n_steps, passes=passes)
        return self._reached(end, point.seconds + time.perf_counter() - start)

    def _reached(self, solution: "Solution", seconds: float) -> PathPoint:
        """Evaluate the current model of training."""
        model = self.pipe.model = self._training.model()
        score, scores = self.evaluate(self._dev)
        size = len(model.to_bytes())
        return PathPoint(solution, model, size, score, scores, seconds, self._training.weights)

    def adopt(self, point: PathPoint) -> None:
        """End training, and set the pipeline's model and l1 to those of a point."""
        self.pipe.end_training(point.model, point.solution.l1)
        self.nlp.get_pipe_config(self.name)["l1"] = point.solution.l1
        losses = {self.name: point.solution.objective}
        update_meta(self.settings, self.nlp, {"other_scores": point.scores, "losses": losses})

    def save(self, path: Path) -> None:
        """Save the pipeline to a directory; replace an existing one only after that."""
        modified = create_before_to_disk_callback(self.settings["before_to_disk"])(self.nlp)
        fresh = path.with_name(f"{path.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        modified.to_disk(fresh)
        replace_folder(fresh, path)


def name_of_crf(nlp: Language, config: Config) -> str:
    """Return the name of the sparse CRF to train in a pipeline that is not yet initialized.

    RAISES: SparseCRFError if the pipeline or the solver does not support a regularisation path.
    """
    from .regularization_path import check_solver

    learning = learners(nlp, get_sourced_components(config))
    crfs = {name: pipe for name, pipe in learning.items() if isinstance(pipe, SparseCRFPipe)}
    if len(crfs) != 1:
        found = ", ".join(crfs) or "none"
        raise SparseCRFError(Errors.SC706.format(pipeline=nlp.pipe_names, n=len(crfs), names=found))
    ((name, crf),) = crfs.items()
    others = [other for other in learning if other != name]
    if others:
        raise SparseCRFError(Errors.SC707.format(name=name, others=", ".join(others)))
    check_solver(crf.solver)
    block = nlp.config.interpolate()["initialize"]["components"].get(name, {})
    checkpoint = block.get("checkpoint")
    if checkpoint is not None:
        raise SparseCRFError(Errors.SC712.format(name=name, path=checkpoint))
    return name
