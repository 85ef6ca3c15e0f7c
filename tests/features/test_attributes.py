"""Golden table: the names of the features that templates find in Docs.

A row of `golden.jsonl` has templates, Docs, settings of the featurizer (`with`), and the names at
each token. `names_of` compares the hash of each name with the kernel's and the reference's.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from spacy.tokens import Doc, Span, Token
from spacy.vocab import Vocab

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.features.attributes import CLUSTER, NAMES, STACKED, VALUE, WORD_LABELS
from spacy_sparsecrf.features.featurizer import Featurizer

from ..model.names_cases import names_of
from ..toy import ENGLISH, vocab_of

ROWS = Path(__file__).with_name("golden.jsonl").read_text(encoding="utf8").splitlines()
CASES: list[dict[str, Any]] = [json.loads(row) for row in ROWS]


@pytest.fixture(autouse=True)
def _extensions() -> Iterator[None]:
    Token.set_extension("golden", default=None)
    Token.set_extension("twice", getter=lambda token: 2 * token.i)
    yield
    Token.remove_extension("golden")
    Token.remove_extension("twice")


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
def test_golden(case: dict[str, Any]) -> None:
    langs = {doc.get("lang", "en") for doc in case["docs"]}
    vocabs = {lang: vocab_of(lang, case.get("vectors")) for lang in langs}
    docs = [make_doc(vocabs[doc.pop("lang", "en")], doc) for doc in map(dict, case["docs"])]
    names = names_of(Featurizer(case["templates"], **case.get("with", {})), docs)
    # Without the "" of columns that have no feature at a token.
    assert [[name for name in row if name] for row in names] == case["names"]


def test_every_attribute_is_in_a_golden_test() -> None:
    texts = "|".join(template for case in CASES for template in case["templates"])
    found = {name for name in NAMES for mark in "[(." if name + mark in texts}
    # Classes, values, and attributes of a first-stage model have separate tests.
    assert set(NAMES) - found == {CLUSTER, VALUE, WORD_LABELS, *STACKED}


def test_hashes_are_frozen(vocab: Vocab) -> None:
    # Models store these hashes: changing them breaks every saved model.
    doc = Doc(vocab, words=["Ms.", "Straße"])
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
def test_numbers_of_numpy_and_new_strings_are_values(value: Any, name: str) -> None:
    doc = with_value(value)
    assert names_of(Featurizer([TEMPLATE]), [doc]) == [[""], [f"_.golden[0]={name}"]]
    assert "never seen" not in doc.vocab.strings


def test_unknown_extension() -> None:
    with pytest.raises(SparseCRFError, match=r"\[SC120\].*token\._\.nobody, which is not"):
        Featurizer(["u:_.nobody[0]"])([Doc(ENGLISH, words=["a"])])


@pytest.mark.parametrize(("value", "kind"), [(1.5, "float"), (["a"], "list"), (b"a", "bytes")])
def test_extension_of_another_type(value: Any, kind: str) -> None:
    with pytest.raises(SparseCRFError, match=rf"\[SC121\].*is a {kind} at the token 'b'"):
        Featurizer([TEMPLATE])([with_value(value)])
