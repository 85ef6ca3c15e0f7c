"""Time to within 1e-3 of the best known objective, and the objective over time.

The best known objective is the lowest that any tool reached here. Reading files is not timed.
Peers are stopped when they are close to it, or at the cap.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from measure.data import Problem
from measure.plots import label, new_figure, save
from measure.race import Course

from . import peers
from .ours import LONG, train
from .record import OURS, Options, Record
from .speed import BOTH

WHAT, OBSERVED = "to 1e-3 of the best", "to 1e-3 of the best, observed pairs"
_CLOSE = 1e-3
# Share of the tolerance at which a peer is stopped, as the best may still fall a little.
_SURE = 0.9
_ITERATIONS = 100_000
# In the order of the tools; the colours also differ in lightness.
_COLOURS = ("#0b6e4f", "#c8553d", "#3d5a98")
# Smaller gaps are drawn as this gap.
_FLOOR = 1e-6
# The argument of a side is the objective at which it may stop.
Sides = Mapping[str, Callable[[float], Course]]
Runs = dict[str, list[Course]]


def race(sides: Sides, repeats: int) -> Runs:
    """Run the sides alternately; a peer may stop once it is close to the best objective so far."""
    runs: Runs = {tool: [] for tool in sides}
    best = float("inf")
    for _ in range(repeats):
        for tool, start in sides.items():
            runs[tool].append(start(best * (1.0 + _SURE * _CLOSE)))
            best = min(best, runs[tool][-1].lowest)
    return runs


def comparisons(
    problem: Problem, path: Path, scratch: Path, threads: int, cap: float
) -> dict[str, Sides]:
    """Return sides on all weights; on one thread, with plain transitions, also on observed."""

    def ours(_: float, **settings: bool) -> Course:
        return train(problem, threads=threads, cap=cap, **LONG, **settings)[0].course

    sides: dict[str, Callable[[float], Course]] = {OURS: ours}
    observed: dict[str, Callable[[float], Course]] = {OURS: partial(ours, observed_only=True)}
    if peers.has_wapiti():
        sides[peers.WAPITI] = lambda goal: peers.train_wapiti(
            problem, scratch, _ITERATIONS, threads=threads, cap=cap, stop_at=goal
        )
    if peers.has_crfsuite():
        observed[peers.CRFSUITE] = lambda goal: peers.train_crfsuite(
            path, scratch / "model", _ITERATIONS, cap=cap, stop_at=goal
        )
    is_plain = len(problem.corpus.bigram_keys) == 1 and threads == 1
    return {WHAT: sides, **({OBSERVED: observed} if is_plain else {})}


def draw(runs: Runs, best: float, title: str, path: Path) -> None:
    """Draw each tool's relative gap to the best objective over seconds, on log scales.

    path: without suffix, for a .png and an .svg file.
    """
    figure = new_figure(7.0, 4.2)
    if figure is None:
        return
    axes = figure.add_subplot()
    for colour, (tool, those) in zip(_COLOURS, runs.items(), strict=False):
        for i, run in enumerate(those):
            points = [
                (wall, max(objective / best - 1.0, _FLOOR))
                for wall, objective in zip(run.wall, run.objective, strict=True)
                if objective is not None
            ]
            name = None if i else tool
            axes.plot(*zip(*points, strict=True), color=colour, lw=1.4, alpha=0.8, label=name)
    axes.axhline(_CLOSE, color="0.5", lw=0.8, ls="--")
    scales = {"xscale": "log", "yscale": "log"}
    label(axes, **scales, xlabel="seconds", ylabel="(objective - best) / best", title=title)
    axes.legend(frameon=False)
    save(figure, path)


def note(record: Record, name: str, what: str, threads: int, runs: Runs) -> None:
    """Add the figures, courses and plot of a comparison; the plot is saved next to the figures.

    Figures are seconds until the objective was close to the best; of the whole run if it never was.
    """
    best, title = min(run.lowest for those in runs.values() for run in those), f"{name}, {what}"
    for tool, those in runs.items():
        found = [run.first_at(best * (1.0 + _CLOSE)) for run in those]
        ends = [-1 if i is None else i for i in found]
        record.note(
            name,
            what,
            tool,
            threads,
            wall=[run.wall[i] for run, i in zip(those, ends, strict=True)],
            cpu=[run.cpu[i] for run, i in zip(those, ends, strict=True)],
            at_least=None in found,
            best=best,
            courses=[vars(run) for run in those],
        )
        if None in found:
            lowest = min(run.lowest for run in those)
            record.remark(f"{title}, {tool}, {threads} thread(s): lowest objective {lowest:.6g}.")
    _, cut, tool = min((run.lowest, run.cut, tool) for tool, those in runs.items() for run in those)
    if cut:
        told = "whose run was cut off: it is not the minimum"
        record.remark(f"{title}, {threads} thread(s): The lowest objective is {tool}'s, {told}.")
    kind = "-observed" if what == OBSERVED else ""
    path = record.path.parent / f"objective-{name}{kind}-{threads}"
    draw(runs, best, f"{name}{kind}", path)


def measure(options: Options) -> None:
    """Compare tools on both data sets, with each number of threads."""
    repeats, cap = options.times(3), min(options.cap, 10.0 if options.quick else float("inf"))
    counts = options.threads or (1,)
    settings = {"repeats": repeats, "cap": cap, "threads": ",".join(map(str, counts)), **LONG}
    record = options.record("objective", **settings)
    for name in BOTH:
        path = options.corpus(name)
        problem = Problem.load(path)
        train(problem, steps=2)  # compiles what is not compiled yet
        with TemporaryDirectory() as scratch:
            for threads in counts:
                found = comparisons(problem, path, Path(scratch), threads, cap)
                for what, sides in found.items():
                    note(record, name, what, threads, race(sides, repeats))
