"""Annotations that are read in Python: extension attributes and span groups."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from spacy.tokens import Doc, Span, Token

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.features.featurizer import Featurizer

from ..model.names_cases import names_of
from ..toy import ENGLISH, vocab_of

TEMPLATE = "u:_.sparse_test[0]"


@pytest.fixture(autouse=True)
def _extension() -> Iterator[None]:
    Token.set_extension("sparse_test", default=None)
    yield
    Token.remove_extension("sparse_test")


def with_value(value: Any) -> Doc:
    doc = Doc(vocab_of(), words=["a", "b"])
    doc[1]._.sparse_test = value
    return doc


@pytest.mark.parametrize(
    ("value", "name"), [(np.int32(3), "3"), (np.True_, "1"), ("never seen", "never seen")]
)
def test_numbers_of_numpy_and_new_strings_are_values(value: Any, name: str) -> None:
    doc = with_value(value)
    assert names_of(Featurizer([TEMPLATE]), [doc]) == [[""], [f"_.sparse_test[0]={name}"]]
    assert "never seen" not in doc.vocab.strings


def test_unknown_extension() -> None:
    with pytest.raises(SparseCRFError, match=r"\[SC120\].*token\._\.nobody, which is not"):
        Featurizer(["u:_.nobody[0]"])([Doc(ENGLISH, words=["a"])])


@pytest.mark.parametrize(("value", "kind"), [(1.5, "float"), (["a"], "list"), (b"a", "bytes")])
def test_extension_of_another_type(value: Any, kind: str) -> None:
    with pytest.raises(SparseCRFError, match=rf"\[SC121\].*is a {kind} at the token 'b'"):
        Featurizer([TEMPLATE])([with_value(value)])


def test_docs_are_not_changed() -> None:
    doc = with_value("x")
    doc.spans["a"] = [Span(doc, 0, 1, "X")]
    as_bytes = doc.to_bytes()
    Featurizer(["u:span(sc)[0]", "u:span(a)[0]", TEMPLATE])([doc])
    assert doc.to_bytes() == as_bytes
