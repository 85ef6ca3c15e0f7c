"""One experiment: training with a stop on the development part, then fine-tuning, then testing."""

import itertools
import resource
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import srsly
import typer
from bench.options import Quick
from bench.timing import Stopwatch
from reports.machine import describe
from wasabi import msg

from spacy_sparsecrf.features.featurizer import Featurizer
from spacy_sparsecrf.model.model import CRFModel
from spacy_sparsecrf.pipeline.settings import LearningSettings
from spacy_sparsecrf.registry import crf_solvers
from spacy_sparsecrf.training.staged import StagedTraining, StageReport
from spacy_sparsecrf.training.training import Training

from .corpora import Parts, Scored, read_parts
from .experiments import SETTINGS, Experiment, by_name

QUICK_SEQUENCES = 60
_QUICK_CAP = 2.0
# Wapiti's rule: the last error rates of the development part, and how close they must be.
WINDOW, CLOSE = 5, 0.02


@dataclass
class Course:
    """What a run went through: a value after each outer iteration.

    cpu: seconds of training and of scoring the development part, since its start; stages: what
    `StageReport` told, and after how many iterations; ended: why it stopped.
    """

    objective: list[float] = field(default_factory=list)
    passes: list[float] = field(default_factory=list)
    n_active: list[int] = field(default_factory=list)
    dev: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    stages: list[dict[str, Any]] = field(default_factory=list)
    ended: str = ""


def is_steady(errors: Sequence[float]) -> bool:
    """Whether the last error rates, in percent, are so close that training may stop."""
    last = errors[-WINDOW:]
    return len(last) == WINDOW and max(last) - min(last) < CLOSE


def make_training(
    experiment: Experiment, directories: Sequence[str], n: int, course: Course
) -> tuple[Training, Parts, Any]:
    """The run, its data and its solver."""
    from spacy_sparsecrf.features.template_hierarchy import Lineage, TemplateTreeRecord

    featurizer = Featurizer(experiment.templates)
    settings = {**SETTINGS.get(experiment.solver, {}), **experiment.settings}
    solver = crf_solvers.get(f"spacy_sparsecrf.{experiment.solver}.v1")(**settings)
    options: dict[str, Any] = {
        "l1": experiment.l1,
        "l2": experiment.l2,
        "n_threads": 1,
        "observed_only": experiment.observed_only,
        "precision": experiment.precision,
    }
    data = experiment.data, experiment.fold
    if not experiment.schedule:
        parts = read_parts(*data, featurizer, directories, n)
        return Training(parts.corpus, parts.labels, solver, **options), parts, solver
    stages = LearningSettings.read(experiment.name, {"schedule": list(experiment.schedule)}).stages
    lineage = Lineage.of(featurizer.parsed, featurizer.templates, stages)
    record = TemplateTreeRecord(featurizer, featurizer, lineage)
    parts = read_parts(*data, record, directories, n)

    def note(report: StageReport) -> None:
        course.stages.append({"after": len(course.dev), **asdict(report)})

    training = StagedTraining(
        parts.corpus,
        parts.labels,
        solver,
        tree=record.kin(parts.corpus),
        stages=stages,
        report=note,
        **options,
    )
    return training, parts, solver


def run(training: Training, dev: Scored, course: Course, cap: float, most: int) -> CRFModel:
    """Train until the error of the development part is steady.

    cap: seconds of the processor at most; most: outer iterations at most.
    RETURNS: the model of the iteration with the lowest error, which spaCy's loop would keep.
    """
    watch, best = Stopwatch(), None
    for i in itertools.count(1):
        report = training.step()
        model = training.model()
        course.dev.append(dev.errors(model)[0])
        if best is None or course.dev[-1] < min(course.dev[:-1]):
            best = model
        course.objective.append(report.objective)
        course.passes.append(report.passes)
        course.n_active.append(report.n_active)
        course.cpu.append(watch.read().cpu)
        msg.text(
            f"{i}: objective {report.objective:.6g}, {report.n_active} active weights, "
            f"dev error {course.dev[-1]:.2f} %, {course.cpu[-1]:.0f} s"
        )
        # A stage is not to be stopped by the pause that the one before it ends with.
        begun = max((stage["after"] for stage in course.stages), default=0)
        last = not course.stages or course.stages[-1]["number"] == course.stages[-1]["of"]
        if last and is_steady(course.dev[begun:]):
            course.ended = "steady"
        elif report.converged:
            course.ended = "converged"
        elif course.cpu[-1] > cap:
            course.ended = "cap"
        elif i >= most:
            course.ended = "iterations"
        if course.ended:
            break
    assert best is not None
    return best


def scores(model: CRFModel, parts: Parts) -> dict[str, float]:
    """Errors of both parts: of labels, and of their parts that are scored by themselves."""
    dev, test = parts.dev.errors(model), parts.test.errors(model)
    return {"dev": dev[0], "dev_part": dev[1], "test": test[0], "test_part": test[1]}


def measure(
    experiment: Experiment, directories: Sequence[str], quick: bool = False
) -> dict[str, Any]:
    """Run an experiment; what the report says of it, but for the cost of the process."""
    course, watch = Course(), Stopwatch()
    n = QUICK_SEQUENCES if quick else 0
    training, parts, solver = make_training(experiment, directories, n, course)
    reading = watch.read().cpu
    cap = _QUICK_CAP if quick else experiment.cap
    best = run(training, parts.dev, course, cap, experiment.most)
    result: dict[str, Any] = {
        "quick": quick,
        "experiment": asdict(experiment),
        "sequences": parts.corpus.n_sequences,
        "tokens": parts.corpus.n_tokens,
        "labels": len(parts.labels),
        "tests": len(parts.corpus.unigram_keys) + len(parts.corpus.bigram_keys),
        "potential": parts.corpus.n_potential(len(parts.labels)),
        "allowed": training.n_potential,
        "reading_cpu": reading,
        "training_cpu": course.cpu[-1],
        "active": len(training.weights[0]),
        "errors": scores(training.model(), parts),
        "best": scores(best, parts),
        "best_active": best.n_active,
        "course": asdict(course),
        "machine": describe(),
        **_used(),
        "polished": {},
    }
    for n_iterations in experiment.polish:
        before = watch.read().cpu
        solver.polish_iterations = n_iterations
        result["polished"][str(n_iterations)] = scores(training.model(), parts)
        result["polished"][str(n_iterations)]["cpu"] = watch.read().cpu - before
    return result


def _used() -> dict[str, float]:
    """Processor seconds and peak memory of this process, from its start."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {"cpu": usage.ru_utime + usage.ru_stime, "peak_mb": usage.ru_maxrss / 1024}


def main(
    name: Annotated[str, typer.Argument(help="Name of an experiment")],
    output: Annotated[Path, typer.Argument(help="JSON file for the figures")],
    directories: Annotated[list[str], typer.Argument(help="Directories of the data, in order")],
    quick: Quick = False,
) -> None:
    """Run one experiment and write its figures."""
    srsly.write_json(output, measure(by_name(name), directories, quick))


if __name__ == "__main__":
    typer.run(main)
