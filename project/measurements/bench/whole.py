"""Whole training runs, from files to a trained model.

Only training is timed; the parts are labelled and scored afterwards. `scaling` repeats a run with
other numbers of sentences and threads, and `sampled` counts the seconds of its parts.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import srsly
from measure.data import QUICK_SENTENCES
from measure.processes import Child, Cost, alternate
from measure.report import number, table
from measure.results import Row
from spacy.util import load_config

from .record import OURS, Options, measurements, middle, tools_of
from .sampled import GROUPS

BEFORE, SPACY, WHAT = f"{OURS}, before", "spaCy", "whole run"
# python-crfsuite's c1, c2 and iterations.
PEERS = {"python-crfsuite, only L1": (0.5, 0, 80), "python-crfsuite, L1 and L2": (0.1, 0.1, 100)}
# Names of further measurements; training sentences, of which 12,544 are all; threads.
SCALING, SAMPLED = "scaling", "sampled"
_SIZES, _THREADS = (1500, 3000, 6000, 12544), ("1", "2")
_PARTS, _DOCS, _QUICK_STEPS = ("train", "dev", "test"), "-documents", "2"
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Job:
    """A data set and its training runs.

    corpus: CORPUS-{train,dev,test}KIND.spacy; score: of `spacy evaluate`; config: of our component;
    pipe: of spaCy, "" for no peers; limit: maximum number of training sentences, 0 for all; starts:
    whether mostly processes start: development sentences are limited too, and spaCy does not train;
    kind: of the files, "-documents" for Docs of several sentences.
    """

    corpus: str
    score: str
    config: str
    pipe: str
    lang: str = "en"
    limit: int = 0
    starts: bool = False
    kind: str = ""


JOBS = {
    "EWT": Job("ud", "tag_acc", "tagger", "tagger"),
    "EWT, classes": Job("ud", "tag_acc", "tagger_classes", ""),
    "CoNLL-2002 es": Job("conll2002-es", "ents_f", "ner", "ner", "es"),
    "CoNLL-2002 es, 3,000 sentences": Job("conll2002-es", "ents_f", "ner", "ner", "es", 3000),
    "CoNLL-2002 es, 50 sentences": Job("conll2002-es", "ents_f", "ner", "ner", "es", 50, True),
    "CoNLL-2002 es, documents": Job(
        "conll2002-es", "ents_f", "ner_documents", "", "es", kind=_DOCS
    ),
    "CoNLL-2002 es, documents and classes": Job(
        "conll2002-es", "ents_f", "ner_classes", "", "es", kind=_DOCS
    ),
    "CoNLL-2000": Job("conll2000", "spans_sc_f", "spans", ""),
    "JNLPBA": Job("jnlpba", "ents_f", "ner", "ner"),
}


# Cost of a training run; and MB and digest of its model, and scores in percent.
Training = tuple[Cost, Row]
Sides = dict[str, Callable[[], Training]]


class Bench:
    """The sides of one job.

    options: of the run; scratch: directory for models; job: data set.
    """

    def __init__(self, options: Options, scratch: str, job: Job) -> None:
        self._options, self._scratch, self.job = options, Path(scratch), job
        stem = options.folder.resolve() / "corpus" / job.corpus
        self.paths = {part: f"{stem}-{part}{job.kind}.spacy" for part in _PARTS}
        self._limit = QUICK_SENTENCES if options.quick else job.limit
        self._config = str(self._scratch / "config.cfg")
        self.model = self._scratch / "trained" / "model-best"
        self.peer_model = self._scratch / "model.crfsuite"

    def sides(self) -> Sides:
        """Return the sides of this job whose names begin with one of the tools."""
        known: Sides = {OURS: self.ours}
        if self._options.before:
            known[BEFORE] = partial(self.ours, python=self._options.before)
        if self.job.pipe:
            known |= {name: partial(self._peer, *given) for name, given in PEERS.items()}
            known |= {} if self.job.starts else {SPACY: self._spacy}
        return {n: run for n, run in known.items() if n.startswith(self._options.tools or "")}

    def ours(
        self, python: str = "python", threads: str = "1", module: str = "spacy", **settings: str
    ) -> Training:
        """Train by the shipped config; module: that has the command `train`; settings: others."""
        words = [self.job.config, "--lang", self.job.lang, "--output", self._config, "--force"]
        Child([python, "-m", "spacy_sparsecrf", "config", *words]).wait()
        name = load_config(self._config)["nlp"]["pipeline"][-1]
        own = {f"components.{name}.n_threads": threads, **settings}
        cost, figures = self._train([python, "-m", *module.split()], "gold_tokens", own)
        files = sorted(path for path in (self.model / name).rglob("*") if path.is_file())
        contents = b"".join(path.read_bytes() for path in files if path.name != "cfg")
        return cost, {**figures, "digest": hashlib.sha256(contents).hexdigest()}

    def sampled(self) -> Training:
        """Train with samples of the stack, and add the seconds of each group."""
        cost, figures = self.ours(module="bench.sampled spacy")
        return cost, {**figures, "seconds": srsly.json_loads(cost.output.splitlines()[-1])}

    def _spacy(self) -> Training:
        command = ["python", "-m", "spacy", "init", "config", self._config, "--force", "--lang"]
        options = ["--pipeline", self.job.pipe, "--optimize", "efficiency"]
        Child([*command, self.job.lang, *options]).wait()
        return self._train(["python", "-m", "spacy"], "gold_preproc")

    def _train(self, command: list[str], gold: str, own: dict[str, str] | None = None) -> Training:
        """Run `train`, and score its best model; gold: setting that gives gold tokens."""
        shutil.rmtree(self.model.parent, ignore_errors=True)
        given = (own or {}) | ({"training.max_steps": _QUICK_STEPS} if self._options.quick else {})
        for part, limit in ("train", self._limit), ("dev", self._limit if self.job.starts else 0):
            given |= {f"paths.{part}": self.paths[part], f"corpora.{part}.{gold}": "true"}
            given[f"corpora.{part}.limit"] = str(limit)
        words = [word for key, value in given.items() for word in (f"--{key}", value)]
        train = ["train", self._config, "--output", str(self.model.parent), *words]
        cost = Child([*command, *train], _ONE_THREAD).wait()
        return self._scored(cost, self.model, partial(self._evaluate, command[0]))

    def _evaluate(self, python: str, path: str) -> Row:
        """Return the scores of the trained pipeline on the gold tokens of a file."""
        model, scores = str(self.model), str(self._scratch / "scores.json")
        words = ["spacy", "evaluate", model, path, "--gold-preproc", "--output", scores]
        if self.job.config == "spans" or self.job.kind:  # templates read tags, or documents
            words = ["measure.evaluate", model, path, scores]
        Child([python, "-m", *words]).wait()
        return dict(srsly.read_json(scores))

    def _peer(self, c1: float, c2: float, iterations: int) -> Training:
        from .strings import score

        given = c1, c2, _QUICK_STEPS if self._options.quick else iterations, self._limit
        words = map(str, (self.paths["train"], self.peer_model, *given))
        cost = Child(["python", "-m", "bench.strings", *words], _ONE_THREAD).wait()
        return self._scored(cost, self.peer_model, partial(score, self.peer_model, self.job.pipe))

    def _scored(self, cost: Cost, model: Path, score: Callable[[str], Row]) -> Training:
        """Return a cost, and the size of a model with its scores; score: of a file."""
        size = sum(path.stat().st_size for path in (model, *model.rglob("*")) if path.is_file())
        own = {part: 100.0 * score(self.paths[part])[self.job.score] for part in ("dev", "test")}
        return cost, {"model_mb": size / 1e6, **own}


def measure(options: Options) -> None:
    """Train with all sides alternately on each data set; other rows of the files are kept."""
    settings = {"python_crfsuite": version("python-crfsuite"), "spacy": version("spacy")}
    repeats, names = options.times(1), ("whole", SCALING, SAMPLED)
    records = {name: options.record(name, repeats=repeats, **settings) for name in names}
    with TemporaryDirectory() as scratch:
        for name, data, sides in _plan(options, partial(Bench, options, scratch)):
            once = {tool: sides.pop(tool) for tool in (SPACY, SAMPLED) if tool in sides}
            for tool, runs in (alternate(repeats, sides) | alternate(1, once)).items():
                costs, figures = zip(*runs, strict=True)
                records[name].compare(data, WHAT, {tool: costs}, **figures[-1])


def _plan(options: Options, bench: Callable[[Job], Bench]) -> Iterator[tuple[str, str, Sides]]:
    """Yield the file, the data set and the sides of each comparison."""
    for name in options.names or (*JOBS, *(() if options.tools else (SCALING, SAMPLED))):
        if name == SCALING:
            for limit in _SIZES[: 1 if options.quick else None]:
                run = bench(replace(JOBS["EWT"], limit=limit)).ours
                sides = {n: partial(run, threads=n) for n in _THREADS}
                yield name, f"EWT, {limit:,} sentences", sides
        elif name == SAMPLED:
            for data in ("CoNLL-2002 es", "EWT"):
                yield name, data, {SAMPLED: bench(JOBS[data]).sampled}
        else:
            yield "whole", name, bench(JOBS[name]).sides()


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


def scaling_table(rows: Sequence[Row]) -> str:
    """Return a row for each number of sentences, with the costs of one and of two threads."""
    found = {(row["data"], row["tool"]): row for row in measurements(rows)}
    lines = []
    for data in dict.fromkeys(data for data, _ in found):
        one, two = (found[data, n] for n in _THREADS)
        cpu, wall = ([median(row[key]) for row in (one, two)] for key in ("cpu", "wall"))
        shown = map(number, (*cpu, *wall, one["mb"], two["mb"]))
        same = "yes" if one["digest"] == two["digest"] else "no"
        lines.append([data, *shown, f"{wall[0] / wall[1]:.2f}x", same])
    costs = [f"{cost}{n}" for cost in ("CPU s", "wall s", "peak MB") for n in ("", ", 2 threads")]
    return table(["", *costs, "wall s, 1 / 2 threads", "same model"], lines)


def sampled_table(rows: Sequence[Row]) -> str:
    """Return a row for each data set, with the share of each group of functions."""
    lines = []
    for row in measurements(rows):
        seconds = [row["seconds"].get(group, 0.0) for group in GROUPS]
        shares = [f"{100 * each / sum(seconds):.0f} %" for each in seconds]
        lines.append([row["data"], number(row["cpu"][0]), *shares])
    return table(["", "CPU s", *GROUPS], lines)
