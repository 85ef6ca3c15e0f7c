"""Measure the figures of charts: `python -m pictures.measure NAME [--folder FOLDER]`.

FOLDER has corpus/NAME-{train,dev,test}.spacy of conll2002-es and jnlpba, by the workflows of these
names. Figures are added to figures.json, next to this module, one part for each NAME.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import spacy
import srsly
import typer
from bench.record import Options
from bench.whole import JOBS, SPACY, Bench
from measure.processes import Child
from measure.results import describe
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from wasabi import msg

from spacy_sparsecrf.analysis.calibration import calibrate, reliability

FIGURES = Path(__file__).parent / "figures.json"
_DATA, _ES = "CoNLL-2002 es", "conll2002-es"
# Training sentences; BENCHMARKS.md has 3,000 and all.
_SIZES = 100, 300, 1000
_PACKAGES = "spacy", "python-crfsuite"
_PENALTIES = 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0
_PATH_SENTENCES = 3000
# The example of README.md, and a sentence for the lattice.
_TEXTS = {
    "Anna Schmidt flew to Berlin on Monday.": [(0, 12, "PERSON"), (21, 27, "CITY")],
    "On Friday, Omar Haddad flew to Cairo.": [(11, 22, "PERSON"), (31, 36, "CITY")],
    "The train to Oslo was late.": [(13, 17, "CITY")],
    "We met Julia Costa at the office.": [(7, 18, "PERSON")],
}
_LATTICE_TEXT = "Maria Lopez flew to Lisbon"
_TICKETS = Path(__file__).parents[2] / "spacy_sparsecrf" / "examples" / "tickets.jsonl"
# Features of the picture of the working set: common and rare ones.
_FEATURES = (
    *("always", "is_title[0]=1", "has_upper[0]=1", "lower[1]=.", "lower[2]=the", "shape[-1]=xxx"),
    *("suffix(1)[0]=d", "suffix(2)[0]=se", "suffix(3)[-1]=the", "lower[3]=please"),
    *("lower[0]=please", "lower[0]=call"),
)
_THRESHOLDS = [round(0.05 * i, 2) for i in range(20)]
_OUTSIDE = [0.25 * i for i in range(-8, 9)]
_JNLPBA_SENTENCES = 5000


def add(name: str, figures: dict[str, Any]) -> None:
    """Replace a part of figures.json."""
    parts = srsly.read_json(FIGURES) if FIGURES.exists() else {}
    versions = {each: version(each) for each in _PACKAGES}
    source = {"command": f"python -m pictures.measure {name}", **describe(), **versions}
    srsly.write_json(FIGURES, {**parts, name: {**source, **figures}})


def learning(options: Options) -> None:
    """Measure test F1 after training on a few sentences, by tool."""
    found: dict[str, dict[str, float]] = {}
    with TemporaryDirectory() as scratch:
        runs = [
            (tool, n, run)
            for n in _SIZES
            for tool, run in Bench(options, scratch, replace(JOBS[_DATA], limit=n)).sides().items()
        ]
        # spaCy's take minutes, and come last.
        for tool, n, run in sorted(runs, key=lambda each: each[0] == SPACY):
            cost, figures = run()
            msg.text(f"{tool}, {n}: {figures['test']:.2f} in {cost.cpu:.0f} CPU s")
            found.setdefault(tool, {})[str(n)] = round(figures["test"], 2)
            add("learning", {"test_f1": found})


def path(options: Options) -> None:
    """Measure development F1 and model size by `l1`, on the first 3,000 sentences."""
    found: dict[str, list[float]] = {"l1": [], "dev_f1": [], "mb": []}
    with TemporaryDirectory() as scratch:
        for l1 in _PENALTIES:
            own = {"components.ner.l1": l1, "corpora.train.limit": _PATH_SENTENCES}
            model = train(options, Path(scratch), own)
            size = sum(each.stat().st_size for each in model.rglob("*") if each.is_file())
            f1 = 100.0 * srsly.read_json(model / "meta.json")["performance"]["ents_f"]
            for key, value in zip(found, (l1, round(f1, 2), round(size / 1e6, 2)), strict=True):
                found[key].append(value)
            msg.text(f"l1 = {l1}: {f1:.2f}, {size / 1e6:.2f} MB")
    add("path", found)


def calibration(options: Options) -> None:
    """Measure test probabilities before and after calibration on the development part."""
    bins: dict[str, Any] = {}
    with TemporaryDirectory() as scratch:
        model = train(options, Path(scratch), {})
        dev, test = (_golds(options, _ES, part) for part in ("dev", "test"))
        nlp = spacy.load(model)
        examples = [Example(_copy(nlp, gold), gold) for gold in dev]
        temperature = round(calibrate(nlp.get_pipe("ner"), examples).temperature, 3)
        for name, value in ("before", 1.0), ("after", temperature):
            found = reliability(*_judge(model, test, temperature=value)[:2])
            rows = [[round(b.probability, 4), round(b.right, 4), b.n] for b in found.bins]
            bins[name] = {"error": round(found.error, 4), "bins": rows}
    add("calibration", {"temperature": temperature, **bins})


def rates(options: Options) -> None:
    """Measure precision and recall by threshold, and by outside weight, on JNLPBA."""
    with TemporaryDirectory() as scratch:
        own = {"corpora.train.limit": _JNLPBA_SENTENCES}
        model = train(options, Path(scratch), own, "jnlpba")
        golds = _golds(options, "jnlpba", "test")
        p, right, n_gold = _judge(model, golds)
        thresholds = [[t, *_rates(right[p >= t], n_gold)] for t in _THRESHOLDS]
        weights = [[w, *_rates(*_judge(model, golds, outside_weight=w)[1:])] for w in _OUTSIDE]
    about = {"sentences": _JNLPBA_SENTENCES}
    add("rates", {**about, "threshold": thresholds, "outside_weight": weights})


def _small(texts: dict[str, list[tuple[int, int, str]]]) -> tuple[spacy.Language, list[Example]]:
    """Return an untrained pipeline with IOB2 labels, and its training data."""
    nlp = spacy.blank("en")
    target = {"@crf_targets": "spacy_sparsecrf.Entities.v1", "scheme": "IOB2"}
    nlp.add_pipe("sparse_crf_ner", name="ner", config={"target": target})
    examples = [
        Example.from_dict(nlp.make_doc(text), {"entities": spans}) for text, spans in texts.items()
    ]
    nlp.initialize(lambda: examples)
    return nlp, examples


def lattice(options: Options) -> None:
    """Record marginals and the best labels of a sentence, by the example of README.md."""
    nlp, examples = _small(_TEXTS)
    for _ in range(5):
        nlp.update(examples)
    pipe, doc = nlp.get_pipe("ner"), nlp.make_doc(_LATTICE_TEXT)
    ((best, p),) = pipe.nbest(doc, 1)
    marginals = np.round(pipe.marginals(doc), 2).tolist()
    words = {"words": [t.text for t in doc], "labels": list(pipe.label_data)}
    add("lattice", {**words, "marginals": marginals, "best": best, "p": round(p, 2)})


def working_set(options: Options) -> None:
    """Record which weights are in the working set, and not zero, in a training on the tickets.

    States: 0 outside, 1 inside and zero, 2 not zero; [features][labels] for each frame.
    """
    rows = srsly.read_jsonl(_TICKETS)
    nlp, examples = _small({row["text"]: [(*each,) for each in row["label"]] for row in rows})
    pipe, steps = nlp.get_pipe("ner"), []
    (run,) = pipe.training_run()._runs
    while not run.end:
        nlp.update(examples)
        steps.append((set(run.state.coordinates.tolist()), set(run.weights[0].tolist())))
    names = pipe.training_run()._names
    n_labels, known = len(names.labels), pipe._state.record.names(names.unigram_keys)
    index = {known[key]: i for i, key in enumerate(names.unigram_keys.tolist())}
    frames = []
    for at in (0, 1, len(steps) - 1):
        states = [
            [sum(index[name] * n_labels + y in part for part in steps[at]) for y in range(n_labels)]
            for name in _FEATURES
        ]
        inside, active = map(len, steps[at])
        frames.append({"step": at + 1, "inside": inside, "active": active, "states": states})
    n = run.loss.n_potential
    about = {"features": _FEATURES, "labels": list(pipe.label_data), "potential": n}
    add("working_set", {**about, "frames": frames})


def train(options: Options, scratch: Path, own: dict[str, float], data: str = _ES) -> Path:
    """Train by the config `ner` on gold tokens, and return the directory of the best model."""
    config, output = scratch / "ner.cfg", scratch / "model"
    words = ["ner", "--lang", "es" if data == _ES else "en", "--output", str(config), "--force"]
    Child(["python", "-m", "spacy_sparsecrf", "config", *words]).wait()
    given: dict[str, object] = dict(own)
    for part in ("train", "dev"):
        corpus = options.folder.resolve() / "corpus" / f"{data}-{part}.spacy"
        given |= {f"paths.{part}": corpus, f"corpora.{part}.gold_tokens": "true"}
    settings = [word for key, value in given.items() for word in (f"--{key}", str(value))]
    Child(["python", "-m", "spacy", "train", str(config), "-o", str(output), *settings]).wait()
    return output / "model-best"


def _golds(options: Options, data: str, part: str) -> list[Doc]:
    """Return the Docs of a part, with gold entities."""
    file = options.folder / "corpus" / f"{data}-{part}.spacy"
    return list(DocBin().from_disk(file).get_docs(spacy.blank("xx").vocab))


def _copy(nlp: spacy.Language, gold: Doc) -> Doc:
    """Return the tokens of a Doc without annotation."""
    return Doc(nlp.vocab, [t.text for t in gold], [bool(t.whitespace_) for t in gold])


def _judge(
    model: Path, golds: Sequence[Doc], **settings: float
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the probabilities of predicted entities, which are right, and the number of gold."""
    given = {f"components.ner.decoding.{key}": value for key, value in settings.items()}
    nlp = spacy.load(model, config=given)
    pipe, found, n_gold = nlp.get_pipe("ner"), [], 0
    for gold, doc in zip(golds, nlp.pipe(_copy(nlp, gold) for gold in golds), strict=True):
        known = {(ent.start, ent.end, ent.label_) for ent in gold.ents}
        rights = [(ent.start, ent.end, ent.label_) in known for ent in doc.ents]
        found += zip(pipe.entity_probabilities(doc, doc.ents), rights, strict=True)
        n_gold += len(known)
    p, right = map(np.array, zip(*found, strict=True))
    return p, right, n_gold


def _rates(right: np.ndarray, n_gold: int) -> tuple[float, float]:
    """Return precision and recall in percent."""
    return round(100.0 * right.mean(), 2), round(100.0 * right.sum() / n_gold, 2)


PARTS: dict[str, Callable[[Options], None]] = {
    each.__name__: each for each in (learning, path, calibration, rates, lattice, working_set)
}
_WITHOUT_CORPUS = "lattice", "working_set"


def main(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(PARTS)}")],
    folder: Annotated[Path, typer.Option(help="With corpus/")] = Path(),
) -> None:
    """Measure the figures of a chart."""
    needs = name not in _WITHOUT_CORPUS
    if needs and not (folder / "corpus" / "conll2002-es-train.spacy").exists():
        msg.warn(f"Skipped {name}: {folder}/corpus has no conll2002-es-train.spacy")
        return
    PARTS[name](Options(folder))


if __name__ == "__main__":
    typer.run(main)
