"""Bootstrap intervals of test scores, and of differences between tools, over documents.

A tool is trained once, as in `whole`, and labels the gold tokens of the test part. Documents are
drawn with replacement, and the score is computed from the sums of their counts (Efron & Tibshirani
1993). All tools are scored on the same draws, so that an interval of a difference is paired.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import spacy
from measure.report import table
from measure.results import Row
from numpy.typing import NDArray
from spacy.tokens import DocBin
from spacy.training import Example

from spacy_sparsecrf.pipeline.example_reader import make_annotated_corpus

from .record import OURS, Options, measurements
from .whole import JOBS, PEERS, Bench, Job

DRAWS, _SENTENCES = 10_000, 10
Array = NDArray[np.floating]


def measure(options: Options) -> None:
    """Train and label by our config and by python-crfsuite with L1 and L2, or by other tools."""
    record = options.record("intervals", draws=DRAWS)
    tools = options.tools or (OURS, list(PEERS)[-1])
    with TemporaryDirectory() as scratch:
        for name in options.names or JOBS:
            job = JOBS[name]
            bench = Bench(options, scratch, job)
            units = _units(bench.paths["test"], job)
            ours = None
            for tool, train in bench.sides().items():
                if not tool.startswith(tools):
                    continue
                train()
                counts = np.array([_counts(x, job.score) for x in _examples(bench, tool)])
                scores = draws(np.add.reduceat(counts, units))
                ours = scores if tool == OURS else ours
                pairs = [("test", scores)]
                if tool != OURS and ours is not None:
                    pairs.append(("difference", ours - scores))
                figures = {key: [values[0], *interval(values[1:])] for key, values in pairs}
                own = {"data": name, "tool": tool, "documents": len(units)}
                record.add(f"{name}, {tool}", **own, **figures)


def _examples(bench: Bench, tool: str) -> Iterable[Example]:
    """Return the test part with the labels of the tool that was trained last."""
    path = bench.paths["test"]
    if tool in PEERS:
        from .strings import labelled

        return labelled(bench.peer_model, bench.job.pipe, path)
    nlp = spacy.load(bench.model)
    columns = ["tag"] if bench.job.config == "spans" else []
    examples = list(make_annotated_corpus(Path(path), gold_tokens=True, annotations=columns)(nlp))
    docs = nlp.pipe(example.predicted for example in examples)
    return (Example(doc, x.reference) for doc, x in zip(docs, examples, strict=True))


def _counts(example: Example, score: str) -> tuple[int, int, int]:
    """Return the numbers of right, predicted and gold spans, or of tokens for an accuracy."""
    if score == "tag_acc":
        pairs = zip(example.predicted, example.reference, strict=True)
        n = len(example.reference)
        return sum(a.tag == b.tag for a, b in pairs), n, n
    predicted, gold = (
        {(x.start, x.end, x.label_) for x in (doc.ents if score == "ents_f" else doc.spans["sc"])}
        for doc in (example.predicted, example.reference)
    )
    return len(predicted & gold), len(predicted), len(gold)


def _units(path: str, job: Job) -> list[int]:
    """Return the index of the first Doc of each document, or of each ten sentences."""
    docs = list(DocBin().from_disk(path).get_docs(spacy.blank("xx").vocab))
    ends = path.replace(".spacy", "-documents.spacy")
    if job.kind:
        return list(range(len(docs)))
    if not Path(ends).exists():
        return list(range(0, len(docs), _SENTENCES))
    documents = DocBin().from_disk(ends).get_docs(spacy.blank("xx").vocab)
    starts = np.cumsum([0, *(len(doc) for doc in documents)])[:-1]
    return list(np.searchsorted(np.cumsum([0, *map(len, docs)]), starts))


def draws(counts: NDArray[np.integer]) -> Array:
    """Return the score in percent of all documents, and of each draw; counts: [documents, 3]."""
    n = len(counts)
    weights = np.random.default_rng(0).multinomial(n, np.full(n, 1.0 / n), DRAWS)
    right, predicted, gold = (np.vstack([np.ones(n, int), weights]) @ counts).T
    return np.asarray(200.0 * right / (predicted + gold))


def interval(scores: Array) -> list[float]:
    """Return the percentiles that enclose 95 % of the scores."""
    return list(np.quantile(scores, [0.025, 0.975]))


def tables(rows: Sequence[Row]) -> str:
    """Return a row for each data set and tool."""
    lines = []
    for row in measurements(rows):
        line = [row["data"], row["tool"], str(row["documents"])]
        for value, low, high in filter(None, (row["test"], row.get("difference"))):
            line += [f"{value:.2f}", f"{low:.2f} to {high:.2f}"]
        lines.append(line + [""] * (7 - len(line)))
    header = ["", "", "documents", "test", "95 %", "ours above it by", "95 %"]
    return table(header, lines)
