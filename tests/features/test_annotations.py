"""Annotations that are read in Python: extension attributes and span groups."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, Span, Token

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.features.featurizer import Featurizer

from .feature_cases import SENTENCE
from .reference_features import before, hash_values

# Without numba's compiler 64-bit products are numpy scalars, which warn when they wrap around.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

VOCAB = spacy.blank("en").vocab


def hashes(template: str, *docs: Doc) -> list[int]:
    found = Featurizer([template])(docs).hashes
    assert found.shape[1] == 1
    return found[:, 0].tolist()


# Extension attributes ------------------------------------------------------------------------


@pytest.fixture
def extension() -> Iterator[str]:
    Token.set_extension("sparse_test", default=None)
    yield "sparse_test"
    Token.remove_extension("sparse_test")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("abc", "abc"),
        ("", 0),
        (None, 0),
        (True, 1),
        (False, 0),
        (7, 7),
        (0, 0),
        (-1, 2**64 - 1),
        (2**70 + 5, 5),
        (np.int32(3), 3),
        (np.True_, 1),
    ],
)
def test_values_of_extensions(extension: str, value: Any, expected: str | int) -> None:
    doc = Doc(VOCAB, words=["a", "b"])
    doc[1]._.set(extension, value)
    key = f"_.{extension}[0]"
    assert hashes(f"u:{key}", doc) == [0, hash_values(key, expected)]


def test_extension_in_a_window(extension: str) -> None:
    docs = [Doc(VOCAB, words=["a", "b"]), Doc(VOCAB, words=["c"])]
    docs[0][0]._.set(extension, "x")
    key = f"lower[0]|_.{extension}[-1]"
    canonical = f"_.{extension}[-1]|lower[0]"
    assert hashes(f"u:{key}", *docs) == [
        hash_values(canonical, before(1), "a"),
        hash_values(canonical, "x", "b"),
        hash_values(canonical, before(1), "c"),
    ]


def test_extension_that_is_computed() -> None:
    Token.set_extension("sparse_twice", getter=lambda token: 2 * token.i)
    try:
        key = "_.sparse_twice[0]"
        expected = [hash_values(key, value) for value in (0, 2, 4)]
        assert hashes(f"u:{key}", Doc(VOCAB, words=["a", "b", "c"])) == expected
    finally:
        Token.remove_extension("sparse_twice")


def test_unknown_extension() -> None:
    features = Featurizer(["u:_.nobody[0]"])
    with pytest.raises(SparseCRFError, match=r"\[SC120\].*token\._\.nobody, which is not"):
        features([Doc(VOCAB, words=["a"])])


@pytest.mark.parametrize(("value", "kind"), [(1.5, "float"), (["a"], "list"), (b"a", "bytes")])
def test_extension_of_another_type(extension: str, value: Any, kind: str) -> None:
    doc = Doc(VOCAB, words=["a", "b"])
    doc[1]._.set(extension, value)
    with pytest.raises(SparseCRFError, match=rf"\[SC121\].*is a {kind} at the token 'b'"):
        hashes(f"u:_.{extension}[0]", doc)


# Span groups ---------------------------------------------------------------------------------


def test_spans() -> None:
    doc, without = Doc(VOCAB, words=SENTENCE), Doc(VOCAB, words=["x"])
    doc.spans["a b"] = [
        Span(doc, 0, 1, "X"),
        Span(doc, 2, 4, "Y"),
        Span(doc, 3, 6, "Z"),  # the longest of those that overlap
        Span(doc, 4, 6, "Y"),
    ]
    values = [0, "B-X", 0, 0, "B-Z", "I-Z", "I-Z", 0]
    key = 'span("a b")[0]'
    assert hashes(f"u:{key}", without, doc, without) == [hash_values(key, v) for v in values]


def test_spans_in_a_window() -> None:
    doc = Doc(VOCAB, words=["a", "b", "c"])
    doc.spans["sc"] = [Span(doc, 0, 2)]
    key = 'span("sc")[-1]'
    expected = [hash_values(key, value) for value in (before(1), "B-", "I-")]
    assert hashes("u:span(sc)[-1]", doc) == expected


def test_docs_are_not_changed() -> None:
    doc = Doc(VOCAB, words=["a", "b"])
    as_bytes = doc.to_bytes()
    hashes("u:span(sc)[0]", doc)
    assert doc.to_bytes() == as_bytes
