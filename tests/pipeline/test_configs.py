"""Every solver has a config, and every config trains."""

from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin
from spacy.util import load_config
from thinc.api import Config

from spacy_sparsecrf.cli.config import make_config, shipped_configs
from spacy_sparsecrf.cli.solver_configs import MAXENT, TAGGER, VARIANTS
from spacy_sparsecrf.registry import crf_solvers

from ..cli.commands import run_spacy
from ..conftest import CONFIGS as CONFIG_DIR
from ..conftest import Corpus
from ..decoding.span_cases import span_examples, training_sentences
from ..toy import accuracy
from ..training.test_training_loop import run_training

ALL = sorted(CONFIG_DIR.glob("*.cfg"))
BASES = {TAGGER: "OWLQN", MAXENT: "GIS"}
# Tagger configs by test id, one for each solver.
CONFIGS = {name: name for name in BASES} | {
    solver: f"{variant.base} --solver {solver}"
    for solver, variant in VARIANTS.items()
    if solver not in BASES.values()
}


CONFIG_NAMES = {solver: f"{variant.base} --solver {solver}" for solver, variant in VARIANTS.items()}


def load_text(text: str) -> Config:
    return Config().from_str(text, interpolate=False)


def config_of(name: str, overrides: dict[str, object] | None = None) -> Config:
    return Config().from_str(shipped_configs()[CONFIGS[name]], overrides=overrides or {})


def test_every_solver_has_a_config():
    blocks = [config_of(name)["components"]["crf"]["solver"] for name in CONFIGS]
    assert sorted(block["@crf_solvers"] for block in blocks) == sorted(crf_solvers.get_all())


@pytest.mark.parametrize("name", CONFIGS)
def test_every_config_trains_and_stops_on_the_development_score(name: str, corpus: Corpus):
    overrides = {
        "paths.train": str(corpus.train_path),
        "paths.dev": str(corpus.dev_path),
        "training.patience": 2,
        "training.max_epochs": 0,
        "training.max_steps": 60,
        "components.crf.n_threads": 1,
    }
    nlp, rows = run_training(config_of(name, overrides))
    scores = [float(row[3]) for row in rows]
    assert len(rows) == scores.index(max(scores)) + 1 + 2 < 60
    assert accuracy(nlp, corpus.dev) > 0.9


# The toy spans have no tags, which the default span templates read.
@pytest.mark.filterwarnings("ignore:.*SCW205.* read tag,")
@pytest.mark.parametrize(
    ("name", "key", "score"), [("ner", "ents", "ents_f"), ("spans", "sc", "spans_sc_f")]
)
def test_configs_of_spans_train(name: str, key: str, score: str, tmp_path: Path):
    nlp = spacy.blank("en")
    docs = [example.reference for example in span_examples(nlp, training_sentences(), key)]
    DocBin(docs=docs).to_disk(tmp_path / "train.spacy")
    component = f"components.{ {'spans': 'chunks'}.get(name, name) }"
    overrides = {
        "paths.train": str(tmp_path / "train.spacy"),
        "paths.dev": str(tmp_path / "train.spacy"),
        "training.patience": 0,
        "training.max_steps": 3,
        f"{component}.n_threads": 1,
    }
    config = load_config(CONFIG_DIR / f"{name}.cfg", overrides=overrides)
    trained, rows = run_training(config)
    assert len(rows) >= 2
    scores = trained.evaluate(span_examples(trained, training_sentences(), key))
    assert scores[score] > 0.95


@pytest.mark.parametrize("name", ["ner_documents", "ner_classes", "tagger_classes"])
def test_configs_of_documents_and_classes_train(name: str, corpus: Corpus, tmp_path: Path):
    config = load_config(CONFIG_DIR / f"{name}.cfg")
    _, component = config["nlp"]["pipeline"]
    block = config["components"][component]
    if "clusters" in block["features"]:
        (tmp_path / "paths").write_text("0110\tmir\t7\n", encoding="utf8")
        block["features"]["clusters"] = {"brown": {"path": str(tmp_path / "paths")}}
    train, dev = corpus.train_path, corpus.dev_path
    if component == "ner":
        nlp, train, dev = spacy.blank("en"), tmp_path / "train.spacy", tmp_path / "train.spacy"
        docs = [e.reference for e in span_examples(nlp, training_sentences(), "ents")]
        DocBin(docs=docs).to_disk(train)
    config["paths"].update(train=str(train), dev=str(dev))
    config["training"].update(max_steps=2, patience=0)
    block["n_threads"] = 1
    nlp, rows = run_training(config)
    assert len(rows) >= 2
    assert (nlp.get_pipe(component).model.first is not None) == (component == "ner")


def test_headers_name_their_configs():
    for name, text in shipped_configs().items():
        assert f"spacy_sparsecrf config {name} >" in text


@pytest.mark.parametrize("solver", VARIANTS)
def test_variants_have_the_solver_its_penalties_and_nothing_else(solver: str):
    variant = VARIANTS[solver]
    base, own = (
        load_text(shipped_configs()[name]) for name in (variant.base, CONFIG_NAMES[solver])
    )
    block = own["components"]["crf"]
    assert block["solver"].pop("@crf_solvers") == f"spacy_sparsecrf.{solver}.v1"
    names = [line.split(" = ")[0] for line in variant.settings if not line.startswith("#")]
    assert [*block["solver"]] == names
    assert (block["l1"], block["l2"]) == tuple(map(float, variant.penalty))
    assert own["training"]["patience"] == variant.patience
    for config in base, own:
        for key in "solver", "l1", "l2":
            del config["components"]["crf"][key]
        del config["training"]["patience"]
    polish = {"iterations": 5} if solver == "BCD" else None
    assert block["learning"].pop("polish", None) == polish
    assert own == base


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_what_initialize_takes_can_be_overridden_on_the_command_line(path: Path):
    config = load_config(path)
    name = config["nlp"]["pipeline"][-1]
    keys = "init_weights", "checkpoint"
    assert config["initialize"]["components"] == {name: dict.fromkeys(keys)}
    overrides = {f"initialize.components.{name}.{key}": f"a/{key}" for key in keys}
    block = load_config(path, overrides=overrides)["initialize"]["components"][name]
    assert block == {key: f"a/{key}" for key in keys}


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_configs_are_complete(path: Path, corpus: Corpus, tmp_path: Path):
    arguments = corpus.arguments
    if path.stem == "ner_upstream":
        nlp = spacy.blank("en")
        nlp.add_pipe("entity_ruler", name="ner")
        nlp.to_disk(tmp_path)
        arguments = [*arguments, "--paths.upstream", str(tmp_path)]
    run_spacy("debug", "config", path, *arguments)


def test_texts_are_cut_into_sentences_in_training_and_prediction(corpus: Corpus):
    overrides = {**corpus.overrides, "training.max_steps": 1, "components.crf.n_threads": 1}
    nlp, _ = run_training(config_of(TAGGER, overrides))
    assert nlp.get_pipe("crf").cfg["sequences"] == "sents"
    assert len(list(nlp("The man walks. The plan works.").sents)) == 2
    for name in shipped_configs():
        base, _, solver = name.partition(" --solver ")
        text = make_config(base, solver, sentencizer=False)
        config, whole = load_text(text), load_text(make_config(base, solver))
        assert "sentencizer" not in config.to_str()
        del whole["components"]["sentencizer"]
        whole["nlp"]["pipeline"].remove("sentencizer")
        annotating = whole["training"]["annotating_components"]
        whole["training"]["annotating_components"] = annotating[1:]
        assert config == whole
