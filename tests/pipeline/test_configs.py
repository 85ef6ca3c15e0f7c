"""Every solver comes with a config, and every config trains."""

from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin
from spacy.util import load_config

from ..conftest import SHIPPED_CONFIG, Corpus
from ..decoding.span_cases import span_examples, training_sentences
from ..solvers.in_use import SOLVERS_IN_USE
from ..toy import accuracy
from ..training.test_training_loop import run_training

ALL = sorted(SHIPPED_CONFIG.parent.glob("*.cfg"))
CONFIGS = [
    path
    for path in ALL
    if "sparse_crf" in load_config(path)["components"] and not path.stem.endswith("_classes")
]


def solver_of(path: Path) -> str:
    return load_config(path)["components"]["sparse_crf"]["solver"]["@crf_solvers"]


def test_every_solver_has_a_config():
    assert sorted(map(solver_of, CONFIGS)) == sorted(SOLVERS_IN_USE)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_configs_train(path: Path, corpus: Corpus):
    overrides = {
        "paths.train": str(corpus.train_path),
        "paths.dev": str(corpus.dev_path),
        "training.max_steps": 4,
        "training.patience": 0,
        "components.sparse_crf.n_threads": 1,
    }
    nlp, rows = run_training(load_config(path, overrides=overrides))
    assert len(rows) >= 4
    assert accuracy(nlp, corpus.dev) > 0.9


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_solver_stops_on_the_development_score(path: Path, corpus: Corpus):
    overrides = {
        "paths.train": str(corpus.train_path),
        "paths.dev": str(corpus.dev_path),
        "training.patience": 2,
        "training.max_steps": 60,
        "components.sparse_crf.n_threads": 1,
    }
    _, rows = run_training(load_config(path, overrides=overrides))
    scores = [float(row[3]) for row in rows]
    assert len(rows) == scores.index(max(scores)) + 1 + 2 < 60


# The toy spans have no tags, which the default templates of spans read.
@pytest.mark.filterwarnings("ignore:.*SCW205.* read tag,")
@pytest.mark.parametrize(
    ("name", "key", "score"), [("ner", "ents", "ents_f"), ("spans", "sc", "spans_sc_f")]
)
def test_configs_of_spans_train(name: str, key: str, score: str, tmp_path: Path):
    nlp = spacy.blank("en")
    docs = [example.reference for example in span_examples(nlp, training_sentences(), key)]
    DocBin(docs=docs).to_disk(tmp_path / "train.spacy")
    component = f"components.sparse_crf_{name}"
    overrides = {
        "paths.train": str(tmp_path / "train.spacy"),
        "paths.dev": str(tmp_path / "train.spacy"),
        "training.patience": 0,
        "training.max_steps": 3,
        f"{component}.n_threads": 1,
    }
    config = load_config(SHIPPED_CONFIG.parent / f"{name}.cfg", overrides=overrides)
    trained, rows = run_training(config)
    assert len(rows) >= 3
    scores = trained.evaluate(span_examples(trained, training_sentences(), key))
    assert scores[score] > 0.95


@pytest.mark.parametrize("name", ["ner_documents", "ner_classes", "tagger_classes"])
def test_configs_of_documents_and_classes_train(name: str, corpus: Corpus, tmp_path: Path):
    config = load_config(SHIPPED_CONFIG.parent / f"{name}.cfg")
    (component,) = config["nlp"]["pipeline"]
    block = config["components"][component]
    if "clusters" in block["features"]:
        (tmp_path / "paths").write_text("0110\tmir\t7\n", encoding="utf8")
        block["features"]["clusters"] = {"brown": {"path": str(tmp_path / "paths")}}
    train, dev = corpus.train_path, corpus.dev_path
    if component == "sparse_crf_ner":
        nlp, train, dev = spacy.blank("en"), tmp_path / "train.spacy", tmp_path / "train.spacy"
        docs = [e.reference for e in span_examples(nlp, training_sentences(), "ents")]
        DocBin(docs=docs).to_disk(train)
    config["paths"].update(train=str(train), dev=str(dev))
    config["training"].update(max_steps=2, patience=0)
    block["n_threads"] = 1
    nlp, rows = run_training(config)
    assert len(rows) >= 2
    assert (nlp.get_pipe(component).model.first is not None) == (component == "sparse_crf_ner")


def test_headers_name_their_files():
    for path in ALL:
        assert f"spacy_sparsecrf config {path.stem} >" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_what_initialize_takes_can_be_overridden_on_the_command_line(path: Path):
    config = load_config(path)
    [name] = config["nlp"]["pipeline"]
    keys = "init_weights", "checkpoint", "cache_dir"
    assert config["initialize"]["components"] == {name: dict.fromkeys(keys)}
    overrides = {f"initialize.components.{name}.{key}": f"a/{key}" for key in keys}
    block = load_config(path, overrides=overrides)["initialize"]["components"][name]
    assert block == {key: f"a/{key}" for key in keys}
