"""Search for penalties: a path of falling l1 for each l2, on the corpus or on folds of it.

The corpus is encoded once. Training at an l1 begins with the model of the l1 before, so that a path
of several l1 costs little more than its last one (Friedman, Hastie & Tibshirani 2010, section 2.5).
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import compress
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from confection import Config
from spacy import util
from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import create_evaluation_callback

from ...errors import Errors, SparseCRFError, refused_option
from ...pipeline.component import SparseCRFPipe
from ...pipeline.features.word_labels import RUNS
from ...pipeline.spacy_loop import block_of, has_path, learners

if TYPE_CHECKING:
    from ...crf.model.model import CRFModel
    from ...crf.solvers.solver import StepReport

# Trials end when outer iterations lower the objective by less than this fraction.
WINDOW = 1e-3
_FOLD = "spacy_sparsecrf.Fold.v1"

OnStep = Callable[["StepReport"], None]


class Trial(NamedTuple):
    """A trained model: its penalty, score, bytes and non-zero weights (means over folds).

    seconds: of training and scoring along the path so far.
    """

    l1: float
    l2: float
    score: float
    size: int
    n_active: int
    seconds: float


class EncodedPipeline:
    """An initialized pipeline that is trained repeatedly on one encoded corpus, and evaluated.

    config: as for `spacy train`, not interpolated; name: of the component, see `name_of_crf`.
    """

    def __init__(self, config: Config, name: str) -> None:
        self._nlp = init_nlp(config)
        self._pipe = cast(SparseCRFPipe, self._nlp.get_pipe(name))
        # Releases this run's arrays; each trial allocates its own.
        self._restart = self._pipe.end_training()
        resolved = self._nlp.config.interpolate()
        training = util.registry.resolve(resolved["training"], schema=ConfigSchemaTraining)
        self._max_steps: int = training["max_steps"]
        weights: dict[str, float | None] = training["score_weights"]
        self._weights = {key: value for key, value in weights.items() if value is not None}
        [dev] = util.resolve_dot_names(resolved, [training["dev_corpus"]])
        self._dev: Callable[[Language], Iterable[Example]] = dev

    def train(self, l1: float, l2: float, init: "CRFModel | None", on_step: OnStep) -> "CRFModel":
        """Train until convergence, at most [training] max_steps outer iterations.

        init: the initial model, or None for the solver's own start; on_step: called after each
        outer iteration. RAISES: SparseCRFError if the objective is not finite.
        """
        start, n_steps = {} if init is None else {"init": init}, 0
        with closing(self._restart(l1=l1, l2=l2, **start)) as run:
            while not run.end and (n_steps < self._max_steps or not self._max_steps):
                report = run.step()
                n_steps += 1
                if not isfinite(report.objective):
                    raise SparseCRFError(Errors.SC705.format(l1=l1, objective=report.objective))
                on_step(report)
            model: CRFModel = run.model()
            model.first = self._pipe.model.first
            return model

    def score(self, model: "CRFModel") -> float:
        """Return the weighted score of a model on the development data, as in `spacy train`.

        RAISES: SparseCRFError if none of the scores has a weight.
        """
        self._pipe.model = model
        # Created for each model: the callback drops the weights of scores that were missing once.
        score, scores = create_evaluation_callback(self._nlp, self._dev, self._weights)()
        if not any(scores.get(key) is not None for key, w in self._weights.items() if w):
            weights = ", ".join(self._weights) or "{}"
            raise SparseCRFError(Errors.SC709.format(weights=weights, known=", ".join(scores)))
        return float(score)


class TunableConfig:
    """A config for `spacy train` whose penalty can be changed.

    config: not interpolated; folds: number of folds of the training Docs for cross-validation, 0
    to score on the development data; seed: of the folds; name: of the sparse CRF; filled: the
    block of this component with all defaults.
    RAISES: SparseCRFError as `name_of_crf`, and if there is no training or development data.
    """

    def __init__(self, config: Config, folds: int, seed: int) -> None:
        nlp = util.load_model_from_config(config, auto_fill=True)
        self.name = name_of_crf(nlp, config)
        for key in ("train_corpus", "dev_corpus")[: 1 if folds else 2]:
            if not has_path(block_of(nlp, key)):
                block = nlp.config["training"][key]
                raise SparseCRFError(Errors.SC717.format(key=key, block=block))
        self.filled: dict[str, Any] = nlp.config.interpolate()["components"][self.name]
        self._config = config
        self._folds = folds
        self._seed = seed

    def with_penalty(self, l1: float, l2: float) -> Config:
        """Return the config with another penalty."""
        config = Config(self._config).copy()
        block, stack = config["components"][self.name], self.filled["learning"]["stack"]
        block.update(l1=l1, l2=l2)
        if stack.get("folds"):
            # Fix the first-stage model's penalties: its predictions are part of the corpus.
            of_config = {key: value for key, value in stack.items() if value is not None}
            penalty = {key: self.filled[key] for key in ("l1", "l2")}
            block["learning"]["stack"] = penalty | of_config
        return config

    def encode(self, l1: float, l2: float) -> list[EncodedPipeline]:
        """Read and encode the corpus: of one pipeline, or of one for each fold.

        l1: the smallest; l2: the first. The trials' solver has a larger `window` than the config's;
        they have no checkpoint.
        """
        configs = [self.with_penalty(l1, l2) for _ in range(self._folds or 1)]
        for fold, config in enumerate(configs):
            block = config["components"][self.name]
            initialize = config.get("initialize", {}).get("components", {}).get(self.name, {})
            initialize.pop("checkpoint", None)
            window = max(WINDOW, self.filled["solver"]["window"])
            block["solver"] = (block.get("solver") or self.filled["solver"]) | {"window": window}
            if self._folds:
                self._divide(config, fold)
        return [EncodedPipeline(config, self.name) for config in configs]

    def _divide(self, config: Config, fold: int) -> None:
        """Make a config read training and development data from the training Docs."""
        train, dev = (config["training"][f"{key}_corpus"] for key in ("train", "dev"))
        reader = {"@readers": _FOLD, "corpus": util.dot_to_object(config, train), "fold": fold}
        reader |= {"folds": self._folds, "seed": self._seed}
        for key, held_out in (train, False), (dev, True):
            util.set_dot_to_object(config, key, reader | {"held_out": held_out})


@util.registry.readers(_FOLD)  # type: ignore[untyped-decorator]
def make_fold(
    corpus: Callable[[Language], Iterable[Example]],
    folds: int,
    fold: int,
    seed: int,
    held_out: bool,
) -> Callable[[Language], list[Example]]:
    """Create a reader of the Examples held out in a fold, or if not `held_out`, of all others.

    corpus: reads all; folds: number; fold: index; seed: assigns runs of consecutive Docs to folds.
    """
    held: list[Example] = []

    def read(nlp: Language) -> list[Example]:
        if held:
            return held
        examples = list(corpus(nlp))
        n = len(examples)
        if n < folds:
            raise refused_option("folds", folds, f"there are {n} training Docs")
        n_runs = min(n, RUNS * folds)
        of_run = np.random.default_rng(seed).permutation(n_runs) % folds
        chosen = (of_run[np.arange(n) * n_runs // n] == fold) == held_out
        of_fold = list(compress(examples, chosen))
        held.extend(of_fold if held_out else [])
        return of_fold

    return read


def name_of_crf(nlp: Language, config: Config) -> str:
    """Return the name of the sparse CRF to train in a pipeline that is not yet initialized.

    RAISES: SparseCRFError unless there is exactly one, with a solver that finds the minimiser for
        an L1 penalty, and nothing else to train.
    """
    learning = learners(nlp, util.get_sourced_components(config))
    name, crf = next(iter(learning.items()), ("", None))
    if len(learning) != 1 or not isinstance(crf, SparseCRFPipe):
        names = ", ".join(learning) or "none"
        raise SparseCRFError(Errors.SC706.format(pipeline=nlp.pipe_names, names=names))
    if not crf.solver.exact or "no l1" in crf.solver.requires:
        raise SparseCRFError(Errors.SC701.format(solver=type(crf.solver).__name__))
    return name


def search(
    l1s: Sequence[float],
    l2s: Sequence[float],
    pipelines: Sequence[EncodedPipeline],
    on_step: OnStep,
    on_error: Callable[[SparseCRFError], None],
) -> Iterator[Trial]:
    """Train and score each l1 with each l2, beginning with the models of the l1 before.

    l1s: descending; pipelines: one for each fold; on_error: called if a later l2 fails.
    RAISES: SparseCRFError if the first l2 fails.
    """
    for l2 in l2s:
        try:
            yield from _follow(l1s, l2, pipelines, on_step)
        except SparseCRFError as error:
            if l2 == l2s[0]:
                raise
            on_error(error)


def _follow(
    l1s: Sequence[float], l2: float, pipelines: Sequence[EncodedPipeline], on_step: OnStep
) -> Iterator[Trial]:
    """Train at each l1, beginning with the models of the l1 before."""
    models: list[CRFModel | None] = [None for _ in pipelines]
    seconds = 0.0
    for l1 in l1s:
        start, of_folds = time.perf_counter(), []
        for i, pipeline in enumerate(pipelines):
            models[i] = model = pipeline.train(l1, l2, models[i], on_step)
            of_folds.append((len(model.to_bytes()), model.n_active, pipeline.score(model)))
        seconds += time.perf_counter() - start
        size, n_active, score = np.mean(of_folds, axis=0).tolist()
        yield Trial(
            l1=l1, l2=l2, score=score, size=round(size), n_active=round(n_active), seconds=seconds
        )


def choose(trials: Sequence[Trial], within: float = 0.0) -> Trial:
    """Choose the smallest model whose score is at most `within` below the best."""
    floor = max(trial.score for trial in trials) - within
    near = [trial for trial in trials if trial.score >= floor]
    return min(near, key=lambda trial: (trial.size, -trial.score))
