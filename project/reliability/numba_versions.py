"""Train, predict and check the model in fresh environments with several versions of numba.

    python -m reliability.numba_versions 0.60 0.62 newest

prints a table, and fails if labels or objectives differ between versions. Processor seconds include
the start of Python and all imports; each version starts with an empty kernel cache.
"""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import srsly
import typer
from measure import PROJECT
from measure.processes import run
from measure.tables import table

NEWEST = "newest"
VERSIONS = ["0.60", "0.62", "0.65", "0.67", NEWEST]
_OBJECTIVE_TOLERANCE = 1e-10
# Words and tags of the training sentences.
_LEXICON = {"D": ["the", "a", "this"], "N": ["cat", "dog", "bird", "sat"], "V": ["sat", "ran"]}
_ORDERS = ["D N V", "N V", "D N V D N", "V D N"]


def train(folder: Path) -> None:
    """Train a tagger with the default solver, save it, and write its predictions."""
    import numpy as np
    import spacy
    from spacy.training import Example

    rng = np.random.default_rng(0)
    nlp = spacy.blank("en")
    nlp.add_pipe("sparse_crf", config={"l1": 0.1})
    examples = []
    for i in range(200):
        tags = _ORDERS[i % len(_ORDERS)].split()
        words = [str(rng.choice(_LEXICON[tag])) for tag in tags]
        examples.append(Example.from_dict(nlp.make_doc(" ".join(words)), {"tags": tags}))
    nlp.initialize(lambda: examples)
    for _ in range(4):
        losses = nlp.update(examples)
    nlp.to_disk(folder / "model")
    srsly.write_json(folder / "objective.json", losses["sparse_crf"])
    srsly.write_json(folder / "texts.json", [example.text for example in examples])
    srsly.write_json(folder / "trained.json", _labels(nlp, folder))


def check(folder: Path) -> None:
    """Write the predictions of the saved pipeline, and the compilation method of kernels."""
    import numba
    import spacy

    from spacy_sparsecrf.kernels.numba_support import IS_STANDARD

    way = "standard pipeline" if IS_STANDARD else "linking"
    labels = _labels(spacy.load(folder / "model"), folder)
    srsly.write_json(folder / "checked.json", [numba.__version__, way, labels])


def _labels(nlp: Any, folder: Path) -> list[list[str]]:
    return [
        [token.tag_ for token in doc] for doc in nlp.pipe(srsly.read_json(folder / "texts.json"))
    ]


def install(wanted: str, folder: Path) -> str:
    """Create an environment with this package, and return its Python.

    wanted: pip requirements, optionally after the command of another Python.
    """
    words = wanted.split()
    base = words.pop(0) if "python" in wanted else sys.executable
    subprocess.run([base, "-m", "venv", str(folder)], check=True)
    scripts = sysconfig.get_path("scripts", "venv", {"base": str(folder)})
    python = os.path.join(scripts, "python")
    command = [python, "-m", "pip", "install", "--quiet", *words, str(PROJECT.parent)]
    subprocess.run(command, check=True)
    return python


def try_version(version: str, scratch: Path) -> dict[str, Any]:
    """Return the compilation times, predictions and objective with a version of numba."""
    folder = scratch / version
    numba = "numba" if version == NEWEST else f"numba=={version}.*"
    python = install(numba, folder / "environment")
    # Import the package of the environment, not of the working directory.
    variables = {"NUMBA_CACHE_DIR": str(folder / "kernels"), "PYTHONSAFEPATH": "1"}

    def task(name: str) -> float:
        return run([python, "-m", "reliability.numba_versions", name, str(folder)], variables).cpu

    found: dict[str, Any] = {"cold": task("train")}
    task("check")  # compiles the kernels of prediction
    found["first"] = task("check")
    found["version"], found["way"], found["labels"] = srsly.read_json(folder / "checked.json")
    found["kept"] = found["labels"] == srsly.read_json(folder / "trained.json")
    return found | {"objective": srsly.read_json(folder / "objective.json")}


def main(
    versions: Annotated[list[str] | None, typer.Argument(help="Of numba, and `newest`")] = None,
) -> None:
    """Try versions of numba, and print a table."""
    with TemporaryDirectory() as scratch:
        rows = [try_version(version, Path(scratch)) for version in versions or VERSIONS]
    first = rows[-1]
    lines, is_right = [], True
    for row in rows:
        is_equal = row["kept"] and row["labels"] == first["labels"]
        difference = abs(row["objective"] / first["objective"] - 1.0)
        is_right &= is_equal and difference < _OBJECTIVE_TOLERANCE
        seconds = (f"{row[name]:.1f} s" for name in ("cold", "first"))
        cells = row["version"], row["way"], "equal" if is_equal else "differ"
        lines.append([*cells, f"{row['objective']:.10f}", *seconds])
    header = ["numba", "kernels compiled by", "labels", "objective"]
    typer.echo(table([*header, "training, nothing compiled", "load and 200 Docs, cached"], lines))
    sys.exit(not is_right)


if __name__ == "__main__":
    tasks = {"train": train, "check": check}
    if sys.argv[1:2] and sys.argv[1] in tasks:
        tasks[sys.argv[1]](Path(sys.argv[2]))
    else:
        typer.run(main)
