"""Peak resident memory of training, each run in a child process.

    python -m bench.memory CORPUS STEPS

trains in this process. Wapiti is measured once if its vectors fit in free memory, over six
iterations, so that all vectors are in use.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from measure.data import Problem
from measure.machine import memory
from measure.processes import run

from . import peers
from .ours import train
from .record import OURS, Options

WHAT, LOADING, ARITHMETIC = "peak", "corpus only", f"{peers.WAPITI}, arithmetic"
_STEPS, _PEER_ITERATIONS = 3, 6
# Memory of a peer relative to the size of its vectors.
_SLACK = 1.25


def child(corpus: Path, steps: int) -> list[str]:
    """Return the command that trains on a corpus for `steps` outer iterations; 0: only load it."""
    return ["python", "-m", "bench.memory", str(corpus), str(steps)]


def measure(options: Options) -> None:
    """Measure on two sets of templates."""
    repeats = options.times(3)
    record = options.record("memory", repeats=repeats, **{"outer iterations": _STEPS})
    for name in ("nettalk-3grm", "nettalk-5grm"):
        path = options.corpus(name)
        problem = Problem.load(path)
        for what, steps in ((LOADING, 0), (WHAT, _STEPS)):
            peaks = [run(child(path, steps)).peak_mb for _ in range(repeats)]
            record.note(name, what, OURS, peak_mb=peaks)
        needed = problem.n_potential * peers.BYTES_PER_WEIGHT
        record.note(name, WHAT, ARITHMETIC, peak_mb=[needed / 2**20])
        if peers.has_wapiti() and _SLACK * needed > memory():
            record.remark(f"{name}: {peers.WAPITI} does not fit in the free memory.")
        elif peers.has_wapiti():
            with TemporaryDirectory() as scratch:
                peak = peers.train_wapiti(problem, Path(scratch), _PEER_ITERATIONS).peak_mb
            record.note(name, WHAT, peers.WAPITI, peak_mb=[peak])


def main(
    corpus: Annotated[Path, typer.Argument(help="Encoded corpus")],
    steps: Annotated[int, typer.Argument(help="Outer iterations; 0: only load")],
) -> None:
    """Load a corpus and train on it."""
    problem = Problem.load(corpus)
    if steps:
        train(problem, steps=steps)


if __name__ == "__main__":
    typer.run(main)
