"""Features of tokens are read as by python-crfsuite, or refused with a code and position."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.interop.sequences.item_encoding import read_attributes
from spacy_sparsecrf.interop.sequences.items import Vocabulary


def read(*tokens: Any) -> list[list[tuple[str, float]]]:
    """Return the attributes of each token, and their values."""
    vocabulary = Vocabulary()
    found = read_attributes([list(tokens)], vocabulary)
    pairs = [list[tuple[str, float]]() for _ in tokens]
    for t, number, value in zip(*map(np.ndarray.tolist, found[1:]), strict=True):
        if value != 0.0:
            pairs[t].append((vocabulary.texts[number - 1], value))
    return pairs


TOKENS = [
    {"w": "the", "title": True, "digit": False, "n": 2, "r": 0.5, "empty": "", "none": 0.0},
    {"near": ["a", "b"], "set": {"p"}, "d": {"k": 0.5, "m": {"z": "w"}}, "nothing": []},
    {"w": b"bytes", b"key": "x", "one": 1, "real": 1.0},
    {"f": np.float32(0.25), "b": np.bool_(True), "i": np.int64(3), "no": np.bool_(False)},
    {"d": {"on": True, "off": False}, "minus": -1.5},
    {"a:b": "c"},
    {},
    ["x", "y:z"],
    ("x",),
    {"p"},
]


@pytest.mark.parametrize("token", TOKENS, ids=str)
def test_attributes_are_those_of_python_crfsuite(token):
    reason = "python-crfsuite (extra `bench`) is not installed"
    pycrfsuite = pytest.importorskip("pycrfsuite", reason=reason)
    [expected] = pycrfsuite.ItemSequence([token]).items()
    there = {text: value for text, value in expected.items() if value != 0.0}
    assert dict(read(token)[0]) == pytest.approx(there)


def test_tokens_of_all_kinds_are_read_alike():
    """Plain dicts and lists take another code path if one of them is not plain."""
    plain = [{"w": "a", "on": True}, {"w": "b", "off": 0}, {"w": "a"}]
    assert read(*plain, {"n": 0.5})[:3] == read(*plain)
    assert read(["a", "b"], {"c": True})[:1] == read(["a", "b"])
    assert read(["a", "b"]) == read(("a", b"b")) == read([b"a", np.str_("b")])
    # A string is a token with one attribute; repeated attributes count twice; sets are sorted.
    assert read("the", ["cat"]) == [[("the", 1.0)], [("cat", 1.0)]]
    assert read({"a:b": "c", "a": "b:c"}) == [[("a:b:c", 1.0), ("a:b:c", 1.0)]]
    assert [text for text, _ in read({"s": set("dcba")})[0]] == ["s:a", "s:b", "s:c", "s:d"]
    # Any iterable of strings is a token.
    arrays = np.array(["a", "b"]), np.array(["a", "b"], object)
    for token in (*arrays, (text for text in "ab"), dict.fromkeys("ab").keys(), {"a": 1, "b": 1}):
        assert read(token) == [[("a", 1.0), ("b", 1.0)]]


def test_unknown_attributes_are_not_there_and_do_not_grow_a_vocabulary():
    vocabulary = Vocabulary(Counter({"w:a": 1, "n": 2}))
    found = read_attributes([[{"w": "a", "n": 1}, {"w": "b", "n": 0}]], vocabulary)
    assert found.numbers.tolist() == [1, 2, 2] and found.tokens.tolist() == [0, 0, 1]
    assert found.values.tolist() == [1.0, 1.0, 0.0] and found.offsets.tolist() == [0, 2]
    assert vocabulary.texts == ["w:a", "n"]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[{}], [{}, {"a": None}]], r"SC801\] X\[1\]\[1\].*'a' is a NoneType"),
        ([[{"a": float("nan")}]], r"SC801\] X\[0\]\[0\].*'a' is nan"),
        ([[{"a": 10**400}]], r"SC801\] X\[0\]\[0\].*finite number"),
        ([[{1: "a"}]], r"SC801\] X\[0\]\[0\].*1 is a int, not a string"),
        ([[["a", 2]]], r"SC801\] X\[0\]\[0\].*2 is a int, not a string"),
        ([[["a", ("b", 1.0)]]], r"SC801\] X\[0\]\[0\].*is a tuple, not a string"),
        ([[{"a": object()}]], r"SC801\] X\[0\]\[0\].*'a' is a object"),
        ([[3]], r"SC801\] X\[0\]\[0\].*it is a int"),
        ([[{}], "a text"], r"SC801\] X\[1\].*it is a str, not a list of tokens"),
        ([{"a": "b"}], r"SC801\] X\[0\].*it is a dict"),
        ([{"a", "b"}], r"SC801\] X\[0\].*it is a set"),
        ([[b"ab"]], r"SC801\] X\[0\]\[0\].*it is a bytes"),
        ([3], r"SC801\] X\[0\].*it is a int"),
    ],
)
def test_what_is_no_feature_is_refused_with_its_place(X, message):
    with pytest.raises(SparseCRFError, match=message):
        read_attributes(X, Vocabulary())
