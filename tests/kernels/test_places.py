"""Absolute positions in templates, and values of positions outside the sequence."""

import pytest
import spacy
from spacy.tokens import Doc

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.features.featurizer import Featurizer
from spacy_sparsecrf.features.templates import Template, TokenTest, parse_template

from ..features.reference_features import after, hash_values

VOCAB = spacy.blank("en").vocab


def test_absolute_tests_parse() -> None:
    template = parse_template("u: lower [ @ -1 ] | suffix(2)[@+1]|lower[-1]")
    assert template == Template(
        "u",
        (
            TokenTest(-1, "lower"),
            TokenTest(-1, "lower", absolute=True),
            TokenTest(1, "suffix", 2, absolute=True),
        ),
    )
    assert str(template) == "u:lower[-1]|lower[@-1]|suffix(2)[@1]"
    assert parse_template(str(template)) == template


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("u:lower[@]", 10, "a place, a whole number from -1000 to 1000; found ']'"),
        ("u:lower[@0]", 10, "a place, 1 for the first token or -1 for the last; found '0'"),
        ("u:lower[@1001]", 10, "a place, a whole number from -1000 to 1000; found '1001'"),
        ("u:lower[1@]", 10, "']'; found '@'"),
        ("u:lower[@1]|lower[@1]", 13, "a test other than lower[@1], which"),
    ],
)
def test_malformed(text: str, position: int, expected: str) -> None:
    with pytest.raises(SparseCRFError, match=r"\[SC101\] ") as caught:
        parse_template(text)
    assert f"at character {position}: expected {expected}" in str(caught.value)


def test_absolute_positions_stop_at_sentence_bounds() -> None:
    doc = Doc(VOCAB, words=list("abcde"), sent_starts=[True, False, True, False, False])
    found = Featurizer(["u:orth[@1]", "u:orth[@-1]", "u:orth[@3]"])([doc]).hashes.tolist()
    first, last = (
        [hash_values("orth[@1]", x) for x in "ac"],
        [hash_values("orth[@-1]", x) for x in "be"],
    )
    third = [hash_values("orth[@3]", after(1)), hash_values("orth[@3]", "e")]
    rows = [[first[i], last[i], third[i]] for i in (0, 1)]
    assert found == [rows[0]] * 2 + [rows[1]] * 3


@pytest.mark.parametrize("value", [-1, True])
def test_boundaries_are_checked(value: object) -> None:
    with pytest.raises(SparseCRFError, match=r"\[SC150\] .*boundaries = .* from 0"):
        Featurizer(boundaries=value)  # type: ignore[arg-type]
