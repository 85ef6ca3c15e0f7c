"""Run a command and write down what it cost."""

import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import srsly
import typer


def main(
    output: Annotated[Path, typer.Argument(help="JSON file for the figures")],
    command: Annotated[list[str], typer.Argument(help="Command, after `--`")],
) -> None:
    """Run a command; write its CPU seconds (of all threads and children), wall seconds and peak
    memory in MB. Fails as the command fails.
    """
    if command[0] == "python":
        command = [sys.executable, *command[1:]]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
    output.parent.mkdir(parents=True, exist_ok=True)
    figures = {
        "command": " ".join(["python", *command[1:]]),
        "cpu_seconds": round(cpu, 1),
        "wall_seconds": round(time.perf_counter() - start, 1),
        "peak_mb": round(after.ru_maxrss / 1024),
    }
    srsly.write_json(output, figures)


if __name__ == "__main__":
    typer.run(main)
