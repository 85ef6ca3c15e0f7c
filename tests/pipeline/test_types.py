"""Components that learn and write some types of spans only, with the same key."""

import random

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_config_from_str, load_model_from_config

from spacy_sparsecrf.pipeline.targets.entities import Entities
from spacy_sparsecrf.pipeline.targets.spans import SpanGroups
from spacy_sparsecrf.tools.cli.config import make_config, with_types

from ..support.span_cases import SpanTriple, add_spans, spans_of
from ..support.toy import ENGLISH, train

# Some Docs have no group of spans.
pytestmark = pytest.mark.filterwarnings("ignore:.SCW227")
TEMPLATES = ["b:", "b:lower[0]", "u:", "u:lower[0]", "u:lower[-1]", "u:lower[1]"]
# Phrases with nested spans, and without; some words occur with several annotations.
PHRASES: list[tuple[str, list[SpanTriple]]] = [("mayor of ulm", [(0, 3, "PER"), (2, 3, "LOC")])]
PHRASES += [("bank of kiel", [(0, 3, "ORG"), (2, 3, "LOC")]), ("ulm", [(0, 1, "LOC")])]
PHRASES += [("ada", [(0, 1, "PER")]), ("runs", []), ("of", [])]
TYPES = (("PER", "ORG"), ("LOC",))


def pipeline(*types: tuple[str, ...]) -> Language:
    """Return a trained pipeline with a component for each set of types."""
    features = {"@crf_features": "spacy_sparsecrf.Templates.v1", "templates": TEMPLATES}
    own = {"features": features, "decoding": {"scores": True}, "n_threads": 1}
    nlp = spacy.blank("xx")
    for each in types:
        target = {"@crf_targets": "spacy_sparsecrf.Spans.v1", "types": list(each)}
        nlp.add_pipe("sparse_crf_spans", name="+".join(each), config={**own, "target": target})
    train(nlp, make_examples(nlp), 8)
    return nlp


def make_examples(nlp: Language, n: int = 40) -> list[Example]:
    """Return Examples, the same in each call."""
    rng, found = random.Random(0), []
    for i in range(n):
        words, spans = [], []
        for text, own in rng.choices(PHRASES, k=rng.randint(1, 4)):
            spans += [(len(words) + a, len(words) + b, name) for a, b, name in own]
            words += text.split()
        reference = Doc(nlp.vocab, words=words)
        # Some Docs have no annotation.
        if i % 10:
            add_spans(reference, spans, "sc")
        found.append(Example(Doc(nlp.vocab, words=words), reference))
    return found


def annotated(nlp: Language) -> list[list[tuple[SpanTriple, float]]]:
    docs = [nlp(Doc(nlp.vocab, words=[t.text for t in e.predicted])) for e in make_examples(nlp)]
    pairs = [(spans_of(doc, "sc"), doc.spans["sc"].attrs["scores"].tolist()) for doc in docs]
    return [sorted(zip(*both, strict=True)) for both in pairs]


@pytest.fixture(scope="module")
def trained() -> Language:
    return pipeline(*TYPES)


def test_components_with_one_key_find_nested_spans(trained):
    labels = [trained.get_pipe(name).labels for name in trained.pipe_names]
    assert labels == [("ORG", "PER"), ("LOC",)]
    alone = [annotated(pipeline(types)) for types in TYPES]
    assert annotated(trained) == [sorted(one + two) for one, two in zip(*alone, strict=True)]
    scores = trained.evaluate(make_examples(trained))
    assert scores["spans_sc_f"] > 0.9 and set(scores["spans_sc_per_type"]) == {"PER", "ORG", "LOC"}
    doc = trained(Doc(trained.vocab, words=["mayor", "of", "ulm"]))
    assert spans_of(doc, "sc") == [(0, 3, "PER"), (2, 3, "LOC")]
    assert len(doc.spans["sc"].attrs["scores"]) == 2


@pytest.mark.parametrize("overwrite", [False, True])
def test_existing_spans_of_other_types_are_kept(trained, overwrite):
    pipe = trained.get_pipe("PER+ORG")
    doc = Doc(trained.vocab, words=["mayor", "of", "ulm"])
    add_spans(doc, [(1, 3, "LOC"), (0, 1, "ORG")], "sc")
    doc.spans["sc"].attrs.update(scores=[0.5, 0.25], note="x")
    pipe.settings = pipe.settings.model_copy(update={"overwrite": overwrite})
    try:
        pipe(doc)
    finally:
        pipe.settings = pipe.settings.model_copy(update={"overwrite": False})
    own = (0, 3, "PER") if overwrite else (0, 1, "ORG")
    assert spans_of(doc, "sc") == [own, (1, 3, "LOC")]
    score, kept = doc.spans["sc"].attrs["scores"].tolist()
    assert kept == 0.5 and (0.0 < score < 1.0) == overwrite and doc.spans["sc"].attrs["note"] == "x"


def test_gold_of_some_types():
    doc = Doc(ENGLISH, words=["a", "b", "c", "d"])
    nested: list[SpanTriple] = [(0, 3, "PER"), (1, 2, "LOC"), (3, 4, "")]
    example = Example(doc, add_spans(doc.copy(), nested, "sc"))
    assert SpanGroups(types=["PER"]).gold(example) == ["B-PER", "I-PER", "L-PER", None]
    assert SpanGroups(types=["LOC"]).gold(example) == ["O", "U-LOC", "O", None]
    example = Example(doc, add_spans(doc.copy(), [(0, 2, "PER"), (2, 3, "LOC")], "ents"))
    assert Entities(types=["PER"]).gold(example) == ["B-PER", "L-PER", "O", "O"]
    split = Doc(doc.vocab, words=["a", "b", "cd"], spaces=[True, True, False])
    example = Example(Doc(doc.vocab, ["a", "b", "c", "d"], [True, True, False, False]), split)
    add_spans(split, [(0, 2, "PER"), (2, 3, "LOC")], "ents")
    assert Entities(types=["LOC"]).gold(example) == ["O", "O", "B-LOC", "L-LOC"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_entities_of_other_types_are_kept(overwrite):
    target, labels = Entities(types=["PER"]), ["B-PER", "I-PER", "L-PER", "U-PER", "O"]
    doc = Doc(ENGLISH, words=["a", "b", "c", "d"])
    add_spans(doc, [(0, 1, "LOC"), (3, 4, "PER")], "ents")
    permitted = target.permitted([doc], labels, overwrite=overwrite)
    assert overwrite == (permitted is None)
    if permitted is not None:
        assert permitted.sum(axis=1).tolist() == [5, 5, 5, 1]
    ids, scores = np.array([3, 0, 2, 4], np.int32), np.array([0.25, 0.75])
    target.write([doc], [ids], labels, overwrite=overwrite, scores=scores)
    found = [(0, 1, "LOC"), (1, 3, "PER")] + ([] if overwrite else [(3, 4, "PER")])
    assert spans_of(doc, "ents") == found
    assert [e._.ents_score for e in doc.ents] == [None, 0.75, 1.0][: len(found)]


def test_a_config_has_a_component_for_each_set_of_types():
    text = with_types(make_config("spans", lang="xx"), TYPES)
    nlp = load_model_from_config(load_config_from_str(text), auto_fill=True)
    assert nlp.pipe_names == ["chunks_1", "chunks_2"]
    found = [nlp.get_pipe(name).target.types for name in nlp.pipe_names]
    assert found == [{"PER", "ORG"}, {"LOC"}]
    assert set(nlp.config["initialize"]["components"]) == {"chunks_1", "chunks_2"}
