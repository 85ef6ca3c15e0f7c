"""Families of n-gram templates: the sets of Lavergne et al. (2010), section 5.1.1."""

import pytest

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.features.featurizer import Featurizer
from spacy_sparsecrf.features.templates import parse_templates
from spacy_sparsecrf.features.windows import windows


def texts(word: str, t: int, n: int, variant: str) -> list[str]:
    return [word[t + min(window, default=0) :][: len(window)] for window in windows(n, variant)]


def test_example_of_the_paper() -> None:
    """Position 2 of "lemma", counted from 1."""
    assert sorted(texts("lemma", 1, 3, "")) == ["", "e", "lem"]
    assert texts("lemma", 1, 3, "-") == ["lem"]
    assert sorted(texts("lemma", 1, 3, "+")) == ["", "e", "em", "le", "lem"]
    assert sorted(texts("lemma", 1, 3, "++")) == ["", "e", "em", "l", "le", "lem", "m"]


@pytest.mark.parametrize("n", [1, 3, 5, 7, 99])
def test_sizes(n: int) -> None:
    half = n // 2
    assert len(windows(n)) == half + 2
    assert len(windows(n, "-")) == 1
    assert len(windows(n, "+")) == half + 2 + 2 * half
    assert len(windows(n, "++")) == n * (n + 1) // 2 + 1
    for variant in ("", "-", "+", "++"):
        found = windows(n, variant)
        assert len({*map(tuple, found)}) == len(found)
        assert {offset for window in found for offset in window} == {*range(-half, half + 1)}


def test_templates() -> None:
    (first, *others) = parse_templates(["u:tag[0]", "*: ngrm ( 3 , suffix(2) ) +", "b:tag[@1]"])
    assert str(first) == "u:tag[0]"
    assert [*map(str, others)] == [
        "*:",
        "*:suffix(2)[0]",
        "*:suffix(2)[-1]|suffix(2)[0]",
        "*:suffix(2)[0]|suffix(2)[1]",
        "*:suffix(2)[-1]|suffix(2)[0]|suffix(2)[1]",
        "b:tag[@1]",
    ]
    assert [template.number for template in others] == [2, 2, 2, 2, 2, 3]
    assert Featurizer(["b:ngrm(1,orth)-"]).templates == ("b:ngrm(1,orth)-",)


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("u:ngrm", 7, "'(', as in ngrm(3, lower)"),
        ("u:ngrm(4, lower)", 8, "an odd length, a whole number from 1 to 99"),
        ("u:ngrm(101, lower)", 8, "an odd length, a whole number from 1 to 99"),
        ("u:ngrm(x, lower)", 8, "an odd length, a whole number from 1 to "),
        ("u:ngrm(3)", 9, "',' and an attribute"),
        ("u:ngrm(3, word)", 11, "an attribute, one of orth"),
        ("u:ngrm(3, lower", 16, "')'"),
        ("u:ngrm(3, lower)[0]", 17, "'+', '++', '-' or the end of the template"),
        ("u:ngrm(3, lower)+++", 19, "'+', '++', '-' or the end of the template"),
        ("u:ngrm(3, lower)|tag[0]", 17, "'+', '++', '-' or the end of the template"),
    ],
)
def test_malformed(text: str, position: int, expected: str) -> None:
    with pytest.raises(SparseCRFError) as caught:
        parse_templates(["b:", text])
    message = str(caught.value)
    assert message.startswith(
        f"[SC101] Template 2 of [components.NAME.features] templates, {text!r}"
    )
    assert f"at character {position}: expected {expected}" in message


def test_repeated() -> None:
    with pytest.raises(SparseCRFError, match=r"\[SC104\] Template 3 .* repeats template 1, 'b:'"):
        parse_templates(["b:", "u:tag[0]", "*:ngrm(3, lower)"])
