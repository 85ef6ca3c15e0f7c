"""Pipelines saved before the package was restructured load, and predict the same.

Version 0.1.0 at commit 433df4b created `models`: it trained each pipeline for a few steps on
sentences from a small generator with fixed seeds, saved it without vocab and tokenizer, and
stored the saved pipeline's predictions for further generated sentences.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, Token
from spacy.training import Example
from spacy.vocab import Vocab

# Their configs use former names of settings.
pytestmark = pytest.mark.filterwarnings("ignore:.*SCW213")
MODELS = Path(__file__).parent / "models"
NAMES = ["tags", "nameless", "tags_float64", "pairs_and_numbers", "entities", "spans", "clusters"]
NAMES += ["memm", "patterns", "cut_off"]
Json = dict[str, Any]


@pytest.fixture(autouse=True)
def _extension() -> Iterator[None]:
    """Register the numbers that `pairs_and_numbers` reads."""
    Token.set_extension("num", default=None)
    yield
    Token.remove_extension("num")


def load(name: str) -> Language:
    """Load a saved pipeline, with a current tokenizer."""
    return spacy.load(MODELS / name, exclude=["tokenizer"])


def read(name: str) -> Json:
    """Read the predictions of the old version."""
    return json.loads((MODELS / f"{name}.json").read_text(encoding="utf8"))


def pipe_of(nlp: Language) -> Any:
    """Return the only component."""
    return nlp.get_pipe(nlp.pipe_names[0])


def doc_of(vocab: Vocab, sentence: Json) -> Doc:
    """Create a Doc with the annotation that features read from a sentence."""
    keys = ("words", "spaces", "tags", "sent_starts")
    doc = Doc(vocab, **{key: sentence[key] for key in keys if key in sentence})
    for token, number in zip(doc, sentence.get("num", [None] * len(doc)), strict=True):
        token._.num = number
    return doc


def examples_of(vocab: Vocab, sentences: list[Json]) -> list[Example]:
    """Create Examples of tagged sentences; predicted Docs have no tags."""
    gold = [doc_of(vocab, sentence) for sentence in sentences]
    bare = [doc_of(vocab, {**sentence, "tags": None}) for sentence in sentences]
    return [Example(*pair) for pair in zip(bare, gold, strict=True)]


def annotation_of(doc: Doc, target: str) -> list[Any]:
    """Return the tags, or the entities or spans of a group, in JSON form."""
    if target == "tags":
        return [token.tag_ for token in doc]
    group = doc.ents if target == "ents" else doc.spans[target]
    return [[span.start, span.end, span.label_] for span in group]


def assert_predicts(nlp: Language, case: Json, expected: Json, atol: float = 1e-9) -> None:
    """Compare labels, marginals and annotation with the stored values."""
    docs = [doc_of(nlp.vocab, sentence) for sentence in case["sentences"]]
    pipe = pipe_of(nlp)
    assert list(pipe.label_data) == expected["labels"]
    for found, rows in zip(pipe.marginals(docs), expected["marginals"], strict=True):
        np.testing.assert_allclose(found, rows, rtol=0.0, atol=atol)
    annotated = [annotation_of(doc, case["target"]) for doc in nlp.pipe(docs)]
    assert annotated == expected["predicted"]


def split(lines: list[str]) -> tuple[list[str], list[float]]:
    """Split lines into keys and weights."""
    pairs = [line.rpartition("\t") for line in lines]
    return [key for key, _, _ in pairs], [float(weight) for _, _, weight in pairs]


def start_of(how: str, name: str, directory: Path) -> dict[str, Path]:
    """Return the file to resume from; a copy if it is a checkpoint, which training overwrites."""
    if how == "init_weights":
        return {how: MODELS / name}
    return {how: Path(shutil.copy(MODELS / f"{name}.checkpoint", directory))}


def train(pipe: Any, examples: list[Example], n: int) -> list[float]:
    """Train for n steps; return the objectives."""
    found = []
    for _ in range(n):
        found.append(pipe.update(examples[:1])[pipe.name])
        pipe.finish_update(None)
    return found


def test_there_is_a_case_for_each_model() -> None:
    assert sorted(path.name for path in MODELS.iterdir() if path.is_dir()) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_predictions_are_what_they_were_and_so_are_those_after_saving_again(
    name: str, tmp_path: Path
) -> None:
    case, nlp = read(name), load(name)
    nlp.to_disk(tmp_path)
    assert_predicts(nlp, case, case)
    assert_predicts(spacy.load(tmp_path), case, case)


@pytest.mark.parametrize("name", ["tags", "nameless", "patterns"])
def test_weights_and_names_of_tests_are_what_they_were(name: str) -> None:
    pipe = pipe_of(load(name))
    assert list(pipe.dump()) == read(name)["weights"]
    assert pipe.model.dtype == "float32"
    assert pipe_of(load("tags_float64")).model.dtype == "float64"


# An interrupted run resumes as before, except that pairs of differences are float32 now; from
# weights alone, the solver may take different steps.
@pytest.mark.filterwarnings("ignore:.*SCW220")
@pytest.mark.parametrize(
    ("name", "how", "rtol"),
    [("cut_off", "checkpoint", 1e-7), ("tags_float64", "init_weights", 4e-3)],
)
def test_training_goes_on_from_files_of_then(
    name: str, how: str, rtol: float, tmp_path: Path
) -> None:
    case, nlp = read(name), load(name)
    expected, pipe = case["continued"], pipe_of(nlp)
    examples = examples_of(nlp.vocab, case["train"])
    pipe.initialize(lambda: examples, nlp=nlp, **start_of(how, name, tmp_path))
    objectives = train(pipe, examples, len(expected["objectives"]))
    np.testing.assert_allclose(objectives, expected["objectives"], rtol=rtol)
    if how != "checkpoint":
        return
    keys, weights = split(list(pipe.dump()))
    expected_keys, expected_weights = split(expected["weights"])
    assert keys == expected_keys
    np.testing.assert_allclose(weights, expected_weights, rtol=0.0, atol=rtol)
    assert_predicts(nlp, case, expected, atol=rtol)
