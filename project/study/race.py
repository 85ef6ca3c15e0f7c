"""Running the races: objective and test error against passes and processor time.

A pass is an evaluation of every sequence, or as many evaluations of single ones (Schmidt et al.
2015); the forward pass of a line search counts as one, and the evaluation by which a stochastic
solver only reports is not counted. Its time is: all seconds are of the processor, on one thread,
but those of counting errors. Everything starts from weights of zero.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import srsly
import typer
from bench.options import Quick
from bench.timing import Stopwatch
from reports.machine import describe
from wasabi import msg

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.penalty import ElasticNet
from spacy_sparsecrf.solvers.base import StepReport
from spacy_sparsecrf.training.training import Training

from .contestants import RACES, SMOOTH_RACE, SPARSE_RACE, Contestant, Race
from .sets import DataSet, read

QUICK_SEQUENCES = 30
# Relative gap at which a contestant is done.
_CLOSE = 1e-9
# Errors are counted when the passes have grown by this factor.
_COUNT_EVERY = 1.5
# A value of a setting is tried with this share of the limits.
_TRIAL = 0.1
_NEVER = {"tolerance": 0.0, "window": 0.0}


class Enough(Exception):
    """A contestant has reached the minimum, or the end of its time."""


@dataclass
class Course:
    """Where a contestant stood after each of its steps.

    passes, cpu: since the start; objective; n_active: weights that are not zero; errors: pairs of
    the number of a step and the percentage of wrong test tokens; failure: what the solver said
    where it gave up.
    """

    passes: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)
    n_active: list[int] = field(default_factory=list)
    errors: list[tuple[int, float]] = field(default_factory=list)
    failure: str = ""


class Watched:
    """A solver whose steps are noted, inner ones too; otherwise it is what it wraps.

    course: where to note; goal: objective at which it is done; cap: seconds it may take;
    most: passes it may take.
    """

    def __init__(self, solver: Any, goal: float, cap: float, most: float) -> None:
        self.course = Course()
        self.training: Training | None = None
        self.data: DataSet | None = None
        self._solver = solver
        self._limits = goal, cap, most
        self._watch = Stopwatch()
        self._spent = 0.0
        self._next_count = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._solver, name)

    def step(self, loss: Any, penalty: ElasticNet, state: Any) -> StepReport:
        """Step, and note where that led to. RAISES: Enough."""
        report: StepReport = self._solver.step(loss, penalty, state)
        course, before = self.course, Stopwatch()
        first = self._solver.warm_start_epochs if penalty.l1 else 0
        passed = course.passes[-1] if course.passes else float(first)
        course.passes.append(passed + report.passes)
        course.cpu.append(self._watch.read().cpu - self._spent)
        course.objective.append(report.objective)
        course.n_active.append(report.n_active)
        goal, cap, most = self._limits
        done = report.objective <= goal or course.cpu[-1] > cap or course.passes[-1] >= most
        if self.data is not None and (done or course.passes[-1] >= self._next_count):
            self.count_errors()
        self._spent += before.read().cpu
        if done:
            raise Enough
        return report

    def count_errors(self) -> None:
        """Note the errors of the weights as they are."""
        assert self.training is not None and self.data is not None
        error = self.data.error(self.training.model())
        self.course.errors.append((len(self.course.passes) - 1, error))
        self._next_count = _COUNT_EVERY * self.course.passes[-1]


def run(
    data: DataSet,
    penalty: ElasticNet,
    contestant: Contestant,
    *,
    goal: float = -math.inf,
    cap: float = math.inf,
    most: float = math.inf,
    count: bool = True,
) -> Course:
    """Let a contestant run until it is done; see `Watched` for the limits."""
    inner = {} if penalty.l1 else {"inner_iterations": 1}
    solver = contestant.make(**{"warm_start_epochs": 0}, **inner, **_NEVER)
    watched = Watched(solver, goal, cap, most)
    options: dict[str, Any] = {"n_threads": 1, "dtype": "float64"}
    l1, l2 = (penalty.l1, penalty.l2) if contestant.objective else (0.0, 0.0)
    training = Training(
        data.corpus,
        data.labels,
        watched,
        l1=l1,
        l2=l2,
        kind=data.kind,
        observed_only=data.observed_only,
        **options,
    )
    watched.training, watched.data = training, data if count else None
    try:
        while not training.step().converged:
            pass
    except Enough:
        pass
    except SparseCRFError as error:
        # Steps that are too long make weights grow without bounds.
        watched.course.failure = str(error)
    return watched.course


def tune(
    data: DataSet, penalty: ElasticNet, contestant: Contestant, *, cap: float, most: float
) -> Contestant:
    """The contestant with the value that is the best on the training objective after a trial.

    cap, most: limits of the run, of which a trial has a part; trials do not count. A value with
    which the solver gives up is worse than all others.
    """

    def reached(variant: Contestant) -> float:
        limits = {"cap": _TRIAL * cap, "most": max(1.0, _TRIAL * most)}
        course = run(data, penalty, variant, **limits, count=False)
        return math.inf if course.failure else course.objective[-1]

    return min(contestant.variants(), key=reached) if contestant.tuned else contestant


def summary(course: Course) -> str:
    """How a course ended."""
    if not course.passes:
        return course.failure
    return (
        f"{course.passes[-1]:.1f} passes, {course.cpu[-1]:.1f} s, objective "
        f"{course.objective[-1]:.8g}, errors {course.errors[-1][1]:.2f} % {course.failure}"
    )


def lowest(data: DataSet, race: Race, cap: float) -> float:
    """The minimum: by the fastest exact solver, with many times the time of the others."""
    ours = (SPARSE_RACE if race.penalty.l1 else SMOOTH_RACE)[1]
    course = run(data, race.penalty, ours, cap=cap, count=False)
    return min(course.objective)


def compile_kernels(race: Race, directories: list[str]) -> None:
    """Run everyone on a few sequences: what is not compiled yet is compiled here."""
    few = read(race.data, directories, QUICK_SEQUENCES)
    for contestant in race.contestants:
        run(few, race.penalty, (contestant.variants() or [contestant])[0], most=4.0)


def run_all(
    data: DataSet, race: Race, limits: dict[str, float], best: float
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """The courses of the contestants, and the settings that were tuned, by name."""
    courses, tuned = {}, {}
    for named in race.contestants:
        longer = named.longer * limits["cap"]
        goal = best + _CLOSE * abs(best)
        contestant = tune(data, race.penalty, named, cap=longer, most=limits["most"])
        if named.tuned:
            tuned[named.name] = f"{named.tuned} = {contestant.settings[named.tuned]:g}"
        course = run(data, race.penalty, contestant, goal=goal, cap=longer, most=limits["most"])
        courses[contestant.name] = vars(course)
        msg.text(f"{race.name}, {contestant.name}: {summary(course)}")
    return courses, tuned


def describe_race(data: DataSet, race: Race, limits: dict[str, float]) -> dict[str, Any]:
    """What the report says of a race besides its courses."""
    return {
        "race": race.name,
        "limits": limits,
        "l1": race.penalty.l1,
        "l2": race.penalty.l2,
        "sequences": data.corpus.n_sequences,
        "tokens": data.corpus.n_tokens,
        "test_tokens": len(data.gold),
        "labels": len(data.labels),
        "weights": data.corpus.n_potential(len(data.labels)),
        "observed_only": data.observed_only,
        "longer": {one.name: one.longer for one in race.contestants},
        "sources": {one.name: one.source for one in race.contestants},
        "no_objective": [one.name for one in race.contestants if not one.objective],
        "machine": describe(),
    }


def earlier(known: dict[str, Any]) -> dict[str, Any]:
    """What a race that is run again for some contestants keeps of the others; {} = of none."""
    machines = [*known.get("earlier", []), known["machine"]] if known else []
    return {
        "courses": known.get("courses", {}),
        "tuned": known.get("tuned", {}),
        "earlier": machines,
    }


def in_order(courses: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Courses in the order of the contestants; those of others are left out."""
    return {name: courses[name] for name in names if name in courses}


def main(
    output: Annotated[Path, typer.Argument(help="Directory for the courses, as JSON")],
    directories: Annotated[list[str], typer.Argument(help="Directories of the data, in order")],
    names: Annotated[
        list[str] | None, typer.Option("--race", help="Races; default: all of them")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Contestants to run again, the others' courses being kept"),
    ] = None,
    cap: Annotated[float, typer.Option(help="Processor seconds of a contestant")] = 60.0,
    most: Annotated[float, typer.Option(help="Passes of a contestant")] = 200.0,
    quick: Quick = False,
) -> None:
    """Race all solvers on all data sets."""
    output.mkdir(parents=True, exist_ok=True)
    limits = {"cap": 1.0, "most": 10.0} if quick else {"cap": cap, "most": most}
    for race in RACES:
        if names and race.name not in names:
            continue
        path = output / f"{race.name}.json"
        known: dict[str, Any] = srsly.read_json(path) if only else {}
        record = {"quick": quick, **earlier(known)}
        data = read(race.data, directories, QUICK_SEQUENCES if quick else 0)
        record |= describe_race(data, race, limits)
        chosen = [one for one in race.contestants if not only or one.name in only]
        race = replace(race, contestants=tuple(chosen))
        compile_kernels(race, directories)
        record["reference"] = known.get("reference") or lowest(data, race, 4.0 * limits["cap"])
        courses, tuned = run_all(data, race, limits, record["reference"])
        record["courses"] = in_order(record["courses"] | courses, record["sources"])
        record["tuned"] |= tuned
        kept = known.get("longer", {}).items()
        record["longer"] |= {name: factor for name, factor in kept if name not in courses}
        srsly.write_json(path, record)
        msg.good(f"{race.name}: {path}")


if __name__ == "__main__":
    typer.run(main)
