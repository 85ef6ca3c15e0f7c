"""Character n-grams: several features of one template at a token."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.pipeline.features import lexemes
from spacy_sparsecrf.pipeline.features.attributes.ngrams import Ngrams
from spacy_sparsecrf.pipeline.features.featurizer import Featurizer
from spacy_sparsecrf.pipeline.features.lexemes import LexemeTable

from ..support.reference_features import hash_docs
from ..support.toy import ENGLISH

TEMPLATES = [
    "b:",
    "u:ngrams(2,4)[0]",
    'u:ngrams(1,3,"^$")[-1]',
    "*:ngrams(3,3)[0]|lower[1]",
    "u:ngrams(2,2)[-1]|ngrams(2,2)[0]",
]
characters = st.characters(exclude_categories=["Cs"])
words = st.text(characters, min_size=1, max_size=50) | st.text("ab", min_size=1, max_size=50)


@given(
    st.lists(st.lists(words, min_size=1, max_size=4), max_size=3),
    st.lists(st.sampled_from(TEMPLATES), min_size=1, unique=True),
)
def test_hashes_equal_the_reference(sentences, templates):
    docs = [Doc(ENGLISH, words=sentence) for sentence in sentences]
    observations = Featurizer(templates)(docs)
    assert observations.hashes.tolist() == hash_docs(docs, templates)
    for rows in (observations.unigram_hashes, observations.bigram_hashes):
        for row in rows:
            present = row[row != 0]
            assert len(np.unique(present)) == len(present)  # a feature occurs once per token


def test_too_many_combinations():
    text = "u:ngrams(1,9)[0] | ngrams(1,9)[1]"
    with pytest.raises(SparseCRFError) as caught:
        Featurizer(["b:", text])
    assert str(caught.value).startswith("[SC139] [components.NAME.features] templates read ")
    width = Ngrams("ngrams", 1, "", 9).width()
    assert f"read {2 * width**2} attributes at each token" in str(caught.value)
    assert f"up to template 2, {text.replace(' ', '')!r}" in str(caught.value)


def test_words_kept_are_bounded_by_memory(monkeypatch):
    read = Ngrams("ngrams", 2, "", 4)
    monkeypatch.setattr(lexemes, "MAX_BYTES", 8 * read.width() * 3)
    table = LexemeTable([read.ngrams_of], [read.width()])
    for words in (["ab", "cd"], ["ef", "gh"]):
        orths = np.array([ENGLISH.strings.add(word) for word in words], dtype=np.uint64)
        rows, values, *_ = table.find(orths[:, None], ENGLISH.strings)
        assert values[rows, 0].tolist() == orths.tolist()
    assert len(table) == 2
