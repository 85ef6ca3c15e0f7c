"""Benchmark 7: what start-up costs, each time in a fresh process.

"Hidden" and "installed" differ in nothing but whether the package is on the path: both run
without the site module, on a directory of links to everything that is installed, once without
the links of this package and once with them. So spaCy finds its entry points, or does not.
Python's byte code and numba's kernels are cached, in a directory of their own, by a first run
that is not counted; for the cold compilation numba's cache is empty each time.
"""

import importlib.metadata
import importlib.util
import site
import statistics
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from .measurements import OURS, Record
from .options import Corpora, Output, Quick, Repeats
from .timing import Cost, ProcessCost, alternate, run_process

PACKAGE = "spacy_sparsecrf"
NOTHING, IMPORT = "python that does nothing", f"import {PACKAGE}"
BLANK_HIDDEN = 'spacy.blank("en"), package hidden'
BLANK_INSTALLED = 'spacy.blank("en"), package installed'
FIRST_BLANK, FIRST_OURS = "first Doc, blank pipeline", "first Doc, saved pipeline"
COLD, WARM = "training run, nothing compiled", "training run, kernels cached"
WHAT = "process"

_TEXT = "The quick brown fox jumps over the lazy dog ."
_SCRIPTS = {
    NOTHING: "pass",
    IMPORT: f"import {PACKAGE}",
    BLANK_HIDDEN: 'import spacy; spacy.blank("en")',
    BLANK_INSTALLED: 'import spacy; spacy.blank("en")',
    FIRST_BLANK: f'import spacy; spacy.blank("en")({_TEXT!r})',
}


def link_installed(directory: Path, *, hidden: bool) -> None:
    """Fill a directory with links to what is installed, this package hidden or not."""
    places = dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    if site.ENABLE_USER_SITE:
        places[site.getusersitepackages()] = None
    for place in filter(Path.is_dir, map(Path, places)):
        for entry in place.iterdir():
            link = directory / entry.name
            if not entry.name.replace("-", "_").startswith(PACKAGE) and not link.exists():
                link.symlink_to(entry)
    if not hidden:
        spec = importlib.util.find_spec(PACKAGE)
        assert spec is not None and spec.origin is not None
        (directory / PACKAGE).symlink_to(Path(spec.origin).parent)
        write_metadata(directory / f"{PACKAGE}-0.dist-info")


def write_metadata(directory: Path) -> None:
    """Copy name and entry points, the same for editable and other installations."""
    found = importlib.metadata.distribution(PACKAGE.replace("_", "-"))
    directory.mkdir()
    for name in ("METADATA", "PKG-INFO", "entry_points.txt"):
        text = found.read_text(name)
        if text:
            target = "METADATA" if name == "PKG-INFO" else name
            (directory / target).write_text(text, encoding="utf-8")


def python(script: str, env: dict[str, str], *flags: str) -> Cost:
    """Run a line of Python in a fresh process."""
    cost: ProcessCost = run_process([sys.executable, *flags, "-c", script], env)
    return Cost(cost.wall, cost.cpu)


def make_sides(scratch: Path, model: Path) -> dict[str, Callable[[], Cost]]:
    """The lines that run with warm caches."""
    caches = {
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(scratch / "bytecode"),
        "NUMBA_CACHE_DIR": str(scratch / "kernels"),
    }
    paths = {BLANK_HIDDEN: scratch / "hidden", BLANK_INSTALLED: scratch / "installed"}
    for name, path in paths.items():
        path.mkdir()
        link_installed(path, hidden=name == BLANK_HIDDEN)
    load = f"import spacy; spacy.load({str(model.resolve())!r})({_TEXT!r})"
    sides: dict[str, Callable[[], Cost]] = {}
    for name, script in {**_SCRIPTS, FIRST_OURS: load}.items():
        isolated = name in paths
        env = {**caches, "PYTHONPATH": str(paths[name])} if isolated else caches
        flags = ["-S"] if isolated else []
        sides[name] = lambda s=script, e=env, f=flags: python(s, e, *f)  # type: ignore[misc]
    return sides


def compile_sides(scratch: Path, corpus: Path) -> dict[str, Callable[[], Cost]]:
    """A short training run, with numba's cache empty and full."""
    command = [sys.executable, "-m", "bench.train_child", str(corpus), "2"]

    def run(cache: Path) -> Cost:
        cost = run_process(command, {"NUMBA_CACHE_DIR": str(cache)})
        return Cost(cost.wall, cost.cpu)

    def cold() -> Cost:
        with TemporaryDirectory(dir=scratch) as cache:
            return run(Path(cache))

    return {COLD: cold, WARM: lambda: run(scratch / "training-kernels")}


def added_seconds(more: Sequence[Cost], less: Sequence[Cost]) -> float:
    """The median of what one side took more than the other in the same repetition.

    Machines grow faster and slower within minutes; both sides of a repetition less so.
    """
    return statistics.median(a.wall - b.wall for a, b in zip(more, less, strict=True))


def main(
    output: Output,
    model: Annotated[Path, typer.Argument(help="Trained pipeline")],
    corpora: Corpora,
    repeats: Repeats = 7,
    quick: Quick = False,
) -> None:
    """Measure fresh processes in turn."""
    repeats = 1 if quick else repeats
    record = Record("startup", quick, {"repeats": repeats})
    with TemporaryDirectory() as name:
        scratch = Path(name)
        sides = make_sides(scratch, model)
        compiling = compile_sides(scratch, corpora / "conll2000-sample.npz")
        for fill in (*sides.values(), compiling[WARM]):
            fill()
        costs = alternate(repeats, sides)
        costs |= alternate(1 if quick else 3, compiling)
    for what, those in costs.items():
        record.add(what, WHAT, {OURS: those})
    pairs = {
        IMPORT: NOTHING,
        BLANK_INSTALLED: BLANK_HIDDEN,
        FIRST_OURS: FIRST_BLANK,
        COLD: WARM,
    }
    record.details["added_seconds"] = {
        a: added_seconds(costs[a], costs[b]) for a, b in pairs.items()
    }
    record.write(output)


if __name__ == "__main__":
    typer.run(main)
