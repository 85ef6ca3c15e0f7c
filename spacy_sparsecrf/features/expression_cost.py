"""How long a text may be for a regular expression to be searched for without watching the clock.

Watching it takes several times as long as a search in a word, and few expressions need it: without
repetitions inside repetitions, which can take exponential time, the number of steps is bounded by a
polynomial in the length of the text, whose value is known before the search.
"""

import re
from bisect import bisect_right
from math import prod
from typing import NamedTuple

MOST_STEPS = 5_000_000  # of a search without a clock: a small part of a second
MOST_CHARACTERS = 1000  # for which they are counted

_CLASS = r"\\[dDwWsS]|\\[pP](?:\{[^{}\\]*\}|[A-Z])|\\[^\w\s]"
_SET = rf"\[\^?(?!\])(?:{_CLASS}|[^\[\]\\])+\]"
_TOKEN = re.compile(
    rf"(?P<nothing>\(\?i\))|(?P<open>\(\?:|\((?!\?))|(?P<bar>\|)|"
    rf"(?:(?P<close>\))|{_CLASS}|\\[bBAZ]|{_SET}|[^\\()\[\]{{}}*+?|])"
    r"(?P<repeated>(?:[*+?]|\{(?P<least>[0-9]{0,6})(?P<comma>,?)(?P<most>[0-9]{0,6})\})[?+]?)?"
)
_SIGNS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class Repetition(NamedTuple):
    """How often something may be there; most: None for any number."""

    least: int = 1
    most: int | None = 1

    def choices(self, length: int) -> int:
        """The most numbers of times that it can be there in a text of so many characters."""
        most = length if self.most is None else min(self.most, length)
        return max(1, most - self.least + 1)


class _Cost:
    """What bounds the steps of a search."""

    def __init__(self) -> None:
        self.n_items = 1
        self.n_branches = 1
        self.repetitions: list[Repetition] = []

    def steps(self, length: int) -> int:
        """The most steps in a text of so many characters: from each of its places, along each way
        through branches and repetitions, through all items.
        """
        ways = prod(repetition.choices(length) for repetition in self.repetitions)
        return (length + 1) * self.n_branches * ways * self.n_items


def longest_text(pattern: str) -> int:
    """The length in characters of texts in which a search cannot take long, -1 where not known.

    pattern: for the package `regex`, without faults. Known are groups that are repeated once at
    most, classes, sets, alternatives and repetitions; not known are other groups that begin with
    `(?`, references, and sets in sets.
    """
    cost = _cost(pattern)
    if cost is None:
        return -1
    return bisect_right(range(MOST_CHARACTERS + 1), MOST_STEPS, key=cost.steps) - 1


def _cost(pattern: str) -> _Cost | None:
    cost, branches, end = _Cost(), [1], 0
    while end < len(pattern):
        token = _TOKEN.match(pattern, end)
        if token is None:
            return None
        end = token.end()
        if token["open"]:
            branches.append(1)
        elif token["bar"]:
            branches[-1] += 1
        elif not token["nothing"]:
            repetition = _repetition(token)
            if repetition is None or (token["close"] and repetition.most not in (0, 1)):
                return None
            if token["close"]:
                cost.n_branches *= branches.pop()
            cost.repetitions.append(repetition)
            # To begin a repetition and to end it are steps too.
            cost.n_items += max(1, repetition.least) + 2
    cost.n_branches *= branches.pop()
    return cost


def _repetition(token: re.Match[str]) -> Repetition | None:
    """How often an item or a group is repeated; None where that is not known."""
    signs = token["repeated"]
    if not signs:
        return Repetition()
    if signs[0] in _SIGNS:
        return Repetition(*_SIGNS[signs[0]])
    least, comma, most = token["least"], token["comma"], token["most"]
    if not least and not most:
        return None
    if not comma:
        return Repetition(int(least), int(least))
    return Repetition(int(least or 0), int(most) if most else None)
