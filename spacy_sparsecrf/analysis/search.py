"""Search for hyperparameters: one setting changes at a time, along falling values of l1.

The corpus is encoded once for each choice of templates, scheme and min_freq. Training at an l1
begins with the model of the l1 before, so that a path of several l1 costs little more than its
last one (Friedman, Hastie & Tibshirani 2010, section 2.5).
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import compress
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from confection import Config
from spacy import util
from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import create_evaluation_callback

from ..errors import Errors, SparseCRFError, refused_option
from ..features.word_labels import RUNS
from ..pipeline.component import SparseCRFPipe
from ..pipeline.spacy_loop import block_of, has_path, learners

if TYPE_CHECKING:
    from ..model.model import CRFModel
    from ..solvers.base import StepReport

OWN = "config"  # names the config's own templates
# Trials end when outer iterations lower the objective by less than this fraction.
WINDOW = 1e-3
_FOLD = "spacy_sparsecrf.Fold.v1"

OnStep = Callable[["StepReport"], None]


class Setting(NamedTuple):
    """Hyperparameters other than l1.

    templates: OWN, sets and templates, joined by "+"; scheme: None if the target has none.
    """

    templates: str
    scheme: str | None
    min_freq: int
    l2: float

    @property
    def encoding(self) -> tuple[object, ...]:
        """The hyperparameters that determine the encoded corpus."""
        return self[:3]


class Trial(NamedTuple):
    """A trained model: its score, bytes and non-zero weights (means over folds).

    seconds: of training and scoring along the path so far.
    """

    setting: Setting
    l1: float
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
        given, n_steps = {} if init is None else {"init": init}, 0
        with closing(self._restart(l1=l1, l2=l2, **given)) as run:
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
    """A config for `spacy train` whose hyperparameters can be changed.

    config: not interpolated; folds: number of folds of the training Docs for cross-validation, 0
    to score on the development data; seed: of the folds; name: of the sparse CRF; filled: the
    block of this component with all defaults; setting: the config's own.
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
        scheme, min_freq = self.filled["target"].get("scheme"), self.filled["learning"]["min_freq"]
        self.setting = Setting(OWN, scheme, min_freq, self.filled["l2"])
        self._own = config.interpolate()["components"][self.name]
        self._config, self._folds, self._seed = config, folds, seed

    def with_values(self, setting: Setting, l1: float) -> Config:
        """Return the config with the given hyperparameters."""
        config = Config(self._config).copy()
        block, stack = config["components"][self.name], self.filled["learning"]["stack"]
        block.update(l1=l1, l2=setting.l2)
        if stack.get("folds"):
            # Fix the first-stage model's penalties: its predictions are part of the corpus.
            given = {key: value for key, value in stack.items() if value is not None}
            block["learning"]["stack"] = {key: self.filled[key] for key in ("l1", "l2")} | given
        blocks = {"templates": "features", "scheme": "target", "min_freq": "learning"}
        for name, key in blocks.items():
            value = getattr(setting, name)
            if value != getattr(self.setting, name):
                value = self._templates(value) if name == "templates" else value
                block[key] = (block.get(key) or self.filled[key]) | {name: value}
        return config

    def _templates(self, text: str) -> list[str]:
        """Return the templates that a setting names."""
        own = (self._own.get("features") or self.filled["features"])["templates"]
        parts = (own if part == OWN else [part] for part in text.split("+"))
        return [template for part in parts for template in part]

    def encode(self, setting: Setting, l1: float) -> list[EncodedPipeline]:
        """Read and encode the corpus: of one pipeline, or of one for each fold.

        l1: the smallest. The trials' solver has a larger `window` than the config's; they have no
        checkpoint.
        """
        configs = [self.with_values(setting, l1) for _ in range(self._folds or 1)]
        for fold, config in enumerate(configs):
            block = config["components"][self.name]
            own = config.get("initialize", {}).get("components", {}).get(self.name, {})
            own.pop("checkpoint", None)
            window = max(WINDOW, self.filled["solver"]["window"])
            block["solver"] = (block.get("solver") or self.filled["solver"]) | {"window": window}
            if not self._folds:
                continue
            train, dev = (config["training"][f"{key}_corpus"] for key in ("train", "dev"))
            own = {"@readers": _FOLD, "corpus": util.dot_to_object(config, train), "fold": fold}
            own |= {"folds": self._folds, "seed": self._seed}
            for key, held_out in (train, False), (dev, True):
                util.set_dot_to_object(config, key, own | {"held_out": held_out})
        return [EncodedPipeline(config, self.name) for config in configs]


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
    kept: list[Example] = []

    def read(nlp: Language) -> list[Example]:
        if kept:
            return kept
        examples = list(corpus(nlp))
        n = len(examples)
        if n < folds:
            raise refused_option("folds", folds, f"there are {n} training Docs")
        n_runs = min(n, RUNS * folds)
        of_run = np.random.default_rng(seed).permutation(n_runs) % folds
        chosen = (of_run[np.arange(n) * n_runs // n] == fold) == held_out
        found = list(compress(examples, chosen))
        kept.extend(found if held_out else [])
        return found

    return read


def name_of_crf(nlp: Language, config: Config) -> str:
    """Return the name of the sparse CRF to train in a pipeline that is not yet initialized.

    RAISES: SparseCRFError unless there is exactly one, with a solver that finds the minimiser for
        an L1 penalty, and nothing else to train.
    """
    learning = learners(nlp, util.get_sourced_components(config))
    name, crf = next(iter(learning.items()), ("", None))
    if len(learning) != 1 or not isinstance(crf, SparseCRFPipe):
        found = ", ".join(learning) or "none"
        raise SparseCRFError(Errors.SC706.format(pipeline=nlp.pipe_names, names=found))
    if not crf.solver.exact or "no l1" in crf.solver.requires:
        raise SparseCRFError(Errors.SC701.format(solver=type(crf.solver).__name__))
    return name


def search(
    values: Mapping[str, Sequence[Any]],
    l1s: Sequence[float],
    encode: Callable[[Setting], Sequence[EncodedPipeline]],
    on_step: OnStep,
    on_error: Callable[[SparseCRFError], None],
) -> Iterator[Trial]:
    """Train and score each l1 with the first values, then with each other value of one setting.

    A change is made to the best setting so far.

    values: by field of `Setting`; l1s: descending; encode: reads the corpus; on_error: called if
        a later setting fails.
    RAISES: SparseCRFError if the first setting fails.
    """
    setting = Setting(**{key: found[0] for key, found in values.items()})
    changes = [{key: value} for key, found in values.items() for value in found[1:]]
    best, kept = (-inf, 0), (setting, encode(setting))
    for change in [{}, *changes]:
        setting = kept[0]._replace(**change)
        try:
            is_same = setting.encoding == kept[0].encoding
            pipelines = kept[1] if is_same else encode(setting)
            for trial in _follow(setting, l1s, pipelines, on_step):
                # Of equal scores, the smallest model is best.
                if best < (rank := (trial.score, -trial.size)):
                    best, kept = rank, (setting, pipelines)
                yield trial
        except SparseCRFError as error:
            if not change:
                raise
            on_error(error)


def _follow(
    setting: Setting, l1s: Sequence[float], pipelines: Sequence[EncodedPipeline], on_step: OnStep
) -> Iterator[Trial]:
    """Train at each l1, beginning with the models of the l1 before."""
    models: list[CRFModel | None] = [None for _ in pipelines]
    seconds = 0.0
    for l1 in l1s:
        start, found = time.perf_counter(), []
        for i, pipeline in enumerate(pipelines):
            models[i] = model = pipeline.train(l1, setting.l2, models[i], on_step)
            found.append((len(model.to_bytes()), model.n_active, pipeline.score(model)))
        seconds += time.perf_counter() - start
        size, n_active, score = np.mean(found, axis=0).tolist()
        yield Trial(setting, l1, score, round(size), round(n_active), seconds)


def choose(trials: Sequence[Trial], within: float = 0.0) -> Trial:
    """Choose the smallest model whose score is at most `within` below the best."""
    floor = max(trial.score for trial in trials) - within
    best = [trial for trial in trials if trial.score >= floor]
    return min(best, key=lambda trial: (trial.size, -trial.score))
