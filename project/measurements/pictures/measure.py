"""Measure the figures of charts: `python -m pictures.measure NAME [--folder FOLDER]`.

FOLDER has corpus/NAME-{train,dev,test}.spacy of conll2002-es and jnlpba, by the workflows of these
names. Figures are added to figures.json, next to this module, one part for each NAME.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
from bench.whole import JOBS, SPACY, Bench, Job
from measure.results import describe
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from wasabi import msg

from spacy_sparsecrf.tools.analysis.calibration import calibrate, reliability

from .screens import README_STEPS, take_steps

FIGURES = Path(__file__).parent / "figures.json"
# Training sentences; BENCHMARKS.md has 3,000 and all.
_SIZES, _PACKAGES = (100, 300, 1000), ("spacy", "python-crfsuite")
_PENALTIES = 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0
# The example of README.md, and a sentence for the lattice.
_TEXTS = {
    "Anna Schmidt flew to Berlin on Monday.": [(0, 12, "PERSON"), (21, 27, "CITY")],
    "On Friday, Omar Haddad flew to Cairo.": [(11, 22, "PERSON"), (31, 36, "CITY")],
    "The train to Oslo was late.": [(13, 17, "CITY")],
    "We met Julia Costa at the office.": [(7, 18, "PERSON")],
}
_TICKET, _EXPLAINED = "The Nova 5 shows F-77.", "F-77"
_LATTICE_TEXT = "Maria Lopez flew to Lisbon"
_TICKETS = Path(__file__).parents[3] / "spacy_sparsecrf" / "tools" / "examples" / "tickets.jsonl"
# Features of the picture of the working set: common and rare ones.
_FEATURES = (
    *("always", "is_title[0]=1", "has_upper[0]=1", "lower[1]=.", "lower[2]=the", "shape[-1]=xxx"),
    *("suffix(1)[0]=d", "suffix(2)[0]=se", "suffix(3)[-1]=the", "lower[3]=please"),
    *("lower[0]=please", "lower[0]=call"),
)
_WORD, _STACKED = "Transredes", ("first[0]", "doc_majority[0]")
_THRESHOLDS = [round(0.05 * i, 2) for i in range(20)]
_OUTSIDE = [0.25 * i for i in range(-8, 9)]


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
        jobs = ((n, replace(JOBS["CoNLL-2002 es"], limit=n)) for n in _SIZES)
        sides = {n: Bench(options, scratch, job).sides() for n, job in jobs}
        runs = [(tool, n, run) for n in _SIZES for tool, run in sides[n].items()]
        # spaCy's take minutes, and come last.
        for tool, n, run in sorted(runs, key=lambda each: each[0] == SPACY):
            cost, figures = run()
            msg.text(f"{tool}, {n}: {figures['test']:.2f} in {cost.cpu:.0f} CPU s")
            found.setdefault(tool, {})[str(n)] = round(figures["test"], 2)
            add("learning", {"test_f1": found})


def path(options: Options) -> None:
    """Measure development F1 and model size by `l1`, on the first 3,000 sentences."""
    found: dict[str, list[float]] = {"l1": list(_PENALTIES), "dev_f1": [], "mb": []}
    with TemporaryDirectory() as scratch:
        for l1 in _PENALTIES:
            bench = Bench(options, scratch, JOBS["CoNLL-2002 es, 3,000 sentences"])
            _, figures = bench.ours(**{"components.ner.l1": str(l1)})
            found["dev_f1"].append(round(figures["dev"], 2))
            found["mb"].append(round(figures["model_mb"], 2))
    add("path", found)


def calibration(options: Options) -> None:
    """Measure test probabilities before and after calibration on the development part."""
    bins: dict[str, Any] = {}
    with _trained(options, JOBS["CoNLL-2002 es"]) as (model, dev, test):
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
    with _trained(options, replace(JOBS["JNLPBA"], limit=5000)) as (model, _, test):
        p, right, n_gold = _judge(model, test)
        thresholds = [[t, *_rates(right[p >= t], n_gold)] for t in _THRESHOLDS]
        weights = [[w, *_rates(*_judge(model, test, outside_weight=w)[1:])] for w in _OUTSIDE]
    add("rates", {"sentences": 5000, "threshold": thresholds, "outside_weight": weights})


def stages(options: Options) -> None:
    """Record both stages' labels of a word in a document, by the config `ner_documents`."""
    rows = []
    with _trained(options, JOBS["CoNLL-2002 es, documents"]) as (model, dev, _):
        nlp = spacy.load(model)
        gold = next(each for each in dev if _WORD in {t.text for t in each})
        for i, token in enumerate(nlp.get_pipe("ner").explain_doc(_copy(nlp, gold)).tokens):
            if token.text == _WORD:
                part = gold[max(i - 2, 0) : i + 3]
                alone = (c.feature for c in token.contributions if "|" not in c.feature)
                pairs = (feature.partition("=") for feature in alone)
                read = {name: value for name, _, value in pairs if name in _STACKED}
                rows.append({"text": part.text, **read, "label": token.label})
    add("stages", {"word": _WORD, "rows": rows})


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


def explanation(options: Options) -> None:
    """Record why a word of a ticket has its label, by the commands of README.md."""
    with TemporaryDirectory() as folder:
        take_steps(Path(folder), README_STEPS)
        nlp = spacy.load(Path(folder, "tickets", "model-best"))
        add("explanation", explained(nlp))


def explained(nlp: spacy.Language) -> dict[str, Any]:
    """Return the labels of a ticket, and the features for and against the label of a word."""
    tokens = nlp.get_pipe("ner").explain_doc(nlp.make_doc(_TICKET)).tokens
    word = next(token for token in tokens if token.text == _EXPLAINED)
    rows = sorted(word.contributions, key=lambda c: -abs(c.difference))[:6]
    return {
        "tokens": [[token.text, token.label, round(token.probability, 2)] for token in tokens],
        "word": [word.text, word.label, round(word.probability, 2)],
        "other": [word.runner_up, round(word.runner_up_probability, 2)],
        "rows": [[row.name, round(row.difference, 2)] for row in rows],
    }


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
    about = {"features": _FEATURES, "labels": pipe.label_data, "potential": run.loss.n_potential}
    add("working_set", {**about, "frames": frames})


@contextmanager
def _trained(options: Options, job: Job) -> Iterator[tuple[Path, list[Doc], list[Doc]]]:
    """Train, and yield the model's directory with the gold Docs of both other parts."""
    stem, vocab = options.folder / "corpus" / job.corpus, spacy.blank("xx").vocab
    files = (f"{stem}-{part}{job.kind}.spacy" for part in ("dev", "test"))
    dev, test = (list(DocBin().from_disk(file).get_docs(vocab)) for file in files)
    with TemporaryDirectory() as scratch:
        Bench(options, scratch, job).ours()
        yield Path(scratch, "trained", "model-best"), dev, test


def _copy(nlp: spacy.Language, gold: Doc) -> Doc:
    """Return the tokens and sentences of a Doc without other annotation."""
    spaces = [bool(token.whitespace_) for token in gold]
    starts = [bool(token.is_sent_start) for token in gold]
    return Doc(nlp.vocab, [token.text for token in gold], spaces, sent_starts=starts)


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


_FUNCTIONS = learning, path, calibration, rates, stages, lattice, working_set, explanation
PARTS: dict[str, Callable[[Options], None]] = {each.__name__: each for each in _FUNCTIONS}


def main(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(PARTS)}")],
    folder: Annotated[Path, typer.Option(help="With corpus/")] = Path(),
) -> None:
    """Measure the figures of a chart."""
    if name not in ("lattice", "working_set", "explanation") and not any(
        (folder / "corpus").glob("*.spacy")
    ):
        msg.warn(f"Skipped {name}: no .spacy files in {folder / 'corpus'}")
        return
    PARTS[name](Options(folder))


if __name__ == "__main__":
    typer.run(main)
