"""Templates at the tokens of Docs: sequences, columns, vocabs, processes."""

import pickle

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.pipeline.features.featurizer import Featurizer

from ..support.feature_cases import EVERY_TEMPLATE, SENTENCE
from ..support.reference_features import hash_docs, hash_values
from ..support.toy import ENGLISH, vocab_of


def test_windows_stop_at_sentence_bounds():
    doc = Doc(ENGLISH, words=["a", "b", "c"], sent_starts=[True, False, True])
    features = Featurizer(["u:lower[-1]", "u:lower[1]"])
    assert features([doc], "sents").offsets.tolist() == [0, 2, 3]
    across = features([doc], "docs")
    assert across.offsets.tolist() == [0, 3]
    assert across.hashes[2, 0] == hash_values("lower[-1]", "b")


def test_columns_by_kind():
    docs = [Doc(ENGLISH, words=SENTENCE)]
    features = Featurizer(["b:", "u:orth[0]", "*:lower[0]", "u:shape[0]"], start_label=False)
    both = features(docs)
    assert both.unigram_columns.tolist() == [1, 2, 3]
    assert both.bigram_columns.tolist() == [0, 2]
    assert both.start_label is False
    dtypes = both.hashes.dtype, both.offsets.dtype, both.unigram_columns.dtype
    assert dtypes == (np.uint64, np.int64, np.int32)
    assert both.bigram_columns.dtype == np.int32
    apart = Featurizer(["b:lower[0]", "u:lower[0]"])(docs)
    assert apart.start_label is True
    np.testing.assert_array_equal(apart.hashes[:, 0], both.hashes[:, 2])
    np.testing.assert_array_equal(apart.hashes[:, 1], both.hashes[:, 2])


@pytest.mark.parametrize("words", [["x", "Ab-1é" * 20_000], [" ", "\n\n", "\t"], ["   "]])
def test_difficult_tokens(words):
    docs = [Doc(ENGLISH, words=words)]
    assert Featurizer(EVERY_TEMPLATE)(docs).hashes.tolist() == hash_docs(docs, EVERY_TEMPLATE)


def test_words_outside_are_told_by_their_distance():
    templates = [f"u:lower[{offset}]" for offset in (-4, -3, -2, -1, 1, 2, 3, 4)]
    docs = [Doc(ENGLISH, words=SENTENCE[:n]) for n in (1, 2, 5)]
    assert Featurizer(templates)(docs).hashes.tolist() == hash_docs(docs, templates)


def test_several_vocabs_in_one_call():
    vocabs = [vocab_of(lang) for lang in ("en", "en", "fr")]
    words = [["two", "dogs"], ["cats"], ["deux", "chats"], ["Été"], ["two", "deux"]]
    docs = [Doc(vocabs[i], words=words[k]) for k, i in enumerate((0, 1, 2, 2, 0))]
    docs.insert(2, Doc(vocabs[1]))
    together = Featurizer(EVERY_TEMPLATE)(docs)
    assert together.hashes.tolist() == hash_docs(docs, EVERY_TEMPLATE)
    assert together.offsets.tolist() == [0, 2, 3, 5, 6, 8]


def test_words_of_memory_zones_and_pickles_are_not_kept():
    nlp, features = spacy.blank("xx"), Featurizer()
    before_use = pickle.dumps(features)
    expected = Featurizer()([nlp.make_doc("A transient word")]).hashes
    for _ in range(2):
        with nlp.memory_zone():
            hashes = features([nlp.make_doc("A transient word")]).hashes
        np.testing.assert_array_equal(hashes, expected)
    assert pickle.dumps(features) == before_use
    with pytest.raises(SparseCRFError, match=r"\[SC105\].*sequences = 'words'.*sents, docs"):
        features([nlp.make_doc("a")], "words")


characters = st.characters(exclude_categories=["Cs"])
words = st.text(characters, min_size=1, max_size=6) | st.sampled_from([*SENTENCE, "NOUN", " "])
sentences = st.lists(words, max_size=8)


@given(
    st.lists(st.tuples(sentences, st.randoms(use_true_random=False)), max_size=4),
    st.lists(st.sampled_from(EVERY_TEMPLATE), min_size=1, max_size=6, unique=True),
)
def test_equals_the_reference(drawn, templates):
    docs = []
    for sentence, random in drawn:
        starts = [random.choice([True, False, None]) for _ in sentence]  # type: ignore[attr-defined]
        docs.append(Doc(ENGLISH, words=sentence, sent_starts=starts))
    assert Featurizer(templates)(docs).hashes.tolist() == hash_docs(docs, templates)
