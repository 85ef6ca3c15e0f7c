"""Benchmark 10: memory of training on Brown once and ten times over, in memory and in files.

Each in a process of its own. Templates, labels (first letters of tags) and outer iterations are
few: none of them matters to what grows with the corpus. Beyond what is resident it tells what is
anonymous, VmRSS less RssFile: pages of files are the system's to take back.
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from columns import find

from .data import PROJECT, QUICK_SENTENCES
from .measurements import OURS, Measurement, Record
from .options import Output, Quick
from .timing import ProcessCost, run_process

RESIDENT, ANONYMOUS, SECONDS = "peak, resident", "peak, anonymous", "seconds"
MEMORY, FILES = f"{OURS}, in memory", f"{OURS}, in files"
_STEPS = 1
_TIMES = (1, 10)


def train(path: Path, times: int, cache_dir: str, sentences: int) -> tuple[ProcessCost, Any]:
    """What a process took that trains on a corpus so many times over, and its figures."""
    command = [sys.executable, "-m", "bench.out_of_core_child", str(path), str(times), str(_STEPS)]
    command += ["--cache-dir", cache_dir, "--sentences", str(sentences)]
    cost = run_process(command)
    return cost, json.loads(cost.output.splitlines()[-1])


def measure(record: Record, path: Path, times: int, tool: str, sentences: int) -> None:
    """Add the figures of one run."""
    with TemporaryDirectory(dir=record.settings["directory"]) as directory:
        cost, figures = train(path, times, directory if tool == FILES else "", sentences)
    data = f"brown x {times}"
    for what, peak in (
        (RESIDENT, max(cost.peak_mb, figures["resident MB"])),
        (ANONYMOUS, figures["anonymous MB"]),
    ):
        record.measurements.append(Measurement(data, what, tool, peak_mb=[peak]))
    record.measurements.append(Measurement(data, SECONDS, tool, [cost.wall], [cost.cpu]))
    record.details[f"{data}, {tool}"] = figures


def main(
    output: Output,
    directories: Annotated[list[str], typer.Argument(help="Directories to look in, in order")],
    scratch: Annotated[Path, typer.Option(help="Where directories of corpora are made")] = Path(),
    quick: Quick = False,
) -> None:
    """Measure all four, and compare the models."""
    path = find(directories, ["brown.train.tsv.gz"], base=PROJECT.parent)
    scratch.mkdir(parents=True, exist_ok=True)
    settings = {"outer iterations": _STEPS, "threads": 1, "directory": str(scratch.resolve())}
    record = Record("out_of_core", quick, settings)
    for times in _TIMES:
        for tool in (FILES, MEMORY):
            measure(record, path, times, tool, QUICK_SENTENCES if quick else 0)
        models = {record.details[f"brown x {times}, {tool}"]["model"] for tool in (FILES, MEMORY)}
        same = "the same bytes" if len(models) == 1 else "NOT the same"
        record.remarks.append(f"brown x {times}: both models are {same}.")
    record.settings.pop("directory")
    record.write(output)


if __name__ == "__main__":
    typer.run(main)
