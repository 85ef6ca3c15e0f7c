"""Quote measured figures in README and the pages, from the rows that the benchmarks recorded.

`python docs/figures.py` writes the tables of BENCHMARKS.md and the quoted figures; `--check` names
what it would change; `--record` stores the tables of BENCHMARKS.md after a new measurement.
"""

import json
import re
import sys
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from string import Formatter

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "project" / "measurements" / "BENCHMARKS.md"
RECORDED = BENCHMARKS.parent / "bench" / "recorded.json"
TABLE = re.compile(r"^## ([^\n]+)\n(?:(?!^## |^\|).*\n)*((?:^\|.*\n)+)", re.MULTILINE)
# Rows of "Whole runs" by the first part of a field: data set and tool.
PEER, OURS = "python-crfsuite, L1 and L2", "sparsecrf"
RUNS = {
    "es": ("CoNLL-2002 es", OURS),
    "es_peer": ("CoNLL-2002 es", PEER),
    "es_spacy": ("CoNLL-2002 es", "spaCy"),
    "small": ("CoNLL-2002 es, 3,000 sentences", OURS),
    "small_peer": ("CoNLL-2002 es, 3,000 sentences", PEER),
    "small_spacy": ("CoNLL-2002 es, 3,000 sentences", "spaCy"),
    "ewt": ("EWT", OURS),
    "ewt_peer": ("EWT", PEER),
    "ewt_spacy": ("EWT", "spaCy"),
    "ewt_classes": ("EWT, classes", OURS),
    "jnlpba": ("JNLPBA", OURS),
    "jnlpba_peer": ("JNLPBA", PEER),
    "chunks": ("CoNLL-2000", OURS),
    "chunks_ours": ("CoNLL-2000", "CRFsuite, our penalties"),
    "chunks_peer": ("CoNLL-2000", "CRFsuite, c1 = c2 = 0.1"),
    "classes": ("CoNLL-2002 es, documents and classes", OURS),
    "documents": ("CoNLL-2002 es, documents", OURS),
}
# Tools of "Intervals of test scores" on CoNLL-2002 Spanish, and columns with an interval.
INTERVALS = {"chance": (OURS, 4), "ahead": (PEER, 6)}
COMPILE = "takes about {compile.wall} seconds on two cores"
COLUMNS = {"test": 0, "dev": 1, "cpu": 2, "peak": 4, "mb": 5}


def _row(name: str) -> str:
    return f"{{{name}.test}} | {{{name}.cpu}} | {{{name}.mb}} MB"


# Sentences and rows with figures, by page. A blank stands for any white space.
FIRST = [
    "8,300 sentences of Spanish news take {es.cpu} CPU seconds",
    "[{raw.ours} words]",
    "spaCy's `ner`: {raw.spacy}",
    "whole model is {es.mb} MB",
]
BARS = "F1 {es.f1}, {es_peer.f1} and {es_spacy.f1}, and {es.cpu}, {es_peer.cpu} and {es_spacy.cpu}"
QUOTES = {
    "README.md": [
        *FIRST,
        COMPILE,
        "F1 {es.f1} for spacy-sparsecrf, {es_peer.f1} for python-crfsuite, {es_spacy.f1} for",
        "takes {es.cpu}, {es_peer.cpu} and {es_spacy.cpu} CPU seconds",
        f"| F1 {_row('es')} | {{es_peer.test}}, {{es_peer.cpu}} s "
        "| {es_spacy.test}, {es_spacy.cpu} s |",
        "| {ewt.test} % | {ewt.cpu} | {ewt.mb} MB | {ewt_peer.test} %, {ewt_peer.cpu} s "
        "| {ewt_spacy.test} %, {ewt_spacy.cpu} s |",
    ],
    "docs/index.md": [*FIRST, BARS],
    "docs/results.md": [
        BARS,
        f"Spanish, entities | `ner` | F1 {_row('es')}",
        f"`ner_classes` | F1 {_row('classes')}",
        f"two stages | F1 {_row('documents')}",
        f"sentences | `ner` | F1 {_row('small')}",
        f"`tagger` | accuracy {_row('ewt').replace(' |', ' % |', 1)}",
        f"`tagger_classes` | accuracy {_row('ewt_classes').replace(' |', ' % |', 1)}",
        f"JNLPBA, entities | `ner` | F1 {_row('jnlpba')}",
        f"`spans` | F1 {_row('chunks')}",
        f"our features and penalties | F1 {_row('chunks_ours')}",
        f"c1 = c2 = 0.1 | F1 {_row('chunks_peer')}",
        "{raw.ours} words per CPU second, and {raw.seen} if",
        "spaCy's `ner` labels {raw.spacy}",
        "lies between {chance.low} and {chance.high}",
        "is {ahead.score} points of F1 above python-crfsuite",
        "with an interval of {ahead.low} to {ahead.high}",
        "{doc.ours} tokens per second from Doc to labels",
        "sklearn-crfsuite {doc.peer}",
    ],
    "docs/entities.md": [COMPILE],
    "docs/resources.md": [COMPILE],
    "docs/faq.md": [
        "its test F1 is {es_spacy.test} after {es_spacy.cpu} CPU seconds of training",
        "`ner` has {es.test} after {es.cpu}",
        "| 69.5 | {small.f1} | {es.f1} |",
        "| 67.5 | {small_peer.f1} | {es_peer.f1} |",
        "| 55.7 | | {small_spacy.f1} | {es_spacy.f1} |",
    ],
    "docs/choose-a-config.md": [
        "a label per token | EWT {ewt.test} %, {ewt.cpu} s",
        "with [word classes](word-classes.md) | EWT {ewt_classes.test} %, {ewt_classes.cpu} s",
        "CoNLL-2002 es F1 {es.test}, {es.cpu} s",
        "with word classes | F1 {classes.test}, {classes.cpu} s",
        "half the speed | F1 {documents.test}, {documents.cpu} s",
        "CoNLL-2000 F1 {chunks.test}, {chunks.cpu} s",
    ],
    "docs/migration.md": [
        "F1 {es.test} after {es.cpu} CPU seconds",
        "in Python {es_peer.test} after {es_peer.cpu}",
    ],
}
RAW = {"ours": (OURS, "in batches"), "seen": (OURS, "in batches, all words seen before")}
RAW["spacy"] = ("spaCy", "in batches")
DOC = {"ours": "sparsecrf, in batches", "peer": "CRFsuite, dict features"}


def cells(line: str) -> list[str]:
    """Return the cells of a row of a table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def tables() -> dict[str, list[list[str]]]:
    """Return the tables of BENCHMARKS.md by their section."""
    text = BENCHMARKS.read_text(encoding="utf8")
    return {
        title: [cells(line) for line in body.splitlines()] for title, body in TABLE.findall(text)
    }


def figure(field: str, recorded: dict[str, list[list[str]]]) -> str:
    """Return a figure as pages write it; field: a name of `RUNS`, `raw` or `doc`, and a column."""
    name, key = field.split(".")
    if name == "raw":
        [value] = [
            row[2] for row in recorded["From raw text to entities"] if tuple(row[:2]) == RAW[key]
        ]
        return f"{round(float(value.replace(',', '')), -3):,.0f}"
    if name in INTERVALS:
        tool, column = INTERVALS[name]
        rows = recorded["Intervals of test scores"]
        [found] = [row for row in rows if row[:2] == ["CoNLL-2002 es", tool]]
        low, _, high = found[column].partition(" to ")
        return {"low": low, "high": high, "score": found[column - 1]}[key]
    if name == "compile":
        wall = {row[0]: float(row[1]) for row in recorded["First training"][2:]}
        return f"{wall['kernels compiled, two cores'] - wall['kernels cached']:.0f}"
    if name == "doc":
        rows = recorded["From Doc to labels"]
        [value] = [row[2] for row in rows if row[:2] == ["conll2000 test", DOC[key]]]
        return f"{round(1e6 * float(value.split()[0]), -3):,.0f}"
    [row] = [row[2:] for row in recorded["Whole runs"] if tuple(row[:2]) == RUNS[name]]
    value = row[0 if key == "f1" else COLUMNS[key]]
    places = {"cpu": "1", "f1": ".1", "mb": ".1"}.get(key, ".01")
    return f"{Decimal(value.replace(',', '')).quantize(Decimal(places), ROUND_HALF_UP):,}"


def quoted(text: str, template: str, recorded: dict[str, list[list[str]]]) -> str:
    """Return a text with the figures of a template. RAISES: ValueError unless it is there once."""
    pattern, fields = "", []
    for literal, field, _, _ in Formatter().parse(template):
        pattern += r"\s+".join(map(re.escape, re.split(r"\s+", literal)))
        if field:
            pattern += r"(\d(?:[\d.,]*\d)?)"
            fields.append(figure(field, recorded))
    found, *others = re.finditer(pattern, text)
    if others:
        raise ValueError(f"{template!r} is there {1 + len(others)} times")
    for i in range(len(fields), 0, -1):
        text = text[: found.start(i)] + fields[i - 1] + text[found.end(i) :]
    return text


def written() -> Iterator[tuple[Path, str]]:
    """Yield each file with figures, and its text with the recorded ones."""
    recorded = json.loads(RECORDED.read_text(encoding="utf8"))

    def body(match: re.Match[str]) -> str:
        lines = "".join(f"| {' | '.join(row)} |\n" for row in recorded[match[1]])
        return match[0].removesuffix(match[2]) + lines

    yield BENCHMARKS, TABLE.sub(body, BENCHMARKS.read_text(encoding="utf8"))
    for name, templates in QUOTES.items():
        text = (ROOT / name).read_text(encoding="utf8")
        for template in templates:
            text = quoted(text, template, recorded)
        yield ROOT / name, text


def stale() -> list[str]:
    """Return the names of files whose figures are not the recorded ones."""
    return [path.name for path, text in written() if text != path.read_text(encoding="utf8")]


if __name__ == "__main__":
    if "--record" in sys.argv:
        RECORDED.write_text(json.dumps(tables(), indent=1) + "\n", encoding="utf8")
    elif "--check" in sys.argv:
        sys.exit("\n".join(f"{name}: stale figures" for name in stale()) or 0)
    else:
        for path, text in written():
            path.write_text(text, encoding="utf8")
