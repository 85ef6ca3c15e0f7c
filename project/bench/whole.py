"""Whole training runs, from files to a trained model.

Only training is timed; the parts are labelled and scored afterwards.
"""

import re
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import spacy
from measure.data import QUICK_SENTENCES
from measure.processes import Child, Cost, alternate
from measure.results import Row
from measure.tables import number, table
from spacy.tokens import Doc, DocBin
from spacy.util import load_config

from spacy_sparsecrf.cli.config import make_config
from spacy_sparsecrf.interop.docs import write_docs
from spacy_sparsecrf.interop.schemes import ColumnScheme, read_spans
from spacy_sparsecrf.pipeline.corpora import make_annotated_corpus

from . import user_program
from .record import OURS, Options, measurements, middle, tools_of
from .user_program import Kind

SAME, USUAL, SPACY = "CRFsuite, our penalties", "CRFsuite, c1 = c2 = 0.1", "spaCy"
WHAT = "whole run"
_PARTS = ("train", "dev", "test")
_COLUMNS = {
    Kind.TAGS: ("orth", "space_after", "tag"),
    Kind.CHUNKS: ("orth", "tag", "spans:sc"),
    Kind.ENTITIES: ("orth", "tag", "ner"),
}
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
# First row of spaCy's table; end of CRFsuite's first iteration.
_FIRST_ROW, _FIRST_ITERATION = re.compile(r"\s*0\s+0\s"), re.compile(r".*Iteration #1 ")
# Settings of CRFsuite; c1 and c2 as in the tutorial of sklearn-crfsuite.
_ITERATIONS, _USUAL = 100, 0.1


@dataclass(frozen=True)
class Job:
    """A data set and its training runs.

    corpus: CORPUS-{train,dev,test}.spacy; config: of our component; pipe: of spaCy, "" for none;
    limit: maximum number of training sentences, 0 for all.
    """

    corpus: str
    kind: Kind
    config: str
    pipe: str
    lang: str = "en"
    limit: int = 0


JOBS = {
    "EWT": Job("ud", Kind.TAGS, "tagger", "tagger"),
    "CoNLL-2002 es": Job("conll2002-es", Kind.ENTITIES, "ner", "ner", "es"),
    "CoNLL-2002 es, 3,000 sentences": Job("conll2002-es", Kind.ENTITIES, "ner", "ner", "es", 3000),
    "CoNLL-2002 es, word classes": Job("conll2002-es", Kind.ENTITIES, "ner_classes", "", "es"),
    "CoNLL-2000": Job("conll2000", Kind.CHUNKS, "spans", ""),
    "JNLPBA": Job("jnlpba", Kind.ENTITIES, "ner", "ner"),
}


# Cost of a training run; and seconds to its first row, MB of its model, and scores in percent.
Training = tuple[Cost, dict[str, float]]


def run(command: Sequence[str], first: re.Pattern[str]) -> tuple[Cost, float]:
    """Run a command; return its cost, and the seconds until a line matched `first`."""
    start, came = time.perf_counter(), 0.0
    child = Child(command, _ONE_THREAD)
    for line in child.lines():
        if not came and first.match(line):
            came = time.perf_counter() - start
    return child.wait(), came


def texts_of(docs: Iterable[Doc], kind: Kind) -> list[str]:
    """Return each sentence in the format of `user_program`."""
    return list(write_docs(docs, Path("docs"), _COLUMNS[kind]))


def labels_of(docs: Iterable[Doc], kind: Kind) -> list[list[str]]:
    """Return the tags, or IOB2 labels of spans, of each sentence."""
    return [[x.split("\t")[-1] for x in text.split("\n") if x] for text in texts_of(docs, kind)]


def score(found: Sequence[list[str]], gold: Sequence[list[str]], kind: Kind) -> float:
    """Return the percentage of correct tags, or F1 of spans in percent."""
    right = n = 0
    for labels in zip(found, gold, strict=True):
        of = enumerate if kind is Kind.TAGS else partial(read_spans, scheme=ColumnScheme.iob1)
        a, b = (set(of(each)) for each in labels)
        right, n = right + len(a & b), n + len(a) + len(b)
    return round(200.0 * right / max(1, n), 2)


class Bench:
    """The sides of one job.

    corpus: directory of the .spacy files; scratch: for models and files of peers; quick: use few
    sentences and iterations.
    """

    def __init__(self, job: Job, corpus: Path, scratch: Path, quick: bool) -> None:
        self._job, self._scratch, self._quick = job, scratch, quick
        self._paths = {part: (corpus / f"{job.corpus}-{part}.spacy").resolve() for part in _PARTS}
        # No sentencizer: peers use the sentences of the files.
        self._ours_path = scratch / "ours.cfg"
        self._ours_path.write_text(make_config(job.config, sentencizer=False), encoding="utf8")
        self._config = load_config(self._ours_path)
        self._limit = QUICK_SENTENCES if quick else job.limit
        vocab = spacy.blank(job.lang).vocab
        self._gold = {}
        for part, path in self._paths.items():
            limit = self._limit if quick or part == "train" else 0
            docs = list(DocBin().from_disk(path).get_docs(vocab))[: limit or None]
            self._gold[part] = labels_of(docs, job.kind)
            self._columns(part).write_text("".join(texts_of(docs, job.kind)), encoding="utf8")

    def _columns(self, part: str) -> Path:
        return self._scratch / f"{part}.tsv"

    def sides(self, tools: Sequence[str]) -> dict[str, Callable[[], Training]]:
        """Return the sides of this job among the given tools."""
        component = self._config["components"][self._config["nlp"]["pipeline"][-1]]
        known: dict[str, Callable[[], Training]] = {
            OURS: self._ours,
            SAME: partial(self._crfsuite, component["l1"], component["l2"] / 2.0),
            USUAL: partial(self._crfsuite, _USUAL, _USUAL),
        }
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
        cost, first = run([*command, *overrides], _FIRST_ROW)
        nlp, scores = spacy.load(output / "model-best"), {}
        for part in ("dev", "test"):
            read = make_annotated_corpus(
                self._paths[part], gold_tokens=True, annotations=annotations
            )
            docs = [example.predicted for example in read(nlp)][: len(self._gold[part])]
            found = labels_of(nlp.pipe(docs), self._job.kind)
            scores[part] = score(found, self._gold[part], self._job.kind)
        files = (output / "model-best").rglob("*")
        size = sum(path.stat().st_size for path in files if path.is_file())
        return cost, {"first": first, "model_mb": size / 1e6, **scores}

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
        run([*command, self._job.lang, *options], _FIRST_ROW)
        given = {f"corpora.{part}.gold_preproc": "true" for part in ("train", "dev")}
        return self._train(config, given, [])

    def _crfsuite(self, c1: float, c2: float) -> Training:
        model, kind = self._scratch / "model.crfsuite", self._job.kind
        settings = [c1, c2, 3 if self._quick else _ITERATIONS]
        words = [kind.value, self._columns("train"), model, *settings]
        command = ["python", "-m", "bench.user_program", *map(str, words)]
        cost, first = run(command, _FIRST_ITERATION)
        scores = {}
        for part in ("dev", "test"):
            found = user_program.label(kind, self._columns(part), model)
            scores[part] = score(found, self._gold[part], kind)
        return cost, {"first": first, "model_mb": model.stat().st_size / 1e6, **scores}


def measure(options: Options) -> None:
    """Train with all sides alternately on each data set; other rows of the file are kept."""
    repeats = options.times(1)
    record = options.record("whole", repeats=repeats, threads=1)
    for data in options.names or JOBS:
        with TemporaryDirectory() as scratch:
            bench = Bench(JOBS[data], options.folder / "corpus", Path(scratch), options.quick)
            for tool, runs in alternate(repeats, bench.sides(options.tools)).items():
                costs, figures = zip(*runs, strict=True)
                first = median(each["first"] for each in figures)
                own = {**figures[-1], "first": first, "mb": max(cost.peak_mb for cost in costs)}
                record.compare(data, WHAT, {tool: costs}, **own)


def tables(rows: list[Row], absent: list[str]) -> list[str]:
    """Return a row for each data set and tool, with processor time relative to ours."""
    lines = []
    for data in dict.fromkeys(row["data"] for row in measurements(rows)):
        of = {row["tool"]: row for row in measurements(rows) if row["data"] == data}
        cpu = {tool: median(row["cpu"]) for tool, row in of.items()}
        for tool in tools_of(of.values()):
            row = of[tool]
            costs = [cpu[tool], middle(row), *(row[key] for key in ("first", "mb", "model_mb"))]
            times = f"{cpu[tool] / cpu[OURS]:.1f}x" if OURS in cpu and tool != OURS else ""
            scores = [f"{row[part]:.2f}" for part in ("test", "dev")]
            lines.append([data, tool, *scores, *map(number, costs), times])
    header = ["", "", "test", "development", "CPU s", "wall s", "first row, s", "peak MB"]
    return [table([*header, "model MB", "CPU s / ours"], lines)]
