"""Runs of `spacy train` that are killed at random times, and restarted until they finish.

    cd project
    python -m reliability.attacks kills --kills 200 --seed 0

Their models, `model-best` and `model-last`, are compared byte by byte with those of an
undisturbed run. Half of the kills happen at any time (imports, reading, warm start, evaluations,
saving), the others shortly after a checkpoint was written.
"""

import os
import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import spacy
import typer
from measure.processes import Child
from measure.results import Results
from measure.runs import TEMPLATES, models_of, start, tagger_config
from spacy.tokens import Doc, DocBin
from wasabi import msg

_STAGES = [{"templates": TEMPLATES[:2], "steps": 2}, {"templates": ["*"], "steps": 4}]
_BATCHES = {"@batchers": "spacy.batch_by_sequence.v1", "size": 60}
_KILLS_A_RUN = 3


def write_toy_docs(path: Path, n: int, seed: int) -> None:
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


def _solver(name: str, **settings: Any) -> dict[str, Any]:
    return {"solver": {"@crf_solvers": f"spacy_sparsecrf.{name}.v1", **settings}}


# Changes to a config: of the component, [training], and [initialize.components.NAME].
RUNS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "OWLQN": (_solver("OWLQN", inner_iterations=2), {}, {}),
    "SGDL1": (_solver("SGDL1"), {}, {}),
    "SAG": (_solver("SAG"), {}, {}),
    "BCD": (_solver("BCD", inner_iterations=2), {}, {}),
    "stages": ({**_solver("OWLQN", inner_iterations=2), "learning": {"schedule": _STAGES}}, {}, {}),
}


class KilledRun:
    """A type of run in a directory, and the files of an undisturbed run."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, paths = folder, (folder / "train.spacy", folder / "dev.spacy")
        folder.mkdir()
        for i, (path, n) in enumerate(zip(paths, (400, 100), strict=True), 1):
            write_toy_docs(path, n, i)
        component, training, initialize = RUNS[name]
        places = {"checkpoint": "run", **initialize}
        self._config = tagger_config(
            *paths,
            {**component, "n_threads": 1, "l1": 0.5},
            {"max_steps": 8, **training},
            {key: str(folder / place) for key, place in places.items()},
        )
        self._seconds = start(folder, self._config).wait().wall
        self._expected = models_of(folder)

    def disturbed(self, rng: random.Random) -> tuple[int, bool]:
        """Run, kill and restart until the end. RETURNS: kills, and whether models differ."""
        for name in ("output", "corpus"):
            shutil.rmtree(self._folder / name, ignore_errors=True)
        for name in ("run", "run.rows"):
            (self._folder / name).unlink(missing_ok=True)
        n_kills = 0
        while True:
            child = start(self._folder, self._config)
            if n_kills < _KILLS_A_RUN:
                self._wait(child, rng)
            if child.running() and n_kills < _KILLS_A_RUN and rng.random() < 0.8:
                child.kill()
                n_kills += 1
                continue
            child.wait()
            return n_kills, models_of(self._folder) != self._expected

    def _wait(self, child: Child, rng: random.Random) -> None:
        """Wait a random time, or until shortly after a checkpoint, or until the run has ended."""
        end = time.monotonic() + rng.uniform(0.0, self._seconds)
        if rng.random() < 0.5:
            run, seen = self._folder / "run", set[int]()
            n_written, end = rng.randrange(1, 8), time.monotonic() + 2 * self._seconds
            while len(seen) < n_written and child.running() and time.monotonic() < end:
                if run.exists():
                    seen.add(os.stat(run).st_mtime_ns)
                time.sleep(0.001)
            end = time.monotonic() + rng.uniform(0.0, 0.2)
        while child.running() and time.monotonic() < end:
            time.sleep(0.002)


def main(
    kills: Annotated[int, typer.Option(help="How many, of all runs together")] = 200,
    seed: Annotated[int, typer.Option(help="Of the times")] = 0,
    minutes: Annotated[float, typer.Option(help="Begin nothing after so long")] = float("inf"),
    only: Annotated[str, typer.Option(help="One kind of run only")] = "",
    output: Annotated[Path, typer.Option(help="Figures")] = Path("metrics/reliability/kills.jsonl"),
) -> None:
    """Kill runs, start them again, and compare their models."""
    rng, began, total = random.Random(seed), time.monotonic(), 0
    results = Results(output, settings={"seed": seed}, keep="none")
    with tempfile.TemporaryDirectory(prefix="sparsecrf-kills-") as base:
        runs: dict[str, KilledRun] = {}
        found = {
            name: {"runs": 0, "kills": 0, "different": 0} for name in ([only] if only else RUNS)
        }
        while total < kills and time.monotonic() - began < 60.0 * minutes:
            for name, counts in found.items():
                if name not in runs:
                    runs[name] = KilledRun(Path(base) / name.replace(" ", "-"), name)
                n_kills, differs = runs[name].disturbed(rng)
                total += n_kills
                counts["runs"] += 1
                counts["kills"] += n_kills
                counts["different"] += differs
                results.add(name, **counts)
                msg.text(f"{total} of {kills} kills; {name}: {counts}")
    if any(counts["different"] for counts in found.values()):
        msg.fail("Interrupted runs end differently", exits=1)
