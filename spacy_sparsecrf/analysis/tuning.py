"""Tuning of hyperparameters: an ordered search that encodes the corpus once per set of features.

1. The config's own settings are trained as in `spacy train`, with an evaluation after each step.
2. Templates, scheme and min_freq change one at a time. Each variant is trained along a path of l1,
   and the best variant is kept. With it, a path is trained for each further l2.
3. The best points of these paths are trained as in 1. The best evaluation of all such runs wins.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from confection import Config
from spacy.language import Language
from spacy.training import Example
from spacy.util import dot_to_object, load_model_from_config, registry, set_dot_to_object

from ..errors import Errors, SparseCRFError
from ..features.word_labels import RUNS
from ..pipeline.batchers import ONE_STEP, batcher_of, names_corpus
from .path import InitializedPipeline, name_of_crf

if TYPE_CHECKING:
    from ..solvers.base import StepReport
    from ..training.training import Training

FINALISTS = 3  # number of points of paths that are then trained as in `spacy train`
PATIENCE = 3  # evaluations without a better score that end such a run
WINDOW = 1e-2  # see `regularization_path.follow`
_FOLD = "spacy_sparsecrf.Fold.v1"
OWN = "config"  # names the config's own templates


class OutOfTimeError(Exception):
    """The budget is spent."""


class Encoding(NamedTuple):
    """The hyperparameters that determine the encoded corpus.

    templates: OWN, sets and templates, joined by "+"; scheme: None if the target has none.
    """

    templates: str
    scheme: str | None
    min_freq: int


class Grid(NamedTuple):
    """The values to try, l1s descending. The search starts with l1 and the first of all others.

    open: whether to extend the l1s, and the l2s, while their smallest or largest value is best.
    """

    templates: Sequence[str]
    schemes: Sequence[str | None]
    min_freqs: Sequence[int]
    l1s: Sequence[float]
    l2s: Sequence[float]
    l1: float
    open: tuple[bool, bool]

    @property
    def first(self) -> Encoding:
        """The encoding of the first trial."""
        return Encoding(self.templates[0], self.schemes[0], self.min_freqs[0])

    @property
    def changes(self) -> list[dict[str, Any]]:
        """The changes to try, each of one value of the first encoding."""
        others = zip(Encoding._fields, self[:3], strict=True)
        return [{key: value} for key, values in others for value in values[1:]]


class Measured(NamedTuple):
    """Score, bytes, non-zero weights (means over folds) and seconds of training (a sum)."""

    score: float
    size: int
    n_active: int
    seconds: float


@dataclass(frozen=True)
class Trial:
    """A model of the search.

    step: index of the best evaluation of a run from the start. None for a point of a path, which is
    warm-started from the previous point; its seconds are the total of the path so far.
    """

    encoding: Encoding
    l1: float
    l2: float
    measured: Measured
    step: int | None = None

    @property
    def rank(self) -> tuple[float, int]:
        """Sort key, largest for the best score, and of equal scores for the smallest model."""
        return self.measured.score, -self.measured.size


class TunableConfig:
    """A config for `spacy train` whose hyperparameters can be changed.

    config: not interpolated; folds: number of folds of the training Docs for cross-validation, 0
    to score on the development data; seed: of the folds; name: of the sparse CRF; filled: the
    block of this component with all defaults; encoding: the config's own.
    RAISES: SparseCRFError as `name_of_crf`, and if there is no training or development data.
    """

    def __init__(self, config: Config, folds: int, seed: int) -> None:
        nlp = load_model_from_config(config, auto_fill=True)
        self.name = name_of_crf(nlp, config)
        for key in ("train_corpus", "dev_corpus")[: 1 if folds else 2]:
            if not names_corpus(nlp, key):
                block = nlp.config["training"][key]
                raise SparseCRFError(Errors.SC717.format(key=key, block=block))
        self.filled: dict[str, Any] = nlp.config.interpolate()["components"][self.name]
        min_freq = self.filled["learning"]["min_freq"]
        self.encoding = Encoding(OWN, self.filled["target"].get("scheme"), min_freq)
        self._own = config.interpolate()["components"][self.name]
        self._config, self._batcher = config, batcher_of(nlp)
        self._folds, self._seed = folds, seed

    def with_values(self, encoding: Encoding, l1: float, l2: float) -> Config:
        """Return the config with the given hyperparameters."""
        config = Config(self._config).copy()
        block, stack = config["components"][self.name], self.filled["learning"]["stack"]
        block.update(l1=l1, l2=l2)
        if stack.get("folds"):
            # Fix the first-stage model's penalties: its predictions are part of the corpus.
            given = {key: value for key, value in stack.items() if value is not None}
            block["learning"]["stack"] = {key: self.filled[key] for key in ("l1", "l2")} | given
        blocks = {"templates": "features", "scheme": "target", "min_freq": "learning"}
        for name, value in encoding._asdict().items():
            if value != getattr(self.encoding, name):
                own = block.get(blocks[name]) or self.filled[blocks[name]]
                value = self._templates(value) if name == "templates" else value
                block[blocks[name]] = own | {name: value}
        return config

    def _templates(self, text: str) -> list[str]:
        """Return the templates that an encoding names."""
        own = (self._own.get("features") or self.filled["features"])["templates"]
        parts = (own if part == OWN else [part] for part in text.split("+"))
        return [template for part in parts for template in part]

    def of_trials(self, encoding: Encoding, l1: float, l2: float) -> list[Config]:
        """Return the configs that encode the corpus: one, or one for each fold."""
        configs = [self.with_values(encoding, l1, l2) for _ in range(self._folds or 1)]
        for fold in range(self._folds):
            config = configs[fold]
            train, dev = (config["training"][f"{key}_corpus"] for key in ("train", "dev"))
            own = {"@readers": _FOLD, "corpus": dot_to_object(config, train), "fold": fold}
            own |= {"folds": self._folds, "seed": self._seed}
            for block, held_out in (train, False), (dev, True):
                set_dot_to_object(config, block, own | {"held_out": held_out})
        return configs

    def tuned(self, trial: Trial) -> Config:
        """Return the config with which `spacy train` reproduces a trial."""
        config = self.with_values(trial.encoding, trial.l1, trial.l2)
        step = trial.step or 0
        config["training"].update(patience=0, eval_frequency=1, max_steps=max(step, 1))
        if self._batcher == ONE_STEP:
            # With `max_steps` there would be at least two steps.
            config["training"].update(max_epochs=step + 1, max_steps=0)
        return config


@registry.readers(_FOLD)  # type: ignore[untyped-decorator]
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
            raise SparseCRFError(Errors.SC718.format(folds=folds, n=n))
        n_runs = min(n, RUNS * folds)
        of_run = np.random.default_rng(seed).permutation(n_runs) % folds
        chosen = (of_run[np.arange(n) * n_runs // n] == fold) == held_out
        found = list(compress(examples, chosen))
        kept.extend(found if held_out else [])
        return found

    return read


class TrialPipeline:
    """A pipeline that is trained repeatedly on one encoded corpus, or one pipeline for each fold.

    configs: see `TunableConfig.of_trials`; name: of the component.
    """

    def __init__(self, configs: Sequence[Config], name: str) -> None:
        self._parts = []
        for config in configs:
            own = InitializedPipeline(config, name)
            self._parts.append((own, own.pipe.training_run().restart, own.corpus("dev_corpus")))
            # Releases this run's arrays; each trial allocates its own.
            own.pipe.end_training(own.pipe.model, own.pipe.settings.l1)
        self.max_steps: int = own.settings["max_steps"]

    def _begin(self, l1: float, l2: float) -> "list[Training]":
        return [restart(l1=l1, l2=l2) for _, restart, _ in self._parts]

    def path(
        self, l1s: Sequence[float], l2: float, on_step: "Callable[[StepReport], None]"
    ) -> Iterator[tuple[float, Measured]]:
        """Train at each l1, from large to small, and evaluate. YIELDS: l1, and its `Measured`."""
        from .regularization_path import follow

        start, seconds = time.perf_counter(), 0.0
        runs = self._begin(l1s[-1], l2)
        paths = [follow(run, l1s, self.max_steps, WINDOW, on_step) for run in runs]
        for solutions in zip(*paths, strict=True):
            seconds += time.perf_counter() - start
            yield solutions[0].l1, self._measure(runs, seconds)
            start = time.perf_counter()

    def rows(
        self, l1: float, l2: float, on_step: "Callable[[StepReport], None]"
    ) -> Iterator[Measured]:
        """Train as in `spacy train`, and evaluate after each step until convergence."""
        start, seconds = time.perf_counter(), 0.0
        runs = self._begin(l1, l2)
        while not all(run.converged for run in runs):
            for run in runs:
                if not run.converged:
                    report = run.step()
                    if not isfinite(report.objective):
                        raise SparseCRFError(Errors.SC705.format(l1=l1, objective=report.objective))
                    on_step(report)
            seconds += time.perf_counter() - start
            yield self._measure(runs, seconds)
            start = time.perf_counter()

    def _measure(self, runs: "Sequence[Training]", seconds: float) -> Measured:
        found = []
        for run, (own, _, dev) in zip(runs, self._parts, strict=True):
            model = own.pipe.model = run.model()
            found.append((own.evaluate(dev)[0], len(model.to_bytes()), model.n_active))
        score, size, n_active = np.mean(found, axis=0).tolist()
        return Measured(score, round(size), round(n_active), seconds)


class HyperparameterSearch:
    """A search for the best hyperparameters.

    encode: reads and encodes the corpus; budget: in seconds; on_step: called after each outer
    iteration; on_trial: called after each trial; on_event: called with the reason when a part of
    the search ends early; trials: so far.
    """

    def __init__(
        self,
        encode: Callable[[Encoding], TrialPipeline],
        grid: Grid,
        budget: float,
        on_step: "Callable[[StepReport], None]",
        on_trial: Callable[[Trial], None],
        on_event: Callable[[str], None],
    ) -> None:
        self._encode, self._grid = encode, grid
        self._on_step, self._on_trial, self._on_event = on_step, on_trial, on_event
        self._begin = time.monotonic()
        self._end, self._until = self._begin + budget, inf
        self.trials: list[Trial] = []

    @property
    def best(self) -> Trial:
        """The best of the trials that a config can reproduce."""
        return max((each for each in self.trials if each.step is not None), key=lambda t: t.rank)

    def run(self) -> None:
        """Search until all values are tried, the budget is spent, or the user interrupts.

        RAISES: SparseCRFError if the first settings fail; KeyboardInterrupt before the first trial.
        """
        grid, n_finalists = self._grid, FINALISTS
        self._encoding = grid.first
        self._pipeline = self._encode(self._encoding)
        if not self._finish([(grid.l1, grid.l2s[0])]):
            return
        now = time.monotonic()
        self._until = self._end - min(FINALISTS * (now - self._begin), (self._end - now) / 2)
        try:
            self._scan()
        except OutOfTimeError as error:
            self._on_event(f"{error}, not all paths are followed")
        except KeyboardInterrupt:
            self._on_event("Interrupted: trains the best settings so far; interrupt again to end")
            n_finalists = 1
        self._until = self._end
        points = sorted(self._points, key=lambda trial: trial.rank, reverse=True)
        found = [(each.l1, each.l2) for each in points if each.encoding == self._encoding]
        done = self.trials[0]
        if done.encoding == self._encoding:
            found = [each for each in found if each != (done.l1, done.l2)]
        self._finish(found[:n_finalists])

    @property
    def _points(self) -> list[Trial]:
        """The points of paths; the best point has the current encoding."""
        return [each for each in self.trials if each.step is None]

    def _scan(self) -> None:
        """Train paths for all encodings, then for all l2; then extend the open values."""
        grid = self._grid
        for change in [{}, *grid.changes]:
            self._follow(self._encoding._replace(**change), grid.l1s, grid.l2s[0])
        for l2 in grid.l2s[1:]:
            self._follow(self._encoding, grid.l1s, l2)
        for axis, values in enumerate(([*grid.l1s], [*grid.l2s])):
            while grid.open[axis] and self._points:
                best = max(self._points, key=lambda trial: trial.rank)
                own = [best.l1, best.l2]
                is_last = own[axis] in (min(values), max(values))
                own[axis] = rounded(own[axis] * (3 if own[axis] == max(values) else 1 / 3))
                if not is_last or own[axis] in values:
                    break
                values.append(own[axis])
                self._follow(self._encoding, own[:1], own[1])

    def _follow(self, encoding: Encoding, l1s: Sequence[float], l2: float) -> None:
        """Train along a path, and keep its corpus if it has the best point."""
        before, points, pipeline = self._points, list[Trial](), self._pipeline
        try:
            if encoding != self._encoding:
                pipeline = self._encode(encoding)
            for l1, measured in pipeline.path(l1s, l2, self._step):
                points.append(self._add(Trial(encoding, l1, l2, measured)))
        except SparseCRFError as error:
            self._on_event(f"These settings are left out: {error}")
        finally:
            # Also if the budget ends the path.
            if max(before + points, key=lambda trial: trial.rank, default=None) in points:
                self._encoding, self._pipeline = encoding, pipeline

    def _finish(self, found: Sequence[tuple[float, float]]) -> bool:
        """Train with each (l1, l2) as in `spacy train`. RETURNS: whether to continue the search."""
        try:
            for l1, l2 in found:
                self._train(l1, l2)
        except (OutOfTimeError, KeyboardInterrupt, SparseCRFError) as error:
            if not self.trials:
                raise
            self._on_event(str(error) or "Interrupted")
            return False
        return True

    def _train(self, l1: float, l2: float) -> None:
        rows: list[Measured] = []
        max_steps = self._pipeline.max_steps
        try:
            for row in self._pipeline.rows(l1, l2, self._step):
                rows.append(row)
                # The budget does not limit the first evaluation of the search.
                self._until = min(self._until, self._end)
                best = max(range(len(rows)), key=lambda i: (rows[i].score, -i))
                if len(rows) > best + PATIENCE or 0 < max_steps < len(rows):
                    break
        finally:
            if rows:
                self._add(Trial(self._encoding, l1, l2, rows[best], best))

    def _step(self, report: "StepReport") -> None:
        self._on_step(report)
        if time.monotonic() > self._until:
            raise OutOfTimeError("The budget is spent")

    def _add(self, trial: Trial) -> Trial:
        self.trials.append(trial)
        self._on_trial(trial)
        return trial


def rounded(value: float) -> float:
    """Round a value of the grid to three digits."""
    return float(f"{value:.3g}")


def front(trials: Sequence[Trial], cost: Callable[[Trial], float]) -> set[Trial]:
    """Return the Pareto front: trials with a better score than all others of at most their cost."""
    found: set[Trial] = set()
    best = -inf
    for trial in sorted(trials, key=lambda each: (cost(each), -each.measured.score)):
        if trial.measured.score > best:
            best = trial.measured.score
            found.add(trial)
    return found
