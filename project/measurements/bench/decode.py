"""Tokens per second on test parts: from Docs to written annotation, and from raw text.

Words that are new in the test part are new to the pipeline's caches in each repetition.
"""

import gc
import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import spacy
from measure.processes import Cost, alternate, timed
from measure.report import number, table
from measure.results import Row
from spacy.language import Language
from spacy.tokens import Doc

from spacy_sparsecrf.pipeline.example_reader import make_annotated_corpus

from .record import OURS, Options, cell, measurements, middle

WHAT = "Doc to labels"
BATCH, EACH = f"{OURS}, in batches", f"{OURS}, Doc by Doc"
# By data set: corpus and pipeline, given annotation, and score.
DATA = {
    "conll2000 test": ("conll2000", "chunks", ["tag"], "spans_sc_f"),
    "ud-en-ewt test": ("ud", "ud", [], "tag_acc"),
}
_QUICK_DOCS = 200
# Raw texts: the corpus, and the pipeline of each tool.
RAW, TOOLS = "conll2002-es", {OURS: "raw-ner", "spaCy": "raw-spacy"}
_SHORT = range(5, 11)  # words of a short text
# Blanks between tokens that printed text does not have.
_BLANK = re.compile(r" (?=[.,;:)?!])|(?<=[(¿¡]) ")
# Attributes read from Docs and written to them; spaCy's type stub does not accept the names.
_READ: Any = ["ORTH", "SENT_START", "TAG"]
_WRITTEN: Any = ["TAG"]

# A side labels Docs of the pipeline's vocab, or texts, while the returned iterable is consumed.
Side = Callable[[Language, list[Any]], Iterable[Any]]
SIDES: dict[str, Side] = {
    BATCH: lambda nlp, docs: nlp.pipe(docs, batch_size=1000),
    EACH: lambda nlp, docs: map(nlp, docs),
    # Lower bound for every labeller: read words, sentences and tags of each Doc, and write tags.
    "Docs read and written, nothing else": lambda nlp, docs: (
        doc.from_array(_WRITTEN, doc.to_array(_READ)[:, -1:]) for doc in docs
    ),
    "spaCy's tokenizer": lambda nlp, docs: map(nlp.tokenizer, [doc.text for doc in docs]),
}


def run(side: Side, nlp: Language, docs: list[Any]) -> Cost:
    """Label Docs or texts with a side, and return the cost."""
    work = side(nlp, docs)
    gc.collect()
    # A full collection would traverse all corpora in memory, which takes as long as the labelling.
    gc.freeze()
    try:
        return timed(lambda: deque(work, maxlen=0))
    finally:
        gc.unfreeze()


def once(side: Side, model: Path, reads: Sequence[Callable[..., Any]]) -> Cost:
    """Label the training part, then the test part with a new pipeline; return the cost of the last.

    reads: readers of both parts.
    """
    nlp = spacy.load(model)
    learnt, test = ([example.predicted for example in read(nlp)] for read in reads)
    run(side, nlp, learnt)
    return run(side, nlp, test)


def measure(options: Options) -> None:
    """Label both test parts with all sides alternately."""
    repeats = options.times(3)
    record = options.record("decode", repeats=repeats)
    for data, (corpus, name, annotations, score) in DATA.items():
        model = options.folder / "training" / name / "model-best"
        given = {"gold_tokens": True, "annotations": annotations}
        given["limit"] = _QUICK_DOCS if options.quick else 0
        paths = [options.folder / "corpus" / f"{corpus}-{part}.spacy" for part in ("train", "test")]
        reads = [make_annotated_corpus(path, **given) for path in paths]
        nlp = spacy.load(model)
        gold = list(reads[1](nlp))
        scores = nlp.evaluate(gold)  # compiles kernels
        sides = {tool: partial(once, side, model, reads) for tool, side in SIDES.items()}
        for tool, costs in alternate(repeats, sides).items():
            own = {"score": scores[score]} if tool in (BATCH, EACH) else {}
            items = sum(len(example.reference) for example in gold)
            record.compare(data, WHAT, {tool: costs}, items=items, **own)


def measure_raw(options: Options) -> None:
    """Label raw texts of the test part with our pipeline and spaCy's alternately.

    CPU seconds include the tokenizer. Tokens are those of the corpus for both.
    """
    repeats = options.times(5)
    record = options.record("raw", repeats=repeats)
    folder, limit = options.folder, _QUICK_DOCS if options.quick else 0
    paths = [folder / "corpus" / f"{RAW}-{part}.spacy" for part in ("train", "test")]
    nlp = spacy.blank("es")
    learnt, test = (
        [example.reference for example in make_annotated_corpus(path, limit=limit)(nlp)]
        for path in paths
    )
    asked = {"in batches": (BATCH, test), "in batches, all words seen before": (BATCH, test)}
    asked["one short text a call"] = EACH, [doc for doc in test if len(doc) in _SHORT]

    def once(name: str) -> dict[str, Cost]:
        nlp = spacy.load(folder / "training" / name / "model-best")
        run(SIDES[BATCH], nlp, _printed(learnt))
        return {what: run(SIDES[of], nlp, _printed(docs)) for what, (of, docs) in asked.items()}

    sides = {tool: partial(once, name) for tool, name in TOOLS.items()}
    once(TOOLS[OURS])  # compiles kernels
    for tool, costs in alternate(repeats, sides).items():
        for what, (_, docs) in asked.items():
            own, items = [cost[what] for cost in costs], sum(map(len, docs))
            record.compare(f"{RAW} test", what, {tool: own}, items=items, n=len(docs))


def _printed(docs: Iterable[Doc]) -> list[str]:
    """Return texts without the blanks that printed text does not have."""
    return [_BLANK.sub("", doc.text) for doc in docs]


def raw_table(rows: Sequence[Row]) -> str:
    """Return words per CPU second and the time of a text of each tool."""
    lines = []
    for row in measurements(rows):
        cpu = sorted(row["cpu"])
        rates = [f"{row['items'] / seconds:,.0f}" for seconds in (median(cpu), cpu[-1], cpu[0])]
        time = f"{number(1e6 * median(cpu) / row['n'])} us"
        lines.append([row["tool"], row["what"], rates[0], " to ".join(rates[1:]), time])
    return table(["", "", "words per CPU second", "lowest to highest", "CPU time of a text"], lines)


def tables(rows: Sequence[Row]) -> str:
    """Return speed and score of each side."""
    lines = []
    for row in measurements(rows):
        shown = f"{100 * row['score']:.2f}" if "score" in row else ""
        lines.append([row["data"], row["tool"], cell(row), f"{number(middle(row))} s", shown])
    return table(["", "", "tokens", "the test part", "score"], lines)
