"""Benchmark 4: what a second thread gains, ours and Wapiti's.

An outer iteration is ten quasi-Newton iterations on the working set and a screening of all
potential weights. The objectives of ours are the same for any number of threads.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import typer
from reports.machine import available_cores

from . import wapiti
from .data import Problem, load
from .gradient import DENSE, WORKING, of_iterations, ours
from .measurements import OURS, Record
from .options import Corpora, Output, Quick, Repeats, Threads, numbers
from .ours import train
from .timing import Cost, alternate, median_cost

OUTER, ITERATION = "outer iteration", "iteration"
_STEPS = 4


def outer_iterations(problem: Problem, threads: int) -> Cost:
    """Median cost of the outer iterations after the first, which has the warm start in it."""
    _, costs = train(problem, threads=threads, steps=_STEPS)
    return median_cost(costs[1:] or costs)


def thread_sides(
    problem: Problem, counts: list[int], scratch: Path, n_iterations: int
) -> dict[tuple[str, str], dict[str, Callable[[], Cost]]]:
    """For each row, named by what is measured and the tool: a side for each number of threads."""
    sides: dict[tuple[str, str], dict[str, Callable[[], Cost]]] = {
        (f"gradient, {what}", OURS): {str(n): ours(problem, what, n) for n in counts}
        for what in (DENSE, WORKING)
    }
    sides[OUTER, OURS] = {str(n): partial(outer_iterations, problem, n) for n in counts}
    if wapiti.available():
        sides[ITERATION, wapiti.NAME] = {
            str(n): partial(wapiti_iterations, problem, scratch, n_iterations, n) for n in counts
        }
    return sides


def wapiti_iterations(problem: Problem, scratch: Path, n_iterations: int, threads: int) -> Cost:
    """Median cost of an iteration of Wapiti."""
    return of_iterations(wapiti.train(problem, scratch, n_iterations, threads=threads))


def main(
    output: Output,
    corpora: Corpora,
    repeats: Repeats = 3,
    threads: Threads = "1,2",
    quick: Quick = False,
) -> None:
    """Measure with each number of threads in turn."""
    repeats, n_iterations = (1, 4) if quick else (repeats, 6)
    counts = numbers(threads)
    record = Record("threads", quick, {"repeats": repeats, "threads": threads})
    if max(counts) > available_cores():
        record.remarks.append("There are fewer cores than threads here.")
    for name in ("conll2000", "nettalk-3grm"):
        problem = load(corpora / f"{name}.npz")
        with TemporaryDirectory() as scratch:
            rows = thread_sides(problem, counts, Path(scratch), n_iterations)
            for (what, tool), sides in rows.items():
                for n, costs in alternate(repeats, sides).items():
                    record.add(name, what, {tool: costs}, threads=int(n))
    record.write(output)


if __name__ == "__main__":
    typer.run(main)
