"""Run the experiments, each in a child process, and skip finished ones.

    python -m lavergne.run metrics/lavergne --only "phonemes-*"
    python -m lavergne.run metrics/lavergne --only ewt-sgd --here

The second command runs one experiment in this process, and writes its row to stdout. The
development part decides when training stops; then the weights are fine-tuned and tested.
"""

import itertools
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from subprocess import CalledProcessError
from typing import Annotated, Any

import srsly
import typer
from measure.data import Data, Scored, Source, sample
from measure.processes import run
from measure.results import Quick, Results
from wasabi import msg

from spacy_sparsecrf.crf.model.model import CRFModel
from spacy_sparsecrf.crf.solvers.warm_start import WarmStart
from spacy_sparsecrf.crf.training.run import Polish
from spacy_sparsecrf.crf.training.training import NOT_POLISHED, Problem, Training
from spacy_sparsecrf.pipeline.features.featurizer import Featurizer
from spacy_sparsecrf.registry import crf_solvers

from .experiments import EXPERIMENTS, SETTINGS, WARM_START, Experiment
from .stages import Stages, WindowReader, begin_limited

# Experiments of a trial: one of each type.
QUICK = (
    *("phonemes-3grm-owlqn", "phonemes-1grm-sgd", "phonemes-1grm-bcd"),
    *("phonemes-3grm-owlqn-unigrams", "phonemes-1grm-owlqn-l2=0.1"),
    *("phonemes-5grm-owlqn-by-labels", "joint-1grm-owlqn"),
    "ewt-owlqn-unigrams",
)
TASKS = {
    "phonemes": Source("nettalk", 1),
    "joint": Source("nettalk", 3, separator="/"),
    "ewt": Source("ud-en-ewt", 2),
    "brown": Source("brown", 2),
}
QUICK_SEQUENCES, _QUICK_CAP = 60, 2.0
# Wapiti's stopping rule: number of last development error rates, and their maximum range.
WINDOW, CLOSE = 5, 0.02
# Outer iterations of a stage but the last: enough for the error to stabilise, before convergence.
STAGE_STEPS = 2


def is_steady(errors: Sequence[float]) -> bool:
    """Return whether the last error rates, in percent, are within Wapiti's range."""
    last = errors[-WINDOW:]
    return len(last) == WINDOW and max(last) - min(last) < CLOSE


class Run:
    """A running experiment: its corpus, its training run, and its development and test parts.

    errors: development error after each outer iteration; admitted: number of candidate weights: of
    the stage, observed pairs, or all.
    """

    def __init__(self, experiment: Experiment, data: str, n: int) -> None:
        self.experiment, self.errors = experiment, list[float]()
        source = TASKS[experiment.data]
        train, dev, test = (sample(source.rows(p, data), n) for p in ("train", "dev", "test"))
        self.labels = source.labels(train)
        read = WindowReader(experiment.stages) if experiment.stages else None
        featurizer = Featurizer(experiment.templates)
        self.corpus = source.corpus(read or featurizer, train, self.labels)
        self.dev, self.test = (source.scored(featurizer, p, self.labels) for p in (dev, test))
        settings = {**SETTINGS.get(experiment.solver, {}), **experiment.settings}
        begin = partial(
            begin_limited if read else Training,
            labels=self.labels,
            solver=crf_solvers.get(f"spacy_sparsecrf.{experiment.solver}.v1")(**settings),
            l1=experiment.l1,
            l2=experiment.l2,
            n_threads=1,
            warm_start=WarmStart(**WARM_START) if experiment.warm_start else WarmStart(epochs=0),
            problem=Problem(observed_only=experiment.observed_only, precision=experiment.precision),
        )
        self._stages: Stages | None = None
        self._begun = 0
        if read is None:
            self.training = begin(self.corpus)
            potential = self.corpus.n_potential(len(self.labels))
            observed = experiment.observed_only
            self.admitted = self.training.size.n_potential if observed else potential
        else:
            n_labels, by_label = len(self.labels), experiment.by_label
            self._stages = Stages(self.corpus, n_labels, read, begin, by_label=by_label)
            self._begin_stage(self._stages)

    def _begin_stage(self, stages: Stages, init: CRFModel | None = None) -> None:
        self.training = stages.training(init)
        self.admitted, self._begun = stages.n_admitted, len(self.errors)

    def _advance(self, stages: Stages) -> None:
        """Begin the next stage."""
        model = self.training.model(NOT_POLISHED, "float64")
        stages.advance(model)
        # Free its arrays before those of the next run are created.
        self.training.close()
        del self.training
        self._begin_stage(stages, model)

    def train(self, cap: float) -> tuple[CRFModel, dict[str, Any]]:
        """Train until the development error is steady.

        cap: maximum processor seconds. RETURNS: the model of the iteration with the lowest error,
        which spaCy's training loop would save; and figures.
        """
        start, passes, best, errors = time.process_time(), 0.0, None, self.errors
        for i in itertools.count(1):
            report, model = self.training.step(), self.training.model()
            errors.append(self.dev.errors(model)[0])
            if best is None or errors[-1] < min(errors[:-1]):
                best = model
            passes += report.passes
            is_cut = time.process_time() - start > cap or i >= self.experiment.most
            is_last = self._stages is None or self._stages.is_last
            n_steps = len(errors) - self._begun
            steady = is_steady(errors[self._begun :]) if is_last else n_steps == STAGE_STEPS
            is_over = bool(report.end) or steady
            if is_cut or (is_over and is_last):
                break
            if is_over and self._stages is not None:
                self._advance(self._stages)
        assert best is not None
        return best, {
            "iterations": i,
            "passes": passes,
            "objective": report.objective,
            "learnt": report.n_active,
            "best_iteration": errors.index(min(errors)) + 1,
            "cut": not (is_over and is_last),
        }


def _scores(parts: dict[str, Scored], model: CRFModel, prefix: str = "") -> dict[str, float]:
    """Return errors of parts: percentages of wrong labels, and of wrong label parts."""
    found = {part: scored.errors(model) for part, scored in parts.items()}
    scores = {f"{prefix}{part}": errors[0] for part, errors in found.items()}
    return scores | {f"{prefix}{part}_part": errors[1] for part, errors in found.items()}


def measure(experiment: Experiment, data: str, quick: bool = False) -> dict[str, Any]:
    """Run an experiment.

    RETURNS: dev, test: percentages of wrong labels when training stopped, and *_part of wrong label
    parts; best_*: the same for the model of best_iteration (from 1); polished: test error after
    polish_iterations of L-BFGS, a number selected on the development part; iterations, passes: when
    training stopped; objective, learnt: last objective, and number of active weights in training;
    active, admitted, potential: numbers of weights of the model, of candidates, and of all
    features; cpu: processor seconds; cut: whether a limit ended the run.
    """
    one = Run(experiment, data, QUICK_SEQUENCES if quick else 0)
    best, figures = one.train(_QUICK_CAP if quick else experiment.cap)
    parts = {"dev": one.dev, "test": one.test}
    figures |= _scores(parts, one.training.model()) | _scores(parts, best, "best_")
    figures |= {
        "active": one.training.report.n_active,
        "admitted": one.admitted,
        "potential": one.corpus.n_potential(len(one.labels)),
        "labels": len(one.labels),
        "cpu": time.process_time(),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    polished = []
    for n_iterations in experiment.polish:
        model = one.training.model(Polish(n_iterations))
        polished.append((one.dev.errors(model)[0], n_iterations, one.test.errors(model)[0]))
    if polished:
        _, figures["polish_iterations"], figures["polished"] = min(polished)
    return figures


# All experiments


def chosen(patterns: Sequence[str], quick: bool) -> list[Experiment]:
    """Return the experiments that match patterns, all if there are none; in a trial, of `QUICK`."""
    patterns = patterns or (QUICK if quick else "*")
    return [x for x in EXPERIMENTS.values() if any(fnmatchcase(x.name, p) for p in patterns)]


def given(experiment: Experiment) -> dict[str, Any]:
    """Return the non-default settings of an experiment, as JSON returns them."""
    usual = asdict(Experiment("", "", ()))
    own = {key: value for key, value in asdict(experiment).items() if value != usual[key]}
    return dict(srsly.json_loads(srsly.json_dumps(own)))


def run_child(one: Experiment, data: str, quick: bool) -> dict[str, Any]:
    """Run an experiment in a child process. RAISES: CalledProcessError."""
    command = ["python", "-m", "lavergne.run", "metrics", "--only", one.name, "--here"]
    output = run([*command, "--data", data, "--quick" if quick else "--full"]).output
    return dict(srsly.json_loads(output.splitlines()[-1]))


def main(
    output: Annotated[Path, typer.Argument(help="Directory for the figures")],
    data: Data = "",
    only: Annotated[str, typer.Option(help="Names of experiments, * for any text; all")] = "",
    here: Annotated[bool, typer.Option("--here", help="Run one, and write its row")] = False,
    quick: Quick = False,
) -> None:
    """Run the experiments that have not been run yet."""
    wanted = chosen(only.split(), quick)
    if not wanted:
        raise typer.BadParameter(f"No experiment is called {only}.")
    if here:
        sys.stdout.write(f"{srsly.json_dumps(measure(wanted[0], data, quick))}\n")
        return
    results = Results(output / "results.jsonl", quick)
    left = [x for x in wanted if results.rows.get(x.name, {}).get("experiment") != given(x)]
    kinds = {(x.solver, x.l1 > 0, bool(x.stages), x.observed_only, x.precision): x for x in left}
    for one in () if quick else kinds.values():
        run_child(one, data, quick=True)  # compiles what is not compiled yet
    failed = []
    for one in left:
        try:
            results.add(one.name, **run_child(one, data, quick), experiment=given(one))
        except CalledProcessError:
            # An experiment that exceeds the available memory must not stop the others.
            failed.append(one.name)
            msg.fail(one.name)
    msg.good(f"{len(wanted) - len(failed)} of {len(wanted)} experiments are in {output}")
    if failed:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
