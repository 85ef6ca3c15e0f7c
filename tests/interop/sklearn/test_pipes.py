"""Estimators as components, and vice versa: the same labels and probabilities."""

from typing import Any

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.interop.external_features import name_of
from spacy_sparsecrf.sklearn import CRF, read_docs

from ...golden import read_golden
from ...toy import blank_with, docs_of, examples_of, make_sentences, tags_of, train

SENTENCES = make_sentences(60, seed=5)
Y = [tags for _, tags in SENTENCES]
TESTS = {"word": "lower[0]", "-1:word": "lower[-1]", "BOS": "lower[-1]=^1", "bias": "always"}


def features(words: list[str], i: int) -> dict[str, Any]:
    """Return features with names as users write them, and as templates write them."""
    found: dict[str, Any] = {"bias": 1.0, "word": words[i].lower(), "length[0]": str(len(words[i]))}
    found["is_lower[0]"] = words[i].islower()
    found["suffix(3)[0]"] = [words[i][-3:]] if len(words[i]) >= 3 else []
    found |= {"-1:word": words[i - 1].lower()} if i else {"BOS": True}
    return found


X = [[features(words, i) for i in range(len(words))] for words, _ in SENTENCES]


@pytest.mark.parametrize("options", [{}, {"bigrams": ["word"], "start_label": True}])
def test_a_component_labels_as_the_estimator(options, tmp_path):
    crf = CRF(c1=0.05, c2=0.005, n_threads=1, **options).fit(X[:40], Y[:40])
    nlp = spacy.blank("xx")
    crf.to_pipe(nlp, TESTS)
    nlp.to_disk(tmp_path)
    nlp = spacy.load(tmp_path)
    pipe = nlp.get_pipe("sparse_crf")
    docs = [nlp(doc) for doc in docs_of(nlp, SENTENCES)]
    assert tags_of(docs) == [*crf.predict(X)]
    marginals = np.concatenate(pipe.marginals(docs))
    expected = [[*token.values()] for tokens in crf.predict_marginals(X) for token in tokens]
    assert marginals == pytest.approx(np.array(expected), abs=1e-12)


@pytest.mark.parametrize("scheme", ["IOB2", "BILUO"])
def test_a_component_of_entities_has_the_scheme_of_the_labels(scheme):
    last = "L-PER" if scheme == "BILUO" else "I-PER"
    words = [{"lower[0]": word} for word in ("met", "ann", "lee", "now")]
    crf = CRF(c1=0.01, c2=0.005).fit([words] * 5, [["O", "B-PER", last, "O"]] * 5)
    for config in ({}, {"target": {"scheme": scheme}}):
        nlp = spacy.blank("xx")
        crf.to_pipe(nlp, factory="sparse_crf_ner", config=config)
        doc = nlp(Doc(nlp.vocab, words=["Met", "Ann", "Lee", "now"]))
        assert [(ent.text, ent.label_) for ent in doc.ents] == [("Ann Lee", "PER")]


@pytest.mark.parametrize(
    "templates", [["b:", "u:", "*:lower[0]", "u:suffix(3)[-1]|lower[0]"], None]
)
def test_an_estimator_labels_as_the_component(templates):
    nlp = blank_with(templates)
    train(nlp, examples_of(nlp, SENTENCES[:40]), 3)
    pipe = nlp.get_pipe("sparse_crf")
    crf = CRF.from_pipe(pipe)
    docs = docs_of(nlp, SENTENCES)
    X = read_docs(pipe, docs)
    assert [*crf.predict(X)] == tags_of([nlp(doc) for doc in docs])
    marginals = [[*token.values()] for tokens in crf.predict_marginals(X) for token in tokens]
    expected = np.concatenate(pipe.marginals(docs_of(nlp, SENTENCES)))
    assert np.array(marginals) == pytest.approx(expected, abs=1e-12)
    # And back.
    other = spacy.blank("xx")
    crf.to_pipe(other)
    assert sorted(other.get_pipe("sparse_crf").dump()) == sorted(pipe.dump())


OTHERWISE: list[dict[str, Any]] = [{"outside_weight": -1.0}, {"method": "posterior"}]
OTHERWISE += [{"temperature": 2.0}, {"thresholds": {"PER": 0.5}}]


@pytest.mark.parametrize("config", [{"threshold": 0.5}, *({"decoding": own} for own in OTHERWISE)])
def test_a_component_that_predicts_otherwise_is_refused(config):
    pipe = blank_with(factory="sparse_crf_ner", **config).get_pipe("sparse_crf_ner")
    with pytest.raises(SparseCRFError, match=r"SC818\].*'sparse_crf_ner' does: \[components"):
        CRF.from_pipe(pipe)


def test_the_scheme_of_entities_comes_along():
    nlp = blank_with(factory="sparse_crf_ner")
    pipe = nlp.get_pipe("sparse_crf_ner")
    words = [["Ann", "Lee", "met", "Bob"], ["Bob", "met", "Ann"]] * 5
    ents = [["B-PER", "I-PER", "O", "B-PER"], ["B-PER", "O", "B-PER"]] * 5
    train(nlp, examples_of(nlp, list(zip(words, ents, strict=True)), "ents"), 1)
    crf, doc = CRF.from_pipe(pipe), Doc(nlp.vocab, words=["Lee", "Lee", "Ann", "Lee"])
    assert crf.tagger_.valid is not None
    found = [[*each.values()] for each in crf.predict_marginals(read_docs(pipe, [doc]))[0]]
    assert np.array(found) == pytest.approx(pipe.marginals([doc])[0], abs=1e-12)


@pytest.mark.parametrize(("text", "name"), read_golden(__file__, "names.jsonl"))
def test_names_of_external_features(text, name):
    assert name_of(text, TESTS) == name


def test_numbers_and_a_first_stage_are_refused_and_the_kind_of_a_model_comes_along():
    numbers = [[{"length[0]": float(len(word))} for word in ["a", "aaa"]]] * 5
    crf = CRF(c2=0.005).fit(numbers, [["s", "L"]] * 5)
    with pytest.raises(SparseCRFError, match=r"SC820\] Numbers .*'?length\[0\]"):
        crf.to_pipe(spacy.blank("xx"))
    templates = ["b:", "u:lower[0]", "u:first[0]"]
    nlp = blank_with(templates, learning={"stack": {"folds": 2}})
    train(nlp, examples_of(nlp, SENTENCES[:40]), 1)
    with pytest.raises(SparseCRFError, match=r"SC818\].*stack"):
        CRF.from_pipe(nlp.get_pipe("sparse_crf"))
    nlp, other = blank_with(templates[:2], model="memm"), spacy.blank("xx")
    train(nlp, examples_of(nlp, SENTENCES[:40]), 3)
    CRF.from_pipe(nlp.get_pipe("sparse_crf")).to_pipe(other)
    assert other.get_pipe("sparse_crf").model.kind == "memm"


def test_features_that_no_template_makes():
    crf = CRF(c1=0.05, c2=0.005).fit(X, Y)
    with pytest.raises(SparseCRFError, match=r"SC810\] \d+ features .*'word:"):
        crf.to_pipe(spacy.blank("xx"))
    same = {**TESTS, "-1:word": "lower[0]"}
    with pytest.raises(SparseCRFError, match=r"SC811\] 'word:\w+' and '-1:word:\w+' are both"):
        crf.to_pipe(spacy.blank("xx"), same)


def test_components_whose_features_have_no_names():
    nameless = {"learning": {"store_feature_names": False}}
    of_numbers = {"templates": ["b:", "u:vector[0]"]}
    for config in (nameless, {"features": of_numbers}):
        nlp = blank_with(**config)
        nlp.vocab.reset_vectors(width=2)
        for word in {word for words, _ in SENTENCES for word in words}:
            nlp.vocab.set_vector(word, np.array([word.endswith("s"), len(word)], np.float32))
        train(nlp, examples_of(nlp, SENTENCES), 3)
        bare = blank_with(**config).get_pipe("sparse_crf")
        bare.from_bytes(nlp.get_pipe("sparse_crf").to_bytes())
        with pytest.raises(SparseCRFError, match=r"SC812\].*'sparse_crf'"):
            CRF.from_pipe(bare)
