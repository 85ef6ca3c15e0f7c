"""Golden table: the names of the features that templates find in Docs.

A row of `golden.jsonl` has templates, Docs, settings of the featurizer (`with`), and the names at
each token. `names_of` compares the hash of each name with the kernel's and the reference's.
"""

import json
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Span, Token
from spacy.tokens.underscore import Underscore
from spacy.vocab import Vocab

from spacy_sparsecrf.crf.model.names import ALWAYS
from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.interop.patterns.pattern_featurizer import WapitiPatterns
from spacy_sparsecrf.pipeline.features.attributes.stage import Prediction
from spacy_sparsecrf.pipeline.features.attributes.table import ATTRIBUTES
from spacy_sparsecrf.pipeline.features.featurizer import Featurizer
from spacy_sparsecrf.pipeline.features.naming import NameRecord, hash_names

from ..support.feature_cases import EVERY_TEMPLATE, SENTENCE
from ..support.names_cases import names_of
from ..support.toy import ENGLISH, blank_with, examples_of, train, vocab_of

ROWS = Path(__file__).with_name("golden.jsonl").read_text(encoding="utf8").splitlines()
CASES: list[dict[str, Any]] = [json.loads(row) for row in ROWS]


@pytest.fixture(autouse=True)
def _extensions(own_extensions) -> None:
    drawn = iter(range(1, 100))
    getters = {"twice": lambda token: 2 * token.i, "fleeting": lambda token: f"x{next(drawn)}"}
    for name in ("golden", "named"):
        Token.set_extension(name, default=None)
    for name, getter in getters.items():
        Token.set_extension(name, getter=getter)


def make_doc(vocab: Vocab, made: dict[str, Any]) -> Doc:
    """Create a Doc of a row; extension: values of `token._.golden`; spans: (start, end, label)."""
    others = {key: made.pop(key) for key in ("extension", "spans", "tensor") if key in made}
    doc = Doc(vocab, **made)
    for token, value in zip(doc, others.get("extension", ()), strict=False):
        token._.golden = value
    for key, group in others.get("spans", {}).items():
        doc.spans[key] = [Span(doc, *span) for span in group]
    if "tensor" in others:
        doc.tensor = np.array(others["tensor"], dtype="f")
    return doc


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(case["templates"]))
def test_golden(case):
    langs = {doc.get("lang", "en") for doc in case["docs"]}
    vocabs = {lang: vocab_of(lang, case.get("vectors")) for lang in langs}
    docs = [make_doc(vocabs[doc.pop("lang", "en")], doc) for doc in map(dict, case["docs"])]
    names = names_of(Featurizer(case["templates"], **case.get("with", {})), docs)
    # Without the "" of columns that have no feature at a token.
    assert [[name for name in row if name] for row in names] == case["names"]


def test_every_attribute_is_in_a_golden_test():
    texts = "|".join(template for case in CASES for template in case["templates"])
    found = {name for name in ATTRIBUTES for mark in "[(." if name + mark in texts}
    # Classes, values, and attributes of a first-stage model have separate tests.
    predictions = {name for name, family in ATTRIBUTES.items() if issubclass(family, Prediction)}
    assert set(ATTRIBUTES) - found == {"cluster", "value", "word_labels", *predictions}


def test_hashes_are_frozen():
    # Models store these hashes: changing them breaks every saved model.
    doc = Doc(ENGLISH, words=["Ms.", "Straße"])
    templates = ["b:", "u:lower[0]", "u:suffix(3)[0]|is_title[1]", "u:lower[-1]"]
    assert Featurizer(templates)([doc]).hashes.tolist() == [
        [0x136C530E4029FFF4, 0x878B6E386CE99853, 0x6E0A35F1B338C47B, 0x15C0091A9F3EF292],
        [0x136C530E4029FFF4, 0x0BE7CA566EE2D9CA, 0xC5A7442FD2DE85CD, 0xA9D972C2157FD9DC],
    ]


TEMPLATE = "u:_.golden[0]"


def with_value(value: Any) -> Doc:
    doc = Doc(vocab_of(), words=["a", "b"])
    doc[1]._.golden = value
    return doc


@pytest.mark.parametrize(
    ("value", "name"), [(np.int32(3), "3"), (np.True_, "1"), ("never seen", "never seen")]
)
def test_numbers_of_numpy_and_new_strings_are_values(value, name):
    doc = with_value(value)
    assert names_of(Featurizer([TEMPLATE]), [doc]) == [[""], [f"_.golden[0]={name}"]]
    assert "never seen" not in doc.vocab.strings


@pytest.mark.parametrize(("value", "kind"), [(1.5, "float"), (["a"], "list"), (b"a", "bytes")])
def test_unknown_extensions_and_values_of_another_type(value, kind):
    with pytest.raises(SparseCRFError, match=rf"\[SC121\].*is a {kind} at the token 'b'"):
        Featurizer([TEMPLATE])([with_value(value)])
    with pytest.raises(SparseCRFError, match=r"\[SC120\].*token\._\.nobody, which is not"):
        Featurizer(["u:_.nobody[0]"])([Doc(ENGLISH, words=["a"])])


@pytest.mark.parametrize("boundaries", [None, 0])
def test_every_attribute_has_names_inside_and_outside(boundaries):
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
    docs = [doc, Doc(ENGLISH, words=["x|y", "a=b", "y\t", "\n", "7", "^1"]), Doc(ENGLISH)]
    found = {*chain(*names_of(Featurizer(EVERY_TEMPLATE, boundaries=boundaries), docs))}
    assert {"ent_iob[0]=3", "ent_iob[0]=1", "ngrams(2,3)[0]=so", r"tag[0]=X\=\|"} <= found
    assert {r"tag[0]=\5", r"tag[0]=\-5", r"tag[0]=\^1", r"tag[0]=\\", "ngrams(2,3)[1]=$1"} <= found
    assert {"pos[0]=NOUN", "glued[0]=1", r"morph[0]=Case\=Nom\|Number\=Sing"} <= found
    assert {
        r"orth[0]=x\|y",
        r"orth[0]=\7",
        "length[0]=1",
        r"orth[0]=y\t",
        "break[0]=1",
        r"orth[0]=\^1",
    } <= found
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
def test_names_of_any_places(lengths, chosen, boundaries):
    templates = [f"u:orth[{place}]|ngrams(1,2)[{-i}]" for i, place in enumerate(chosen)]
    features = Featurizer(templates, boundaries=boundaries)
    names_of(features, [sentences(*of_doc) for of_doc in lengths])


def test_negative_numbers_and_extensions_that_are_others_each_time():
    minus, text, large = hash_names(["a[0]=-1", r"a[0]=\-1", f"a[0]={2**64 - 1}"]).tolist()
    assert minus == large != text
    with pytest.raises(ValueError, match="64 bits"):
        hash_names([f"a[0]=-{2**63 + 1}"])
    record = NameRecord(Featurizer(["u:_.fleeting[0]", "u:orth[0]"]))
    hashes = record([Doc(ENGLISH, words=["a"])]).hashes
    assert [*record.names(hashes[0]).values()] == ["orth[0]=a"]  # the other has no name


@pytest.mark.parametrize("pattern", [False, True], ids=["template", "pattern"])
def test_values_of_extensions_are_read_from_the_doc(pattern, monkeypatch):
    """`token._` takes many times as long as labelling; and reading must not store a default."""
    Token.set_extension("listed", default=[])
    columns = {"text": "u:%x[0,0]/%x[0,1]", "columns": ["_.golden", "_.named"]}
    templates = ["u:_.golden[0]|_.named[0]", "u:_.twice[0]"]
    features = WapitiPatterns(**columns) if pattern else Featurizer(templates)
    doc = Doc(ENGLISH, words=["a", "b", "c"])
    doc[0]._.golden, doc[1]._.golden, doc[1]._.named = "k", "m", "n"
    expected, before = features([doc]).hashes, dict(doc.user_data)
    own, calls = Underscore.get, []
    monkeypatch.setattr(Underscore, "get", lambda self, name: calls.append(name) or own(self, name))
    assert (features([doc]).hashes == expected).all() and doc.user_data == before
    assert calls == ([] if pattern else ["twice"] * 3)
    with pytest.raises(SparseCRFError, match=r"SC121.*token\._\.listed, which is a list"):
        Featurizer(["u:_.listed[0]"])([doc])
    assert doc.user_data == before


def test_a_pipeline_has_names_for_all_of_its_features(corpus):
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
