"""Benchmark 12: what a user waits for, from files to a trained model.

`spacy train` with the config that the package ships, to its stop on the development part, beside a
program for python-crfsuite (`crfsuite_script`) with the same penalties, and with usual ones, and
beside spaCy's own pipe. One thread each; gold tokens. Only training is
timed: parts are labelled and scored afterwards.
"""

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import spacy
import typer
from reports.tables import number
from spacy.tokens import Doc, DocBin, Span
from spacy.util import load_config
from wasabi import msg

from spacy_sparsecrf.cli.config import CONFIGS
from spacy_sparsecrf.interop.schemes import ColumnScheme, read_spans, write_spans
from spacy_sparsecrf.pipeline.corpora import make_annotated_corpus

from .crfsuite_script import Kind
from .data import PROJECT, QUICK_SENTENCES
from .measurements import OURS, Measurement, Record, read_record
from .options import Output, Quick, Repeats
from .timing import alternate, open_process, reap

SAME, USUAL, SPACY = "CRFsuite, our penalties", "CRFsuite, c1 = c2 = 0.1", "spaCy"
WHAT = "whole run"
_PARTS = ("train", "dev", "test")
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
# The first row of spaCy's table; the end of CRFsuite's first iteration.
_FIRST_ROW, _FIRST_ITERATION = re.compile(r"\s*0\s+0\s"), re.compile(r".*Iteration #1 ")
# Of CRFsuite; with c1 and c2, those of sklearn-crfsuite's tutorial.
_ITERATIONS, _USUAL = 100, 0.1


@dataclass(frozen=True)
class Job:
    """A data set, and who trains on it.

    corpus: CORPUS-{train,dev,test}.spacy; config: of ours; pipe: spaCy's, "" for none; lang;
    limit: training sentences, 0 for all.
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
    "CoNLL-2000": Job("conll2000", Kind.CHUNKS, "spans", ""),
    "JNLPBA": Job("jnlpba", Kind.ENTITIES, "ner", "ner"),
}


@dataclass(frozen=True)
class Training:
    """A training run: what it took, when its first row came, and how good its model is.

    first: seconds on the clock; scores: in per cent, of the development and the test part.
    """

    wall: float
    cpu: float
    first: float
    peak_mb: float
    model_mb: float
    scores: dict[str, float] = field(default_factory=dict)


def run(command: Sequence[str], first: re.Pattern[str]) -> tuple[float, float, float, float]:
    """Run a command; its wall and processor seconds, when a line came that begins so, and MB.

    RAISES: RuntimeError with what it wrote, where it fails.
    """
    start, came, lines = time.perf_counter(), 0.0, []
    environment = {**os.environ, **_ONE_THREAD}
    process = open_process(command, cwd=PROJECT, env=environment)
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line)
        if not came and first.match(line):
            came = time.perf_counter() - start
    process.stdout.close()
    usage, code = reap(process)
    if code:
        raise RuntimeError("".join(lines[-20:]))
    return time.perf_counter() - start, usage.cpu, came, usage.peak_mb


class Bench:
    """The sides of one job.

    job; corpus: directory of the .spacy files; scratch: for models and peers' files; quick: whether
    few sentences and iterations do.
    """

    def __init__(self, job: Job, corpus: Path, scratch: Path, quick: bool) -> None:
        self._job = job
        self._scratch = scratch
        self._quick = quick
        self._paths = {part: (corpus / f"{job.corpus}-{part}.spacy").resolve() for part in _PARTS}
        self._config = load_config(CONFIGS / f"{job.config}.cfg")
        self._nlp = spacy.blank(job.lang)
        self.gold = {part: list(self._read(part)) for part in _PARTS}

    def _read(self, part: str) -> Iterator[Doc]:
        limit = QUICK_SENTENCES if self._quick else self._job.limit if part == "train" else 0
        docs = DocBin().from_disk(self._paths[part]).get_docs(self._nlp.vocab)
        for i, doc in enumerate(docs):
            if limit and i == limit:
                return
            yield doc

    def sides(self, tools: Sequence[str]) -> dict[str, Callable[[], Training]]:
        """Those of the tools that this job has."""
        component = next(iter(self._config["components"].values()))
        same = component["l1"], component["l2"] / 2.0
        known: dict[str, Callable[[], Training]] = {
            OURS: self._ours,
            SAME: lambda: self._crfsuite(*same),
            USUAL: lambda: self._crfsuite(_USUAL, _USUAL),
        }
        if self._job.pipe:
            known[SPACY] = self._spacy
        return {tool: side for tool, side in known.items() if not tools or tool in tools}

    def _train(self, config: Path, overrides: Sequence[str], handed: Sequence[str]) -> Training:
        """Run `spacy train`, and score what it leaves."""
        output = self._scratch / "trained"
        shutil.rmtree(output, ignore_errors=True)
        limit = str(QUICK_SENTENCES if self._quick else self._job.limit)
        command = [sys.executable, "-m", "spacy", "train", str(config), "--output", str(output)]
        command += ["--paths.train", str(self._paths["train"]), "--paths.dev"]
        command += [str(self._paths["dev"]), "--corpora.train.limit", limit, *overrides]
        command += ["--training.max_steps", "2"] if self._quick else []
        wall, cpu, first, peak = run(command, _FIRST_ROW)
        nlp = spacy.load(output / "model-best")
        scores = {}
        for part in ("dev", "test"):
            reader = make_annotated_corpus(self._paths[part], gold_tokens=True, annotations=handed)
            docs = [example.predicted for example in reader(nlp)][: len(self.gold[part])]
            scores[part] = self.score(part, list(nlp.pipe(docs)))
        files = (output / "model-best").rglob("*")
        size = sum(path.stat().st_size for path in files if path.is_file())
        return Training(wall, cpu, first, peak, size / 1e6, scores)

    def _ours(self) -> Training:
        (name,) = self._config["components"]
        gold = [
            part for each in ("train", "dev") for part in (f"--corpora.{each}.gold_tokens", "true")
        ]
        threads = [f"--components.{name}.n_threads", "1", "--nlp.lang", self._job.lang]
        handed = self._config["corpora"]["train"].get("annotations", [])
        return self._train(CONFIGS / f"{self._job.config}.cfg", [*gold, *threads], handed)

    def _spacy(self) -> Training:
        config = self._scratch / "spacy.cfg"
        command = [sys.executable, "-m", "spacy", "init", "config", str(config), "--force"]
        command += ["--lang", self._job.lang, "--pipeline", self._job.pipe]
        run([*command, "--optimize", "efficiency"], _FIRST_ROW)
        both = ("train", "dev")
        gold = [part for each in both for part in (f"--corpora.{each}.gold_preproc", "true")]
        return self._train(config, gold, [])

    def _crfsuite(self, c1: float, c2: float) -> Training:
        model, script = (
            self._scratch / "model.crfsuite",
            [sys.executable, "-m", "bench.crfsuite_script"],
        )
        kind, settings = self._job.kind.value, [c1, c2, 3 if self._quick else _ITERATIONS]
        command = [*script, "train", kind, str(self._columns("train")), str(model)]
        wall, cpu, first, peak = run([*command, *map(str, settings)], _FIRST_ITERATION)
        scores = {}
        for part in ("dev", "test"):
            output = self._scratch / f"{part}.labels"
            run(
                [*script, "label", kind, str(self._columns(part)), str(model), str(output)],
                _FIRST_ROW,
            )
            lines = output.read_text(encoding="utf8").splitlines()
            labelled = zip(self.gold[part], lines, strict=True)
            scores[part] = self.score(part, [self._labelled(*each) for each in labelled])
        return Training(wall, cpu, first, peak, model.stat().st_size / 1e6, scores)

    def _columns(self, part: str) -> Path:
        """The part as a file of tokens, made once."""
        path = self._scratch / f"{part}.tsv"
        if not path.exists():
            with path.open("w", encoding="utf8") as file:
                for doc in self.gold[part]:
                    file.writelines("\t".join(row) + "\n" for row in self._rows(doc))
                    file.write("\n")
        return path

    def _rows(self, doc: Doc) -> Iterator[tuple[str, str, str]]:
        if self._job.kind is Kind.TAGS:
            for token in doc:
                yield token.text, str(int(bool(token.whitespace_))), token.tag_
            return
        spans = [(span.start, span.end, span.label_) for span in self._spans(doc)]
        labels = write_spans(spans, len(doc), ColumnScheme.iob2)
        for token, label in zip(doc, labels, strict=True):
            yield token.text, token.tag_ or "_", label

    def _labelled(self, gold: Doc, line: str) -> Doc:
        """A Doc with the labels that CRFsuite wrote."""
        words, labels = [token.text for token in gold], line.split("\t")
        if self._job.kind is Kind.TAGS:
            return Doc(self._nlp.vocab, words=words, tags=labels)
        doc = Doc(self._nlp.vocab, words=words)
        spans = [Span(doc, *span) for span in read_spans(labels, ColumnScheme.iob1)]
        if self._job.kind is Kind.CHUNKS:
            doc.spans["sc"] = spans
        else:
            doc.set_ents(spans)
        return doc

    def _spans(self, doc: Doc) -> Sequence[Span]:
        return list(doc.spans["sc"]) if self._job.kind is Kind.CHUNKS else doc.ents

    def score(self, part: str, docs: Sequence[Doc]) -> float:
        """Tags that are right, or F1 of spans, in per cent."""
        right = n_found = n_gold = 0
        for doc, gold in zip(docs, self.gold[part], strict=True):
            found, wanted = self._told(doc), self._told(gold)
            right += len(found & wanted)
            n_found, n_gold = n_found + len(found), n_gold + len(wanted)
        return round(200.0 * right / max(1, n_found + n_gold), 2)

    def _told(self, doc: Doc) -> set[Any]:
        if self._job.kind is Kind.TAGS:
            return {(token.i, token.tag_) for token in doc}
        return {(span.start, span.end, span.label_) for span in self._spans(doc)}


def add(record: Record, data: str, runs: dict[str, list[Training]]) -> None:
    """Put runs in a record, in the place of others of the same data and tool."""
    for tool, found in runs.items():
        others = [one for one in record.measurements if (one.data, one.tool) != (data, tool)]
        walls, cpus = [run.wall for run in found], [run.cpu for run in found]
        record.measurements = [*others, Measurement(data, WHAT, tool, walls, cpus)]
        last = found[-1]
        record.details.setdefault(data, {})[tool] = {
            "first": median(run.first for run in found),
            "peak_mb": max(run.peak_mb for run in found),
            "model_mb": last.model_mb,
            **last.scores,
        }
        msg.text(f"{data}, {tool}: {number(last.cpu)} CPU s, {last.scores}")


def main(
    output: Output,
    corpus: Annotated[Path, typer.Argument(help="Directory of the .spacy files")],
    names: Annotated[list[str] | None, typer.Option("--name", help="Data sets; all")] = None,
    tools: Annotated[list[str] | None, typer.Option("--tool", help="Tools; all")] = None,
    repeats: Repeats = 1,
    quick: Quick = False,
) -> None:
    """Train on data sets with all sides in turn; what the file has of others stays."""
    record = Record("whole", quick, {"repeats": repeats, "threads": 1})
    if output.exists() and (before := read_record(output)).quick == quick:
        record.measurements, record.details = before.measurements, before.details
    for name in names or JOBS:
        with TemporaryDirectory() as scratch:
            bench = Bench(JOBS[name], corpus, Path(scratch), quick)
            add(record, name, alternate(1 if quick else repeats, bench.sides(tools or ())))
        record.write(output)


if __name__ == "__main__":
    typer.run(main)
