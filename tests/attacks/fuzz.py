"""Mutated files and user input: each must be refused with a code or accepted, without harm.

    cd project
    python -m reliability.attacks fuzz --files 1000000 --seed 0
    python -m reliability.attacks fuzz --files 1000000 --seed 0 --written

Files are tried in a child process, in which numba checks all array bounds. A file that ends the
process, or takes ten processor seconds or two minutes, counts as a crash, and a new process
continues after it. Type, seed and number identify the file.
"""

import json
import logging
import multiprocessing
import os
import time
import warnings
from collections import Counter
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Annotated, Any

import typer
from wasabi import msg

from spacy_sparsecrf.errors import SparseCRFError

from .converted import CONVERTED_KINDS
from .kinds import KINDS, Kind, model_of, predictions
from .texts import USER_KINDS

ALL = KINDS | USER_KINDS | CONVERTED_KINDS
_POLL, SECONDS, _WAITED = 0.2, 10.0, 120.0
# Sound files are tried first, which also compiles kernels.
_FIRST_SECONDS = 900.0
_NONE_YET = -1
# Number of files per seed, fewer of slow types; a new process regenerates the files of its seed
# before it continues.
_CHUNK, _CHUNKS = 2_000, {"checkpoint": 200, "docs": 500, "config": 50}
# Order in which chunks of each type are run.
_TURNS = ["model", "names", "model", "clusters"] * 5 + ["checkpoint"]
_WRITTEN = ["docs", "templates", "patterns", "columns", "conllu", "dump", "class files"]
_WRITTEN += CONVERTED_KINDS
_TURNS_WRITTEN = _WRITTEN * 5 + ["config"]
# Code with bounds checks has a separate kernel cache.
CHECKED = {
    "NUMBA_BOUNDSCHECK": "1",
    "NUMBA_CACHE_DIR": str(Path(__file__).parents[2] / "project" / "metrics" / "checked-kernels"),
}


def attempt(kind: Kind, file: Any, sound: Any) -> str:
    """Try one file. RETURNS: "accepted", the code of the error, or another exception."""
    try:
        kind.use(file, sound)
    except SparseCRFError as error:
        return str(error)[1:].partition("]")[0]
    except Exception as error:
        return f"uncoded: {type(error).__name__}: {error}"[:200]
    return "accepted"


def fuzz(name: str, seed: int, n: int, first: int = 0, at: Any = None) -> Counter[str]:
    """Try mutated files of a type from number `first` on; at: receives the current number."""
    kind, found = ALL[name], Counter[str]()
    mutator = kind.mutator(kind.sound(), seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for file in mutator.sound:
            kind.use(file, file)
        for i in range(n):
            if i < first:
                mutator.mutated()
                continue
            if at is not None:
                at.value = i
            found[attempt(kind, *mutator.mutated())] += 1
    return found


def _check_bounds() -> None:
    """Check that an index outside of an array is detected. RAISES: RuntimeError."""
    model = model_of()
    model.unigram.labels[0] = 2**15
    try:
        predictions(model)
    except IndexError:
        return
    raise RuntimeError("bounds are not checked: remove the folder of compiled kernels")


def _child(jobs: Any, results: Any, at: "Synchronized[int]") -> None:
    logging.disable()
    _check_bounds()
    while (job := jobs.recv()) is not None:
        results.send(fuzz(*job, at=at))


def _processor_seconds(pid: int | None) -> float:
    """Return the processor seconds of a process so far; 0 if the system does not report them."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


class Child:
    """A process that tries files, replaced by a new one when a file ends it."""

    def __init__(self) -> None:
        os.environ.update(CHECKED)
        self._context = multiprocessing.get_context("spawn")
        self._start()

    def _start(self) -> None:
        self._at = self._context.Value("q", 0)
        theirs, self._jobs = self._context.Pipe(duplex=False)
        self._results, ours = self._context.Pipe(duplex=False)
        self._process = self._context.Process(target=_child, args=(theirs, ours, self._at))
        self._process.start()

    def fuzz(self, name: str, seed: int, n: int) -> Counter[str]:
        """Try files of a type; see the function `fuzz`."""
        found, first = Counter[str](), 0
        while first < n:
            self._at.value = _NONE_YET
            self._jobs.send((name, seed, n, first))
            if self._waited():
                return found + self._results.recv()
            first = int(self._at.value) + 1
            msg.fail(f"crash: --kind {name}, seed {seed}, file {first - 1}")
            found["crashed"] += 1
            self._process.kill()
            self._process.join()
            self._start()
        return found

    def _waited(self) -> bool:
        """Wait for a result; return whether it arrived."""
        # Counts polls instead of reading a clock, which continues while both processes are stopped.
        last, waited, began = _NONE_YET, 0.0, 0.0
        while not self._results.poll(_POLL):
            now, used = int(self._at.value), _processor_seconds(self._process.pid)
            waited = waited + _POLL if now == last else 0.0
            began = began if now == last else used
            if now == last == _NONE_YET:
                late = waited > _FIRST_SECONDS
            else:
                late = waited > _WAITED or used - began > SECONDS
            last = now
            if late or not self._process.is_alive():
                return bool(self._results.poll())
        return True

    def close(self) -> None:
        """End the process."""
        self._jobs.send(None)
        self._process.join()


def main(
    files: Annotated[int, typer.Option(help="How many files, of all kinds together")] = 100_000,
    seed: Annotated[int, typer.Option(help="Of the changes")] = 0,
    kind: Annotated[str, typer.Option(help="One kind only")] = "",
    written: Annotated[bool, typer.Option("--written", help="What users write")] = False,
    minutes: Annotated[float, typer.Option(help="Begin nothing after so long; 0: no end")] = 0.0,
    output: Annotated[Path, typer.Option(help="JSON of the figures")] = Path(
        "metrics/reliability/fuzz.json"
    ),
) -> None:
    """Try mutated files, and report how many were refused, accepted, or did harm."""
    turns = [kind] if kind else _TURNS_WRITTEN if written else _TURNS
    found = {name: Counter[str]() for name in ALL if name in turns}
    began, child, number = time.monotonic(), Child(), 0
    while sum(sum(counts.values()) for counts in found.values()) < files:
        if minutes and time.monotonic() - began > 60.0 * minutes:
            break
        name = turns[number % len(turns)]
        found[name] += child.fuzz(name, seed * 1_000_003 + number, _CHUNKS.get(name, _CHUNK))
        number += 1
        if number % len(turns) == 0:
            _write(output, found)
            msg.text(f"{sum(sum(counts.values()) for counts in found.values()):,} of {files:,}")
    child.close()
    for name, counts in found.items():
        n_harm = sum(n for key, n in counts.items() if is_harm(key))
        n_refused = sum(counts.values()) - counts["accepted"] - n_harm
        msg.text(f"{name}: {n_refused} refused, {counts['accepted']} accepted, {n_harm} harm")
    _write(output, found)
    harm = sum(n for counts in found.values() for key, n in counts.items() if is_harm(key))
    if harm:
        msg.fail(f"{harm} files did harm", exits=1)


def _write(output: Path, found: dict[str, Counter[str]]) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf8")


def is_harm(result: str) -> bool:
    """Return whether a result of `attempt` is a finding."""
    return result.startswith(("uncoded", "crashed"))
