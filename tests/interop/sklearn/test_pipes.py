"""Estimators as components: the same labels and probabilities."""

from typing import Any

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.interop.external_features import name_of
from spacy_sparsecrf.sklearn import CRF

from ...support.golden import read_golden
from ...support.toy import docs_of, make_sentences, tags_of

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


@pytest.mark.parametrize(
    "options", [{}, {"bigrams": ["word"], "start_label": True}, {"once": ["NN"]}]
)
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


@pytest.mark.parametrize(("text", "name"), read_golden(__file__, "names.jsonl"))
def test_names_of_external_features(text, name):
    assert name_of(text, TESTS) == name


def test_numbers_are_refused():
    numbers = [[{"length[0]": float(len(word))} for word in ["a", "aaa"]]] * 5
    crf = CRF(c2=0.005).fit(numbers, [["s", "L"]] * 5)
    with pytest.raises(SparseCRFError, match=r"SC820\] Numbers .*'?length\[0\]"):
        crf.to_pipe(spacy.blank("xx"))


def test_features_that_no_template_makes():
    crf = CRF(c1=0.05, c2=0.005).fit(X, Y)
    with pytest.raises(SparseCRFError, match=r"SC810\] \d+ features .*'word:"):
        crf.to_pipe(spacy.blank("xx"))
    same = {**TESTS, "-1:word": "lower[0]"}
    with pytest.raises(SparseCRFError, match=r"SC811\] 'word:\w+' and '-1:word:\w+' are both"):
        crf.to_pipe(spacy.blank("xx"), same)
