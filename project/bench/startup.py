"""Start-up and compilation time, each in a new process.

"Hidden" and "installed" differ only in whether spaCy finds the package's entry points on the
path.
"""

import statistics
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from measure.processes import Cost, alternate, run
from measure.results import Row
from measure.tables import table

from .memory import child
from .record import OURS, Options, cell, find, measurements

PACKAGE = "spacy_sparsecrf"
NOTHING, IMPORT = "python that does nothing", f"import {PACKAGE}"
BLANK_HIDDEN = 'spacy.blank("en"), package hidden'
BLANK_INSTALLED = 'spacy.blank("en"), package installed'
FIRST_BLANK, FIRST_OURS = "first Doc, blank pipeline", "first Doc, saved pipeline"
COLD, WARM = "training run, nothing compiled", "training run, kernels cached"
# Processes that add seconds, and the processes that they are compared with.
PAIRS = {IMPORT: NOTHING, BLANK_INSTALLED: BLANK_HIDDEN, FIRST_OURS: FIRST_BLANK, COLD: WARM}
WHAT = "process"
_TEXT = "The quick brown fox jumps over the lazy dog ."
_TRAINING_REPEATS = 3


def hide_package(directory: Path) -> Path:
    """Create a directory that, first on the path, hides the package's entry points.

    importlib.metadata reads only the first of several distributions with the same name.
    """
    stub = directory / f"{PACKAGE}-0.dist-info"
    stub.mkdir(parents=True)
    (stub / "METADATA").write_text("Metadata-Version: 2.1\nName: spacy-sparsecrf\nVersion: 0\n")
    return directory


def make_sides(scratch: Path, model: Path) -> dict[str, Callable[[], Cost]]:
    """Return the processes that run with warm caches."""
    blank = 'import spacy; spacy.blank("en")'
    scripts = {
        NOTHING: "pass",
        IMPORT: f"import {PACKAGE}",
        BLANK_HIDDEN: blank,
        BLANK_INSTALLED: blank,
        FIRST_BLANK: f"{blank}({_TEXT!r})",
        FIRST_OURS: f"import spacy; spacy.load({str(model.resolve())!r})({_TEXT!r})",
    }
    caches = {
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(scratch / "bytecode"),
        "NUMBA_CACHE_DIR": str(scratch / "kernels"),
    }
    hidden = {"PYTHONPATH": str(hide_package(scratch / "hidden"))}
    return {
        name: partial(
            run, ["python", "-c", script], caches | (hidden if name == BLANK_HIDDEN else {})
        )
        for name, script in scripts.items()
    }


def compile_sides(scratch: Path, corpus: Path) -> dict[str, Callable[[], Cost]]:
    """Return a short training run with an empty and with a full kernel cache."""

    def train(cache: Path) -> Cost:
        return run(child(corpus, 2), {"NUMBA_CACHE_DIR": str(cache)})

    def cold() -> Cost:
        with TemporaryDirectory(dir=scratch) as cache:
            return train(Path(cache))

    return {COLD: cold, WARM: partial(train, scratch / "training-kernels")}


def measure(options: Options) -> None:
    """Measure new processes alternately."""
    repeats = options.times(7)
    record = options.record("startup", repeats=repeats)
    model = options.folder / "training" / "ud" / "model-best"
    with TemporaryDirectory() as name:
        sides = make_sides(Path(name), model)
        compiling = compile_sides(Path(name), options.corpus("conll2000-sample"))
        for fill in (*sides.values(), compiling[WARM]):
            fill()
        costs = alternate(repeats, sides)
        costs |= alternate(min(repeats, _TRAINING_REPEATS), compiling)
    for what, those in costs.items():
        record.compare(what, WHAT, {OURS: those})


def added_seconds(rows: Sequence[Row], what: str) -> float | None:
    """Return the median difference of a process and its pair in the same repetition.

    The speed of a machine drifts within minutes, but less between the two sides of a repetition.
    """
    more, less = (find(rows, name, WHAT, OURS) for name in (what, PAIRS[what]))
    if more is None or less is None:
        return None
    return statistics.median(a - b for a, b in zip(more["wall"], less["wall"], strict=True))


def tables(rows: list[Row], absent: list[str]) -> list[str]:
    """Return a table of seconds of each process, and a table of differences."""
    lines = [[row["data"], cell(row)] for row in measurements(rows)]
    added = [[what, f"{added_seconds(rows, what):+.3f} s"] for what in PAIRS]
    return [table(["process", "from start to end"], lines), table(["adds", ""], added)]
