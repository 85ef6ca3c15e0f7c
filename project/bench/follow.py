"""Following a peer's training run by what it writes, iteration by iteration."""

import itertools
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer

from .timing import open_process, reap


@dataclass(frozen=True)
class Point:
    """Where a training run stood.

    wall, cpu: seconds since training began (cpu None where the system does not tell it of
    another process); objective: None where the tool does not print it; n_active: weights that
    are not zero.
    """

    wall: float
    cpu: float | None
    objective: float | None
    n_active: int | None = None


@dataclass(frozen=True)
class Progress:
    """What a line of output says: training begins, or an iteration has ended."""

    begins: bool = False
    objective: float | None = None
    n_active: int | None = None


@dataclass
class Run:
    """A training run.

    points: the end of each iteration; n_weights: how many the tool says it has; peak_mb: memory
    of the process; cut: whether it was stopped from here.
    """

    points: list[Point] = field(default_factory=list)
    n_weights: int | None = None
    peak_mb: float = 0.0
    cut: bool = False

    @property
    def iteration_walls(self) -> list[float]:
        """Seconds of each iteration but the first, which begins with one more evaluation."""
        walls = [point.wall for point in self.points]
        return [b - a for a, b in itertools.pairwise(walls)]

    @property
    def iteration_cpus(self) -> list[float]:
        """The same of processor time; empty where it is not known."""
        cpus = [point.cpu for point in self.points if point.cpu is not None]
        return [b - a for a, b in itertools.pairwise(cpus)]

    def reached(self, objective: float) -> Point | None:
        """The first point with at most this objective."""
        for point in self.points:
            if point.objective is not None and point.objective <= objective:
                return point
        return None


def follow(
    command: Sequence[str],
    read: Callable[[str], Progress | None],
    read_weights: Callable[[str], int | None],
    *,
    cap: float = float("inf"),
    stop_at: float = float("-inf"),
    directory: Path | None = None,
) -> Run:
    """Run a command and note when each of its iterations ends.

    read: tells what a line of its output or error output means; read_weights: finds the number
    of weights in a line; cap: seconds of training after which it is stopped; stop_at: objective
    at which it is stopped; directory: to run it in.
    RAISES: subprocess.CalledProcessError where it fails of itself.
    """
    lines: list[str] = []
    process = open_process(command, cwd=directory)
    follower = _Follower(process, cap)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            lines.append(line)
            follower.run.n_weights = follower.run.n_weights or read_weights(line)
            progress = read(line)
            if progress is not None and follower.note(progress) <= stop_at:
                follower.cut()
                break
    finally:
        follower.timer.cancel()
        process.stdout.close()
        usage, code = reap(process)
    follower.run.peak_mb = usage.peak_mb
    if code and not follower.run.cut:
        raise subprocess.CalledProcessError(code, command, "".join(lines[-20:]))
    return follower.run


class _Follower:
    """Notes the points of a run, from when its training begins, and ends it."""

    def __init__(self, process: "subprocess.Popen[str]", cap: float) -> None:
        self.run = Run()
        # A long iteration writes nothing, so the end does not wait for a line.
        self.timer = Timer(min(cap, 1e6), self.cut)
        self._process = process
        self._wall, self._cpu = 0.0, 0.0

    def cut(self) -> None:
        """Stop the process."""
        self.run.cut = True
        self._process.terminate()

    def note(self, progress: Progress) -> float:
        """Note where it stands; returns the objective, infinite where it is not told."""
        wall, cpu = time.perf_counter(), _cpu_of(self._process.pid)
        if progress.begins:
            self._wall, self._cpu = wall, cpu or 0.0
            self.timer.start()
            return float("inf")
        used = None if cpu is None else cpu - self._cpu
        objective = progress.objective
        self.run.points.append(Point(wall - self._wall, used, objective, progress.n_active))
        return float("inf") if objective is None else objective


def _cpu_of(pid: int) -> float | None:
    """Processor seconds of a running process so far, of all its threads."""
    status = Path(f"/proc/{pid}/stat")
    if not status.exists():
        return None
    # The name, in parentheses, may have blanks in it.
    numbers = status.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")
