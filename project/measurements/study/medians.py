"""Seconds of solvers, as medians of alternated runs on a sample of a race's corpus.

    python -m study.medians conll2000-l2 --sequences 2000 --all-pairs --only L-BFGS --only Newton-CG

prints passes and processor seconds until the objective is near the minimum, and until test labels
are as good as those of the best run, within 0.1 points. `--products` prints how many
evaluations of the gradient one product with the Hessian costs.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from statistics import median
from typing import Annotated

import numpy as np
import typer
from measure.data import Data, Problem, read_set
from measure.processes import timed
from measure.race import Course
from measure.report import shown, table

from spacy_sparsecrf.crf.loss.chain_loss import ChainLoss
from spacy_sparsecrf.crf.loss.hessian_products import HessianProduct
from spacy_sparsecrf.crf.parallel import Workers

from .contestants import RACES, SMOOTH_RACE, SPARSE_RACE, Race
from .race import QUICK_SEQUENCES, run, tune

GAPS = (1e-1, 1e-2, 1e-4, 1e-6)
# Test labels are good if at most this many more in 100 are wrong than at the best end of a run.
_GOOD = 0.1
# Factor of the limit for the run that finds the minimum, and its bound on the gap.
_LONGER, _EXACT = 4.0, 1e-8


def reached(course: Course, goal: float) -> tuple[float, float]:
    """Return passes and seconds until an objective is reached, infinite if it is not."""
    pairs = zip(course.objective, course.passes, course.cpu, strict=True)
    return next(((p, s) for value, p, s in pairs if value <= goal), (math.inf, math.inf))


def labelled(course: Course, goal: float) -> tuple[float, float]:
    """Return passes and seconds until this percentage of test labels is wrong."""
    found = ((course.passes[i], course.cpu[i]) for i, error in course.errors if error <= goal)
    return next(found, (math.inf, math.inf))


def cells(courses: list[Course], lowest: float, good: float) -> Iterator[str]:
    """Yield medians of passes and seconds: to each gap, to good labels, to the end if not cut.

    lowest: NaN for a solver without our objective.
    """
    goals = [[reached(each, lowest * (1.0 + gap)) for each in courses] for gap in GAPS]
    ends = [(x.passes[-1], x.cpu[-1]) if not x.cut else (math.inf, math.inf) for x in courses]
    for pairs in [*goals, [labelled(each, good) for each in courses], ends]:
        passes, seconds = (median(each) for each in zip(*pairs, strict=True))
        yield "-" if math.isinf(seconds) else f"{passes:.0f}, {shown(seconds, '.3g')} s"


def products(race: Race, problem: Problem, repeats: int) -> None:
    """Print the cost of a product with the Hessian, in evaluations of loss and gradient."""
    loss = ChainLoss(problem.corpus, problem.n_labels, Workers(1))
    found = loss.coordinates("descent") if race.observed_only else loss.coordinates("all")
    working, rng = loss.restrict(found), np.random.default_rng(0)
    theta, direction = 0.1 * rng.normal(size=(2, len(found)))
    hessians = HessianProduct(working), HessianProduct(working, 0)
    costs: list[list[float]] = [[], [], []]
    for _ in range(repeats + 1):
        costs[0].append(timed(lambda: working.value_and_grad(theta)).cpu)
        for hessian, spent in zip(hessians, costs[1:], strict=True):
            hessian.prepare(theta)
            spent.append(timed(lambda hessian=hessian: hessian.product(direction)).cpu)
    # The first of each compiles.
    gradient, stored, recomputed = (median(each[1:]) for each in costs)
    typer.echo(
        f"{race.name}, {len(found)} weights: a product costs {stored / gradient:.2f} gradients, "
        f"without stored marginals {recomputed / gradient:.2f}"
    )


def main(
    name: Annotated[str, typer.Argument(help="Race")],
    data: Data = "",
    only: Annotated[list[str] | None, typer.Option("--only", help="Contestants; all")] = None,
    sequences: Annotated[int, typer.Option(help="Training and test sequences; 0 for all")] = 0,
    all_pairs: Annotated[bool, typer.Option(help="Give unobserved pairs weights, too")] = False,
    repeats: Annotated[int, typer.Option(help="Runs of each contestant")] = 3,
    cap: Annotated[float, typer.Option(help="Processor seconds of a run")] = 20.0,
    tolerance: Annotated[float, typer.Option(help="Ends runs, instead of the last gap")] = 0.0,
    hessian: Annotated[bool, typer.Option("--products", help="Only time products")] = False,
) -> None:
    """Print medians of alternated runs of a race."""
    (race,) = (each for each in RACES if each.name == name)
    race = replace(race, observed_only=race.observed_only and not all_pairs)
    problem, test = read_set(race.data, data, sequences)
    if hessian:
        products(race, problem, repeats)
        return
    chosen = [each for each in race.contestants if not only or each.name in only]
    few, _ = read_set(race.data, data, QUICK_SEQUENCES)
    for each in chosen:
        run(race, few, (each.variants() or [each])[0], most=4.0)
    chosen = [tune(race, problem, each, cap, math.inf) for each in chosen]
    lowest, limits = math.nan, {"cap": cap}
    if tolerance:
        chosen = [replace(x, settings={**x.settings, "tolerance": tolerance}) for x in chosen]
    else:
        # The minimum, from our L-BFGS or OWL-QN; runs end where they are near it.
        fastest = (SPARSE_RACE if race.penalty.l1 else SMOOTH_RACE)[1]
        exact = replace(fastest, settings={"tolerance_gap": _EXACT})
        lowest = run(race, problem, exact, cap=_LONGER * cap).lowest
    courses: dict[str, list[Course]] = {each.name: [] for each in chosen}
    for _ in range(repeats):
        for each in chosen:
            goal = {"goal": lowest * (1.0 + GAPS[-1])} if not tolerance and each.objective else {}
            courses[each.name].append(run(race, problem, each, test, **limits, **goal))
    if tolerance:
        lowest = min(each.lowest for own in courses.values() for each in own)
    best = min(each.errors[-1][1] for own in courses.values() for each in own)
    header = ["passes, seconds", *(f"to {gap:g}" for gap in GAPS), f"{best + _GOOD:.2f} % wrong"]
    header.append("to the end")
    rows = [
        [
            each.name,
            *cells(courses[each.name], lowest if each.objective else math.nan, best + _GOOD),
        ]
        for each in chosen
    ]
    typer.echo(f"{race.name}, {problem.sizes()}, lowest {lowest:.6f}\n\n{table(header, rows)}")


if __name__ == "__main__":
    typer.run(main)
