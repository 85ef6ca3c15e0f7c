"""Time of one short text a call: Docs, and dicts compared with python-crfsuite on our weights.

Invented texts with features of the shapes that parsers of addresses (dicts in dicts), of names (one
real value) and of ingredients (flat dicts) generate.
"""

import json
import pickle
import random
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import spacy
from measure.processes import Cost, alternate, run, timed
from measure.report import number, table
from measure.results import Row
from spacy.tokens import Doc
from spacy.training import Example

from spacy_sparsecrf.sklearn import CRF

from .record import OURS, Options, measurements, middle, ratio

PEER = "python-crfsuite"
ONE, ALL = "labels", "labels, marginals, probability"
TOGETHER = "labels, all texts at once"
SLOWEST = "labels, slowest text but the first"
_FRESH = 9  # processes of each side
_PROCESSES = 10, 1_000, 12_000  # texts of a fresh process
_RANGES = (0, 100), (100, 1_000), (5_000, 10_000)
_CALLS = """
import json, pickle, time
from {module} import Tagger
with open({texts!r}, "rb") as file:
    texts = pickle.load(file)
tagger = Tagger()
tagger.open({path!r})
seconds = []
for text in texts:
    begin = time.perf_counter()
    tagger.tag(text)
    seconds.append(time.perf_counter() - begin)
print(json.dumps(seconds))
"""
_SETTINGS: dict[str, Any] = {"c1": 0.1, "c2": 0.01, "max_iterations": 60}
_WORDS = {
    "Number": "1 7 12 44 83 160 305 417 960 1120 2048 3999 5150 7281 9003",
    "Unit": "2 3 5 11 14 27 35 48 60 71 99",
    "Code": "97301 02108 55414 10001 60614 73301 84101 30303",
    "Quantity": "1 2 3 4 5 6 8",
    "Street": "north south birch oak maple river lake hill park elm cedar walnut main high mill",
    "Kind": "lane street road ave. blvd court",
    "Inner": "unit apt. floor",
    "City": "salem dover milton clinton ashland oxford",
    "State": "or ma il ny",
    "Title": "Mr. Dr. Ms.",
    "Given": "Anna Maria John Peter Ines Omar",
    "Family": "Smith Jones Lee Wong Garcia Lopez",
    "Measure": "cup cups teaspoon tablespoon pound ounces",
    "Food": "sifted flour brown sugar white onion fresh basil butter milk",
    "Way": "finely chopped, peeled diced minced",
}
_FORMS = {
    "address": ["Number Street Kind City State Code", "Number Street Street Kind Inner Unit City"],
    "name": ["Title Given Given Family", "Given Family", "Given Given Family Family"],
    "ingredient": ["Quantity Measure Food Food", "Quantity Food Food Way Way", "Quantity Food"],
}


def texts(shape: str, n: int, seed: int) -> list[tuple[list[str], list[str]]]:
    """Invent words and labels of n texts."""
    draw, found = random.Random(seed), []
    for _ in range(n):
        labels = draw.choice(_FORMS[shape]).split()
        words = [draw.choice(_WORDS[label].split()) for label in labels]
        found.append((words, labels))
    return found


def _own(word: str, real: bool) -> dict[str, Any]:
    """Return the features of a word."""
    vowels = sum(letter in "aeiou" for letter in word.lower())
    return {
        "word": word.lower().strip(".,"),
        "shape": "".join("d" if c.isdigit() else "x" if c.islower() else c for c in word),
        "digits": "all" if word.isdigit() else "none",
        "length": f"w:{len(word)}",
        "abbreviated": word.endswith("."),
        "capital": word[:1].isupper(),
        "end": word[-3:],
        "zeros": word[len(word.rstrip("0")) :],
        "vowels": vowels / len(word) if real else vowels > 0,
    }


def features(shape: str, words: Sequence[str]) -> list[dict[str, Any]]:
    """Return the features of a text's tokens, with those of their neighbours."""
    own, found = [_own(word, real=shape == "name") for word in words], []
    for i, features in enumerate(own):
        near = {"previous": i - 1, "next": i + 1}
        token = dict(features)
        for name, j in near.items():
            if not 0 <= j < len(own):
                token[f"{name}.none"] = True
            elif shape == "ingredient":
                token |= {f"{name}.{key}": value for key, value in own[j].items()}
            else:
                token[name] = dict(own[j])
        found.append(token)
    return found


def _measure_fresh(record: Any, shape: str, path: Path, repeats: int, most: int) -> None:
    """Label at most so many texts in fresh processes, which open a model of CRFsuite's format."""
    file = path.with_suffix(".pickle")
    X = [features(shape, words) for words, _ in texts(shape, most, 2)]
    modules = {OURS: "spacy_sparsecrf.pycrfsuite", PEER: "pycrfsuite"}
    for n in sorted({min(n, most) for n in _PROCESSES}):
        file.write_bytes(pickle.dumps(X[:n]))
        values = {"path": str(path), "texts": str(file)}
        sides = {
            side: partial(run, ["python", "-c", _CALLS.format(module=module, **values)])
            for side, module in modules.items()
        }
        costs = alternate(repeats, sides)
        record.compare(shape, f"labels of {n:,} texts, in a fresh process", costs, n=1)
    seconds = {side: [json.loads(cost.output) for cost in runs] for side, runs in costs.items()}

    def compare(what: str, n: int, spent: Callable[[list[float]], float]) -> None:
        walls = {side: [Cost(spent(x)) for x in runs] for side, runs in seconds.items()}
        record.compare(shape, what, walls, n=n)

    for begin, end in _RANGES:
        if end <= most:
            what = f"labels, texts {begin + 1:,} to {end:,} of a process"
            compare(what, end - begin, lambda x, part=slice(begin, end): sum(x[part]))
    compare(SLOWEST, 1, lambda x: max(x[1:]))


def everything(tagger: Any, x: Any) -> None:
    """Ask for labels, their marginals, and the probability of all."""
    tagger.set(x)
    labels = tagger.tag()
    for i, label in enumerate(labels):
        tagger.marginal(label, i)
    tagger.probability(labels)


def each(function: Callable[[Any], object], items: Sequence[Any]) -> Cost:
    """Return the cost of one call for each item."""
    return timed(lambda: [function(item) for item in items])


def measure(options: Options) -> None:
    """Label texts by both sides alternately, then Docs."""
    import pycrfsuite

    record = options.record("single", python_crfsuite=version(PEER))
    path, repeats = record.path.with_suffix(".crfsuite"), options.times(15)
    n = 50 if options.quick else 500
    record.path.parent.mkdir(parents=True, exist_ok=True)
    for shape in _FORMS:
        (X, y), (new, _) = (
            ([features(shape, words) for words, _ in drawn], [labels for _, labels in drawn])
            for drawn in (texts(shape, n, 0), texts(shape, n, 1))
        )
        ours, peer = CRF(**_SETTINGS, n_threads=1).fit(X, y), pycrfsuite.Tagger()
        ours.save(path)
        peer.open(str(path))
        same = sum(peer.tag(x) == ours.predict_single(x) for x in new) / n
        asked: dict[str, dict[str, Callable[[], Cost]]] = {
            ONE: {
                OURS: partial(each, ours.predict_single, new),
                PEER: partial(each, peer.tag, new),
            },
            ALL: {
                OURS: partial(each, partial(everything, ours.tagger_), new),
                PEER: partial(each, partial(everything, peer), new),
            },
            TOGETHER: {OURS: partial(timed, partial(ours.predict, new))},
        }
        asked[TOGETHER][PEER] = asked[ONE][PEER]
        for what, sides in asked.items():
            record.compare(shape, what, alternate(repeats, sides), n=n, same=same)
        most = 100 if options.quick else max(_PROCESSES)
        _measure_fresh(record, shape, path, repeats=min(repeats, _FRESH), most=most)
    _measure_docs(record, n, repeats)


def _measure_docs(record: Any, n: int, repeats: int) -> None:
    """Label single Docs of some lengths by an entity recognizer."""
    nlp, drawn = spacy.blank("en"), texts("address", n, 0)
    nlp.add_pipe("sparse_crf_ner", config={"n_threads": 1})
    golds = [Doc(nlp.vocab, words, ents=[f"B-{y}" for y in own]) for words, own in drawn]
    examples = [Example(nlp.make_doc(gold.text), gold) for gold in golds]
    nlp.initialize(lambda: examples)
    nlp.update(examples)
    stream = [word for words, _ in texts("address", 30 * n, 1) for word in words]
    for length in (1, 8, 27):  # words
        parts = [stream[i : i + length] for i in range(0, n * length, length)]

        def once(parts: list[list[str]] = parts) -> Cost:
            return each(nlp, [Doc(nlp.vocab, words) for words in parts])

        once()
        costs = alternate(repeats, {OURS: once})
        record.compare("Docs of an entity recognizer", f"{length} words", costs, n=len(parts))


def _time(row: Row) -> str:
    if row["mb"]:
        return f"{number(1e3 * median(row['cpu']))} ms, {row['mb']:.0f} MB"
    return f"{number(middle(row) / row['n'] * 1e6)} us"


def tables(rows: Sequence[Row]) -> str:
    """Return microseconds a text of each side, and their ratio."""
    lines: dict[tuple[str, str], dict[str, Row]] = {}
    for row in measurements(rows):
        lines.setdefault((row["data"], row["what"]), {})[row["tool"]] = row
    shown = []
    for (data, what), cells in lines.items():
        ours, peer = cells.get(OURS), cells.get(PEER)
        times = [_time(x) if x else "" for x in (ours, peer)]
        same = f"{100 * ours['same']:.1f} %" if ours and "same" in ours else ""
        shown.append([f"{data}: {what}", *times, ratio(ours, peer), same])
    return table(["", OURS, PEER, f"{PEER} / ours", "same labels"], shown)
