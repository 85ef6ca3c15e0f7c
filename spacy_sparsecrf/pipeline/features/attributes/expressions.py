"""Regular expressions as word attributes, by the package `regex`.

`regex` supports all Unicode properties and timeouts. A timeout is necessary because a pattern such
as `(a|aa)+$` takes time exponential in the length of some words.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ....errors import Errors, MissingExtraError, SparseCRFError
from ..cursor import Cursor
from .attribute import Sources, Value, WordAttribute, WordReader

SECONDS = 1.0  # timeout of one search in one word
MOST_ITEMS = 100_000  # of a pattern with expanded repetitions: `regex` expands them

# For `find_fault`: a pattern with `\$`, and one of a pattern's items.
_DOLLAR = re.compile(r"(?:\\[^$]|[^\\])*\\\$", re.DOTALL)
_ITEM = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]?|\{([0-9]{1,9})[0-9,]*\}|.", re.DOTALL)


@dataclass(frozen=True)
class Expression(WordAttribute):
    """Whether a regular expression matches, or the first text that matches."""

    NAMES = ("regex", "match")

    pattern: str

    @classmethod
    def parse(cls, cursor: Cursor, name: str) -> "Expression":
        """Parse `"(" text ")"` with a valid pattern."""
        cursor.expect("(", f""" and a regular expression, as in {name}("^[0-9]+$")""")
        pattern, positions = cursor.take_text("a regular expression")
        where = {"number": cursor.number, "template": cursor.text}
        try:
            fault = find_fault(pattern)
        except ImportError as error:
            raise MissingExtraError(Errors.SC110.format(**where)) from error
        if fault is not None:
            reason, at = fault
            position = positions[min(at, len(pattern))] + 1
            raise SparseCRFError(Errors.SC111.format(**where, position=position, reason=reason))
        cursor.expect(")")
        return cls(name, pattern)

    def reader(self, sources: Sources) -> WordReader:
        """See `WordAttribute.reader`."""
        return ExpressionReader(self.pattern, text=self.name == "match", **sources.where(self))


class ExpressionReader:
    """Reader that searches words for a valid pattern.

    text: whether the value is the text of the first match, "" without a match, instead of 1 or 0.
    number, template: position and text of the template, for the message.
    """

    def __init__(self, pattern: str, *, text: bool, number: int, template: str) -> None:
        self._search = searcher(pattern)
        self._text = text
        self._where = {"number": number, "template": template}

    def __call__(self, word: str) -> Value:
        """ExpressionReader a word. RAISES: SparseCRFError if the search takes too long."""
        try:
            match = self._search(word)
        except TimeoutError:
            message = Errors.SC112.format(**self._where, seconds=SECONDS, text=word[:60])
            raise SparseCRFError(message) from None
        if self._text:
            return str(match.group()) if match else ""
        return int(match is not None)


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
    sizes = [0]  # of groups that are open
    latest = 0  # size of the latest item
    for match in _ITEM.finditer(pattern):
        if match[0] == "(":
            sizes.append(0)
            continue
        if match[0] == ")" and len(sizes) > 1:
            latest = added = sizes.pop()
        elif match[1]:
            added = latest * max(0, int(match[1]) - 1)
            latest += added
        else:
            latest = added = 1
        sizes[-1] += added
    return sum(sizes)


def searcher(pattern: str, flags: int = 0) -> Callable[[str], Any]:
    """Return a function that finds the first match of a valid pattern in a text, or None.

    flags: of the package `regex`. The function raises TimeoutError if a search takes too long.
    RAISES: ImportError if the package `regex` is missing.
    """
    import regex

    return partial(regex.compile(pattern, flags).search, timeout=SECONDS)
