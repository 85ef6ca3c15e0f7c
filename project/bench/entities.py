"""Our entity recognizer beside CRFsuite: the same tests, the same labels, the same penalty.

CRFsuite's input is what the component's own featurizer and target make of the Docs. It knows
neither a start label nor pairs of labels with a test, so ours does without them here. Both have
weights for the pairs of a test and a label that occur in the training part, and for the transitions
that do, so that they minimise the same function: objectives are compared, and the run fails where
they differ. Both train until they converge, with no look at the development part. What remains of
a difference is decoding: ours leaves out sequences of labels that are not legal, and is scored
without that too.
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
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_config
from wasabi import msg

from spacy_sparsecrf.decoding.decoder import Decoder
from spacy_sparsecrf.features.defaults import ENTITY_TEMPLATES
from spacy_sparsecrf.pipeline.corpora import make_annotated_corpus

from . import crfsuite
from .timing import Cost, measured

FACTORY = "sparse_crf_ner"
OURS, FREE = "spacy-sparsecrf", "spacy-sparsecrf, unconstrained"
# CRFsuite stops where ten iterations gain less than delta, relative; its default is 1e-5.
_STOPPING = {"epsilon": 1e-5, "delta": 1e-6}
_CLOSE = 1e-3  # relative: what objectives may differ by
_SHOWN = ("cpu_seconds", "active_weights", "objective")

Ids = list[NDArray[np.int32]]


def plain(templates: Sequence[str]) -> list[str]:
    """Templates without tests of pairs of labels, but for the transitions."""
    tests = [template.partition(":")[2] for template in templates if template[0] != "b"]
    return ["b:", *(f"u:{test}" for test in dict.fromkeys(tests))]


def make_pipeline(config: Path) -> Language:
    """A pipeline of the config's language and component, with the weights that CRFsuite has."""
    read = load_config(config)
    settings = dict(read["components"][FACTORY])
    features = {
        "@crf_features": "spacy_sparsecrf.Templates.v1",
        "templates": plain(ENTITY_TEMPLATES),
        "start_label": False,
    }
    nlp = spacy.blank(read["nlp"]["lang"])
    factory = settings.pop("factory")
    changed = {
        "features": features,
        # CRFsuite: neither possible states nor possible transitions.
        "learning": {"observed_only": True},
        "n_threads": 1,
        "store_feature_names": False,
        # Several predictions are written to the same Docs.
        "overwrite": True,
    }
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
        "objective": round(objective, 3),
        "active_weights": n_active,
    }


def check(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Raise ValueError unless both have found the same minimum."""
    if abs(ours["objective"] - theirs["objective"]) > _CLOSE * theirs["objective"]:
        raise ValueError(f"CRFsuite has another minimum: {theirs}, not {ours}")


def our_predictions(pipe: Any, docs: list[Doc]) -> dict[str, Ids]:
    """The labels that ours finds in Docs, and those that it finds where it may break the rules."""
    ends = np.cumsum([len(doc) for doc in docs])[:-1]
    free = np.split(Decoder(pipe.model).viterbi(pipe.features(docs, "docs")), ends)
    return {OURS: pipe.predict(docs), FREE: free}


def their_predictions(pipe: Any, docs: list[Doc], path: Path) -> Ids:
    """The labels that CRFsuite's model finds in Docs."""
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    return [np.array(tagger.tag(found), dtype=np.int32) for found in sequences(pipe, docs)]


def main(
    config: Annotated[Path, typer.Argument(help="Config of our component")],
    data: Annotated[str, typer.Argument(help="Corpus files: DATA-{train,dev,test}.spacy")],
    output: Annotated[Path, typer.Argument(help="JSON file for the figures")],
) -> None:
    """Train both, and score whole entities of the gold tokens of both parts."""
    nlp = make_pipeline(config)
    pipe: Any = nlp.get_pipe(FACTORY)
    train = list(make_annotated_corpus(Path(f"{data}-train.spacy"), gold_tokens=True)(nlp))
    figures: dict[str, Any] = {OURS: train_ours(nlp, train), FREE: {}}
    with TemporaryDirectory() as directory:
        path = Path(directory) / "model.crfsuite"
        figures[crfsuite.NAME] = train_crfsuite(pipe, train, path)
        for part in ("dev", "test"):
            read = make_annotated_corpus(Path(f"{data}-{part}.spacy"), gold_tokens=True)
            examples = list(read(nlp))
            docs = [example.predicted for example in examples]
            found = our_predictions(pipe, docs)
            found[crfsuite.NAME] = their_predictions(pipe, docs, path)
            for name, ids in found.items():
                figures[name][part] = score(pipe, examples, ids)
    figures |= {"l1": pipe.settings.l1, "l2": pipe.settings.l2}
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
    check(figures[OURS], figures[crfsuite.NAME])


if __name__ == "__main__":
    typer.run(main)
