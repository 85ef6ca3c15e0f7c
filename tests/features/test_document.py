"""A word's other occurrences in its Doc."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_sparsecrf.pipeline.features.attributes.document import DocAttribute
from spacy_sparsecrf.pipeline.features.attributes.table import ATTRIBUTES
from spacy_sparsecrf.pipeline.features.featurizer import Featurizer

from ..support.names_cases import names_of
from ..support.reference_features import hash_docs
from ..support.toy import ENGLISH

NAMES = [name for name, family in ATTRIBUTES.items() if issubclass(family, DocAttribute)]
TEMPLATES = [f"u:{name}[{i}]" for name in NAMES for i in (-1, 0)]
TEMPLATES += ["*:doc_run[0]|lower[0]|doc_run[1]", "*:doc_left[0]|doc_title[0]|doc_right[1]"]
WORDS = [
    "a",
    "A",
    "Bé",
    "bé",
    "BÉ",
    "c",
    ".",
    "?",
    '"',
    "3",
    " ",
    "\n",
    "\n\n",
    "x\u00ad",
    "\u200b",
]


@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=15), max_size=4))
def test_values_are_those_of_the_reference_in_any_batch(texts):
    docs = [Doc(ENGLISH, words=words) for words in texts]
    features = Featurizer(TEMPLATES)
    expected = np.array(hash_docs(docs, TEMPLATES), np.uint64).reshape(-1, len(TEMPLATES))
    np.testing.assert_array_equal(features(docs).hashes, expected)
    one_by_one = [features([doc]).hashes for doc in docs]
    np.testing.assert_array_equal(np.concatenate([expected[:0], *one_by_one]), expected)
    names = {"", *chain(*names_of(features, docs))}
    assert len(names) == len({0, *expected.ravel().tolist()})


@pytest.mark.parametrize("sent_starts", [None, [True, False, False, True, *[False] * 4]])
def test_sentence_annotation_changes_no_value(sent_starts):
    words = ["Bé", "saw", "c", ".", "A", "Bé", "A", "."]
    docs = [Doc(ENGLISH, words=words, sent_starts=sent_starts)]
    runs = ["I", "", "", "", "L", "U", "B", ""]
    names = [[f"doc_run[0]={run}" if run else ""] for run in runs]
    assert names_of(Featurizer(["u:doc_run[0]"]), docs, "docs") == names


def test_docs_of_one_sentence_have_no_values():
    one, two = ["A", "Bé", ",", "a", "A", "Bé", "bé", "."], ["A", "a", ".", "a", "A", "."]
    docs = [Doc(ENGLISH, words=words) for words in (one, two, one)]
    hashes = Featurizer([f"u:{name}[0]" for name in NAMES])(docs).hashes
    assert hashes[8:14].any(axis=0).all()
    assert not hashes[:8].any()
    assert not hashes[14:].any()
