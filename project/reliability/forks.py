"""Run tests and mutants of the package in forks of a process with all other imports."""

import gc
import json
import os
import shutil
import signal
import tempfile
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from importlib.machinery import SourceFileLoader
from itertools import chain
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import hypothesis
import pytest
import scipy.optimize as scipy
import spacy
from measure import PROJECT

IMPORTED = scipy, spacy  # before forks
PACKAGE = PROJECT.parent / "spacy_sparsecrf"
CASES = 12  # maximum per test
EXAMPLES = {"max_examples": 10, "derandomize": True, "deadline": None, "database": None}

Items = dict[str, pytest.Item]


class Mutant(NamedTuple):
    """A change to a file; function: "" for code run at import; first, last: of the statement."""

    id: str
    path: str
    function: str
    operator: str
    before: str
    after: str
    first: int
    last: int
    code: str

    def compiled(self) -> CodeType:
        """Return the code of the module."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # x is "text"
            return compile(self.code, PACKAGE / self.path, "exec", dont_inherit=True)

    def replace(self, functions: list[FunctionType]) -> None:
        """Replace the code of functions with the mutated code."""
        new = {(each.co_name, each.co_firstlineno): each for each in codes(self.compiled())}
        for each in functions:
            each.__code__ = new[each.__code__.co_name, each.__code__.co_firstlineno]

    def replace_import(self) -> None:
        """Make the module's import use the mutated code."""
        get_code, whole = SourceFileLoader.get_code, str(PACKAGE / self.path)

        def get(loader: SourceFileLoader, name: str) -> CodeType | None:
            return self.compiled() if loader.path == whole else get_code(loader, name)

        SourceFileLoader.get_code = get  # type: ignore[method-assign]


def codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code objects of all functions in a code object, recursively."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from codes(each)


def held_functions() -> dict[tuple[str, str], list[FunctionType]]:
    """Return all live functions, by file and name."""
    found = defaultdict(list)
    for each in gc.get_objects():
        if type(each) is FunctionType:
            path = os.path.relpath(each.__code__.co_filename, PACKAGE)
            found[path, each.__qualname__].append(each)
    return found


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read a JSON Lines file; [] if it is missing."""
    return [*map(json.loads, path.read_text("utf8").splitlines())] if path.exists() else []


def append(path: Path, row: dict[str, Any]) -> None:
    """Append a row in a single write, as other processes write to the same file."""
    with path.open("ab", buffering=0) as file:
        file.write(json.dumps(row).encode() + b"\n")


def in_forks(
    items: Iterable[Any], run: Callable[[Any], object]
) -> Iterator[tuple[Any, int, float]]:
    """Call a function with each item in two forks at a time; yield item, exit code, CPU seconds."""
    running: dict[int, Any] = {}
    for item in items:
        if len(running) == 2:
            yield _wait(running)
        pid = os.fork()
        if not pid:
            os.setpgid(0, 0)
            tempfile.tempdir = tempfile.mkdtemp(prefix=f"mutant-{os.getpid()}-")
            try:
                run(item)
            except BaseException:
                traceback.print_exc()
                os._exit(3)
            os._exit(0)
        running[pid] = item
    while running:
        yield _wait(running)


def _wait(running: dict[int, Any]) -> tuple[Any, int, float]:
    pid, status, used = os.wait3(0)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    for folder in Path(tempfile.gettempdir()).glob(f"mutant-{pid}-*"):
        shutil.rmtree(folder, ignore_errors=True)
    return running.pop(pid), os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime


class Collected:
    """A pytest plugin that passes the collected tests to a function; exits with 1 on a failure."""

    def __init__(self, run: Callable[[Items], object]) -> None:
        self.run = run

    def pytest_runtestloop(self, session: pytest.Session) -> bool:  # noqa: D102
        groups = defaultdict(list)
        for item in session.items:
            if "everything_compiled" not in getattr(item, "fixturenames", ()):
                groups[item.nodeid.split("[")[0]].append(item)
        some = (items[:: -(-len(items) // CASES)] for items in groups.values())
        self.run({item.nodeid: item for item in chain.from_iterable(some)})
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:  # noqa: D102
        if report.failed:
            os._exit(1)


def collect(run: Callable[[Items], object], names: Iterable[str]) -> None:
    """Pass tests to a function, with kernels as plain Python; a failed import exits with 1."""
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    os.chdir(PROJECT.parent)
    hypothesis.settings.register_profile("mutants", **EXAMPLES)
    options = ["-s", "-q", "-p", "no:cacheprovider", "--hypothesis-profile", "mutants"]
    # NumPy warns of infinities; compiled kernels do not.
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning", "-W", "ignore::RuntimeWarning"]
    if code := pytest.main([*options, *names], plugins=[Collected(run)]):
        os._exit(3 if code == pytest.ExitCode.INTERNAL_ERROR else 1)


def run_tests(seconds: dict[str, float], items: Items) -> None:
    """Run tests until one fails or exceeds five times its recorded CPU seconds plus one."""
    for output in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), output)
    signal.alarm(120)  # in case a test waits
    found = [items[name] for name in seconds if name in items]
    for item, following in zip(found, [*found[1:], None][: len(found)], strict=True):
        signal.setitimer(signal.ITIMER_PROF, 1.0 + 5.0 * seconds[item.nodeid])
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    signal.setitimer(signal.ITIMER_PROF, 0.0)


def attack(
    mutants: Iterable[Mutant], tests: dict[str, dict[str, float]], names: list[str], results: Path
) -> None:
    """Append a row for each mutant; tests: by mutant id, with CPU seconds; names: all tests."""

    def save(found: Iterable[tuple[Mutant, int, float]]) -> None:
        for mutant, code, seconds in found:
            assert code != 3, mutant
            result = {0: "survived", 1: "killed"}.get(code, "time limit")
            row = {**mutant._asdict(), "result": result, "seconds": seconds}
            append(results, row | {"code": None, "n_tests": len(tests[mutant.id])})

    def at_import(mutant: Mutant) -> None:
        if own := tests[mutant.id]:
            mutant.replace_import()
            files = dict.fromkeys(name.split("::")[0] for name in own)
            collect(partial(run_tests, own), files)

    def after_imports(items: Items) -> None:
        held = held_functions()
        gc.freeze()

        def run(mutant: Mutant) -> None:
            if functions := held[mutant.path, mutant.function]:
                mutant.replace(functions)
            else:  # a test imports it
                mutant.replace_import()
            run_tests(tests[mutant.id], items)

        save(in_forks([each for each in mutants if each.function], run))

    save(in_forks([each for each in mutants if not each.function], at_import))
    for _, code, _ in in_forks([names], partial(collect, after_imports)):
        assert not code
