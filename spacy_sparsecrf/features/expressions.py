"""Regular expressions as word attributes, by the package `regex`.

It knows all of Unicode's properties, and can be told to give up: a pattern such as `(a|aa)+$` takes
time exponential in the length of some words.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import Errors, SparseCRFError
from .expression_cost import longest_text

if TYPE_CHECKING:
    from .attributes import Value

SECONDS = 1.0  # of computing, for one search in one word
MOST_ITEMS = 100_000  # of a pattern, with repetitions written out: `regex` writes them out

_DOLLAR = re.compile(r"(?:\\[^$]|[^\\])*\\\$", re.DOTALL)
_ITEM = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\{([0-9]{1,9})[0-9,]*\}|.", re.DOTALL)


def find_fault(pattern: str) -> tuple[str, int] | None:
    """Tell what is wrong with a pattern, and where: a position in it.

    RAISES: ImportError if the package `regex` is missing.
    """
    import regex

    dollar = _DOLLAR.match(pattern)
    if dollar is not None:
        # Saved configs double the sign: `\$$` would not be told from a sign before the end.
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
    """About how many items a pattern has, such as characters, with repetitions written out."""
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
    """The function that finds the first match of a pattern without faults in a text, or None.

    flags: of the package `regex`. The function raises TimeoutError if that takes too long.
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


class Expression:
    """Searches words for a pattern that has no fault.

    text: whether the value is the first text that matches, "" where none does, rather than 1 or 0.
    number, template: for the message.
    """

    def __init__(self, pattern: str, *, text: bool, number: int, template: str) -> None:
        self._search = searcher(pattern)
        self._text = text
        self._where = {"number": number, "template": template}

    def __call__(self, word: str) -> "Value":
        """Search a word.

        RAISES: SparseCRFError if that takes too long.
        """
        try:
            found = self._search(word)
        except TimeoutError:
            message = Errors.SC112.format(**self._where, seconds=SECONDS, text=word[:60])
            raise SparseCRFError(message) from None
        if self._text:
            return str(found.group()) if found else ""
        return int(found is not None)
