"""Runs of `spacy train` that are killed at random times, and started again until they end.

    python -m reliability.kills --kills 200 --seed 0

What they leave is compared, byte for byte, with what an undisturbed run leaves: `model-best` and
`model-last`. Half of the kills come at any time (imports, reading, warm start, rows, saving), the
others soon after a checkpoint was written.
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import spacy
import typer
from spacy.tokens import Doc, DocBin
from spacy.util import load_config
from wasabi import msg

import spacy_sparsecrf

from .figures import write_figures

Process: TypeAlias = "subprocess.Popen[bytes]"

_TEMPLATES = ["b:", "*:lower[0]", "u:suffix(3)[0]", "u:lower[-1]", "u:lower[1]"]
_STAGES = [{"templates": _TEMPLATES[:2], "steps": 2}, {"templates": ["*"], "steps": 4}]
_BATCHES = {"@batchers": "spacy.batch_by_sequence.v1", "size": 60}


def _solver(name: str, **settings: Any) -> dict[str, Any]:
    return {"solver": {"@crf_solvers": f"spacy_sparsecrf.{name}.v1", **settings}}


# Changes of a config: of the component, of [training], and of [initialize.components.NAME].
RUNS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "OWLQN": (_solver("OWLQN", inner_iterations=2), {}, {}),
    "SGDL1": (_solver("SGDL1"), {}, {}),
    "SAG": (_solver("SAG"), {}, {}),
    "BCD": (_solver("BCD", inner_iterations=2), {}, {}),
    "stages": (
        {**_solver("OWLQN", inner_iterations=2), "learning": {"schedule": _STAGES}},
        {},
        {},
    ),
    "stream": (
        _solver("SGDL1", on_batches=True),
        {"eval_frequency": 4, "batcher": _BATCHES, "max_steps": 30},
        {},
    ),
    "out of core": (_solver("OWLQN", inner_iterations=2), {}, {"corpus_dir": "corpus"}),
}


def write_corpus(path: Path, n: int, seed: int) -> None:
    """Write made-up tagged sentences."""
    rng, nlp = random.Random(seed), spacy.blank("xx")
    packed = DocBin()
    for _ in range(n):
        words = [f"w{int(rng.paretovariate(0.9)) % 400}{rng.choice('abcde')}" for _ in range(12)]
        tags = [
            f"T{(len(w) + ord(w[-1]) + i % 2 + rng.randrange(2)) % 9}" for i, w in enumerate(words)
        ]
        packed.add(Doc(nlp.vocab, words=words, tags=tags))
    packed.to_disk(path)


def write_config(folder: Path, name: str) -> None:
    """Write the config of a run, all of whose files are in a folder."""
    shipped = Path(spacy_sparsecrf.__file__).parent / "configs" / "tagger.cfg"
    config = load_config(shipped)
    component, training, initialize = RUNS[name]
    config["paths"].update(train=str(folder / "train.spacy"), dev=str(folder / "dev.spacy"))
    pipe = config["components"]["sparse_crf"]
    pipe.update(component, n_threads=1, l1=0.5)
    pipe["features"]["templates"] = _TEMPLATES
    own = dict(training)
    config["training"]["batcher"] = own.pop("batcher", config["training"]["batcher"])
    config["training"].update({"patience": 0, "max_steps": 8, **own})
    places = {"checkpoint": "run", **initialize}
    paths = {key: str(folder / place) for key, place in places.items()}
    config["initialize"]["components"]["sparse_crf"] = paths
    config.to_disk(folder / "config.cfg")


def start(folder: Path) -> Process:
    """Start `spacy train`; what it tells is in the file `told`."""
    command = ["train", str(folder / "config.cfg"), "--output", str(folder / "output")]
    with (folder / "told").open("wb") as told:
        return subprocess.Popen(
            [sys.executable, "-m", "spacy", *command], stdout=told, stderr=subprocess.STDOUT
        )


def clear(folder: Path) -> None:
    """Remove what runs have written."""
    for name in ("output", "corpus"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in ("run", "run.rows"):
        (folder / name).unlink(missing_ok=True)


def left(folder: Path) -> dict[str, bytes]:
    """The files of the models."""
    paths = [path for path in (folder / "output").rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def _wait(process: Process, folder: Path, rng: random.Random, most: float) -> None:
    """Wait for a random time, or for a checkpoint and a little, or until the run has ended."""
    end = time.monotonic() + rng.uniform(0.0, most)
    if rng.random() < 0.5:
        run, seen = folder / "run", set[int]()
        n_written, end = rng.randrange(1, 8), time.monotonic() + 2 * most
        while len(seen) < n_written and process.poll() is None and time.monotonic() < end:
            if run.exists():
                seen.add(os.stat(run).st_mtime_ns)
            time.sleep(0.001)
        end = time.monotonic() + rng.uniform(0.0, 0.2)
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.002)


def disturbed(folder: Path, rng: random.Random, seconds: float) -> int:
    """Run, kill, and run again until that is done. RETURNS: how often it was killed."""
    n_kills = 0
    while True:
        process = start(folder)
        if n_kills < 3:
            _wait(process, folder, rng, seconds)
        if process.poll() is None and n_kills < 3 and rng.random() < 0.8:
            process.kill()
            process.wait()
            n_kills += 1
            continue
        if process.wait():
            told = (folder / "told").read_text(encoding="utf8", errors="replace")
            raise RuntimeError(f"the run in {folder} failed with {process.returncode}:\n{told}")
        return n_kills


def main(
    kills: Annotated[int, typer.Option(help="How many, of all runs together")] = 200,
    seed: Annotated[int, typer.Option(help="Of the times")] = 0,
    minutes: Annotated[float, typer.Option(help="Begin nothing after so long; 0: no end")] = 0.0,
    only: Annotated[str, typer.Option(help="One kind of run only")] = "",
    output: Annotated[Path | None, typer.Option(help="JSON of the figures")] = None,
) -> None:
    """Kill runs, start them again, and compare what they leave."""
    rng, began = random.Random(seed), time.monotonic()
    found = {name: {"runs": 0, "kills": 0, "different": 0} for name in ([only] if only else RUNS)}
    with tempfile.TemporaryDirectory(prefix="sparsecrf-kills-") as base:
        expected: dict[str, tuple[dict[str, bytes], float]] = {}
        while sum(counts["kills"] for counts in found.values()) < kills:
            for name, counts in found.items():
                folder = Path(base) / name.replace(" ", "-")
                if name not in expected:
                    folder.mkdir()
                    write_corpus(folder / "train.spacy", 400, 1)
                    write_corpus(folder / "dev.spacy", 100, 2)
                    write_config(folder, name)
                    since = time.monotonic()
                    if start(folder).wait():
                        raise RuntimeError(f"the run {name} failed")
                    expected[name] = left(folder), time.monotonic() - since
                clear(folder)
                counts["kills"] += disturbed(folder, rng, expected[name][1])
                counts["runs"] += 1
                if left(folder) != expected[name][0]:
                    counts["different"] += 1
                    msg.fail(f"{name}: run {counts['runs']} differs")
            write_figures(output, found)
            total = sum(counts["kills"] for counts in found.values())
            msg.text(f"{total} of {kills} kills")
            if minutes and time.monotonic() - began > 60.0 * minutes:
                break
    for name, counts in found.items():
        msg.text(f"{name}: {counts}")
    if any(counts["different"] for counts in found.values()):
        msg.fail("Interrupted runs end otherwise", exits=1)


if __name__ == "__main__":
    typer.run(main)
