"""Wapiti (Lavergne, Cappé & Yvon 2010) as a peer, where it is on PATH."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .data import L1, L2, Problem
from .follow import Progress, Run, follow
from .peer_files import WapitiFiles, write_wapiti

NAME = "Wapiti"
# Bytes of its vectors for one weight in OWL-QN: weights, gradients, direction, pseudo-gradient
# and their predecessors, and five pairs of differences; float64.
BYTES_PER_WEIGHT = 128

_ITERATION = re.compile(
    r"\s*\[\s*(?P<n>\d+)\] obj=(?P<objective>\S+)\s+act=(?P<active>\d+)\s+err=.*"
    r"time=(?P<seconds>[\d.]+)s/(?P<total>[\d.]+)s"
)
_WEIGHTS = re.compile(r"\s*nb features:\s*(\d+)")


def available() -> str | None:
    """Path of the program, or None."""
    return shutil.which("wapiti")


def read(line: str) -> Progress | None:
    """Read a line that Wapiti writes while it trains."""
    if line.startswith("* Train the model"):
        return Progress(begins=True)
    match = _ITERATION.match(line)
    if match is None:
        return None
    objective = None if match["objective"] == "NA" else float(match["objective"])
    return Progress(objective=objective, n_active=int(match["active"]))


def read_weights(line: str) -> int | None:
    """Read how many weights it has."""
    match = _WEIGHTS.match(line)
    return int(match[1]) if match else None


def command(
    files: WapitiFiles, model: Path, n_iterations: int, *, algorithm: str, threads: int
) -> list[str]:
    """The command line: -w 0 -e 0 turn its own stopping criteria off."""
    program = available()
    assert program is not None, "wapiti is not on PATH"
    penalties = ["-1", str(L1), "-2", f"{L2:.5f}"]
    limits = ["-w", "0", "-e", "0", "-i", str(n_iterations), "-t", str(threads)]
    pattern = [] if files.pattern is None else ["-p", str(files.pattern)]
    paths = [*pattern, "-d", str(files.dev), str(files.train), str(model)]
    return [program, "train", "-a", algorithm, *penalties, *limits, *paths]


def train(
    problem: Problem,
    directory: Path,
    n_iterations: int,
    *,
    algorithm: str = "l-bfgs",
    threads: int = 1,
    cap: float = float("inf"),
    stop_at: float = float("-inf"),
) -> Run:
    """Train on a problem; its model is left in `directory`."""
    files = write_wapiti(problem, directory)
    model = model_path(directory)
    line = command(files, model, n_iterations, algorithm=algorithm, threads=threads)
    return follow(line, read, read_weights, cap=cap, stop_at=stop_at)


def model_path(directory: Path) -> Path:
    """Where `train` leaves its model."""
    return directory / "wapiti.model"


def weights(problem: Problem, directory: Path) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Our coordinates, ascending, and the values of the weights of its last model."""
    program = available()
    assert program is not None, "wapiti is not on PATH"
    dumped = directory / "wapiti.dump"
    line = [program, "dump", "-p", "17", str(model_path(directory)), str(dumped)]
    subprocess.run(line, check=True, capture_output=True)
    n, base = problem.n_labels, len(problem.corpus.unigram_keys) * problem.n_labels
    found: dict[int, float] = {}
    for row in dumped.read_text(encoding="ascii").splitlines():
        if not row:
            continue
        test, previous, label, value = row.split("\t")
        # "u17", with or without patterns.
        number = int(test[1:])
        if test[0] == "u":
            found[number * n + int(label)] = float(value)
        else:
            found[base + (number * n + int(previous)) * n + int(label)] = float(value)
    coordinates = np.array(sorted(found), dtype=np.int64)
    return coordinates, np.array([found[k] for k in coordinates.tolist()])
