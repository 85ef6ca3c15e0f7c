"""The config `ner_upstream`: entities of another pipeline as features."""

import shutil
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.util import load_config

from ..conftest import CONFIGS
from ..decoding.span_cases import add_spans, span_examples, spans_of, training_sentences
from ..training.test_training_loop import run_training


@pytest.fixture(scope="module", params=["ner", "sparse_crf_ner"])
def upstream(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pipeline with spaCy's ner or ours that finds chunks, with types unlike the gold types."""
    nlp = spacy.blank("en")
    nlp.add_pipe(request.param, name="ner")
    examples = span_examples(nlp, training_sentences(), "ents")
    for example in examples:
        found = [(start, end, f"FOUND-{name}") for start, end, name in spans_of(example.y, "ents")]
        add_spans(example.y, found, "ents")
    nlp.initialize(lambda: examples)
    for _ in range(20 if request.param == "ner" else 2):
        nlp.update(examples)
    path = tmp_path_factory.mktemp("upstream") / request.param
    nlp.to_disk(path)
    return path


def test_entities_of_another_pipeline_are_features(upstream: Path, tmp_path: Path) -> None:
    """Training and evaluation read the other pipeline's predictions, never gold entities."""
    nlp = spacy.blank("en")
    docs = [example.y for example in span_examples(nlp, training_sentences(), "ents")]
    path, own = tmp_path / "train.spacy", shutil.copytree(upstream, tmp_path / "own")
    DocBin(docs=docs).to_disk(path)
    config = load_config(CONFIGS / "ner_upstream.cfg")
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
