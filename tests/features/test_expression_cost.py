"""Searches without a clock: what bounds their steps, against a matcher that counts them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spacy_sparsecrf.errors import SparseCRFError
from spacy_sparsecrf.features import expressions
from spacy_sparsecrf.features.expressions import Expression, _cost, find_fault, longest_text
from spacy_sparsecrf.interop.patterns.macros import translate

SIGNS = {(0, None): "*", (1, None): "+", (0, 1): "?", (1, 1): ""}


@dataclass(frozen=True)
class Item:
    """A set of characters, and how often it is there."""

    characters: str
    least: int
    most: int | None

    def __str__(self) -> str:
        written = f"[{self.characters}]" if len(self.characters) > 1 else self.characters
        most = "" if self.most is None else self.most
        return written + SIGNS.get((self.least, self.most), f"{{{self.least},{most}}}")


@dataclass(frozen=True)
class Group:
    """Alternatives, each of items and groups, and whether they may be left out."""

    branches: "Sequence[Sequence[Item | Group]]"
    optional: bool

    def __str__(self) -> str:
        text = "|".join("".join(map(str, branch)) for branch in self.branches)
        return f"({text})" + "?" * self.optional


Parts = Sequence[Item | Group]


class Matcher:
    """Searches as a textbook does it, and counts what it looks at."""

    def __init__(self) -> None:
        self.n_steps = 0

    def search(self, parts: Parts, text: str) -> bool:
        return any(
            self._match(parts, text, start, lambda at: True) for start in range(len(text) + 1)
        )

    def _match(self, parts: Parts, text: str, at: int, then: Callable[[int], bool]) -> bool:
        self.n_steps += 1
        if not parts:
            return then(at)
        first, rest = parts[0], parts[1:]

        def go_on(place: int) -> bool:
            return self._match(rest, text, place, then)

        if isinstance(first, Group):
            branches = [*first.branches, *([()] if first.optional else [])]
            return any(self._match(branch, text, at, go_on) for branch in branches)
        end = at
        while (first.most is None or end - at < first.most) and end < len(text):
            self.n_steps += 1
            if text[end] not in first.characters:
                break
            end += 1
        return any(go_on(place) for place in range(end, at + first.least - 1, -1))


counts = st.sampled_from([(0, None), (1, None), (0, 1), (1, 1), (2, 2), (1, 3), (2, None)])
items = st.builds(lambda chars, n: Item(chars, *n), st.sampled_from(["a", "b", "ab"]), counts)
parts = st.recursive(
    st.lists(items, max_size=3),
    lambda branch: st.lists(
        items | st.builds(Group, st.lists(branch, min_size=1, max_size=3), st.booleans()),
        max_size=3,
    ),
    max_leaves=5,
)


@settings(max_examples=300, deadline=None)
@given(parts, st.text("ab", max_size=7))
@example([Group([[]], True)] * 3, "")
def test_steps_are_bounded(parts: Parts, text: str):
    # Nothing matches at last: every way is tried.
    parts = [*parts, Item("c", 1, 1)]
    pattern = "".join(map(str, parts))
    assert find_fault(pattern) is None
    matcher, cost = Matcher(), _cost(pattern)
    assert not matcher.search(parts, text)
    assert cost is not None
    assert matcher.n_steps <= 2 * cost.steps(len(text))


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"(a|aa)+$", r"(?:a*)*b", r"(a?){20}b", r"(a)\1*", r"(?=a+)+b", r"(?>a)*", r"\X*"),
        *(r"[[:alpha:](]*", r"[]()*]", r"[^](a|b)*]", r"(?:ab){e<=2}", r"(?R)?a", r"(?P<x>a*)"),
        *(r"(?V1)[[a]--[b]]*", r"(?x)a", "a{,}"),
    ],
)
def test_what_is_not_known_needs_a_clock(pattern: str):
    assert longest_text(pattern) == -1


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"^\p{Lu}\p{Ll}+$", r"\d", r"(ing|ed|ly|s)$", r"[\]a-z.]+?", r"\pL+", "", "é+"),
        *(r"(?i)^(un|in)?\w+(?:able|ible)$", r"a{2,5}b{3}c{,4}d{1,}", r"\bfoo\b", r"\.\(\[\{"),
        *(r"[^\p{L}\d]*+", translate(r"^\u\l*\d?.*$")),
    ],
)
def test_words_need_none(pattern: str):
    assert longest_text(pattern) > 20


def test_more_repetitions_make_texts_shorter():
    found = [longest_text("a*" * n + "b") for n in range(5)]
    assert found == sorted(found, reverse=True) and found[0] > found[2] > found[4]
    # Too many even for the empty text.
    assert longest_text("(a|b|c|d)" * 20) == -1


@pytest.mark.parametrize("letters", [800, 8000])
def test_long_texts_are_given_up_where_short_ones_are_not(
    letters: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(expressions, "SECONDS", 0.05)
    # With a plain letter at the end `regex` sees at once that it is not there.
    expression = Expression("a*" * 9 + "[bc]", text=False, number=1, template="u:")
    assert expression("aaab") == 1
    with pytest.raises(SparseCRFError, match="SC112"):
        expression("a" * letters)
