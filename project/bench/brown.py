"""A large corpus with many labels: Brown with its full tag set, trained by `spacy train`.

Our figures come from the preceding commands of the project, which train until the development
score stops improving. The figure for ten iterations of Wapiti is extrapolated: the time of one
iteration on a sample of sentences with every label, times the ratio of tokens.
"""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import srsly
from measure.data import Problem, Rows, sources
from measure.results import Row

from . import peers
from .record import OURS, Options, Record, compared

DATA, TRAINING, TEN = "brown", "spacy train, to the stop", "ten iterations, extrapolated"
_SHARE, _ITERATIONS = 0.02, 3


def covering_sample(sentences: list[Rows], n: int, label: int) -> list[Rows]:
    """Draw about n sentences, and more until every label occurs."""
    missing = {row[label] for rows in sentences for row in rows}
    chosen: list[Rows] = []
    for i in np.random.default_rng(0).permutation(len(sentences)):
        here = {row[label] for row in sentences[i]}
        if len(chosen) < n or here & missing:
            chosen.append(sentences[i])
            missing -= here
    return chosen


def extrapolate(record: Record, n_tokens: int, part: Problem) -> None:
    """Measure Wapiti on a sample, and record the extrapolated time of ten iterations on all tokens.

    Uses the fastest iteration, as a line search may need several gradients.
    """
    with TemporaryDirectory() as directory:
        costs = peers.train_wapiti(part, Path(directory), _ITERATIONS).step_costs()
    best = min(costs, key=lambda cost: cost.wall)
    factor = 10 * n_tokens / part.corpus.n_tokens
    walls = [cost.wall for cost in costs]
    times = {"wall": [best.wall * factor], "cpu": [best.cpu * factor]}
    record.note(DATA, TEN, peers.WAPITI, **times, tokens=part.corpus.n_tokens, walls=walls)


def measure(options: Options) -> None:
    """Collect our figures and the extrapolation."""
    options = replace(options, quick=options.quick or options.sentences > 0)
    settings = {"sentences": options.sentences, "share": _SHARE}
    record, source = options.record("brown", **settings), sources()[DATA]
    rows = source.rows("train", options.data, options.sentences)
    whole, metrics = Problem.of(DATA, source, rows), options.folder / "metrics" / "bench"
    scores = {part: srsly.read_json(metrics / f"brown-{part}.json") for part in ("dev", "test")}
    told = [f"{part} {100 * found['tag_acc']:.2f} %" for part, found in scores.items()]
    sizes = [f"{whole.sizes()[k]:,} {k}" for k in ("sentences", "tokens", "labels")]
    sizes.append(f"{whole.n_potential:,} potential weights")
    record.add("corpus", text=f"{', '.join(sizes)}. Tags right: {', '.join(told)}.")
    cost = srsly.read_json(metrics / "brown-train.json")
    times = {"wall": [cost["wall_seconds"]], "cpu": [cost["cpu_seconds"]]}
    record.note(DATA, TRAINING, OURS, **times)
    record.note(DATA, "peak", OURS, peak_mb=[cost["peak_mb"]])
    needed = whole.n_potential * peers.BYTES_PER_WEIGHT / 2**20
    record.note(DATA, "peak", f"{peers.WAPITI}, arithmetic", peak_mb=[needed])
    if peers.has_wapiti():
        few = covering_sample(rows, int(_SHARE * len(rows)), source.label)
        extrapolate(record, whole.corpus.n_tokens, Problem.of(DATA, source, few))


def tables(rows: list[Row], absent: list[str]) -> list[str]:
    """Return the text on corpus and accuracy, and the table of time and memory."""
    return [*(row["text"] for row in rows if "text" in row), *compared(rows, absent)]
