"""Every solver has a config, and every config trains."""

import functools
import json
import random
import re
import shutil
from pathlib import Path

import pytest
import spacy
from spacy.cli._util import parse_config_overrides
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import load_config, load_config_from_str, load_model_from_config
from thinc.api import Config

from spacy_sparsecrf.registry import crf_solvers
from spacy_sparsecrf.tools.cli.config import make_config, shipped_configs, with_types
from spacy_sparsecrf.tools.cli.solver_configs import MAXENT, TAGGER, VARIANTS

from ..conftest import CONFIGS
from ..support.commands import run_spacy
from ..support.runs import run_training
from ..support.span_cases import TRAINING, add_spans, span_examples, spans_of
from ..support.toy import accuracy, call_methods

ALL = sorted(CONFIGS.glob("*.cfg"))
BASES = {TAGGER: "OWLQN", MAXENT: "GIS"}
CONFIG_NAMES = {solver: f"{variant.base} --solver {solver}" for solver, variant in VARIANTS.items()}
# Tagger configs by test id, one for each solver.
TAGGERS = {name: name for name in BASES}
TAGGERS |= {key: name for key, name in CONFIG_NAMES.items() if key not in BASES.values()}


def config_of(name: str, overrides: dict[str, object] | None = None) -> Config:
    return Config().from_str(shipped_configs()[TAGGERS[name]], overrides=overrides or {})


def test_every_solver_has_a_config_and_headers_name_their_configs():
    blocks = [config_of(name)["components"]["crf"]["solver"] for name in TAGGERS]
    assert sorted(block["@crf_solvers"] for block in blocks) == sorted(crf_solvers.get_all())
    for name, text in shipped_configs().items():
        assert f"spacy_sparsecrf config {name} >" in text


@pytest.mark.parametrize("name", TAGGERS)
def test_every_config_trains_and_stops_on_the_development_score(name, corpus):
    overrides = {**corpus.overrides, "training.patience": 2, "training.max_epochs": 0}
    overrides |= {"training.max_steps": 60, "components.crf.n_threads": 1, "nlp.lang": "xx"}
    nlp, rows = run_training(config_of(name, overrides))
    scores = [float(row[3]) for row in rows]
    assert len(rows) == scores.index(max(scores)) + 1 + 2 < 60
    assert accuracy(nlp, corpus.dev) > 0.9
    call_methods(nlp.get_pipe("crf"), nlp.make_doc("The plan works. A man walks."))


NAMES = ["ner", "strings", "spans", "ner_documents", "ner_classes", "tagger_classes"]


# The toy spans have no tags, which the default span templates read.
@pytest.mark.filterwarnings("ignore:.*SCW205.* read tag,")
@pytest.mark.parametrize("name", NAMES)
def test_configs_of_spans_documents_and_classes_train(name, corpus, tmp_path):
    config = load_config(CONFIGS / f"{name}.cfg", overrides={"nlp.lang": "xx"})
    component = config["nlp"]["pipeline"][-1]
    block = config["components"][component]
    if "clusters" in block["features"]:
        (tmp_path / "paths").write_text("0110\tmir\t7\n", encoding="utf8")
        block["features"]["clusters"] = {"brown": {"path": str(tmp_path / "paths")}}
    train, dev = corpus.train_path, corpus.dev_path
    key = {"ner": "ents", "fields": "ents", "chunks": "sc"}.get(component)
    if key:
        examples = span_examples(spacy.blank("xx"), TRAINING, key)
        train = dev = tmp_path / "train.spacy"
        DocBin(docs=[example.reference for example in examples]).to_disk(train)
    config["paths"].update(train=str(train), dev=str(dev))
    config["training"].update(max_steps=3 if name in NAMES[:3] else 2, patience=0)
    block["n_threads"] = 1
    nlp, rows = run_training(config)
    assert len(rows) >= 2
    if name in NAMES[:3]:
        scores = nlp.evaluate(span_examples(nlp, TRAINING, key))
        assert scores["ents_f" if key == "ents" else "spans_sc_f"] > 0.95
    stacked = name == "ner_documents"
    assert (nlp.get_pipe(component).model.first is not None) == stacked
    call_methods(nlp.get_pipe(component), nlp.make_doc("The plan works. A man walks."))


@pytest.mark.parametrize("solver", VARIANTS)
def test_variants_have_the_solver_its_penalties_and_nothing_else(solver):
    variant = VARIANTS[solver]
    base, own = (
        Config().from_str(shipped_configs()[name], interpolate=False)
        for name in (variant.base, CONFIG_NAMES[solver])
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
    polish = {"iterations": 5} if solver == "BCD" else {}
    assert block["learning"].pop("polish") == polish
    assert base["components"]["crf"]["learning"].pop("polish") == {}
    assert own == base


OF, LEARNING = "components.NAME.", "components.NAME.learning."
# The tables of keys, by page and heading, and the section of their keys.
TABLES = {
    ("settings", "Component"): OF,
    ("settings", "Learning"): LEARNING,
    ("settings", "`stack`: two stages"): f"{LEARNING}stack.",
    ("settings", "Initialization"): "initialize.components.NAME.",
    ("settings", "Training loop"): "training.",
    ("decoding", "Settings"): f"{OF}decoding.",
}
# Values other than defaults, as texts on the command line; of sections, a value of a key.
SETTINGS = {
    **{"l1": "0.125", "l2": "0.75", "model": "memm", "sequences": "sents", "n_threads": "3"},
    **{"overwrite": "true", "threshold": "0.75"},
    **{"decoding.method": "posterior", "decoding.forbidden": '[["", "I-X"]]'},
    **{"decoding.allowed": '[["A", "B"]]', "decoding.scores": "true", "decoding.temperature": "2"},
    **{"decoding.outside_weight": "-0.5", "decoding.thresholds": '{"X": 0.25}'},
    **{"decoding.once": '["X"]'},
    **{"learning.min_freq": "2", "learning.observed_only": "true", "learning.prior": "somewhere"},
    **{"learning.label_weights": '{"B-X": 2.5}', "learning.doc_weight": "weight"},
    **{"learning.negative_rate": "0.5", "learning.negative_seed": "4"},
    **{"learning.constrained": "true", "learning.clusters": "9", "learning.precision": "float32"},
    **{"learning.dtype": "float64", "learning.store_feature_names": "false"},
    **{f"learning.warm_start.{key}": "7" for key in ("epochs", "seed")},
    **{f"learning.warm_start.{key}": "true" for key in ("averaged", "evaluated")},
    **{"learning.polish.iterations": "3", "learning.polish.l2": "0.25"},
    **{"learning.stack.folds": "7", "learning.stack.steps": "8"},
    **{"learning.stack.l1": "0.125", "learning.stack.l2": "0.5"},
}
PARTS = {
    f"{OF}features.templates": '["b:", "u:lower[0]"]',
    f"{OF}target.@crf_targets": "spacy_sparsecrf.Spans.v1",
    f"{OF}solver.seed": "5",
    f"{OF}engine.@crf_engines": "spacy_sparsecrf.Ray.v1",
    f"{OF}scorer.@scorers": "spacy.senter_scorer.v1",
    **{f"initialize.components.NAME.{key}": "x" for key in ("init_weights", "checkpoint")},
    **{f"initialize.components.NAME.{key}": '["x", "y"]' for key in ("shards", "labels")},
    **{"training.patience": "77", "training.max_epochs": "78", "training.max_steps": "79"},
    "training.score_weights.speed": "0.5",
    "training.batcher.@batchers": "spacy.batch_by_padded.v1",
}


def keys_of(page: str, heading: str) -> list[str]:
    """Return the keys in the first columns of the tables of a part of a page."""
    text = (CONFIGS.parent / "docs" / f"{page}.md").read_text(encoding="utf-8")
    [part] = re.findall(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", text, flags=re.M | re.S)
    cells = re.findall(r"^\| ([^|]*`[^|]*) \|", part, flags=re.M)
    return [
        key for cell in cells[int("key of" in cells[0]) :] for key in re.findall(r"`(\w+)`", cell)
    ]


def test_every_key_of_the_pages_is_set_below():
    known = {*PARTS, *(OF + key for key in SETTINGS)}
    found = {place + key for table, place in TABLES.items() for key in keys_of(*table)}
    found -= {f"{OF}decoding.threshold"}  # a key of the component, see the table above
    assert len(found) > 40
    assert [
        key for key in found if not any(f"{each}.".startswith(f"{key}.") for each in known)
    ] == []
    assert {
        each for each in known if not any(f"{each}.".startswith(f"{key}.") for key in found)
    } == set()


TEXTS = shipped_configs()
TEXTS["spans --types"] = with_types(TEXTS["spans"], [["A"], ["B", "C"]])


@pytest.mark.parametrize("name", TEXTS)
def test_every_documented_key_can_be_set_on_the_command_line(name, tmp_path):
    component = Config().from_str(TEXTS[name])["nlp"]["pipeline"][-1]
    (tmp_path / "config.cfg").write_text(TEXTS[name], encoding="utf8")
    keys = PARTS | {OF + key: value for key, value in SETTINGS.items()}
    arguments = [f"--{key.replace('NAME', component)}={value}" for key, value in keys.items()]
    overrides = parse_config_overrides(arguments)
    config = load_config(tmp_path / "config.cfg", overrides=overrides, interpolate=False)
    for key, value in overrides.items():
        assert functools.reduce(dict.__getitem__, key.split("."), config) == value


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_settings_of_the_command_line_reach_the_component(path, monkeypatch):
    # Some of the settings exclude each other.
    monkeypatch.setattr("spacy_sparsecrf.pipeline.settings.Setup.check", lambda *_: None)
    shipped = load_config(path)
    component = shipped["nlp"]["pipeline"][-1]
    initialize = {component: {"init_weights": None, "checkpoint": None}}
    assert shipped["initialize"]["components"] == initialize
    arguments = [f"--components.{component}.{key}={value}" for key, value in SETTINGS.items()]
    arguments.append("--nlp.lang=xx")
    config = load_config(path, overrides=parse_config_overrides(arguments), interpolate=False)
    if "upstream" in config["components"]:
        config["components"]["upstream"] = {"factory": "entity_ruler"}
    settings = load_model_from_config(config, auto_fill=True).get_pipe(component).settings
    shown = settings.model_dump(mode="json", exclude_unset=True)
    for key, value in SETTINGS.items():
        *blocks, last = key.split(".")
        found = functools.reduce(dict.__getitem__, blocks, shown)[last]
        assert found == (value if isinstance(found, str) else json.loads(value))


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_configs_are_complete(path, corpus, tmp_path):
    arguments = [*corpus.arguments, "--nlp.lang", "xx"]
    if path.stem == "ner_upstream":
        nlp = spacy.blank("xx")
        nlp.add_pipe("entity_ruler", name="ner")
        nlp.to_disk(tmp_path)
        arguments += ["--paths.upstream", str(tmp_path)]
    run_spacy("debug", "config", path, *arguments)


def doses(nlp: Language, n: int, seed: int) -> list[Doc]:
    """Return sentences with doses, which have full stops, and with other numbers."""
    rng, docs = random.Random(seed), []
    for _ in range(n):
        dose = f"{rng.choice(['tabl.', 'caps.', 'sol.'])} {rng.randint(1, 90)} mg p. o."
        page = f"{rng.choice(['no.', 'fol.', 'p.'])} {rng.randint(1, 90)}"
        before = rng.choice(["The patient takes ", "We raised this to ", "On admission had "])
        doc = nlp.make_doc(f"{before}{dose} daily, see {page}.")
        span = doc.char_span(len(before), len(before + dose), "DOSE", alignment_mode="expand")
        docs.append(doc if rng.random() < 0.7 else nlp.make_doc(f"Nothing is on {page}."))
        docs[-1].ents = [span] if doc is docs[-1] else []
    return docs


def test_entities_with_full_stops_are_found_in_sentences_and_in_texts(tmp_path):
    nlp, path = spacy.blank("en"), tmp_path / "train.spacy"
    DocBin(docs=doses(nlp, 200, 1)).to_disk(path)
    sentences = doses(nlp, 50, 2)
    texts = [Doc.from_docs(sentences[i : i + 10]) for i in range(0, 50, 10)]
    config = load_config_from_str(make_config("ner"))
    config["paths"].update(train=str(path), dev=str(path))
    config["components"]["ner"]["n_threads"] = 1
    trained, _ = run_training(config)
    for divided in (False, True):
        if divided:  # Boundaries that another pipe sets divide nothing.
            trained.add_pipe("sentencizer", first=True)
        for docs in (sentences, texts):
            examples = [Example(nlp.make_doc(doc.text), doc) for doc in docs]
            assert trained.evaluate(examples)["ents_f"] > 0.95


@pytest.fixture(scope="module", params=["ner", "sparse_crf_ner"])
def upstream(request, tmp_path_factory) -> Path:
    """A pipeline with spaCy's ner or ours that finds chunks, with types unlike the gold types."""
    nlp = spacy.blank("xx")
    nlp.add_pipe(request.param, name="ner")
    examples = span_examples(nlp, TRAINING, "ents")
    for example in examples:
        found = [(start, end, f"FOUND-{name}") for start, end, name in spans_of(example.y, "ents")]
        add_spans(example.y, found, "ents")
    nlp.initialize(lambda: examples)
    for _ in range(20 if request.param == "ner" else 2):
        nlp.update(examples)
    path = tmp_path_factory.mktemp("upstream") / request.param
    nlp.to_disk(path)
    return path


def test_entities_of_another_pipeline_are_features(upstream, tmp_path):
    """Training and evaluation read the other pipeline's predictions, never gold entities."""
    nlp = spacy.blank("xx")
    docs = [example.y for example in span_examples(nlp, TRAINING, "ents")]
    path, own = tmp_path / "train.spacy", shutil.copytree(upstream, tmp_path / "own")
    DocBin(docs=docs).to_disk(path)
    config = load_config(CONFIGS / "ner_upstream.cfg", overrides={"nlp.lang": "xx"})
    config["paths"].update(train=str(path), dev=str(path), upstream=str(own))
    config["training"].update(max_steps=2, patience=0)
    config["components"]["ner"]["n_threads"] = 1
    # Only the other pipeline provides evidence of entities.
    config["components"]["ner"]["features"]["templates"] = ["b:", "u:", "@spans(upstream)"]
    trained, rows = run_training(config)
    assert float(rows[-1][3]) > 95
    trained.to_disk(tmp_path / "trained")
    shutil.rmtree(own)
    loaded = spacy.load(tmp_path / "trained")
    doc = loaded(Doc(loaded.vocab, words=[token.text for token in docs[0]]))
    assert spans_of(doc, "ents") == spans_of(docs[0], "ents")
    assert {name for *_, name in spans_of(doc, "upstream")} <= {"FOUND-NP", "FOUND-VP"}
    # The upstream entities are kept, so that an annotated Doc gives the same features again.
    pipe = loaded.get_pipe("ner")
    assert pipe.entity_probabilities(doc, doc.ents).min() > 0.5
