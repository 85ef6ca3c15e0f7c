"""Run the races: objective and test error over passes and processor time.

A pass is an evaluation of every sequence, or as many evaluations of single sequences (Schmidt et
al. 2015). The forward pass of a line search counts as one; an evaluation only for a stochastic
solver's report does not count, but its time does. Times are processor seconds on one thread,
excluding time to count errors. All contestants start from zero weights.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from measure.data import Data, Problem, Scored, read_set
from measure.race import Course, Enough, Watched
from measure.results import Quick, Results
from wasabi import msg

from spacy_sparsecrf.crf.solvers.warm_start import WarmStart
from spacy_sparsecrf.crf.training.training import Problem as TrainingProblem
from spacy_sparsecrf.crf.training.training import Training
from spacy_sparsecrf.errors import SparseCRFError

from .contestants import RACES, SMOOTH_RACE, SPARSE_RACE, Contestant, Race

QUICK_SEQUENCES = 30
# Relative gap at which a contestant stops.
_CLOSE = 1e-9
# Share of the limits for trying a value of a setting.
_TRIAL = 0.1
_REFERENCE = "reference"


def run(
    race: Race,
    problem: Problem,
    contestant: Contestant,
    test: Scored | None = None,
    **limits: float,
) -> Course:
    """Run a contestant to its end; test: part to count errors on; limits: see `Watched`."""
    penalty = race.penalty
    common: dict[str, Any] = {"tolerance": 0.0, "window": 0.0}
    solver = contestant.make(**common)
    warm = solver.warm_start if contestant.warm else WarmStart(epochs=0, averaged=False)
    watched = Watched(solver, first=warm.epochs, **limits)
    training = Training(
        problem.corpus,
        problem.labels,
        watched,
        l1=penalty.l1 if contestant.objective else 0.0,
        l2=penalty.l2 if contestant.objective else 0.0,
        problem=TrainingProblem(kind=race.kind, observed_only=race.observed_only),
        n_threads=1,
        dtype="float64",
        warm_start=replace(warm, evaluated=False),
    )
    if test is not None:
        watched.count = lambda: test.errors(training.model())[0]
    try:
        while not training.step().end:
            pass
    except Enough:
        pass
    except SparseCRFError as error:
        # With too large steps, weights diverge.
        watched.course.failure = str(error)
    return watched.course


def tune(
    race: Race, problem: Problem, contestant: Contestant, cap: float, most: float
) -> Contestant:
    """Return the contestant with the value that reaches the best training objective.

    cap, most: limits of the run; a trial uses a share of them, and is not counted. A value with
    which the solver fails is worse than all others.
    """
    limits = {"cap": _TRIAL * cap, "most": max(1.0, _TRIAL * most)}

    def reached(variant: Contestant) -> float:
        course = run(race, problem, variant, **limits)
        return math.inf if course.failure else course.objective[-1] or math.inf

    return min(contestant.variants(), key=reached) if contestant.tuned else contestant


def run_race(
    race: Race, problem: Problem, test: Scored, results: Results, only: list[str] | None
) -> None:
    """Run the contestants without a course with these settings, or the contestants in `only`."""
    cap, most = (results.settings[name] for name in ("cap", "most"))
    if _REFERENCE not in results.rows:
        # The minimum, from the fastest exact solver with several times the time limit.
        fastest = (SPARSE_RACE if race.penalty.l1 else SMOOTH_RACE)[1]
        results.add(_REFERENCE, lowest=run(race, problem, fastest, cap=4.0 * cap).lowest)
    best = results.rows[_REFERENCE]["lowest"]
    goal = best + _CLOSE * abs(best)
    for named in race.contestants:
        row = results.rows.get(named.name)
        done = row is not None and row["session"]["settings"] == results.settings
        if named.name not in only if only else done:
            continue
        limits = {"cap": named.longer * cap, "most": most}
        one = tune(race, problem, named, **limits)
        course = run(race, problem, one, test, goal=goal, **limits)
        tuned = f"{one.name}: {named.tuned} = {one.settings[named.tuned]:g}" if named.tuned else ""
        results.add(named.name, **vars(course), tuned=tuned, longer=named.longer)
        msg.text(course.failure or f"{course.passes[-1]:.1f} passes, {course.cpu[-1]:.1f} s")


def main(
    output: Annotated[Path, typer.Argument(help="Directory for the courses")],
    data: Data = "",
    names: Annotated[list[str] | None, typer.Option("--race", help="Races; all")] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Contestants to run (again); all")
    ] = None,
    cap: Annotated[float, typer.Option(help="Processor seconds of a contestant")] = 60.0,
    most: Annotated[float, typer.Option(help="Passes of a contestant")] = 200.0,
    quick: Quick = False,
) -> None:
    """Race all solvers on all data sets; keep existing courses."""
    limits = {"cap": 1.0, "most": 10.0} if quick else {"cap": cap, "most": most}
    for race in RACES:
        if names and race.name not in names:
            continue
        few, test = read_set(race.data, data, QUICK_SEQUENCES)
        # Compile kernels before the race.
        for one in race.contestants:
            if not only or one.name in only:
                run(race, few, (one.variants() or [one])[0], test, most=4.0)
        problem, test = (few, test) if quick else read_set(race.data, data)
        settings = {**limits, **vars(race.penalty), **problem.sizes()}
        results = Results(output / f"{race.name}.jsonl", quick, settings)
        run_race(race, problem, test, results, only)


if __name__ == "__main__":
    typer.run(main)
