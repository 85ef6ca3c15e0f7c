"""A fault at every call: old files stay complete, and a second attempt succeeds.

    cd project
    python -m reliability.attacks faults

Each scenario runs with a failure of the k-th write, fsync, rename, link, truncate, reservation,
mkdir or read of a file in its directory, or of the k-th large allocation, for k = 1, 2, ... until
there is no failure. `faults.c` overrides these functions of the C library.
"""

import ctypes
import errno
import json
import logging
import multiprocessing
import os
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import spacy
import typer
from measure.processes import run
from measure.results import Results
from spacy.tokens import Doc
from spacy.training import Example
from wasabi import msg

from spacy_sparsecrf.errors import SparseCRFError

SOURCE = Path(__file__).with_name("faults.c")
_LIBRARY = "SPARSECRF_FAULTS"
_MOST = 5_000

# An action that returns its result.
Act: TypeAlias = Callable[[], bytes]


class Fault(NamedTuple):
    """A fault: calls fail with a system error, or allocations of at least so many bytes fail."""

    error: int = errno.EIO
    least_bytes: int = 0


def build(folder: Path) -> Path:
    """Compile the library. RAISES: OSError if there is no compiler."""
    library = folder / "faults.so"
    command = ["gcc", "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return library


def examples() -> list[Any]:
    """Return a few tagged sentences."""
    nlp, made = spacy.blank("xx"), []
    for i in range(24):
        words = [f"w{(i * 7 + j * j) % 13}" for j in range(2 + i % 6)]
        tags = ["ABC"[(len(words) + j + i) % 3] for j in range(len(words))]
        doc = Doc(nlp.vocab, words=words, tags=tags)
        made.append(Example(Doc(nlp.vocab, words=words), doc))
    return made


def train(folder: Path, most: int = 1_000) -> Act:
    """Return an action that trains to convergence, with a checkpoint.

    most: maximum number of steps. The action returns the saved component.
    """
    nlp, given = spacy.blank("xx"), examples()
    solver = {"@crf_solvers": "spacy_sparsecrf.OWLQN.v1", "inner_iterations": 1}
    config = {"n_threads": 1, "l1": 0.5, "l2": 0.1, "solver": {**solver, "window": 0.02}}
    pipe = nlp.add_pipe("sparse_crf", config=config)
    places = {"checkpoint": folder / "run"}

    def act() -> bytes:
        pipe.initialize(lambda: given, nlp=nlp, **places)
        for _ in range(most):
            if pipe.training_run().converged:
                break
            pipe.update(given)
            pipe.finish_update(None)
        data: bytes = pipe.to_bytes(exclude=["vocab"])
        return data

    return act


def save(folder: Path, label: str = "NEW") -> Act:
    """Return an action that saves a component with a weight for a label to files."""
    pipe = spacy.blank("xx").add_pipe("sparse_crf", config={"n_threads": 1})
    pipe.cfg["labels"] = [label, "X"]
    pipe.patch([f"u\tlower[0]=a\t#\t{label}\t1.5"])

    def act() -> bytes:
        pipe.to_disk(folder / "pipe", exclude=["vocab"])
        return b""

    return act


def _contents(folder: Path) -> bytes:
    """Return the names and contents of all files below a directory."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return b"".join(path.name.encode() + b"\0" + path.read_bytes() for path in files)


class Scenario(NamedTuple):
    """A scenario: prepares a directory, returns an action, and whether the action is atomic."""

    prepare: Callable[[Path], object]
    ready: Callable[[Path], Act]
    is_whole: bool


SCENARIOS = {
    "training": Scenario(lambda folder: None, train, False),
    "training that goes on": Scenario(lambda folder: train(folder, 2)(), train, False),
    "saving": Scenario(lambda folder: None, save, True),
    "saving over another": Scenario(lambda folder: save(folder, "OLD")(), save, True),
}


class Faults:
    """The preloaded library."""

    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(path)
        self._library.faults_failed.restype = ctypes.c_char_p
        self._library.faults_end.restype = ctypes.c_long

    def arm(self, folder: Path, at: int, fault: Fault) -> None:
        """Make call number `at` fail."""
        arguments = str(folder).encode(), ctypes.c_long(at), fault.error
        self._library.faults_arm(*arguments, ctypes.c_long(fault.least_bytes))

    def end(self) -> tuple[int, str]:
        """Return the number of calls, and the name of the failed call."""
        n = int(self._library.faults_end())
        return n, self._library.faults_failed().decode()


def attempt(faults: Faults, scenario: Scenario, at: int, fault: Fault, expected: bytes) -> str:
    """Make one call fail, and try again. RETURNS: the failed call, or "" if there was none.

    RAISES: AssertionError if a requirement is violated.
    """
    with tempfile.TemporaryDirectory(prefix="sparsecrf-faults-") as name:
        scenario.prepare(Path(name))
        arguments = faults, scenario, at, fault, expected, Path(name)
        return _apart(*arguments) if fault.least_bytes else _attempt(*arguments)


def _attempt(
    faults: Faults, scenario: Scenario, at: int, fault: Fault, expected: bytes, folder: Path
) -> str:
    """Run an attempt in a prepared directory."""
    before, found, raised = _contents(folder), b"", ""
    act = scenario.ready(folder)
    faults.arm(folder, at, fault)
    try:
        found = act()
    except SparseCRFError as error:
        raised = str(error)
    finally:
        _, failed = faults.end()
    left = [str(path) for path in folder.rglob("*") if path.suffix in (".part", ".old")]
    assert not left, f"{failed} leaves {left}"
    if not raised:
        assert (found or _contents(folder)) == expected, f"{failed}: another result"
        return failed
    is_placed = str(folder) in raised and ("[init" in raised or "saved" in raised)
    is_told = fault.least_bytes or is_placed
    assert raised.startswith("[SC") and is_told, f"{failed}: {raised}"
    if scenario.is_whole:
        assert _contents(folder) == before, f"{failed}: other files"
    again = scenario.ready(folder)() or _contents(folder)
    assert again == expected, f"{failed}: a second try ends otherwise"
    return failed


def _apart(faults: Faults, scenario: Scenario, *arguments: Any) -> str:
    """Run an attempt in a child process, as a library may crash when an allocation fails.

    RETURNS: the call, or the signal that ended the process; the second attempt succeeded.
    """
    *_, expected, folder = arguments
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)
    process = fork.Process(target=_send, args=(theirs, faults, scenario, *arguments))
    process.start()
    theirs.close()
    try:
        failed, harm = ours.recv()
    except EOFError:
        failed, harm = "", ""
    process.join()
    if process.exitcode:
        again = scenario.ready(folder)() or _contents(folder)
        assert again == expected, "a try after the end of the process ends otherwise"
        return f"process ended by signal {-process.exitcode}"
    assert not harm, harm
    return str(failed)


def _send(to: Any, *arguments: Any) -> None:
    """Send the result or error of an attempt."""
    try:
        to.send((_attempt(*arguments), ""))
    except Exception as error:
        to.send(("", f"{type(error).__name__}: {error}"))


def try_all(name: str, fault: Fault) -> Counter[str]:
    """Make each call of a scenario fail in turn. RETURNS: number of failures by call."""
    faults, scenario, found = Faults(os.environ[_LIBRARY]), SCENARIOS[name], Counter[str]()
    with tempfile.TemporaryDirectory(prefix="sparsecrf-faults-") as folder:
        scenario.prepare(Path(folder))
        expected = scenario.ready(Path(folder))() or _contents(Path(folder))
    for at in range(1, _MOST):
        try:
            failed = attempt(faults, scenario, at, fault, expected)
        except Exception as error:
            found[f"harm: call {at}: {type(error).__name__}: {error}"[:300]] += 1
            continue
        if not failed:
            break
        found[failed] += 1
    return found


def preloaded(name: str, allocations: int = 0) -> dict[str, int]:
    """Run all faults of a scenario in a process with the library. RETURNS: failures by call."""
    with tempfile.TemporaryDirectory(prefix="sparsecrf-faults-") as folder:
        library = str(build(Path(folder)))
        own = {"LD_PRELOAD": library, _LIBRARY: library}
        options = ["--scenario", name, "--allocations", str(allocations)]
        output = run(["python", "-m", "reliability.attacks", "faults", *options], own).output
    found: dict[str, int] = json.loads(output.splitlines()[-1])
    return found


def main(
    scenario: Annotated[str, typer.Option(help="One scenario only")] = "",
    allocations: Annotated[
        int, typer.Option(help="Let allocations of so many bytes and more fail instead of calls")
    ] = 0,
    output: Annotated[Path, typer.Option(help="Figures")] = Path(
        "metrics/reliability/faults.jsonl"
    ),
) -> None:
    """Let each call fail in turn, and report what happens."""
    if _LIBRARY in os.environ:
        logging.disable()
        warnings.simplefilter("ignore")
        sys.stdout.write(f"{json.dumps(try_all(scenario, Fault(least_bytes=allocations)))}\n")
        return
    results = Results(output, settings={"allocations": allocations}, keep="none")
    for name in [scenario] if scenario else SCENARIOS:
        found = preloaded(name, allocations)
        harm = [key for key in found if key.startswith("harm")]
        results.add(name, faults=sum(found.values()), calls=found, harm=harm)
        msg.text(f"{name}: {sum(found.values())} faults: {found}")
    if any(row["harm"] for row in results.rows.values()):
        msg.fail("Faults did harm", exits=1)
