"""Regular expressions as word attributes, by the package `regex`.

`regex` supports all Unicode properties and timeouts. A timeout is necessary because a pattern such
as `(a|aa)+$` takes time exponential in the length of some words. A search with a timeout takes
several times as long, and few patterns need it: without nested repetitions, the number of steps is
bounded by a polynomial in the length of the text. `longest_text` returns the length up to which
this bound is low enough to search without a timeout.
"""

import re
from bisect import bisect_right
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import Errors, SparseCRFError

if TYPE_CHECKING:
    from .attributes import Value

SECONDS = 1.0  # timeout of one search in one word
MOST_ITEMS = 100_000  # of a pattern with expanded repetitions: `regex` expands them
MOST_STEPS = 5_000_000  # of a search without a timeout: a small part of a second
MOST_CHARACTERS = 1000  # of a text that is searched without a timeout

# For `find_fault`: a pattern with `\$`, and one of a pattern's items.
_DOLLAR = re.compile(r"(?:\\[^$]|[^\\])*\\\$", re.DOTALL)
_ITEM = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\{([0-9]{1,9})[0-9,]*\}|.", re.DOTALL)

# For `longest_text`: a supported piece of a pattern.
_CLASS = r"\\[dDwWsS]|\\[pP](?:\{[^{}\\]*\}|[A-Z])|\\[^\w\s]"
_SET = rf"\[\^?(?!\])(?:{_CLASS}|[^\[\]\\])+\]"
_PIECE = re.compile(
    rf"(?P<nothing>\(\?i\))|(?P<open>\(\?:|\((?!\?))|(?P<bar>\|)|"
    rf"(?:(?P<close>\))|{_CLASS}|\\[bBAZ]|{_SET}|[^\\()\[\]{{}}*+?|])"
    r"(?P<repeated>(?:[*+?]|\{(?P<least>[0-9]{0,6})(?P<comma>,?)(?P<most>[0-9]{0,6})\})[?+]?)?"
)
_SIGNS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class Expression:
    """Reader that searches words for a valid pattern.

    text: whether the value is the text of the first match, "" without a match, instead of 1 or 0.
    number, template: position and text of the template, for the message.
    """

    def __init__(self, pattern: str, *, text: bool, number: int, template: str) -> None:
        self._search = searcher(pattern)
        self._text = text
        self._where = {"number": number, "template": template}

    def __call__(self, word: str) -> "Value":
        """Search a word. RAISES: SparseCRFError if the search takes too long."""
        try:
            found = self._search(word)
        except TimeoutError:
            message = Errors.SC112.format(**self._where, seconds=SECONDS, text=word[:60])
            raise SparseCRFError(message) from None
        if self._text:
            return str(found.group()) if found else ""
        return int(found is not None)


def find_fault(pattern: str) -> tuple[str, int] | None:
    """Return the error in a pattern and its position, or None if the pattern is valid.

    RAISES: ImportError if the package `regex` is missing.
    """
    import regex

    dollar = _DOLLAR.match(pattern)
    if dollar is not None:
        # Saved configs double dollar signs: `\$` and `\$$` could not be distinguished.
        return "write [$] for a dollar sign", dollar.end() - 2
    if _count_items(pattern) > MOST_ITEMS:
        return f"with repetitions written out it has more than {MOST_ITEMS} items", 0
    try:
        regex.compile(pattern)
    except regex.error as error:
        return error.msg, error.pos or 0
    except RecursionError:
        return "it has too many levels of brackets", 0
    return None


def _count_items(pattern: str) -> int:
    """Estimate the number of items of a pattern, such as characters, with expanded repetitions."""
    sizes, last = [0], 0  # of groups that are open, and of the last item
    for match in _ITEM.finditer(pattern):
        if match[0] == "(":
            sizes.append(0)
            continue
        if match[0] == ")" and len(sizes) > 1:
            last = added = sizes.pop()
        elif match[1]:
            added = last * max(0, int(match[1]) - 1)
            last += added
        else:
            last = added = 1
        sizes[-1] += added
    return sum(sizes)


def searcher(pattern: str, flags: int = 0) -> Callable[[str], Any]:
    """Return a function that finds the first match of a valid pattern in a text, or None.

    flags: of the package `regex`. The function raises TimeoutError if a search takes too long.
    RAISES: ImportError if the package `regex` is missing.
    """
    import regex

    search = regex.compile(pattern, flags).search
    longest = longest_text(pattern)

    def find(text: str) -> Any:
        if len(text) <= longest:
            return search(text)
        return search(text, timeout=SECONDS)

    return find


class Repetition(NamedTuple):
    """Bounds of a repetition; most: None if unbounded."""

    least: int = 1
    most: int | None = 1

    def choices(self, length: int) -> int:
        """Return the maximum number of possible repetition counts in a text of this length."""
        most = length if self.most is None else min(self.most, length)
        return max(1, most - self.least + 1)


class _Cost:
    """Bounds on the steps of a search."""

    def __init__(self) -> None:
        self.n_items = 1
        self.n_branches = 1
        self.repetitions: list[Repetition] = []

    def steps(self, length: int) -> int:
        """Return the maximum number of steps in a text of this length: from each position, along
        each path through branches and repetitions, through all items.
        """
        ways = prod(repetition.choices(length) for repetition in self.repetitions)
        return (length + 1) * self.n_branches * ways * self.n_items


def longest_text(pattern: str) -> int:
    """Return the length in characters up to which every search is fast, -1 if unknown.

    pattern: valid, for the package `regex`. Supported are groups that are repeated at most once,
    classes, sets, alternatives and repetitions. Unsupported are groups that begin with `(?`, except
    `(?:` and `(?i)`, references, and sets in sets.
    """
    cost = _cost(pattern)
    if cost is None:
        return -1
    return bisect_right(range(MOST_CHARACTERS + 1), MOST_STEPS, key=cost.steps) - 1


def _cost(pattern: str) -> _Cost | None:
    """Return the cost of a search; None where it is unknown."""
    cost, branches, end = _Cost(), [1], 0
    while end < len(pattern):
        piece = _PIECE.match(pattern, end)
        if piece is None:
            return None
        end = piece.end()
        if piece["open"]:
            branches.append(1)
        elif piece["bar"]:
            branches[-1] += 1
        elif not piece["nothing"]:
            repetition = _repetition(piece)
            if repetition is None or (piece["close"] and repetition.most not in (0, 1)):
                return None
            if piece["close"]:
                # An optional group gives two paths, even in an empty text.
                cost.n_branches *= branches.pop() * repetition.choices(1)
            else:
                cost.repetitions.append(repetition)
            # Beginning and ending a repetition are steps, too.
            cost.n_items += max(1, repetition.least) + 2
    cost.n_branches *= branches.pop()
    return cost


def _repetition(piece: re.Match[str]) -> Repetition | None:
    """Return the repetition of an item or a group; None where it is unknown."""
    signs = piece["repeated"]
    if not signs:
        return Repetition()
    if signs[0] in _SIGNS:
        return Repetition(*_SIGNS[signs[0]])
    least, comma, most = piece["least"], piece["comma"], piece["most"]
    if not least and not most:
        return None
    if not comma:
        return Repetition(int(least), int(least))
    return Repetition(int(least or 0), int(most) if most else None)
