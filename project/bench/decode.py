"""Tokens per second on test parts, from Docs to written annotation.

Words that are new in the test part are new to the pipeline's caches in each repetition.
"""

import gc
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import spacy
from measure.processes import Cost, alternate, timed
from measure.report import number, table
from measure.results import Row
from spacy.language import Language
from spacy.tokens import Doc

from spacy_sparsecrf.pipeline.corpora import make_annotated_corpus

from .record import OURS, Options, cell, measurements, middle

WHAT = "Doc to labels"
BATCH, EACH = f"{OURS}, in batches", f"{OURS}, Doc by Doc"
# By data set: corpus and pipeline, given annotation, and score.
DATA = {
    "conll2000 test": ("conll2000", "chunks", ["tag"], "spans_sc_f"),
    "ud-en-ewt test": ("ud", "ud", [], "tag_acc"),
}
_QUICK_DOCS = 200
# Attributes read from Docs and written to them; spaCy's type stub does not accept the names.
_READ: Any = ["ORTH", "SENT_START", "TAG"]
_WRITTEN: Any = ["TAG"]

# A side labels Docs of the pipeline's vocab while the returned iterable is consumed.
Side = Callable[[Language, list[Doc]], Iterable[Any]]
SIDES: dict[str, Side] = {
    BATCH: lambda nlp, docs: nlp.pipe(docs, batch_size=1000),
    EACH: lambda nlp, docs: map(nlp, docs),
    # Lower bound for every labeller: read words, sentences and tags of each Doc, and write tags.
    "Docs read and written, nothing else": lambda nlp, docs: (
        doc.from_array(_WRITTEN, doc.to_array(_READ)[:, -1:]) for doc in docs
    ),
    "spaCy's tokenizer": lambda nlp, docs: map(nlp.tokenizer, [doc.text for doc in docs]),
}


def run(side: Side, nlp: Language, docs: list[Doc]) -> Cost:
    """Label Docs with a side, and return the cost."""
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


def tables(rows: Sequence[Row]) -> str:
    """Return speed and score of each side."""
    lines = []
    for row in measurements(rows):
        shown = f"{100 * row['score']:.2f}" if "score" in row else ""
        lines.append([row["data"], row["tool"], cell(row), f"{number(middle(row))} s", shown])
    return table(["", "", "tokens", "the test part", "score"], lines)
