"""Names of the features of each part of the template language; see also the golden table."""

from collections.abc import Iterator
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Token

from spacy_sparsecrf.features.featurizer import Featurizer
from spacy_sparsecrf.features.naming import NameRecord, hash_names
from spacy_sparsecrf.model.names import ALWAYS

from ..conftest import Corpus
from ..model.names_cases import names_of
from ..toy import ENGLISH, blank_with, examples_of, train
from .feature_cases import EVERY_TEMPLATE, SENTENCE


@pytest.fixture(autouse=True)
def _extensions() -> Iterator[None]:
    drawn = iter(range(1, 100))
    Token.set_extension("named", default=None)
    Token.set_extension("fleeting", getter=lambda token: f"x{next(drawn)}")
    yield
    Token.remove_extension("named")
    Token.remove_extension("fleeting")


@pytest.mark.parametrize("boundaries", [None, 0])
def test_every_attribute_has_names_inside_and_outside(boundaries: int | None):
    n = len(SENTENCE)
    doc = Doc(
        ENGLISH,
        words=SENTENCE,
        spaces=[i % 2 == 0 for i in range(n)],
        tags=["X=|", "-5", "5", "^1", "$1", "\\"],
        pos=["NOUN", "PROPN", "VERB", "NUM", "NOUN", "PUNCT"],
        morphs=["Case=Nom|Number=Sing"] * n,
        lemmas=[word.lower() for word in SENTENCE],
        deps=["ROOT"] * n,
        heads=[0, 0, 0, 3, 3, 3],
        ents=["B-PER", "I-PER", "O", "O", "O", "B-X"],
        sent_starts=[True, False, False, True, False, False],
    )
    docs = [doc, Doc(ENGLISH, words=["x|y", "a=b", "\t", "7", "^1"]), Doc(ENGLISH)]
    found = {*chain(*names_of(Featurizer(EVERY_TEMPLATE, boundaries=boundaries), docs))}
    assert {"ent_iob[0]=3", "ent_iob[0]=1", "ngrams(2,3)[0]=so", r"tag[0]=X\=\|"} <= found
    assert {r"tag[0]=\5", r"tag[0]=\-5", r"tag[0]=\^1", r"tag[0]=\\", "ngrams(2,3)[1]=$1"} <= found
    assert {"pos[0]=NOUN", "glued[0]=1", r"morph[0]=Case\=Nom\|Number\=Sing"} <= found
    assert {r"orth[0]=x\|y", r"orth[0]=\7", "length[0]=1", r"orth[0]=\t", r"orth[0]=\^1"} <= found
    assert {"is_title[0]=1", "suffix(2)[-1]=^1", ALWAYS} <= found
    assert ("lower[-2]=^2" in found) == (boundaries is None)


def sentences(*lengths: int) -> Doc:
    """Create a Doc of sentences with these numbers of tokens: a, b, c, ..."""
    words = [chr(ord("a") + i) for i in range(sum(lengths))]
    return Doc(ENGLISH, words=words, sent_starts=[i == 0 for n in lengths for i in range(n)])


offsets = st.integers(-6, 6)
places = offsets.map(str) | offsets.filter(bool).map("@{}".format)


@given(
    st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=3), min_size=1, max_size=2),
    st.lists(places, min_size=1, max_size=3, unique=True),
    st.none() | st.integers(0, 7),
)
def test_names_of_any_places(lengths: list[list[int]], chosen: list[str], boundaries: int | None):
    templates = [f"u:orth[{place}]|ngrams(1,2)[{-i}]" for i, place in enumerate(chosen)]
    features = Featurizer(templates, boundaries=boundaries)
    names_of(features, [sentences(*of_doc) for of_doc in lengths])


def test_an_extension_that_is_another_each_time_has_no_name():
    record = NameRecord(Featurizer(["u:_.fleeting[0]", "u:orth[0]"]))
    hashes = record([Doc(ENGLISH, words=["a"])]).hashes
    assert [*record.names(hashes[0]).values()] == ["orth[0]=a"]


def test_negative_numbers_and_what_looks_like_them():
    minus, text, large = hash_names(["a[0]=-1", r"a[0]=\-1", f"a[0]={2**64 - 1}"]).tolist()
    assert minus == large != text
    with pytest.raises(ValueError, match="64 bits"):
        hash_names([f"a[0]=-{2**63 + 1}"])


def test_a_pipeline_has_names_for_all_of_its_features(corpus: Corpus):
    templates = ["*:", "u:ngrams(2,3)[0]", "u:phrase(articles)[-1]|suffix(2)[0]", "b:orth[@1]"]
    templates += ["u:_.named[0]", 'u:regex("t|=")[0]', "u:lower[-3]"]
    nlp = blank_with(templates, phrases={"articles": ["the", "a"]}, boundaries=1, l1=0.1)
    pipe = nlp.get_pipe("sparse_crf")
    examples = examples_of(nlp, corpus.train[:40])
    for example in examples:
        for token in example.predicted:
            token._.named = token.text[-3:]
    train(nlp, examples, 3)
    lines = [*pipe.dump()]
    assert not [line for line in lines if "\t0x" in line]
    names = {line.split("\t")[1].partition("[")[0] for line in lines}
    assert {"always", "ngrams(2,3)", 'phrase("articles")', "_.named", "orth", "lower"} <= names
    before = pipe.to_bytes()
    pipe.patch(lines, replace=True)
    assert pipe.to_bytes() == before
    found = pipe.explain_doc(examples[0].predicted).tokens
    names = {c.feature for token in found for c in token.contributions}
    assert names and not [name for name in names if name.startswith("0x")]
