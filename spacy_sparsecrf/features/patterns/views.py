r"""What patterns of other programs show of a text: all of it, whether it matches, or what does.

The regular expressions are Wapiti's: `.` any character, a class behind a backslash (`\d` digits,
`\a` letters, `\w` both, `\l` lower-case and `\u` upper-case letters, `\p` punctuation and
symbols, `\s` white space, their complements by the capital), any other character itself; `?` takes
what stands before it if it can, `*` as little of it as it can; `^` in front and `$` at the end hold
to the edges of the text. Classes are Unicode's.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from spacy.strings import get_string_id

from ...errors import Errors, SparseCRFError
from ..attributes import Value
from ..expressions import SECONDS, searcher

EMPTY = 0x27D4EB2F165667C5
"""Value of a text without characters: a test of it is on, unlike that of a missing value."""

CLASSES = {
    "a": r"\p{Alphabetic}",
    "d": r"\p{Nd}",
    "l": r"\p{Lowercase}",
    "p": r"\p{P}\p{S}",
    "s": r"\p{White_Space}",
    "u": r"\p{Uppercase}",
    "w": r"\p{Alphabetic}\p{Nd}",
}

_PIECE = re.compile(r"(\\?.)([*?]?)", re.DOTALL)


class View(NamedTuple):
    """What is made of a text.

    command: "x" the text, "t" "true" or "false", "m" the first match, else "".
    lowered: whether in lower case.
    expression: a regular expression in the dialect above, for "t" and "m".
    """

    command: str = "x"
    lowered: bool = False
    expression: str = ""

    def compile(self) -> Callable[[str], str]:
        """The function of a text.

        RAISES: ImportError if it needs the package `regex`, and that is missing.
        """
        see = _SEE[self.command](self.expression)
        return (lambda text: see(text).lower()) if self.lowered else see


def value_of(text: str) -> int:
    """Number a text, as spaCy does; the empty one too has a number that is not 0."""
    return int(get_string_id(text)) if text else EMPTY


def text_of(value: Value) -> str:
    """The text of an attribute's value: numbers and truth values by digits."""
    return value if isinstance(value, str) else str(int(value))


def translate(expression: str) -> str:
    """Turn an expression of Wapiti into one of the package `regex`.

    RAISES: ValueError that says what is wrong with it.
    """
    begins = expression.startswith("^")
    rest = expression[begins:]
    ends = rest.endswith("$") and not re.search(r"(?<!\\)(\\\\)*\\\$\Z", rest)
    rest = rest[: len(rest) - ends]
    pieces = [_piece(*match.groups()) for match in _PIECE.finditer(rest)]
    return r"\A" * begins + "".join(pieces) + r"\Z" * ends


def _piece(char: str, repeated: str) -> str:
    """Translate a character or class, and how often it stands there."""
    if char in "*?":
        raise ValueError(f"nothing stands before {char!r} that it could repeat")
    if char == "\\":
        raise ValueError("a backslash stands at its end")
    if char == ".":
        one = "."
    elif char[0] == "\\" and char[1].lower() in CLASSES:
        complement = "^" if char[1].isupper() else ""
        one = f"[{complement}{CLASSES[char[1].lower()]}]"
    else:
        one = re.escape(char[-1])
    return one + {"": "", "?": "?", "*": "*?"}[repeated]


def _show(expression: str) -> Callable[[str], str]:
    return str


def _test(expression: str) -> Callable[[str], str]:
    search = _search(expression)
    return lambda text: "false" if search(text) is None else "true"


def _match(expression: str) -> Callable[[str], str]:
    search = _search(expression)
    return lambda text: search(text) or ""


def _search(expression: str) -> Callable[[str], str | None]:
    """The function that finds the first match in a text, None where none does."""
    import regex

    search = searcher(translate(expression), regex.DOTALL)

    def find(text: str) -> str | None:
        try:
            found = search(text)
        except TimeoutError:
            message = Errors.SC161.format(expression=expression, seconds=SECONDS, text=text[:60])
            raise SparseCRFError(message) from None
        return None if found is None else str(found.group())

    return find


_SEE: dict[str, Callable[[str], Callable[[str], str]]] = {"x": _show, "t": _test, "m": _match}
