"""Our entity recognizer beside CRFsuite: the same tests, the same labels, the same penalty.

CRFsuite's input is what the component's own featurizer and target make of the Docs. It knows
neither a start label nor pairs of labels with a test, so ours does without them here. Both train
until they say that they are done, with no look at the development part; ours has weights for all
pairs of a test and a label, CRFsuite for those that occur, and all transitions.
"""

import importlib.metadata
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import spacy
import srsly
import typer
from functions import gold_tokens
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_config
from wasabi import msg

from spacy_sparsecrf.decoding import Decoder
from spacy_sparsecrf.features.defaults import ENTITY_TEMPLATES

from . import crfsuite
from .timing import Cost, measured

FACTORY = "sparse_crf_ner"
OURS, FREE = "spacy-sparsecrf", "spacy-sparsecrf, unconstrained"
# CRFsuite's own defaults, and all transitions.
_STOPPING = {"epsilon": 1e-5, "delta": 1e-5, "feature.possible_transitions": True}
_SHOWN = ("cpu_seconds", "active_weights", "objective")

Ids = list[NDArray[np.int32]]


def plain(templates: Sequence[str]) -> list[str]:
    """Templates without tests of pairs of labels, but for the transitions."""
    tests = [template.partition(":")[2] for template in templates if template[0] != "b"]
    return ["b:", *(f"u:{test}" for test in dict.fromkeys(tests))]


def make_pipeline(config: Path) -> Language:
    """A pipeline of the config's language and component, with what CRFsuite knows of features."""
    read = load_config(config)
    settings = dict(read["components"][FACTORY])
    features = {
        "@crf_features": "spacy_sparsecrf.Templates.v1",
        "templates": plain(ENTITY_TEMPLATES),
        "start_label": False,
    }
    nlp = spacy.blank(read["nlp"]["lang"])
    factory = settings.pop("factory")
    # Several predictions are written to the same Docs.
    changed = {"features": features, "n_threads": 1, "names": False, "overwrite": True}
    nlp.add_pipe(factory, name=FACTORY, config={**settings, **changed})
    return nlp


def sequences(pipe: Any, docs: Sequence[Doc]) -> Iterator[list[list[str]]]:
    """Yield CRFsuite's attributes of each Doc's tokens: the hashes of their tests."""
    for doc in docs:
        found = pipe.features([doc], "docs")
        rows = found.hashes[:, found.unigram_columns]
        yield [[format(key, "x") for key in row if key] for row in rows.tolist()]


def score(pipe: Any, examples: Sequence[Example], ids: Ids) -> dict[str, float]:
    """Write labels to the predicted Docs and score them, in per cent."""
    pipe.set_annotations([example.predicted for example in examples], ids)
    scores = pipe.score(examples)
    return {name: round(100 * scores[f"ents_{name}"], 2) for name in ("p", "r", "f")}


def train_ours(nlp: Language, train: list[Example]) -> dict[str, Any]:
    """Train the component to convergence; its figures."""
    pipe: Any = nlp.get_pipe(FACTORY)
    with measured() as cost:
        nlp.initialize(lambda: train)
        objective, before = 0.0, np.inf
        while objective != before:
            before, objective = objective, nlp.update(train[:1])[FACTORY]
        # The model is taken from the run when something is predicted.
        pipe.predict([train[0].predicted])
    return _figures(cost, objective, pipe.model.n_active)


def train_crfsuite(pipe: Any, train: list[Example], path: Path) -> dict[str, Any]:
    """Train CRFsuite on the labels that the component has; its figures."""
    number = {label: str(i) for i, label in enumerate(pipe.label_data)}
    penalty = {"c1": pipe.settings.l1, "c2": pipe.settings.l2 / 2}
    trainer = crfsuite.new_trainer(**penalty, **_STOPPING)
    with measured() as cost:
        attributes = sequences(pipe, [example.predicted for example in train])
        for example, found in zip(train, attributes, strict=True):
            trainer.append(found, [number[label] for label in pipe.target.gold(example)])
        trainer.train(str(path))
    last = trainer.logparser.last_iteration
    return _figures(cost, last["loss"], last["active_features"])


def _figures(cost: Cost, objective: float, n_active: int) -> dict[str, Any]:
    return {
        "cpu_seconds": round(cost.cpu, 1),
        "wall_seconds": round(cost.wall, 1),
        "objective": round(objective, 2),
        "active_weights": n_active,
    }


def predictions(nlp: Language, docs: list[Doc], path: Path) -> dict[str, Ids]:
    """The labels that each of the two finds in Docs, and ours where it may break the rules."""
    import pycrfsuite

    pipe: Any = nlp.get_pipe(FACTORY)
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    theirs = [np.array(tagger.tag(found), dtype=np.int32) for found in sequences(pipe, docs)]
    ends = np.cumsum([len(doc) for doc in docs])[:-1]
    free = np.split(Decoder(pipe.model).viterbi(pipe.features(docs, "docs")), ends)
    return {OURS: pipe.predict(docs), FREE: free, crfsuite.NAME: theirs}


def main(
    config: Annotated[Path, typer.Argument(help="Config of our component")],
    data: Annotated[str, typer.Argument(help="Corpus files: DATA-{train,dev,test}.spacy")],
    output: Annotated[Path, typer.Argument(help="JSON file for the figures")],
) -> None:
    """Train both, and score whole entities of the gold tokens of both parts."""
    nlp = make_pipeline(config)
    pipe: Any = nlp.get_pipe(FACTORY)
    train = list(gold_tokens(Path(f"{data}-train.spacy"))(nlp))
    figures: dict[str, Any] = {OURS: train_ours(nlp, train), FREE: {}}
    with TemporaryDirectory() as directory:
        path = Path(directory) / "model.crfsuite"
        figures[crfsuite.NAME] = train_crfsuite(pipe, train, path)
        for part in ("dev", "test"):
            examples = list(gold_tokens(Path(f"{data}-{part}.spacy"))(nlp))
            found = predictions(nlp, [example.predicted for example in examples], path)
            for name, ids in found.items():
                figures[name][part] = score(pipe, examples, ids)
    figures["python-crfsuite"] = importlib.metadata.version("python-crfsuite")
    output.parent.mkdir(parents=True, exist_ok=True)
    srsly.write_json(output, figures)
    header = ["", "dev F1", "test F1", "CPU s", "active weights", "objective"]
    rows = [
        [name, f["dev"]["f"], f["test"]["f"], *(f.get(key, "") for key in _SHOWN)]
        for name, f in figures.items()
        if isinstance(f, dict)
    ]
    msg.table(rows, header=header, divider=True)


if __name__ == "__main__":
    typer.run(main)
