"""Benchmark 8: what the kernels reach of the machine's peaks, on one thread.

Sets of labels as large as those of phonemes with stress marks and of Brown's tags are drawn at
random for the tests of the first chunks: what the kernels do depends on their number alone.

Every compiled function that the loss calls is wrapped by a clock, so that nothing here depends
on what it takes. Operations and bytes are those that the formulas need, whatever the kernel
does: a model by name, none for kernels that are not in it.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import typer
from numba import njit
from numba.core.dispatcher import Dispatcher
from wasabi import msg

from spacy_sparsecrf.loss.chain import ChainLoss

from .data import Problem, load
from .options import Corpora, Output, Quick
from .ours import Epochs, chain_loss, small_weights, train
from .peaks import all_peaks
from .records import Record
from .timing import measured, repeated

CHUNKS = "conll2000"
CALLERS = "spacy_sparsecrf.loss."
# Multiplications and additions of the polynomial exp: reduction, degree 12, scaling.
EXP_FLOPS = 32
_EVALUATIONS = 3
# Numbers of labels, with the precision of training, and how many tokens have them.
LARGE_SETS = {160: "float64", 443: "float32"}
_LARGE_TOKENS = 40_000


@dataclass(frozen=True)
class Shape:
    """What the models count with: tokens N, sequences S, labels Y and padded Yp, CSR entries."""

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


Model = Callable[[Shape], tuple[float, float]]


def _chain(s: Shape) -> float:
    """Operations of forward and backward products, exp and normalisation."""
    return 2 * s.products + (EXP_FLOPS + 10) * s.n * s.padded


# Operations and bytes of one evaluation, or epoch, by the kernel's name: of all weights, ...
DENSE_MODELS: dict[str, Model] = {
    "forward_backward": lambda s: (
        _chain(s) + s.entries * s.padded,
        s.item * s.padded * (5.0 * s.n + s.entries),
    ),
    "pair_sums": lambda s: (s.products, 2.0 * s.item * s.n * s.padded),
    "gather_unigrams": lambda s: (
        1.0 * s.entries * s.padded,
        s.entries * (4.0 + s.item * s.padded),
    ),
}
DENSE_MODELS["add_rows"] = DENSE_MODELS["gather_unigrams"]
# ... and of few weights, beside which the rest is large.
SPARSE_MODELS: dict[str, Model] = {
    "forward_backward": lambda s: (_chain(s), 5.0 * s.item * s.n * s.padded),
    "pair_sums": DENSE_MODELS["pair_sums"],
    "sgd_pass": lambda s: (_chain(s) + s.products, 5.0 * s.item * s.n * s.padded),
}
DENSE, WORKING = "gradient, all weights", "gradient, working set"
OBSERVED = "gradient, observed pairs of a test and a label, all pairs of labels"
OUTER, EPOCH = "two outer iterations, with the warm start", "SGD-L1 epoch"
# Nothing is counted of work that repeats kernels an unknown number of times.
MODELS = {
    DENSE: DENSE_MODELS,
    WORKING: SPARSE_MODELS,
    OBSERVED: SPARSE_MODELS,
    OUTER: {},
    EPOCH: SPARSE_MODELS,
}


def shape_of(problem: Problem, loss: ChainLoss) -> Shape:
    """Count a problem, of which sequences without weight are left out."""
    lattice, padded = loss.space.lattice, -(-problem.n_labels // 8) * 8
    return Shape(
        lattice.n_tokens,
        len(lattice.weights),
        problem.n_labels,
        padded,
        len(lattice.tests.indices),
        loss.space.dtype.itemsize,
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

    def __call__(self, *arguments: Any) -> Any:
        """Call the kernel."""
        with measured() as cost:
            result = self._kernel(*arguments)
        self._seconds[self._kernel.py_func.__name__] += cost.wall
        return result


@contextmanager
def clocked() -> Iterator[dict[str, float]]:
    """Wrap the kernels that the loss calls; seconds of each by name, filled as they run."""
    seconds: dict[str, float] = defaultdict(float)
    wrapped = []
    for caller in [name for name in sys.modules if name.startswith(CALLERS)]:
        module = sys.modules[caller]
        for name, value in list(vars(module).items()):
            if isinstance(value, Dispatcher):
                setattr(module, name, Clock(value, seconds))
                wrapped.append((module, name, value))
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
    models: dict[str, Model],
    peaks: dict[str, float],
) -> list[dict[str, Any]]:
    """A row of the table for all of the work, then one for each kernel, the slowest first."""
    each = total / shape.n * 1e6
    table: list[dict[str, Any]] = [
        {"kernel": f"all, {each:.3g} us a token", "seconds": total, "share": 1.0}
    ]
    for name, seconds in sorted(kernels.items(), key=lambda item: -item[1]):
        row: dict[str, Any] = {"kernel": name, "seconds": seconds, "share": seconds / total}
        if name in models and seconds > 0.0:
            flops, traffic = models[name](shape)
            row["gflops"], row["gbs"] = flops / seconds / 1e9, traffic / seconds / 1e9
            row["of_peak"] = row["gflops"] / peaks["peak"]
            row["of_triad"] = row["gbs"] / peaks["triad"]
        table.append(row)
    rest = total - sum(kernels.values())
    return [*table, {"kernel": "Python and numpy", "seconds": rest, "share": rest / total}]


def works(problem: Problem, loss: ChainLoss) -> dict[str, Callable[[], object]]:
    """What is profiled: gradients of all weights and of a working set, screening, SGD."""
    every = loss.restrict(loss.all_coordinates())
    theta = small_weights(loss.n_potential)
    recorder, _ = train(problem, steps=3)
    epochs = Epochs(problem)
    return {
        DENSE: lambda: every.value_and_grad(theta),
        WORKING: lambda: recorder.loss.value_and_grad(recorder.theta),
        OUTER: lambda: train(problem, steps=2),
        EPOCH: epochs.run,
    }


def observed_gradient(problem: Problem, loss: ChainLoss) -> dict[str, Callable[[], object]]:
    """What is profiled with many labels."""
    n_unigram = len(problem.corpus.unigram_keys) * problem.n_labels
    pairs = np.arange(n_unigram, loss.n_potential)
    working = loss.restrict(np.union1d(loss.observed_coordinates(), pairs))
    theta = small_weights(len(working.coordinates))
    return {OBSERVED: lambda: working.value_and_grad(theta)}


def exp_speed() -> dict[str, float]:
    """Nanoseconds an element, and GFLOP/s, of the exp of rows of 64."""
    from spacy_sparsecrf.kernels.exp import exp_shifted

    @njit(error_model="numpy")
    def run(matrix: np.ndarray, shift: float) -> None:
        for i in range(matrix.shape[0]):
            exp_shifted(matrix[i], matrix.shape[1], shift)

    matrix = np.random.default_rng(0).uniform(-20.0, 0.0, size=(1000, 64))
    run(matrix.copy(), 1.0)
    # The results, at most 1, are as good as arguments.
    cost = repeated(lambda: run(matrix, 1.0), 50)
    seconds = cost.wall / matrix.size
    return {"ns an element": seconds * 1e9, "gflops": EXP_FLOPS / seconds / 1e9}


def note(
    record: Record,
    name: str,
    problem: Problem,
    loss: ChainLoss,
    jobs: dict[str, Callable[[], object]],
) -> None:
    """Profile what is done with a problem."""
    shape, peaks = shape_of(problem, loss), record.details["peaks"]
    for what, work in jobs.items():
        work()
        kernels, total = profile(work, _EVALUATIONS)
        table = rows(kernels, total, shape, MODELS[what], peaks)
        record.details[f"{name}, {what}"] = table
        msg.text(f"{name}, {what}: {total:.4g} s")


def main(output: Output, corpora: Corpora, quick: Quick = False) -> None:
    """Measure peaks, then kernels."""
    record = Record("kernels", quick, {"evaluations": _EVALUATIONS})
    record.details["peaks"] = all_peaks()
    problems = {name: load(corpora / f"{name}.npz") for name in (CHUNKS, "nettalk-3grm")}
    for name, problem in problems.items():
        loss = chain_loss(problem)
        note(record, name, problem, loss, works(problem, loss))
    for n_labels, precision in LARGE_SETS.items():
        problem = with_random_labels(problems[CHUNKS], n_labels)
        loss = chain_loss(problem, precision=precision)
        name = f"{CHUNKS}, {n_labels} random labels, {precision}"
        note(record, name, problem, loss, observed_gradient(problem, loss))
    try:
        record.details["exp"] = exp_speed()
    except Exception as error:  # the kernel's signature is not part of what is promised
        record.remarks.append(f"exp was not measured: {type(error).__name__}.")
    record.write(output)


if __name__ == "__main__":
    typer.run(main)
