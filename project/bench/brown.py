"""Benchmark 9: many labels and a large corpus: Brown's full tags, by `spacy train`.

The figures of ours come from the commands before this one, to the stop on the development part.
Wapiti's ten iterations are an extrapolation: an iteration on a sample of the sentences, to which
those are added that the full set of labels needs, times the ratio of tokens.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import srsly
import typer
from columns import Rows

from . import wapiti
from .data import Problem, encode, read_rows, sample, sources
from .gradient import costs_of_iterations
from .measurements import OURS, Measurement, Record
from .options import Output

DATA, TRAINING, TEN = "brown", "spacy train, to the stop", "ten iterations, extrapolated"
_SHARE = 0.02
_ITERATIONS = 3


def covering_sample(sentences: list[Rows], n: int, label: int) -> list[Rows]:
    """Choose about n sentences at random, and further ones until every label occurs."""
    missing = {row[label] for rows in sentences for row in rows}
    chosen: list[Rows] = []
    for i in np.random.default_rng(0).permutation(len(sentences)):
        here = {row[label] for row in sentences[i]}
        if len(chosen) < n or here & missing:
            chosen.append(sentences[i])
            missing -= here
    return chosen


def extrapolate(record: Record, whole: Problem, part: Problem) -> None:
    """Measure Wapiti on the part, and add what ten iterations on the whole would take.

    Of its iterations the cheapest counts: a line search may take several gradients.
    """
    with TemporaryDirectory() as directory:
        run = wapiti.train(part, Path(directory), _ITERATIONS)
    cost = min(costs_of_iterations(run), key=lambda cost: cost.wall)
    factor = 10 * whole.corpus.n_tokens / part.corpus.n_tokens
    record.measurements.append(
        Measurement(DATA, TEN, wapiti.NAME, wall=[cost.wall * factor], cpu=[cost.cpu * factor])
    )
    record.details[wapiti.NAME] = {
        "tokens measured": part.corpus.n_tokens,
        "tokens": whole.corpus.n_tokens,
        "labels": part.n_labels,
        "seconds an iteration, measured": run.iteration_walls,
    }


def add_ours(record: Record, figures: dict[str, Any], scores: dict[str, Any]) -> None:
    """Add what our training took; figures: of `measure.py`; scores: of `spacy evaluate`."""
    walls, cpus = [figures["wall_seconds"]], [figures["cpu_seconds"]]
    record.measurements.append(Measurement(DATA, TRAINING, OURS, wall=walls, cpu=cpus, threads=0))
    record.measurements.append(Measurement(DATA, "peak", OURS, peak_mb=[figures["peak_mb"]]))
    record.details["accuracy"] = scores


def main(
    output: Output,
    metrics: Annotated[Path, typer.Argument(help="Directory of brown-{train,dev,test}.json")],
    directories: Annotated[list[str], typer.Argument(help="Directories to look in, in order")],
    sentences: Annotated[int, typer.Option(help="Training sentences to take, 0 for all")] = 0,
) -> None:
    """Put ours and the extrapolation together."""
    record = Record("brown", sentences > 0, {"sentences": sentences, "share": _SHARE})
    source = sources()[DATA]
    rows = sample(read_rows(source, directories), sentences)
    whole = encode(DATA, source, rows)
    record.details["corpus"] = {
        "sentences": whole.corpus.n_sequences,
        "tokens": whole.corpus.n_tokens,
        "labels": whole.n_labels,
        "potential weights": whole.n_potential,
    }
    accuracies = {
        part: srsly.read_json(metrics / f"brown-{part}.json")["tag_acc"] for part in ("dev", "test")
    }
    add_ours(record, srsly.read_json(metrics / "brown-train.json"), accuracies)
    needed = whole.n_potential * wapiti.BYTES_PER_WEIGHT / 2**20
    peak = Measurement(DATA, "peak", f"{wapiti.NAME}, arithmetic", peak_mb=[needed])
    record.measurements.append(peak)
    if wapiti.available():
        few = covering_sample(rows, int(_SHARE * len(rows)), source.label)
        extrapolate(record, whole, encode(DATA, source, few))
    record.write(output)


if __name__ == "__main__":
    typer.run(main)
