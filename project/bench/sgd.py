"""Benchmark 3: an epoch of stochastic gradient descent with the cumulative l1 penalty.

Wapiti's epochs have the weights of all pairs of a test with a label, ours those of observed
pairs, as in the component's warm start. Wapiti's epochs leave l2 out; ours apply it.
"""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import typer

from . import wapiti
from .data import Problem, load
from .gradient import of_iterations
from .measurements import OURS, Record
from .options import Corpora, Output, Quick, Repeats
from .ours import Epochs
from .timing import Cost, alternate, median_cost

WHAT = "SGD-L1 epoch"
_EPOCHS = 3


def epochs(problem: Problem) -> Cost:
    """Median cost of an epoch after the first, as of Wapiti's."""
    runner = Epochs(problem)
    return median_cost([runner.run() for _ in range(_EPOCHS + 1)][1:])


def make_sides(problem: Problem, scratch: Path) -> dict[str, Callable[[], Cost]]:
    """Us, and Wapiti where it is there."""
    sides: dict[str, Callable[[], Cost]] = {OURS: lambda: epochs(problem)}
    if wapiti.available():
        sides[wapiti.NAME] = lambda: of_iterations(
            wapiti.train(problem, scratch, _EPOCHS + 1, algorithm="sgd-l1")
        )
    return sides


def main(output: Output, corpora: Corpora, repeats: Repeats = 3, quick: Quick = False) -> None:
    """Measure epochs on one thread: SGD has no use for more."""
    repeats = 1 if quick else repeats
    record = Record("sgd", quick, {"repeats": repeats, "epochs": _EPOCHS})
    for name in ("conll2000", "nettalk-3grm"):
        problem = load(corpora / f"{name}.npz")
        Epochs(problem).run()  # compiles what is not compiled yet
        with TemporaryDirectory() as scratch:
            record.add(name, WHAT, alternate(repeats, make_sides(problem, Path(scratch))))
    record.write(output)


if __name__ == "__main__":
    typer.run(main)
