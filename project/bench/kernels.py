"""Benchmark 8: what the kernels reach of the machine's peaks, on one thread.

Sets of labels as large as those of phonemes with stress marks and of Brown's tags are drawn at
random for the tests of the first chunks: what the kernels do depends on their number alone.

Timed are public calls: a value and gradient, outer iterations, an epoch. Operations and bytes are
those that the formulas of the call need, whatever is done. Every compiled function that a module of
the package calls from Python is wrapped by a clock meanwhile, whatever its name and its arguments:
the rows below have their shares.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import typer
from numba.core.dispatcher import Dispatcher
from wasabi import msg

from .data import Problem, load
from .measurements import Record
from .options import Corpora, Output, Quick
from .ours import Epochs, chain_loss, small_weights, train
from .peaks import all_peaks
from .timing import measured

CHUNKS = "conll2000"
# Modules of the package call kernels; what kernels call is part of them.
PACKAGE, KERNELS = "spacy_sparsecrf.", "spacy_sparsecrf.kernels"
# Multiplications and additions of the polynomial exp: reduction, degree 12, scaling.
EXP_FLOPS = 32
_EVALUATIONS = 3
# Numbers of labels, with the precision of training, and how many tokens have them.
LARGE_SETS = {160: "float64", 443: "float32"}
_LARGE_TOKENS = 40_000


@dataclass(frozen=True)
class Shape:
    """What the formulas count with.

    n, s, y: tokens, sequences, labels; padded: y padded to a multiple of 8; entries: tests of all
    tokens; item: bytes of a number.
    """

    n: int
    s: int
    y: int
    padded: int
    entries: int
    item: int

    @property
    def products(self) -> float:
        """Operations of one matrix-vector product at each token that continues a sequence."""
        return 2.0 * self.y * self.padded * (self.n - self.s)


# Operations and bytes of a call.
Formula = Callable[[Shape], tuple[float, float]]


def chain_and_pairs(s: Shape) -> tuple[float, float]:
    """Forward and backward products, exp, normalisation, and sums over pairs of labels.

    Five numbers of a token and label are read or written for the vectors, two for the sums.
    """
    flops = 3 * s.products + (EXP_FLOPS + 10) * s.n * s.padded
    return flops, 7.0 * s.item * s.n * s.padded


def all_weights(s: Shape) -> tuple[float, float]:
    """The same, and a row of weights added to scores, and of the gradient added to, a test."""
    flops, traffic = chain_and_pairs(s)
    rows = 2.0 * s.entries * s.padded
    return flops + rows, traffic + s.item * rows + 4.0 * s.entries


DENSE, WORKING = "gradient, all weights", "gradient, working set"
OBSERVED = "gradient, observed pairs of a test and a label, all pairs of labels"
OUTER, EPOCH = "two outer iterations, with the warm start", "SGD-L1 epoch"
# Of few weights nothing is counted: the chain beside them is large. Nothing at all is of outer
# iterations, which evaluate an unknown number of times.
FORMULAS: dict[str, Formula] = {
    DENSE: all_weights,
    WORKING: chain_and_pairs,
    OBSERVED: chain_and_pairs,
    EPOCH: chain_and_pairs,
}


def shape_of(problem: Problem, precision: str) -> Shape:
    """Count a problem, of which sequences without weight are left out."""
    corpus, n_labels = problem.corpus, problem.n_labels
    lengths = np.diff(corpus.offsets)
    counted = corpus.weights > 0.0
    entries = np.diff(corpus.uni_indptr)[np.repeat(counted, lengths)]
    return Shape(
        n=int(lengths[counted].sum()),
        s=int(counted.sum()),
        y=n_labels,
        padded=-(-n_labels // 8) * 8,
        entries=int(entries.sum()),
        item=np.dtype(precision).itemsize,
    )


def with_random_labels(problem: Problem, n_labels: int) -> Problem:
    """The tests of a problem's first sequences with labels of a larger set."""
    corpus = problem.corpus
    labels = np.random.default_rng(0).integers(0, n_labels, len(corpus.labels), np.int32)
    weights = np.where(corpus.offsets[1:] <= _LARGE_TOKENS, corpus.weights, 0.0)
    names = tuple(map(str, range(n_labels)))
    return Problem(problem.name, replace(corpus, labels=labels, weights=weights), names)


class Clock:
    """Calls a function and adds up the time it takes."""

    def __init__(self, kernel: Any, seconds: dict[str, float]) -> None:
        self._kernel, self._seconds = kernel, seconds

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the kernel."""
        with measured() as cost:
            result = self._kernel(*arguments, **named)
        self._seconds[self._kernel.py_func.__name__] += cost.wall
        return result


@contextmanager
def clocked() -> Iterator[dict[str, float]]:
    """Wrap the kernels that the package calls; seconds of each by name, filled as they run."""
    seconds: dict[str, float] = defaultdict(float)
    names = [name for name in sys.modules if name.startswith(PACKAGE)]
    callers = [sys.modules[name] for name in names if not name.startswith(KERNELS)]
    wrapped = [
        (module, name, value)
        for module in callers
        for name, value in vars(module).items()
        if isinstance(value, Dispatcher)
    ]
    for module, name, kernel in wrapped:
        setattr(module, name, Clock(kernel, seconds))
    try:
        yield seconds
    finally:
        for module, name, value in wrapped:
            setattr(module, name, value)


def profile(work: Callable[[], object], times: int) -> tuple[dict[str, float], float]:
    """Seconds of each kernel, and of all the work, in one of several calls."""
    with clocked() as seconds, measured() as cost:
        for _ in range(times):
            work()
    return {name: value / times for name, value in seconds.items()}, cost.wall / times


def rows(
    kernels: dict[str, float],
    total: float,
    shape: Shape,
    formula: Formula | None,
    peaks: dict[str, float],
) -> list[dict[str, Any]]:
    """A row of the table for all of the work, then one for each kernel, the slowest first."""
    each = total / shape.n * 1e6
    whole: dict[str, Any] = {"kernel": f"all, {each:.3g} us a token", "seconds": total}
    if formula:
        flops, traffic = formula(shape)
        whole |= {"gflops": flops / total / 1e9, "gbs": traffic / total / 1e9}
        whole["of_peak"] = whole["gflops"] / peaks["peak"]
        whole["of_triad"] = whole["gbs"] / peaks["triad"]
    parts = sorted(kernels.items(), key=lambda item: -item[1])
    parts.append(("not in kernels", total - sum(kernels.values())))
    shown = [whole, *({"kernel": name, "seconds": seconds} for name, seconds in parts)]
    return [{**row, "share": row["seconds"] / total} for row in shown]


def works(problem: Problem) -> dict[str, Callable[[], object]]:
    """What is profiled: gradients of all weights and of a working set, screening, SGD."""
    loss = chain_loss(problem)
    every = loss.restrict(loss.all_coordinates())
    theta = small_weights(problem.n_potential)
    recorder, _ = train(problem, steps=3)
    epochs = Epochs(problem)
    return {
        DENSE: lambda: every.value_and_grad(theta),
        WORKING: lambda: recorder.loss.value_and_grad(recorder.theta),
        OUTER: lambda: train(problem, steps=2),
        EPOCH: epochs.run,
    }


def observed_gradient(problem: Problem, precision: str) -> dict[str, Callable[[], object]]:
    """What is profiled with many labels."""
    loss = chain_loss(problem, precision=precision)
    n_unigram = len(problem.corpus.unigram_keys) * problem.n_labels
    pairs = np.arange(n_unigram, problem.n_potential)
    working = loss.restrict(np.union1d(loss.observed_coordinates(), pairs))
    theta = small_weights(len(working.coordinates))
    return {OBSERVED: lambda: working.value_and_grad(theta)}


def note(record: Record, name: str, shape: Shape, jobs: dict[str, Callable[[], object]]) -> None:
    """Profile what is done with a problem."""
    for what, work in jobs.items():
        work()
        kernels, total = profile(work, _EVALUATIONS)
        table = rows(kernels, total, shape, FORMULAS.get(what), record.details["peaks"])
        record.details[f"{name}, {what}"] = table
        msg.text(f"{name}, {what}: {total:.4g} s")


def main(output: Output, corpora: Corpora, quick: Quick = False) -> None:
    """Measure peaks, then kernels."""
    record = Record("kernels", quick, {"evaluations": _EVALUATIONS})
    record.details["peaks"] = all_peaks()
    problems = {name: load(corpora / f"{name}.npz") for name in (CHUNKS, "nettalk-3grm")}
    for name, problem in problems.items():
        note(record, name, shape_of(problem, "float64"), works(problem))
    for n_labels, precision in LARGE_SETS.items():
        problem = with_random_labels(problems[CHUNKS], n_labels)
        name = f"{CHUNKS}, {n_labels} random labels, {precision}"
        jobs = observed_gradient(problem, precision)
        note(record, name, shape_of(problem, precision), jobs)
    record.write(output)


if __name__ == "__main__":
    typer.run(main)
