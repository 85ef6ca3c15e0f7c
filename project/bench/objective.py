"""Benchmark 2: time to within 1e-3 of the best known objective, and how the objective falls.

The best known objective is the lowest that anyone reached here; ours run far beyond the usual
end. Time begins where the encoded corpus is in memory: warm start and screening are part of
ours, reading files of none. The peers are stopped once they are close, or at the cap.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer
from reports.plots import label, new_figure, save

from . import crfsuite, wapiti
from .data import Problem, load
from .follow import Run
from .measurements import OURS, Measurement, Record
from .options import Cap, Corpora, Output, Quick, Repeats, Threads, numbers
from .ours import LONG, train

WHAT, WHAT_OBSERVED = "to 1e-3 of the best", "to 1e-3 of the best, observed pairs"
_CLOSE = 1e-3
# The best may still fall a little when a peer is stopped.
_SURE = 0.9
_ITERATIONS = 100_000
# In the order of the tools; colours that differ in lightness too.
_COLOURS = ("#0b6e4f", "#c8553d", "#3d5a98")
# What a plot shows of a gap that is smaller.
_FLOOR = 1e-6


@dataclass(frozen=True)
class Comparison:
    """Our runs and a peer's on one problem; the runs take the objective at which to stop."""

    name: str
    what: str
    threads: int
    sides: dict[str, Callable[[float], Run]]


def race(comparison: Comparison, repeats: int) -> dict[str, list[Run]]:
    """Run the sides in turn; a peer may stop once it is close to the best so far."""
    runs: dict[str, list[Run]] = {tool: [] for tool in comparison.sides}
    best = float("inf")
    for _ in range(repeats):
        for tool, start in comparison.sides.items():
            run = start(best * (1.0 + _SURE * _CLOSE))
            best = min(best, lowest(run))
            runs[tool].append(run)
    return runs


def lowest(run: Run) -> float:
    """The lowest objective of a run."""
    return min((p.objective for p in run.points if p.objective is not None), default=float("inf"))


def measure(comparison: Comparison, tool: str, runs: list[Run], goal: float) -> Measurement:
    """Seconds until the objective was at most `goal`; of runs that did not get there, all."""
    found = Measurement(comparison.name, comparison.what, tool, threads=comparison.threads)
    for run in runs:
        point = run.reached(goal)
        if point is None:
            found.at_least, point = True, run.points[-1]
        found.wall.append(point.wall)
        if point.cpu is not None:
            found.cpu.append(point.cpu)
    if found.at_least:
        found.note = f"lowest objective {min(map(lowest, runs)):.6g}"
    return found


def trajectory(run: Run) -> dict[str, Any]:
    """A run as lists."""
    return {
        "wall": [point.wall for point in run.points],
        "cpu": [point.cpu for point in run.points],
        "objective": [point.objective for point in run.points],
        "n_active": [point.n_active for point in run.points],
        "n_weights": run.n_weights,
        "cut": run.cut,
    }


def comparisons(
    problem: Problem, path: Path, scratch: Path, threads: int, cap: float
) -> list[Comparison]:
    """Against Wapiti on all weights; with plain transitions also CRFsuite on observed pairs."""
    sides: dict[str, Callable[[float], Run]] = {
        OURS: lambda goal: train(problem, threads=threads, cap=cap, **LONG)[0].run
    }
    if wapiti.available():
        sides[wapiti.NAME] = lambda goal: wapiti.train(
            problem, scratch, _ITERATIONS, threads=threads, cap=cap, stop_at=goal
        )
    found = [Comparison(problem.name, WHAT, threads, sides)]
    if len(problem.corpus.bigram_keys) == 1 and threads == 1:
        observed: dict[str, Callable[[float], Run]] = {
            OURS: lambda goal: train(problem, cap=cap, observed_only=True, **LONG)[0].run
        }
        model = scratch / "crfsuite.model"
        if crfsuite.available():
            observed[crfsuite.NAME] = lambda goal: crfsuite.train(
                path, model, _ITERATIONS, cap=cap, stop_at=goal
            )
        found.append(Comparison(problem.name, WHAT_OBSERVED, 1, observed))
    return found


def doubt(runs: dict[str, list[Run]]) -> str:
    """A remark where the lowest objective is of a run that was still falling when it was cut."""
    everyone = [(lowest(run), run.cut, tool) for tool, those in runs.items() for run in those]
    _, cut, tool = min(everyone)
    if not cut:
        return ""
    return f"The lowest objective is {tool}'s, whose run was cut off: it is not the minimum."


def draw(race: dict[str, Any], best: float, title: str, path: Path) -> None:
    """Draw how far each tool's objective is above the best, over seconds, both on log scales.

    race: what the benchmark `objective` stores of a comparison; path: without its suffix, for a
    .png and an .svg file. Does nothing but say so where matplotlib is not installed.
    """
    figure = new_figure(7.0, 4.2)
    if figure is None:
        return
    axes = figure.add_subplot()
    for colour, (tool, runs) in zip(_COLOURS, race["runs"].items(), strict=False):
        for i, run in enumerate(runs):
            points = [
                (wall, max(objective / best - 1.0, _FLOOR))
                for wall, objective in zip(run["wall"], run["objective"], strict=True)
                if objective is not None
            ]
            name = tool if i == 0 else None
            axes.plot(*zip(*points, strict=True), color=colour, lw=1.4, alpha=0.8, label=name)
    axes.axhline(1e-3, color="0.5", lw=0.8, ls="--")
    scales = {"xscale": "log", "yscale": "log"}
    label(axes, **scales, xlabel="seconds", ylabel="(objective - best) / best", title=title)
    axes.legend(frameon=False)
    save(figure, path)


def note(record: Record, comparison: Comparison, runs: dict[str, list[Run]], plots: Path) -> None:
    """Add a comparison's figures, its raw runs and its plot."""
    best = min(lowest(run) for those in runs.values() for run in those)
    goal = best * (1.0 + _CLOSE)
    for tool, those in runs.items():
        record.measurements.append(measure(comparison, tool, those, goal))
    title = f"{comparison.name}, {comparison.what}, {comparison.threads} thread(s)"
    record.details[title] = {
        "best": best,
        "goal": goal,
        "runs": {tool: [trajectory(run) for run in those] for tool, those in runs.items()},
    }
    if remark := doubt(runs):
        record.remarks.append(f"{title}: {remark}")
    kind = "-observed" if comparison.what == WHAT_OBSERVED else ""
    name = f"{comparison.name}{kind}-{comparison.threads}"
    draw(record.details[title], best, f"{comparison.name}{kind}", plots / f"objective-{name}")


def main(
    output: Output,
    corpora: Corpora,
    repeats: Repeats = 3,
    cap: Cap = 900.0,
    threads: Threads = "1",
    quick: Quick = False,
) -> None:
    """Race; plots are left beside the figures."""
    repeats, cap = (1, min(cap, 10.0)) if quick else (repeats, cap)
    settings = {"repeats": repeats, "cap": cap, "threads": threads, **LONG}
    record = Record("objective", quick, settings)
    for name in ("conll2000", "nettalk-3grm"):
        path = corpora / f"{name}.npz"
        problem = load(path)
        # What is not compiled yet is compiled here.
        train(problem, steps=2)
        with TemporaryDirectory() as scratch:
            for n_threads in numbers(threads):
                for one in comparisons(problem, path, Path(scratch), n_threads, cap):
                    note(record, one, race(one, repeats), output.parent)
    record.write(output)


if __name__ == "__main__":
    typer.run(main)
