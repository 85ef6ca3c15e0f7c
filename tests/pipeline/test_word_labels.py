"""The attribute `word_labels`: labels of a word in the rest of the training data."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.language import Language
from spacy.strings import StringStore
from spacy.tokens import Doc

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.pipeline.features.attributes.clusters import OF_WORDS
from spacy_sparsecrf.pipeline.features.naming import hash_names
from spacy_sparsecrf.pipeline.features.word_labels import (
    FOLDS,
    SHARE,
    WordLabelReader,
    WordTokens,
    count_word_labels,
    folds_of,
    form_of,
    learn_word_labels,
    sizes_of,
)

from ..support.toy import blank_with, examples_of, make_sentences, train

NAMES = ["VB", "NN", "JJ"]
SOLVER = {"@crf_solvers": "spacy_sparsecrf.OWLQN.v1"}
TEMPLATES = ["b:", "u:lower[0]", "@word_labels"]
words_and_labels = st.lists(
    st.lists(st.tuples(st.sampled_from(["a", "A", "b1", "B2"]), st.integers(-2, 2)), max_size=4),
    max_size=12,
)


def pipeline(templates: list[str] = TEMPLATES, **config: Any) -> Language:
    learning = {"warm_start": {"epochs": 0}, "dtype": "float64", **config.pop("learning", {})}
    return blank_with(templates, solver=SOLVER, l1=0.05, learning=learning, **config)


def tokens_of(docs: list[list[tuple[str, int]]]) -> tuple[WordTokens, np.ndarray]:
    strings = StringStore()
    orths = np.array([strings.add(word) for doc in docs for word, _ in doc], np.uint64)
    ends = np.cumsum([len(doc) for doc in docs], dtype=np.int64)
    labels = np.array([label for doc in docs for _, label in doc], np.int32)
    return WordTokens(orths, strings, ends, np.append(0, ends)), labels


@given(words_and_labels, st.integers(0, 12))
def test_a_token_reads_the_labels_of_its_word_in_other_folds(docs, cut):
    tokens = [(i, *pair) for i, doc in enumerate(docs) for pair in doc]
    part, labels = tokens_of(docs)
    whole, nothing = sizes_of([part]), np.zeros(2, np.int64)
    folds = folds_of([part], nothing, whole)
    counts = count_word_labels([part], labels, NAMES, folds)
    table = learn_word_labels([counts])
    classes, read = table.classes, table.of_tokens([part], folds)
    texts = table.texts

    # Parts of a corpus, which may number labels otherwise, learn the same.
    (first, own), (last, other) = tokens_of(docs[:cut]), tokens_of(docs[cut:])
    places = (nothing, whole), (sizes_of([first]), whole)
    of_parts = [folds_of([x], *place) for x, place in zip((first, last), places, strict=True)]
    renamed = np.where(other < 0, other, 2 - other)
    merged = learn_word_labels(
        [
            count_word_labels([first], own, NAMES, of_parts[0]),
            count_word_labels([last], renamed, NAMES[::-1], of_parts[1]),
        ]
    )
    assert merged.texts == texts
    both = [merged.of_tokens([x], y) for x, y in zip((first, last), of_parts, strict=True)]
    assert np.array_equal(np.concatenate(both), read)
    assert np.array_equal(merged.classes.hashes, classes.hashes)
    assert np.array_equal(merged.classes.codes, classes.codes)

    def expected(word: str, fold: int) -> str:
        counts = Counter(
            NAMES[label]
            for i, own, label in tokens
            if form_of(own) == form_of(word) and label >= 0 and i % FOLDS != fold
        )
        return "/".join(sorted(x for x, n in counts.items() if n >= SHARE * counts.total()))

    assert [texts[i] for i in read] == [expected(word, i % FOLDS) for i, word, _ in tokens]
    for word in ["A", "B3"]:
        assert WordLabelReader(classes)(word) == expected(word, FOLDS)


@pytest.fixture(scope="module")
def nlp() -> Language:
    nlp = pipeline()
    train(nlp, examples_of(nlp, make_sentences(60, seed=1)), 3)
    return nlp


def test_a_saved_pipeline_knows_the_labels_of_words_and_names_their_features(nlp, tmp_path):
    doc = nlp(Doc(nlp.vocab, words=["the", "plan", "izes"]))
    explained = nlp.get_pipe("sparse_crf").explain_doc(doc)
    assert "word_labels[0]=NN/VB" in {c.feature for c in explained.tokens[1].contributions}
    nlp.to_disk(tmp_path)
    own, other = (each.get_pipe("sparse_crf") for each in (nlp, spacy.load(tmp_path)))
    np.testing.assert_array_equal(own.marginals(doc), other.marginals(doc))
    assert other.to_bytes() == own.to_bytes()
    lines = [*own.dump()]
    assert any("word_labels[-1]=DT|word_labels[0]=NN/VB" in line for line in lines)
    assert not any(line.startswith("#") for line in lines)


def test_labels_of_digits_are_texts_in_the_names_of_features():
    nlp = pipeline()
    train(nlp, examples_of(nlp, [(["the", "cat"], ["1", "2"])] * 10), 2)
    names = nlp.get_pipe("sparse_crf").named().by_hash()
    assert any("word_labels[0]=1" in name for name in names.values())
    assert hash_names([*names.values()]).tolist() == [*names]


@pytest.mark.parametrize("key", ["prior", "init_weights"])
def test_words_that_a_new_corpus_lacks_keep_their_labels(nlp, tmp_path, key):
    nlp.to_disk(tmp_path)
    again = pipeline(learning={"prior": str(tmp_path)} if key == "prior" else {})
    if key == "init_weights":
        block = {"sparse_crf": {"init_weights": str(tmp_path)}}
        again.config["initialize"]["components"] = block
    train(again, examples_of(again, [(["blah", "the"], ["NN", "VB"])]), 1)
    read = WordLabelReader(again.get_pipe("sparse_crf").features.learnt["clusters"][OF_WORDS])
    assert (read("plan"), read("Blah"), read("the")) == ("NN/VB", "NN", "VB")


def test_a_damaged_or_missing_file_of_labels_is_noticed_and_changes_nothing(nlp, tmp_path):
    pipe, examples = nlp.get_pipe("sparse_crf"), examples_of(nlp, make_sentences(3, seed=1))
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path).get_pipe("sparse_crf")
    clusters = tmp_path / "sparse_crf" / "clusters"
    clusters.write_bytes(b"xx")
    with pytest.raises(SparseCRFError, match="SC211.*damaged"):
        again.initialize(lambda: examples, nlp=nlp, init_weights=tmp_path)
    assert again.to_bytes() == pipe.to_bytes()
    clusters.unlink()
    with pytest.raises(SparseCRFError, match="SC211.*`clusters`"):
        spacy.load(tmp_path)
    own = pipe.to_bytes(exclude=["clusters"])
    with pytest.raises(SparseCRFError, match="SC211"):
        pipeline().get_pipe("sparse_crf").from_bytes(own)
    pipeline().get_pipe("sparse_crf").from_bytes(own, exclude=["clusters"])


COMBINED = [({"learning": {"stack": {"folds": 3}}}, [*TEMPLATES, "u:first[0]"])]
COMBINED += [({"learning": {"store_feature_names": False}}, TEMPLATES)]
COMBINED += [({"sequences": "docs"}, TEMPLATES)]


@pytest.mark.parametrize(("config", "templates"), COMBINED, ids=str)
def test_it_combines_with_other_settings(config, templates):
    nlp = pipeline(templates, **config)
    examples = examples_of(nlp, make_sentences(60, seed=1))
    train(nlp, examples, 3)
    assert nlp.evaluate(examples)["tag_acc"] > 0.9
    pipe = nlp.get_pipe("sparse_crf")
    assert (b"names" in pipe.to_bytes()) == ("store_feature_names" not in str(config))
