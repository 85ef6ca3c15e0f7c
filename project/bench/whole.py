"""Whole training runs, from files to a trained model.

Only training is timed; the parts are labelled and scored afterwards.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import spacy
from measure.data import QUICK_SENTENCES
from measure.processes import Child, Cost, alternate
from measure.report import number, table
from measure.results import Row
from spacy.util import load_config

from spacy_sparsecrf.cli.config import make_config
from spacy_sparsecrf.pipeline.corpora import make_annotated_corpus

from .record import OURS, Options, measurements, middle, tools_of

SPACY, WHAT = "spaCy", "whole run"
_PARTS = ("train", "dev", "test")
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Job:
    """A data set and its training runs.

    corpus: CORPUS-{train,dev,test}.spacy; score: of `spacy evaluate`; config: of our component;
    pipe: of spaCy, "" for none; limit: maximum number of training sentences, 0 for all.
    """

    corpus: str
    score: str
    config: str
    pipe: str
    lang: str = "en"
    limit: int = 0


JOBS = {
    "EWT": Job("ud", "tag_acc", "tagger", "tagger"),
    "CoNLL-2002 es": Job("conll2002-es", "ents_f", "ner", "ner", "es"),
    "CoNLL-2002 es, 3,000 sentences": Job("conll2002-es", "ents_f", "ner", "ner", "es", 3000),
    "CoNLL-2002 es, word classes": Job("conll2002-es", "ents_f", "ner_classes", "", "es"),
    "CoNLL-2000": Job("conll2000", "spans_sc_f", "spans", ""),
    "JNLPBA": Job("jnlpba", "ents_f", "ner", "ner"),
}


# Cost of a training run; and MB of its model, and scores in percent.
Training = tuple[Cost, dict[str, float]]


class Bench:
    """The sides of one job.

    corpus: directory of the .spacy files; scratch: for models; quick: use few sentences and
    iterations.
    """

    def __init__(self, job: Job, corpus: Path, scratch: Path, quick: bool) -> None:
        self._job, self._scratch, self._quick = job, scratch, quick
        self._paths = {part: (corpus / f"{job.corpus}-{part}.spacy").resolve() for part in _PARTS}
        self._ours_path = scratch / "ours.cfg"
        self._ours_path.write_text(make_config(job.config), encoding="utf8")
        self._config = load_config(self._ours_path)
        self._limit = QUICK_SENTENCES if quick else job.limit

    def sides(self, tools: Sequence[str]) -> dict[str, Callable[[], Training]]:
        """Return the sides of this job among the given tools."""
        known: dict[str, Callable[[], Training]] = {OURS: self._ours}
        if self._job.pipe:
            known[SPACY] = self._spacy
        return {tool: side for tool, side in known.items() if not tools or tool in tools}

    def _train(self, config: Path, given: dict[str, str], annotations: list[str]) -> Training:
        """Run `spacy train`, and score its best model."""
        output = self._scratch / "trained"
        shutil.rmtree(output, ignore_errors=True)
        given = given | {f"paths.{part}": str(self._paths[part]) for part in ("train", "dev")}
        given["corpora.train.limit"] = str(self._limit)
        if self._quick:
            given["training.max_steps"] = "2"
        overrides = [word for key, value in given.items() for word in (f"--{key}", value)]
        command = ["python", "-m", "spacy", "train", str(config), "--output", str(output)]
        cost = Child([*command, *overrides], _ONE_THREAD).wait()
        nlp, scores = spacy.load(output / "model-best"), {}
        for part in ("dev", "test"):
            path, few = self._paths[part], self._limit if self._quick else 0
            read = make_annotated_corpus(path, limit=few, gold_tokens=True, annotations=annotations)
            scores[part] = 100.0 * nlp.evaluate(list(read(nlp)))[self._job.score]
        files = (output / "model-best").rglob("*")
        size = sum(path.stat().st_size for path in files if path.is_file())
        return cost, {"model_mb": size / 1e6, **scores}

    def _ours(self) -> Training:
        name = self._config["nlp"]["pipeline"][-1]
        given = {f"components.{name}.n_threads": "1", "nlp.lang": self._job.lang}
        given |= {f"corpora.{part}.gold_tokens": "true" for part in ("train", "dev")}
        annotations = self._config["corpora"]["train"].get("annotations", [])
        return self._train(self._ours_path, given, annotations)

    def _spacy(self) -> Training:
        config = self._scratch / "spacy.cfg"
        command = ["python", "-m", "spacy", "init", "config", str(config), "--force", "--lang"]
        options = ["--pipeline", self._job.pipe, "--optimize", "efficiency"]
        Child([*command, self._job.lang, *options]).wait()
        given = {f"corpora.{part}.gold_preproc": "true" for part in ("train", "dev")}
        return self._train(config, given, [])


def measure(options: Options) -> None:
    """Train with all sides alternately on each data set; other rows of the file are kept."""
    repeats = options.times(1)
    record = options.record("whole", repeats=repeats, threads=1)
    for data in options.names or JOBS:
        with TemporaryDirectory() as scratch:
            bench = Bench(JOBS[data], options.folder / "corpus", Path(scratch), options.quick)
            for tool, runs in alternate(repeats, bench.sides(options.tools)).items():
                costs, figures = zip(*runs, strict=True)
                own = {**figures[-1], "mb": max(cost.peak_mb for cost in costs)}
                record.compare(data, WHAT, {tool: costs}, **own)


def tables(rows: Sequence[Row]) -> str:
    """Return a row for each data set and tool, with processor time relative to ours."""
    lines = []
    for data in dict.fromkeys(row["data"] for row in measurements(rows)):
        of = {row["tool"]: row for row in measurements(rows) if row["data"] == data}
        cpu = {tool: median(row["cpu"]) for tool, row in of.items()}
        for tool in tools_of(of.values()):
            row = of[tool]
            costs = [cpu[tool], middle(row), row["mb"], row["model_mb"]]
            times = f"{cpu[tool] / cpu[OURS]:.1f}x" if OURS in cpu and tool != OURS else ""
            scores = [f"{row[part]:.2f}" for part in ("test", "dev")]
            lines.append([data, tool, *scores, *map(number, costs), times])
    header = ["", "", "test", "development", "CPU s", "wall s", "peak MB"]
    return table([*header, "model MB", "CPU s / ours"], lines)
