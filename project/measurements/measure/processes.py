"""Measure work in this process, alternating sides, and child processes.

    python -m measure.processes FILE -- python -m spacy train ...

runs a command and writes its cost to a JSON file.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Annotated, TypeVar

import srsly
import typer

from . import PROJECT

ResultT = TypeVar("ResultT")
_SAMPLE_SECONDS = 0.03
_SHOWN_LINES = 20


@dataclass
class Cost:
    """The cost of work.

    wall, cpu: wall seconds, and processor seconds of all threads; for a child process also peak_mb,
    peak resident memory, and output.
    """

    wall: float = 0.0
    cpu: float = 0.0
    peak_mb: float = 0.0
    output: str = ""


class Stopwatch:
    """Seconds of this process since the stopwatch was created."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self) -> Cost:
        """Return the seconds so far."""
        return Cost(time.perf_counter() - self._wall, time.process_time() - self._cpu)


def timed(function: Callable[[], object]) -> Cost:
    """Return the cost of a call."""
    watch = Stopwatch()
    function()
    return watch.read()


def median_cost(costs: Sequence[Cost]) -> Cost:
    """Return the medians of wall and of processor time."""
    walls, cpus = [cost.wall for cost in costs], [cost.cpu for cost in costs]
    return Cost(statistics.median(walls), statistics.median(cpus))


def alternate(repeats: int, sides: Mapping[str, Callable[[], ResultT]]) -> dict[str, list[ResultT]]:
    """Run the sides of a comparison alternately, so that other load affects all sides alike.

    RETURNS: the `repeats` results of each side.
    """
    results: dict[str, list[ResultT]] = {name: [] for name in sides}
    for _ in range(repeats):
        for name, run in sides.items():
            results[name].append(run())
    return results


class Child:
    """A child process, with the project's modules on its path.

    env: added environment variables; shown: whether output goes to the terminal, and is not kept.
    """

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str] | None = None, *, shown: bool = False
    ) -> None:
        command = [sys.executable, *command[1:]] if command[0] == "python" else list(command)
        path = os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")]))
        self._kept, self._cost = list[str](), Cost()
        self._start, self._has_ended = time.perf_counter(), Event()
        self.process = subprocess.Popen(
            command,
            stdout=None if shown else subprocess.PIPE,
            stderr=None if shown else subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", **(env or {})},
            encoding="utf-8",
            errors="replace",
        )
        Thread(target=self._sample, daemon=True).start()

    def lines(self) -> Iterator[str]:
        """Yield output lines as they arrive."""
        for line in self.process.stdout or ():
            self._kept.append(line)
            yield line

    def cpu(self) -> float:
        """Return processor seconds so far, of all threads; 0 if the system does not report them."""
        status = Path(f"/proc/{self.process.pid}/stat")
        if not status.exists():
            return 0.0
        # The name, in parentheses, may contain blanks.
        numbers = status.read_text(errors="replace").rpartition(")")[2].split()
        return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")

    def wait(self) -> Cost:
        """Wait for the end of the process, and return its cost.

        RAISES: subprocess.CalledProcessError with the last lines of output.
        """
        for _ in self.lines():
            pass
        if self.process.stdout:
            self.process.stdout.close()
        _, status, usage = os.wait4(self.process.pid, 0)
        self._has_ended.set()
        self._cost.wall = time.perf_counter() - self._start
        self._cost.cpu = usage.ru_utime + usage.ru_stime
        self._cost.peak_mb = self._cost.peak_mb or usage.ru_maxrss / 1024
        self._cost.output = "".join(self._kept)
        code = self.process.returncode = os.waitstatus_to_exitcode(status)
        if code:
            told = "\n".join(self._cost.output.splitlines()[-_SHOWN_LINES:])
            sys.stderr.write(f"{told}\n")
            raise subprocess.CalledProcessError(code, self.process.args, told)
        return self._cost

    def _sample(self) -> None:
        """Sample memory, as the system's peak for a child includes the memory of its parent."""
        status = Path(f"/proc/{self.process.pid}/status")
        while not self._has_ended.wait(_SAMPLE_SECONDS):
            try:
                fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
                self._cost.peak_mb = int(fields["VmHWM"].split()[0]) / 1024
            except (OSError, KeyError):
                return


def run(command: Sequence[str], *, shown: bool = False) -> Cost:
    """Run a command in a child process and return its cost; see `Child`."""
    return Child(command, shown=shown).wait()


def main(
    output: Annotated[Path, typer.Argument(help="JSON file for the figures")],
    command: Annotated[list[str], typer.Argument(help="Command, after `--`")],
) -> None:
    """Run a command; write its CPU seconds (of all threads and children), wall seconds and peak
    memory in MB. Fails if the command fails.
    """
    cost = run(command, shown=True)
    figures = {"command": " ".join(command), "cpu_seconds": round(cost.cpu, 1)}
    figures |= {"wall_seconds": round(cost.wall, 1), "peak_mb": round(cost.peak_mb)}
    output.parent.mkdir(parents=True, exist_ok=True)
    srsly.write_json(output, figures)


if __name__ == "__main__":
    typer.run(main)
