"""Stacking: a first-stage model, and a second model that reads its predictions."""

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.pipeline.features.attributes.stage import (
    FirstLabels,
    FirstSpans,
    most_elsewhere,
)
from spacy_sparsecrf.pipeline.features.featurizer import Featurizer
from spacy_sparsecrf.pipeline.stacking import first_stage as stacking
from spacy_sparsecrf.pipeline.stacking.filling import fill

from ..support.toy import ENGLISH, blank_with, train

NAME = "sparse_crf_ner"
BASE = ["b:", "u:lower[0]", "u:lower[-1]", "u:lower[1]"]
READING = ["u:first[0]", "u:first[-1]|first[0]", "u:doc_majority[0]", "u:doc_entity[0]"]
SOLVER = {"@crf_solvers": "spacy_sparsecrf.OWLQN.v1", "tolerance": 1e-8}
# Evidence of a type: elsewhere in the Doc, names occur in contexts without any evidence.
PLACES = {"PER": "Mr. {} spoke .", "LOC": "in {} today ."}


def pipeline(templates: list[str], stack: object, **config: object) -> Language:
    learning = {"stack": stack, "warm_start": {"epochs": 0}, "dtype": "float64"}
    learning |= config.pop("learning", {})
    own = {"learning": learning, "solver": SOLVER, "l1": 0.05, **config}
    return blank_with(templates, NAME, "en", **own)


def make_doc(nlp: Language, rng: random.Random) -> Doc:
    words, starts, ents = [], [], []
    for label, sentence in PLACES.items():
        name = "".join(rng.choices("bdfgklmnprstvz", k=5)).title()
        # Persons occur more often, so that a first model does not choose between equal scores.
        for text in (sentence, *["so {} !"] * (2 if label == "PER" else 1)):
            own = text.format(name).split()
            at = len(words) + own.index(name)
            ents.append((at, at + 1, label))
            words += own
            starts += [True, *[False] * (len(own) - 1)]
    doc = Doc(nlp.vocab, words=words, sent_starts=starts)
    doc.ents = [Span(doc, *ent) for ent in ents]
    return doc


def examples_of(nlp: Language, n: int, seed: int) -> list[Example]:
    rng, found = random.Random(seed), []
    for _ in range(n):
        gold = make_doc(nlp, rng)
        starts: list[Any] = [bool(token.is_sent_start) for token in gold]
        words = [token.text for token in gold]
        found.append(Example(Doc(nlp.vocab, words=words, sent_starts=starts), gold))
    return found


@pytest.fixture(scope="module")
def trained() -> Language:
    nlp = pipeline(BASE + READING, {"folds": 3, "steps": 3})
    train(nlp, examples_of(nlp, 30, seed=1), 4)
    return nlp


def test_the_second_model_learns_what_the_rest_of_a_doc_tells(trained):
    held_out = examples_of(trained, 20, seed=2)
    alone = pipeline(BASE, {})
    train(alone, examples_of(alone, 30, seed=1), 4)
    assert trained.evaluate(held_out)["ents_f"] == 1.0
    assert alone.evaluate(examples_of(alone, 20, seed=2))["ents_f"] < 0.9
    assert alone.get_pipe(NAME).model.first is None


def test_labels_of_a_fold_are_those_of_a_model_that_has_not_seen_it(monkeypatch):
    said = []
    fill = stacking.fill
    monkeypatch.setattr(stacking, "fill", lambda *args: said.append(args[2]) or fill(*args))
    nlp = pipeline(BASE + READING, {"folds": 2, "steps": 20})
    examples = examples_of(nlp, 4, seed=3)
    nlp.initialize(lambda: examples)
    (first,) = said
    labels = np.array(nlp.get_pipe(NAME).label_data)
    found = np.split(labels[first.labels], first.ends[:-1])
    for fold in (0, 1):  # With only four Docs, folds alternate.
        alone = pipeline(BASE, {})
        train(alone, [e for i, e in enumerate(examples) if i % 2 != fold], 20)
        pipe = alone.get_pipe(NAME)
        for i in range(fold, 4, 2):
            (ids,) = pipe.predict([examples[i].predicted])
            assert found[i].tolist() == np.array(pipe.label_data)[ids].tolist()


def test_names_of_features_are_stored_only_if_they_are_wanted():
    for stored in (True, False):
        stack = {"folds": 2, "steps": 1}
        nlp = pipeline(BASE + READING, stack, learning={"store_feature_names": stored})
        train(nlp, examples_of(nlp, 6, seed=4), 1)
        assert any("first[0]" in line for line in nlp.get_pipe(NAME).dump()) == stored


def test_probabilities_and_explanations_are_of_the_second_model(trained):
    pipe = trained.get_pipe(NAME)
    (doc,) = [example.predicted for example in examples_of(trained, 1, seed=5)]
    marginals = pipe.marginals(doc)
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0)
    (labels, probability), _ = pipe.nbest(doc, 2)
    assert labels == [pipe.label_data[i] for i in pipe.predict([doc])[0]]
    assert np.log(probability) == pytest.approx(pipe.log_probability(doc, labels))
    page = pipe.explain_doc(doc)
    tests = {each.feature for token in page.tokens for each in token.contributions}
    assert any(test.startswith("doc_majority[0]=U-") for test in tests)
    assert any("first[0]=U-PER" in line for line in pipe.dump())


def test_what_cannot_be_combined_is_refused(trained):
    nlp = pipeline(BASE + READING, {"folds": 4})
    with pytest.raises(SparseCRFError, match="SC414.*folds = 4.*there are 3"):
        train(nlp, examples_of(nlp, 3, seed=1), 4)
    with pytest.raises(SparseCRFError, match="SC415"):
        pipeline(BASE, {}).get_pipe(NAME).from_bytes(trained.get_pipe(NAME).to_bytes())


# Template attributes of a first-stage model


TEMPLATES = ["b:", "u:lower[0]", "u:first[-1]|lower[0]", "b:first[0]", "u:doc_majority[1]"]
TEMPLATES += ["*:lower[1]"]
NAMES = np.array([11, 12, 13], np.uint64)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=15))
def test_most_elsewhere_counts_all_others(members):
    groups, values = (np.array([m[i] for m in members], np.int64) for i in (0, 1))
    expected = []
    for i, (group, _) in enumerate(members):
        others = Counter(v for j, (g, v) in enumerate(members) if g == group and j != i)
        expected.append(min(others, key=lambda v: (-others[v], v)) if others else -1)
    assert most_elsewhere(groups, values).tolist() == expected


def said(ids: list[int], ends: list[int], spans: list[tuple[int, int, int]] = ()) -> FirstLabels:
    columns = [np.array([span[i] for span in spans], np.int64) for i in range(3)]
    return FirstLabels(
        np.array(ids, np.int32), NAMES, np.array(ends), FirstSpans(*columns, NAMES[:2])
    )


def test_majorities_are_of_a_doc():
    docs = [Doc(ENGLISH, words=words.split()) for words in ("a B A a", "a b", "b")]
    features = Featurizer(["u:first[0]", "u:doc_majority[0]", "u:doc_entity[0]"])
    (readings,) = features.readings(docs)
    first = said([0, 1, 2, 2, 1, 1, 0], [4, 6, 7], [(0, 1, 1), (2, 3, 0), (3, 4, 1), (4, 6, 0)])
    filled = fill(readings, features.plan, first)
    columns = [*features.plan.stacked.values()]
    assert [str(read) for read in features.stacked] == ["first", "doc_majority", "doc_entity"]
    assert filled.annotations[:, columns].T.tolist() == [
        [11, 12, 13, 13, 12, 12, 11],
        [13, 0, 11, 11, 0, 0, 0],
        [11, 0, 12, 11, 0, 0, 0],
    ]
    assert not readings.annotations[:, columns].any()


def test_a_first_stage_model_has_the_features_that_do_not_read_it():
    docs = [Doc(Vocab(), words=["x", "Y", "x"])]
    both, alone = Featurizer(TEMPLATES), Featurizer(["b:", "u:lower[0]", "*:lower[1]"])
    found, expected = both(docs), alone(docs)
    np.testing.assert_array_equal(found.hashes, expected.hashes)
    np.testing.assert_array_equal(found.unigram_columns, expected.unigram_columns)
    np.testing.assert_array_equal(found.bigram_columns, expected.bigram_columns)
    (readings,) = both.readings(docs)
    second = both.observe([fill(readings, both.plan, said([0, 1, 0], [3]))])
    assert second.hashes.shape == (3, len(TEMPLATES))
    assert set(found.hashes.ravel().tolist()) <= set(second.hashes.ravel().tolist())
    assert alone.plan.first_templates is alone.plan.templates
