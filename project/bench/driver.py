"""Benchmark: memory of who drives a run on Brown several times over, which workers share.

Templates, labels (first letters of tags) and iterations are few, as in `bench.out_of_core`: none of
them matters to what grows with the corpus.
"""

import re
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import spacy
import typer
from columns import find
from reliability.shared_runs import config_of, ray_engine, start
from spacy.tokens import DocBin

from .data import PROJECT, QUICK_SENTENCES
from .measurements import OURS, Measurement, Record
from .options import Output, Quick
from .out_of_core_child import PENALTY, SOLVER, TEMPLATES, examples

PEAK = "peak, resident"
_SECONDS = 0.2
_N_DEV = 100
_HELD = re.compile(r"held (\d+) to (\d+) MB")


def write_parts(folder: Path, path: Path, times: int, sentences: int) -> int:
    """Write a corpus so many times, a part each time. RETURNS: tokens."""
    nlp = spacy.blank("en")
    docs = [example.reference for example in examples(path, 1, sentences, nlp)]
    folder.mkdir()
    data = DocBin(docs=docs).to_bytes()
    for i in range(times):
        (folder / f"part-{i}.spacy").write_bytes(data)
    DocBin(docs=docs[:_N_DEV]).to_disk(folder / "dev.spacy")
    return times * sum(map(len, docs))


def peak_mb(pid: int) -> float:
    """The highest resident memory so far of a process; 0 where it has ended."""
    status = Path(f"/proc/{pid}/status")
    try:
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(fields["VmHWM"].split()[0]) / 1024
    except (OSError, KeyError):
        return 0.0


def run(folder: Path, corpus: Path, workers: int) -> dict[str, Any]:
    """Train by workers. RETURNS: the driver's highest memory, that of workers, and seconds.

    RAISES: RuntimeError where the run has failed.
    """
    config = config_of(corpus, "", 1)
    pipe = config["components"]["sparse_crf"]
    pipe["features"]["templates"] = TEMPLATES
    pipe["solver"].update(SOLVER)
    pipe.update(PENALTY)
    since, process, peak = time.monotonic(), start(config, folder, ray_engine(None, workers)), 0.0
    while process.poll() is None:
        peak = max(peak, peak_mb(process.pid))
        time.sleep(_SECONDS)
    log = (folder / "log").read_text(errors="replace")
    if process.returncode:
        raise RuntimeError(log[-2000:])
    held = [max(map(int, found)) for found in _HELD.findall(log)]
    return {"driver MB": peak, "worker MB": max(held, default=0), "s": time.monotonic() - since}


def main(
    output: Output,
    directories: Annotated[list[str], typer.Argument(help="Directories to look in, in order")],
    times: Annotated[int, typer.Option(help="How often the corpus is there")] = 10,
    workers: Annotated[int, typer.Option(help="How many")] = 2,
    quick: Quick = False,
) -> None:
    """Measure one run."""
    path = find(directories, ["brown.train.tsv.gz"], base=PROJECT.parent)
    record = Record("driver", quick, {"workers": workers})
    with TemporaryDirectory() as name:
        corpus = Path(name) / "corpus"
        n_tokens = write_parts(corpus, path, times, QUICK_SENTENCES if quick else 0)
        found = run(Path(name) / "run", corpus, workers)
    data = f"brown x {times}"
    record.measurements.append(Measurement(data, PEAK, OURS, peak_mb=[found["driver MB"]]))
    record.details[data] = found | {"tokens": n_tokens}
    record.write(output)
    typer.echo(f"{data}: {n_tokens} tokens, {found}")


if __name__ == "__main__":
    typer.run(main)
