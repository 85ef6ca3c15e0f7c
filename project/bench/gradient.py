"""Benchmark 1: one full gradient.

Ours has all potential weights, small random ones. The peers' figure is that of an iteration of
their quasi-Newton method, which is one gradient and one update; iterations whose line search
took more than one step hold more than one gradient, hence medians.
"""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import typer

from . import crfpp, crfsuite, wapiti
from .data import Problem, load
from .follow import Run
from .measurements import OURS, Record
from .options import Corpora, Output, Quick, Repeats
from .ours import chain_loss, gradient, small_weights, train
from .timing import Cost, alternate, median_cost

DENSE, OBSERVED, WORKING = "all weights", "observed pairs", "working set"
# Ours with arrays of single precision; sums over tokens are of double precision there too.
SINGLE = f"{OURS}, float32"
_EVALUATIONS = 5
# Outer iterations after which the working set is taken.
_WARM_STEPS = 5
Side = Callable[[], Cost]


def costs_of_iterations(run: Run) -> list[Cost]:
    """Costs of a peer's iterations."""
    cpus = run.iteration_cpus or run.iteration_walls
    return [Cost(*pair) for pair in zip(run.iteration_walls, cpus, strict=True)]


def of_iterations(run: Run) -> Cost:
    """Median cost of a peer's iteration."""
    return median_cost(costs_of_iterations(run))


def ours(problem: Problem, kind: str, threads: int = 1, precision: str = "float64") -> Side:
    """A function that evaluates loss and gradient some times: the median cost.

    precision: of all kinds but the working set, which has float64.
    """
    if kind == WORKING:
        recorder, _ = train(problem, threads=threads, steps=_WARM_STEPS)
        working, theta = recorder.loss, recorder.theta
    else:
        loss = chain_loss(problem, threads, precision)
        every = loss.all_coordinates() if kind == DENSE else loss.observed_coordinates()
        working, theta = loss.restrict(every), small_weights(len(every))
    # The first evaluation compiles, or touches memory for the first time.
    gradient(working, theta)
    return lambda: median_cost([gradient(working, theta) for _ in range(_EVALUATIONS)])


def dense_sides(problem: Problem, directory: Path, n_iterations: int) -> dict[str, Side]:
    """Us and the peers on all potential weights."""
    sides = {OURS: ours(problem, DENSE), SINGLE: ours(problem, DENSE, precision="float32")}
    if wapiti.available():
        sides[wapiti.NAME] = lambda: of_iterations(wapiti.train(problem, directory, n_iterations))
    if crfpp.available() and len(problem.corpus.bigram_keys) == 1:
        sides[crfpp.NAME] = lambda: of_iterations(crfpp.train(problem, directory, n_iterations))
    return sides


def observed_sides(problem: Problem, corpus: Path, model: Path, n: int) -> dict[str, Side]:
    """Us and CRFsuite on observed pairs."""
    sides = {OURS: ours(problem, OBSERVED)}
    if crfsuite.available():
        sides[crfsuite.NAME] = lambda: of_iterations(crfsuite.train(corpus, model, n))
    return sides


def main(output: Output, corpora: Corpora, repeats: Repeats = 3, quick: Quick = False) -> None:
    """Measure gradients on one thread."""
    repeats, n_iterations = (1, 4) if quick else (repeats, 8)
    record = Record("gradient", quick, {"repeats": repeats, "peer iterations": n_iterations})
    for name in ("conll2000", "nettalk-3grm", "ud-en-ewt"):
        path = corpora / f"{name}.npz"
        problem = load(path)
        record.details[name] = {"potential weights": problem.n_potential}
        with TemporaryDirectory() as scratch:
            directory = Path(scratch)
            if name != "ud-en-ewt":
                sides = dense_sides(problem, directory, n_iterations)
                record.add(name, DENSE, alternate(repeats, sides))
            if name != "nettalk-3grm":
                sides = observed_sides(problem, path, directory / "crfsuite.model", n_iterations)
                record.add(name, OBSERVED, alternate(repeats, sides))
            record.add(name, WORKING, alternate(repeats, {OURS: ours(problem, WORKING)}))
    record.write(output)


if __name__ == "__main__":
    typer.run(main)
