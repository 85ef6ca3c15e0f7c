"""Throughput of the kernels compared with the machine's peaks, on one thread.

Label sets as large as phonemes with stress marks and Brown's tags are drawn at random for the
features of the first chunks: the work of the kernels depends only on the number of labels.
The timed calls are public; during a call, a clock wraps every compiled function that a module of
the package calls from Python.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from measure.data import Problem
from measure.processes import measured, run, timed
from measure.results import Row
from measure.tables import number, table
from numba import njit
from numba.core.dispatcher import Dispatcher

from .ours import Epochs, chain_loss, random_weights, train, whole_loss
from .record import Options, Record

# Kernels called by other kernels are timed as part of them.
PACKAGE, KERNELS = "spacy_sparsecrf.", "spacy_sparsecrf.kernels"
# Multiplications and additions of the polynomial exp: reduction, degree 12, scaling.
EXP_FLOPS = 32
_EVALUATIONS = 3
# Numbers of labels, with the precision of training; and the number of tokens with such labels.
LARGE_SETS = {160: "float64", 443: "float32"}
_LARGE_TOKENS = 40_000
_SHOWN = 8

# Environment variables, read when numpy's linear algebra libraries are loaded.
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "MKL", "OMP")}
ONE_THREAD["VECLIB_MAXIMUM_THREADS"] = "1"
_TRIALS = 7
_LANE_ITEMS = 2048
# Multiply-adds of one element in `_multiply_add`: four chains of sixteen.
_CHAINS, _LINKS = 4, 16

DENSE, WORKING = "gradient, all weights", "gradient, working set"
OBSERVED = "gradient, observed pairs of a test and a label, all pairs of labels"
OUTER, EPOCH = "two outer iterations, with the warm start", "SGD-L1 epoch"
# Operations and bytes of a call. With few weights, only the chain recursion is counted. Outer
# iterations have no formula, as their number of evaluations is unknown.
Counts = tuple[float, float]


# Peaks


@njit(fastmath={"contract"}, error_model="numpy")
def _multiply_add(x: np.ndarray, start: np.ndarray, out: np.ndarray, times: int) -> None:
    """Evaluate polynomials in four independent chains; the loop over i is vectorised.

    start: [4], of x's dtype, because literals would promote float32 to float64.
    """
    p, q, r, s = start[0], start[1], start[2], start[3]
    for _ in range(times):
        for i in range(len(x)):
            v = x[i]
            a, b, c, d = p, q, r, s
            for _ in range(16):
                a = a * v + p
                b = b * v + q
                c = c * v + r
                d = d * v + s
            out[i] = (a + b) + (c + d)


@njit(error_model="numpy")
def _triad(a: np.ndarray, b: np.ndarray, c: np.ndarray, factor: float) -> None:
    for i in range(len(a)):
        a[i] = b[i] + factor * c[i]


def _best(work: float, call: Callable[[], object]) -> float:
    """Return billions of units of work per second; the first call compiles and is not timed."""
    call()
    return work / min(timed(call).wall for _ in range(_TRIALS)) / 1e9


def multiply_add(dtype: str) -> float:
    """Return GFLOP/s of multiply-adds on data in the L1 cache."""
    x = np.linspace(0.1, 0.9, _LANE_ITEMS).astype(dtype)
    start, out, times = np.linspace(0.1, 0.4, 4).astype(dtype), np.empty_like(x), 2000
    work = 2 * _CHAINS * _LINKS * len(x) * times
    return _best(work, lambda: _multiply_add(x, start, out, times))


def triad(n: int = 1 << 24) -> float:
    """Return GB/s of a := b + s c on arrays of n float64 that exceed all caches."""
    a, b, c = np.zeros(n), np.ones(n), np.ones(n)
    return _best(24 * n, lambda: _triad(a, b, c, 3.0))


def matrix_product(n: int = 1024) -> float:
    """Return GFLOP/s of numpy's product of float64 matrices, in this process."""
    a = np.random.default_rng(0).normal(size=(n, n))
    out = np.empty_like(a)
    return _best(2 * n**3, lambda: np.matmul(a, a, out=out))


def all_peaks() -> dict[str, float]:
    """Return every peak by name; `peak` is the highest float64 peak."""
    script = "from bench.kernels import matrix_product; print(matrix_product())"
    product = float(run(["python", "-c", script], ONE_THREAD).output.split()[-1])
    loop = multiply_add("float64")
    return {
        "multiply-add, float64": loop,
        "multiply-add, float32": multiply_add("float32"),
        "matrix product, float64": product,
        "peak": max(loop, product),
        "triad": triad(),
    }


# Profiles


def counts(problem: Problem, precision: str, what: str) -> Counts | None:
    """Return the operations and bytes of a call, or None if there is no formula.

    Counts forward and backward products, exp, normalisation, and sums over label pairs: five values
    per token and label are read or written for the vectors, two for the sums. With all weights,
    also a row of weights added to scores, and a row of the gradient, for each feature of a token.
    Sequences without weight are ignored; labels are padded to a multiple of 8.
    """
    if what == OUTER:
        return None
    corpus, y = problem.corpus, problem.n_labels
    lengths, counted = np.diff(corpus.offsets), corpus.weights > 0.0
    n, padded, item = int(lengths[counted].sum()), -(-y // 8) * 8, np.dtype(precision).itemsize
    products = 2.0 * y * padded * (n - int(counted.sum()))
    flops, traffic = 3 * products + (EXP_FLOPS + 10) * n * padded, 7.0 * item * n * padded
    if what == DENSE:
        entries = int(np.diff(corpus.uni_indptr)[np.repeat(counted, lengths)].sum())
        rows = 2.0 * entries * padded
        flops, traffic = flops + rows, traffic + item * rows + 4.0 * entries
    return flops, traffic


def with_random_labels(problem: Problem, n_labels: int) -> Problem:
    """Return a problem whose first sequences have random labels of a larger set."""
    corpus = problem.corpus
    labels = np.random.default_rng(0).integers(0, n_labels, len(corpus.labels), np.int32)
    weights = np.where(corpus.offsets[1:] <= _LARGE_TOKENS, corpus.weights, 0.0)
    names = tuple(map(str, range(n_labels)))
    return Problem(problem.name, replace(corpus, labels=labels, weights=weights), names)


class Clock:
    """Calls a kernel and adds up the time it takes."""

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
    """Wrap the kernels that the package calls; yield seconds by kernel, updated at each call."""
    seconds: dict[str, float] = defaultdict(float)
    names = [name for name in sys.modules if name.startswith(PACKAGE)]
    wrapped = [
        (sys.modules[caller], name, value)
        for caller in names
        if not caller.startswith(KERNELS)
        for name, value in vars(sys.modules[caller]).items()
        if isinstance(value, Dispatcher)
    ]
    for module, name, kernel in wrapped:
        setattr(module, name, Clock(kernel, seconds))
    try:
        yield seconds
    finally:
        for module, name, value in wrapped:
            setattr(module, name, value)


def works(problem: Problem) -> dict[str, Callable[[], object]]:
    """Return the profiled calls: gradients of all weights and of a working set, screening, SGD."""
    every, theta = whole_loss(problem, 0)
    watched, _ = train(problem, steps=3)
    return {
        DENSE: partial(every.value_and_grad, theta),
        WORKING: partial(watched.loss.value_and_grad, watched.theta),
        OUTER: partial(train, problem, steps=2),
        EPOCH: Epochs(problem).run,
    }


def observed_gradient(problem: Problem, precision: str) -> dict[str, Callable[[], object]]:
    """Return the profiled calls for many labels."""
    loss = chain_loss(problem, precision=precision)
    n_unigram = len(problem.corpus.unigram_keys) * problem.n_labels
    pairs = np.arange(n_unigram, problem.n_potential)
    working = loss.restrict(np.union1d(loss.observed_coordinates(), pairs))
    theta = random_weights(len(working.coordinates))
    return {OBSERVED: partial(working.value_and_grad, theta)}


def note(
    record: Record,
    name: str,
    problem: Problem,
    precision: str,
    jobs: dict[str, Callable[[], object]],
) -> None:
    """Profile calls on a problem: a row for each whole call, then a row for each of its kernels."""
    corpus = problem.corpus
    n_tokens = int(np.diff(corpus.offsets)[corpus.weights > 0.0].sum())
    for what, work in jobs.items():
        work()
        with clocked() as seconds, measured() as cost:
            for _ in range(_EVALUATIONS):
                work()
        total, found = cost.wall / _EVALUATIONS, counts(problem, precision, what)
        of, formula = f"{name}, {what}", {"flops": found[0], "bytes": found[1]} if found else {}
        whole = f"all, {total / n_tokens * 1e6:.3g} us a token"
        record.add(f"{of}: all", of=of, kernel=whole, seconds=total, **formula)
        parts = {kernel: value / _EVALUATIONS for kernel, value in seconds.items()}
        parts = dict(sorted(parts.items(), key=lambda item: -item[1]))
        parts["not in kernels"] = total - sum(parts.values())
        for kernel, value in parts.items():
            record.add(f"{of}: {kernel}", of=of, kernel=kernel, seconds=value)


def measure(options: Options) -> None:
    """Measure peaks, then kernels."""
    record = options.record("kernels", evaluations=_EVALUATIONS)
    for name, value in all_peaks().items():
        record.add(name, peak=value)
    problems = [Problem.load(options.corpus(name)) for name in ("conll2000", "nettalk-3grm")]
    for problem in problems:
        note(record, problem.name, problem, "float64", works(problem))
    for n_labels, precision in LARGE_SETS.items():
        problem = with_random_labels(problems[0], n_labels)
        name = f"{problem.name}, {n_labels} random labels, {precision}"
        note(record, name, problem, precision, observed_gradient(problem, precision))


def tables(rows: list[Row], absent: list[str]) -> list[str]:
    """Return a table of peaks, then a table for each profiled call."""
    peaks = {row["name"]: row["peak"] for row in rows if "peak" in row}
    units = {name: "GB/s" if name == "triad" else "GFLOP/s" for name in peaks}
    lines = [[name, f"{number(value)} {units[name]}"] for name, value in peaks.items()]
    parts = [table(["one thread", ""], lines)]
    for of in dict.fromkeys(row["of"] for row in rows if "of" in row):
        own = [row for row in rows if row.get("of") == of][:_SHOWN]
        header = [of, "ms", "share", "GFLOP/s (of peak)", "GB/s (of triad)"]
        parts.append(table(header, [_line(row, own[0]["seconds"], peaks) for row in own]))
    return parts


def _line(row: Row, total: float, peaks: dict[str, float]) -> list[str]:
    cells = ["", ""]
    if "flops" in row:
        reached = (row[key] / row["seconds"] / 1e9 for key in ("flops", "bytes"))
        most = peaks["peak"], peaks["triad"]
        cells = [f"{number(a)} ({100 * a / b:.0f} %)" for a, b in zip(reached, most, strict=True)]
    seconds = row["seconds"]
    return [row["kernel"], number(1e3 * seconds), f"{100 * seconds / total:.0f} %", *cells]
