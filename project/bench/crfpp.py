"""CRF++'s `crf_learn` as a peer, where it is on PATH: how long an iteration takes.

Its l1 training cannot be compared in objective: it adds |w| / C but descends along C sign(w),
which is the same for C = 1 only. An iteration takes as long whatever the penalty.
"""

import re
import shutil
from pathlib import Path

from .data import Problem
from .follow import Progress, Run, follow
from .peer_files import write_crfpp

NAME = "CRF++"

_ITERATION = re.compile(r"iter=\d+ terr=\S+ serr=\S+ act=(\d+) obj=(\S+) diff=\S+$")
_WEIGHTS = re.compile(r"Number of features:\s*(\d+)")


def available() -> str | None:
    """Path of the program, or None."""
    return shutil.which("crf_learn")


def read(line: str) -> Progress | None:
    """Read a line that `crf_learn` writes."""
    # The last line before the first iteration.
    if line.startswith("shrinking size:"):
        return Progress(begins=True)
    match = _ITERATION.match(line.strip())
    if match is None:
        return None
    return Progress(objective=float(match[2]), n_active=int(match[1]))


def read_weights(line: str) -> int | None:
    """Read how many weights it has."""
    match = _WEIGHTS.match(line)
    return int(match[1]) if match else None


def train(problem: Problem, directory: Path, n_iterations: int, *, threads: int = 1) -> Run:
    """Train with its l2 penalty at C = 1; an iteration is one gradient and one update."""
    program = available()
    assert program is not None, "crf_learn is not on PATH"
    template, data = write_crfpp(problem, directory)
    limits = ["-a", "CRF-L2", "-c", "1", "-e", "1e-9", "-m", str(n_iterations)]
    files = [str(template), str(data), str(directory / "crfpp.model")]
    return follow([program, *limits, "-p", str(threads), *files], read, read_weights)
