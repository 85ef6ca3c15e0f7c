"""Names of the tests of each part of the template language."""

from collections.abc import Iterator
from itertools import chain

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc, Span, Token
from spacy.vocab import Vocab

from spacy_sparsecrf.features.attributes import LONG_WORD
from spacy_sparsecrf.features.featurizer import Featurizer
from spacy_sparsecrf.features.naming import NameRecord, hash_names

from ..conftest import Corpus
from ..model.names_cases import names_of
from ..toy import examples_of, run_steps
from .feature_cases import EVERY_TEMPLATE, SENTENCE

# Without numba's compiler 64-bit products are numpy scalars, which warn when they wrap around.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

VOCAB = spacy.blank("en").vocab


def sentences(*lengths: int) -> Doc:
    """A Doc of sentences with these numbers of tokens: a, b, c, ..."""
    words = [chr(ord("a") + i) for i in range(sum(lengths))]
    starts = [i == 0 for n in lengths for i in range(n)]
    return Doc(VOCAB, words=words, sent_starts=starts)


@pytest.mark.parametrize("boundaries", [None, 0])
def test_every_attribute_has_names_inside_and_outside(boundaries: int | None):
    n = len(SENTENCE)
    doc = Doc(
        VOCAB,
        words=SENTENCE,
        spaces=[i % 2 == 0 for i in range(n)],
        tags=["X=|", "-5", "5", "^1", "$1", "\\"],
        lemmas=[word.lower() for word in SENTENCE],
        ents=["B-PER", "I-PER", "O", "O", "O", "B-X"],
        sent_starts=[True, False, False, True, False, False],
    )
    found = {*chain(*names_of(Featurizer(EVERY_TEMPLATE, boundaries=boundaries), [doc]))}
    assert {"ent_iob[0]=3", "ent_iob[0]=1", "ngrams(2,3)[0]=so", r"tag[0]=X\=\|"} <= found
    assert {r"tag[0]=\5", r"tag[0]=\-5", r"tag[0]=\^1", r"tag[0]=\\", "ngrams(2,3)[1]=$1"} <= found
    assert ("lower[-2]=^2" in found) == (boundaries is None)


def test_ngrams():
    long = "".join(map(chr, range(ord("a"), ord("a") + LONG_WORD + 3)))
    docs = [Doc(VOCAB, words=["ab", "a", long]), Doc(VOCAB, words=["5^1"])]
    features = Featurizer(['u:ngrams(2,3,"^$")[0]', "*:ngrams(1,2)[1]|length[0]"])
    rows = [set(row) - {""} for row in names_of(features, docs)]
    first = 'ngrams(2,3,"^$")[0]='
    assert rows[1] >= {f"{first}^a", f"{first}a$", f"{first}^a$"}
    of_length = [[name for name in row if name.startswith("length")] for row in rows]
    assert of_length[0] == ["length[0]=2|ngrams(1,2)[1]=a"]
    assert of_length[2] == [f"length[0]={len(long)}|ngrams(1,2)[1]=$1"]
    assert r"ngrams(1,2)[1]=\5" not in rows[3] and "length[0]=3|ngrams(1,2)[1]=$1" in rows[3]


def test_two_attributes_of_several_values():
    features = Featurizer(["u:ngrams(1,1)[0]|ngrams(2,2)[-1]"])
    rows = names_of(features, [Doc(VOCAB, words=["ab", "cd"])])
    texts = [[name for name in row if name] for row in rows]
    # A word of one value only outside.
    assert texts[0] == [f"ngrams(2,2)[-1]=^1|ngrams(1,1)[0]={x}" for x in "ab"]
    assert texts[1] == [f"ngrams(2,2)[-1]=ab|ngrams(1,1)[0]={x}" for x in "cd"]


def test_absolute_places():
    features = Featurizer(["u:orth[@1]", "u:orth[@-2]|orth[0]", "u:orth[@3]"])
    assert names_of(features, [sentences(3, 1)]) == [
        ["orth[@1]=a", "orth[@-2]=b|orth[0]=a", "orth[@3]=c"],
        ["orth[@1]=a", "orth[@-2]=b|orth[0]=b", "orth[@3]=c"],
        ["orth[@1]=a", "orth[@-2]=b|orth[0]=c", "orth[@3]=c"],
        ["orth[@1]=d", "orth[@-2]=^1|orth[0]=d", "orth[@3]=$2"],
    ]


@pytest.mark.parametrize(
    ("boundaries", "expected"),
    [
        (None, ["^3", "^2", "^1", "a"]),
        (0, ["^1", "^1", "^1", "a"]),
        (1, ["^2", "^2", "^1", "a"]),
        (7, ["^3", "^2", "^1", "a"]),
    ],
)
def test_boundaries(boundaries: int | None, expected: list[str]):
    features = Featurizer(["u:orth[-3]"], boundaries=boundaries)
    rows = names_of(features, [sentences(4)])
    assert rows == [[f"orth[-3]={value}"] for value in expected]


offsets = st.integers(-6, 6)
places = offsets.map(str) | offsets.filter(bool).map("@{}".format)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=3), min_size=1, max_size=2),
    st.lists(places, min_size=1, max_size=3, unique=True),
    st.none() | st.integers(0, 7),
)
def test_names_of_any_places(lengths: list[list[int]], chosen: list[str], boundaries: int | None):
    templates = [f"u:orth[{place}]|ngrams(1,2)[{-i}]" for i, place in enumerate(chosen)]
    features = Featurizer(templates, boundaries=boundaries)
    names_of(features, [sentences(*of_doc) for of_doc in lengths])


def test_regular_expressions():
    features = Featurizer(['u:match("a|=\\d")[0]', r'u:regex("^\w{2}=?")[0]'])
    rows = names_of(features, [Doc(VOCAB, words=["xa", "=1"])])
    assert rows[0] == [r"match(\"a\|\=\\d\")[0]=a".replace('\\"', '"'), rows[0][1]]
    assert rows[1][0].endswith(r"=\=1")
    assert rows[0][1].endswith("[0]=1") and rows[1][1] == ""


def test_phrases():
    phrases = {"a b": ["New York City", "Paris"], "places": ["york city"]}
    templates = ['u:phrase("a b")[0]', "u:phrase(places)[1]|lower[0]"]
    words = ["in", "New", "York", "City", "Paris"]
    rows = names_of(Featurizer(templates, phrases=phrases), [Doc(VOCAB, words=words)])
    assert [row[0] for row in rows] == ["", *(f'phrase("a b")[0]={sign}' for sign in "BILU")]
    assert [row[1] for row in rows] == [
        "",
        'lower[0]=new|phrase("places")[1]=B',
        'lower[0]=york|phrase("places")[1]=L',
        "",
        'lower[0]=paris|phrase("places")[1]=$1',
    ]


@pytest.fixture
def extension() -> Iterator[str]:
    Token.set_extension("sparse_named", default=None)
    yield "_.sparse_named"
    Token.remove_extension("sparse_named")


def test_extensions(extension: str):
    values = ["never seen", "5", 5, True, -1, 2**70 + 7, np.int32(9), "", None, "NOUN", "a|b"]
    docs = [Doc(Vocab(), words=["x"] * len(values)), Doc(Vocab()), Doc(Vocab(), words=["y"])]
    for token, value in zip(docs[0], values, strict=True):
        token._.sparse_named = value
    docs[2][0]._.sparse_named = "other"
    rows = names_of(Featurizer([f"u:{extension}[0]", f"b:orth[0]|{extension}[-1]"]), docs)
    shown = ["never seen", r"\5", "5", "1", "-1", "7", "9", None, None, "NOUN", r"a\|b", "other"]
    assert [row[0] for row in rows] == [f"{extension}[0]={x}" if x else "" for x in shown]
    assert rows[0][1] == f"{extension}[-1]=^1|orth[0]=x"
    assert "never seen" not in docs[0].vocab.strings


def test_an_extension_that_is_another_each_time_has_no_name():
    drawn = iter(range(1, 100))
    Token.set_extension("sparse_fleeting", getter=lambda token: f"x{next(drawn)}")
    try:
        record = NameRecord(Featurizer(["u:_.sparse_fleeting[0]", "u:orth[0]"]))
        hashes = record([Doc(VOCAB, words=["a"])]).hashes
        assert [*record.names(hashes[0]).values()] == ["orth[0]=a"]
    finally:
        Token.remove_extension("sparse_fleeting")


def test_spans():
    doc = Doc(Vocab(), words=["a", "b", "c"])
    doc.spans["x y"] = [Span(doc, 1, 3, "L=")]
    rows = names_of(Featurizer(['u:span("x y")[0]', 'u:span("x y")[1]']), [doc])
    key = 'span("x y")'
    assert rows == [
        ["", rf"{key}[1]=B-L\="],
        [rf"{key}[0]=B-L\=", rf"{key}[1]=I-L\="],
        [rf"{key}[0]=I-L\=", f"{key}[1]=$1"],
    ]


def test_vectors(extension: str):
    vocab = Vocab()
    vocab.reset_vectors(width=3)
    vocab.set_vector("a", np.array([1.0, -2.0, 3.0], dtype="f"))
    doc = Doc(vocab, words=["a", "b"])
    doc[1]._.sparse_named = "z"
    templates = ["u:vector(2)[0]", f"u:{extension}[0]", "u:vector(3)[-1]|orth[0]"]
    rows = names_of(Featurizer(templates), [doc, Doc(vocab)])
    first = [f"vector(2)[0]={value}" for value in (2, 3, 6)]
    assert rows[0] == [*first, "", "vector(3)[-1]=^1|orth[0]=a", "", ""]
    assert rows[1][3:5] == [f"{extension}[0]=z", "vector(3)[-1]=3|orth[0]=b"]


def test_families():
    rows = names_of(Featurizer(["*:ngrm(3, lower)+"]), [sentences(2)])
    assert "lower[-1]=^1|lower[0]=a|lower[1]=b" in rows[0]
    assert "always" in rows[1]


def test_negative_numbers_and_what_looks_like_them():
    minus, text, large = hash_names(["a[0]=-1", r"a[0]=\-1", f"a[0]={2**64 - 1}"]).tolist()
    assert minus == large != text
    with pytest.raises(ValueError, match="64 bits"):
        hash_names([f"a[0]=-{2**63 + 1}"])


def test_a_pipeline_has_names_for_all_of_its_tests(corpus: Corpus, extension: str):
    nlp: Language = spacy.blank("en")
    features = {
        "@crf_features": "spacy_sparsecrf.Templates.v1",
        "templates": [
            "*:",
            "u:ngrams(2,3)[0]",
            "u:phrase(articles)[-1]|suffix(2)[0]",
            "b:orth[@1]",
            f"u:{extension}[0]",
            'u:regex("t|=")[0]',
            "u:lower[-3]",
        ],
        "phrases": {"articles": ["the", "a"]},
        "boundaries": 1,
    }
    pipe = nlp.add_pipe("sparse_crf", config={"features": features, "n_threads": 1, "l1": 0.1})
    examples = examples_of(nlp, corpus.train[:40])
    for example in examples:
        for token in example.predicted:
            token._.sparse_named = token.text[-3:]
    nlp.initialize(lambda: examples)
    run_steps(nlp, examples, 3)
    lines = [*pipe.dump()]
    assert not [line for line in lines if "\t0x" in line]
    tests = {line.split("\t")[1].partition("[")[0] for line in lines}
    assert {"always", "ngrams(2,3)", 'phrase("articles")', extension, "orth", "lower"} <= tests
    before = pipe.to_bytes()
    pipe.patch(lines, replace=True)
    assert pipe.to_bytes() == before
    found = pipe.explain_doc(examples[0].predicted).tokens
    names = {c.test for token in found for c in token.contributions}
    assert names and not [name for name in names if name.startswith("0x")]
