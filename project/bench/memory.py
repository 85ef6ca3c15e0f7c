"""Benchmark 5: peak resident memory of training, each time in a process of its own.

Ours holds the encoded corpus as well; the process that only loads it tells how much that is.
Wapiti's arithmetic is 128 bytes a potential weight: sixteen float64 vectors. It is measured
where that fits in the memory that is free, once, over six iterations, so that all vectors are in
use.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import typer
from reports.machine import available_memory

from . import wapiti
from .data import Problem, load
from .measurements import OURS, Measurement, Record
from .options import Corpora, Output, Quick, Repeats
from .timing import run_process

WHAT, LOADING, ARITHMETIC = "peak", "corpus only", f"{wapiti.NAME}, arithmetic"
_STEPS = 3
_PEER_ITERATIONS = 6
# Room that a peer must have beyond its vectors.
_SLACK = 1.25


def peak_of_ours(path: Path, steps: int) -> float:
    """MB of a process that trains on a corpus for some outer iterations."""
    command = [sys.executable, "-m", "bench.train_child", str(path), str(steps)]
    return run_process(command).peak_mb


def measure_ours(record: Record, path: Path, problem: Problem, repeats: int) -> None:
    """Add our peaks."""
    for what, n in ((LOADING, 0), (WHAT, _STEPS)):
        peaks = [peak_of_ours(path, n) for _ in range(repeats)]
        record.measurements.append(Measurement(problem.name, what, OURS, peak_mb=peaks))


def measure_wapiti(record: Record, problem: Problem) -> None:
    """Add Wapiti's arithmetic, and its peak where that fits."""
    needed = problem.n_potential * wapiti.BYTES_PER_WEIGHT
    record.measurements.append(
        Measurement(problem.name, WHAT, ARITHMETIC, peak_mb=[needed / 2**20])
    )
    free = available_memory()
    if not wapiti.available():
        return
    if _SLACK * needed > free:
        record.remarks.append(f"{problem.name}: {wapiti.NAME} does not fit in the free memory.")
    else:
        with TemporaryDirectory() as directory:
            run = wapiti.train(problem, Path(directory), _PEER_ITERATIONS)
        record.measurements.append(
            Measurement(problem.name, WHAT, wapiti.NAME, peak_mb=[run.peak_mb])
        )


def main(
    output: Output,
    corpora: Corpora,
    repeats: Repeats = 3,
    quick: Quick = False,
) -> None:
    """Measure both sets of templates."""
    record = Record("memory", quick, {"repeats": repeats, "outer iterations": _STEPS})
    for name in ("nettalk-3grm", "nettalk-5grm"):
        path = corpora / f"{name}.npz"
        problem = load(path)
        record.details[name] = {"potential weights": problem.n_potential}
        measure_ours(record, path, problem, 1 if quick else repeats)
        measure_wapiti(record, problem)
    record.write(output)


if __name__ == "__main__":
    typer.run(main)
