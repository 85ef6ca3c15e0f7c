"""Speed of gradients, epochs of SGD and a second thread, compared with other toolkits.

A peer's gradient is an iteration of its quasi-Newton method. Some iterations contain more than one
gradient, because of the line search; hence medians.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from measure.data import Problem
from measure.machine import available_cores
from measure.processes import Cost, alternate, median_cost
from measure.race import Course
from measure.results import Row
from measure.tables import table

from . import peers
from .ours import Epochs, chain_loss, gradient, random_weights, train
from .record import OURS, Options, cell, measurements, middle

DENSE, OBSERVED, WORKING = "all weights", "observed pairs", "working set"
EPOCH, OUTER, ITERATION = "SGD-L1 epoch", "outer iteration", "iteration"
# float32 arrays; sums over tokens stay in float64.
SINGLE = f"{OURS}, float32"
_EVALUATIONS, _EPOCHS = 5, 3
# Outer iterations before the working set is measured, and in a comparison of threads.
_WARM_STEPS, _THREAD_STEPS = 5, 4
BOTH = "conll2000", "nettalk-3grm"
Side = Callable[[], Cost]


def of_iterations(train: Callable[[], Course]) -> Side:
    """Return a function that trains a peer, and returns the median cost per iteration."""
    return lambda: median_cost(train().step_costs())


def ours(problem: Problem, kind: str, threads: int = 1, precision: str = "float64") -> Side:
    """Return a function that evaluates loss and gradient repeatedly, and returns the median cost.

    precision: of all kinds except the working set, which uses float64.
    """
    if kind == WORKING:
        watched, _ = train(problem, threads=threads, steps=_WARM_STEPS)
        working, theta = watched.loss, watched.theta
    else:
        loss = chain_loss(problem, threads, precision)
        every = loss.all_coordinates() if kind == DENSE else loss.observed_coordinates()
        working, theta = loss.restrict(every), random_weights(len(every))
    # The first evaluation compiles, and allocates memory.
    gradient(working, theta)
    return lambda: median_cost([gradient(working, theta) for _ in range(_EVALUATIONS)])


def measure_gradients(options: Options) -> None:
    """Measure gradients on one thread."""
    repeats, n_iterations = options.times(3), 4 if options.quick else 8
    settings = {"repeats": repeats, "peer iterations": n_iterations}
    record = options.record("gradient", **settings)
    for name in (*BOTH, "ud-en-ewt"):
        problem = Problem.load(options.corpus(name))
        with TemporaryDirectory() as scratch:
            place, sides = Path(scratch), {}
            if name in BOTH:
                sides[DENSE] = {
                    OURS: ours(problem, DENSE),
                    SINGLE: ours(problem, DENSE, precision="float32"),
                }
                if peers.has_wapiti():
                    run = partial(peers.train_wapiti, problem, place, n_iterations)
                    sides[DENSE][peers.WAPITI] = of_iterations(run)
            if name != "nettalk-3grm":
                sides[OBSERVED] = {OURS: ours(problem, OBSERVED)}
                if peers.has_crfsuite():
                    files = options.corpus(name), place / "model"
                    run = partial(peers.train_crfsuite, *files, n_iterations)
                    sides[OBSERVED][peers.CRFSUITE] = of_iterations(run)
            sides[WORKING] = {OURS: ours(problem, WORKING)}
            for what, those in sides.items():
                record.compare(name, what, alternate(repeats, those))


def measure_epochs(options: Options) -> None:
    """Measure epochs of SGD, which supports a single thread."""
    repeats = options.times(3)
    record = options.record("sgd", repeats=repeats, epochs=_EPOCHS)

    def epochs(problem: Problem) -> Cost:
        runner = Epochs(problem)
        return median_cost([runner.run() for _ in range(_EPOCHS + 1)][1:])

    for name in BOTH:
        problem = Problem.load(options.corpus(name))
        Epochs(problem).run()  # compiles what is not compiled yet
        sides: dict[str, Side] = {OURS: partial(epochs, problem)}
        with TemporaryDirectory() as scratch:
            if peers.has_wapiti():
                arguments = problem, Path(scratch), _EPOCHS + 1
                run = partial(peers.train_wapiti, *arguments, algorithm="sgd-l1")
                sides[peers.WAPITI] = of_iterations(run)
            record.compare(name, EPOCH, alternate(repeats, sides))


def measure_threads(options: Options) -> None:
    """Measure with each number of threads alternately."""
    repeats, n_iterations = options.times(3), 4 if options.quick else 6
    counts = options.threads or (1, 2)
    settings = {"repeats": repeats, "threads": ",".join(map(str, counts))}
    record = options.record("threads", **settings)
    if max(counts) > available_cores():
        record.remark("There are fewer cores than threads here.")

    def outer(problem: Problem, threads: int) -> Cost:
        # The first outer iteration contains the warm start.
        _, costs = train(problem, threads=threads, steps=_THREAD_STEPS)
        return median_cost(costs[1:] or costs)

    for name in BOTH:
        problem = Problem.load(options.corpus(name))
        with TemporaryDirectory() as scratch:
            sides: dict[tuple[str, str], Callable[[int], Side]] = {
                (f"gradient, {DENSE}", OURS): partial(ours, problem, DENSE),
                (f"gradient, {WORKING}", OURS): partial(ours, problem, WORKING),
                (OUTER, OURS): lambda n, p=problem: partial(outer, p, n),
            }
            if peers.has_wapiti():
                run = partial(peers.train_wapiti, problem, Path(scratch), n_iterations)
                sides[ITERATION, peers.WAPITI] = lambda n, run=run: of_iterations(
                    partial(run, threads=n)
                )
            for (what, tool), side in sides.items():
                for n, costs in alternate(repeats, {str(n): side(n) for n in counts}).items():
                    record.compare(name, what, {tool: costs}, threads=int(n))


def tables_threads(rows: list[Row], absent: list[str]) -> list[str]:
    """Return a column for each number of threads, and the speed-up from the first to the last."""
    counts = sorted({row["threads"] for row in measurements(rows)})
    found: dict[str, dict[int, Row]] = {}
    for row in measurements(rows):
        name = f"{row['data']}: {row['what']}, {row['tool']}"
        found.setdefault(name, {})[row["threads"]] = row
    lines = []
    for name, own in found.items():
        cells = [own.get(n) for n in counts]
        first, last = cells[0], cells[-1]
        gain = f"{middle(first) / middle(last):.2f}x" if first and last else ""
        lines.append([name, *map(cell, cells), gain])
    missing = [f"{name} was not available." for name in absent]
    return [table(["", *(f"{n} thread(s)" for n in counts), "gain"], lines), *missing]
