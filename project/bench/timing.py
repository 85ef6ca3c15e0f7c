"""Measuring: one piece of work, sides of a comparison in turn, whole processes."""

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")


@dataclass
class Cost:
    """What a piece of work took: seconds on the clock, and of all threads on the processor."""

    wall: float = 0.0
    cpu: float = 0.0


@dataclass(frozen=True)
class ProcessCost:
    """What a process took, with its peak resident memory; output: what it wrote to stdout."""

    wall: float
    cpu: float
    peak_mb: float
    output: str


class Stopwatch:
    """Time since it was made, of this process."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> Cost:
        """The time so far."""
        return Cost(time.perf_counter() - self._wall, time.process_time() - self._cpu)


@contextmanager
def measured() -> Iterator[Cost]:
    """Measure the body of a `with`; the cost is filled in at its end."""
    cost, watch = Cost(), Stopwatch()
    yield cost
    now = watch.read()
    cost.wall, cost.cpu = now.wall, now.cpu


def median_cost(costs: Sequence[Cost]) -> Cost:
    """The medians of wall and of processor time."""
    return Cost(
        statistics.median(cost.wall for cost in costs),
        statistics.median(cost.cpu for cost in costs),
    )


def repeated(function: Callable[[], object], times: int) -> Cost:
    """Call a function several times; the median cost of a call."""
    costs = []
    for _ in range(times):
        with measured() as cost:
            function()
        costs.append(cost)
    return median_cost(costs)


def alternate(repeats: int, sides: Mapping[str, Callable[[], ResultT]]) -> dict[str, list[ResultT]]:
    """Run the sides of a comparison in turn, so that what else the machine does hits all alike.

    RETURNS: for each side its `repeats` results.
    """
    results: dict[str, list[ResultT]] = {name: [] for name in sides}
    for _ in range(repeats):
        for name, run in sides.items():
            results[name].append(run())
    return results


def open_process(command: Sequence[str], **options: Any) -> "subprocess.Popen[str]":
    """Start a command whose output and error output are read as one text."""
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        **options,
    )


def run_process(command: Sequence[str], env: Mapping[str, str] | None = None) -> ProcessCost:
    """Run a command in a process of its own.

    env: variables to set on top of this process's; an empty value removes one.
    RAISES: subprocess.CalledProcessError with what it wrote to stderr.
    """
    wanted = {**os.environ, **(env or {})}
    variables = {name: value for name, value in wanted.items() if value}
    start = time.perf_counter()
    with open_process(command, env=variables) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        usage, code = reap(process)
    if code:
        raise subprocess.CalledProcessError(code, command, output)
    return ProcessCost(time.perf_counter() - start, usage.cpu, usage.peak_mb, output)


@dataclass(frozen=True)
class Usage:
    """What a process that has ended had used."""

    cpu: float
    peak_mb: float


def reap(process: "subprocess.Popen[str]") -> tuple[Usage, int]:
    """Wait for a process; what it used, itself alone, and its exit code."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Usage(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024), process.returncode
