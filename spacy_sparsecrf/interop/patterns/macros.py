r"""Patterns of other programs: lines in which macros such as `%x[-1,0]` insert texts of columns.

A feature is the text that a line generates. Lines with the same text around their macros, such as
`U%x[-1,0]` and `U%x[1,0]`, thus share their features, as in a bag of words, and a feature that is
active twice counts twice; different prefixes keep them apart. Texts of columns are compared
separately, not joined: `%x[0,0]%x[1,0]` has different features for "a", "bc" and for "ab", "c".

A macro shows a *view* of a text: the text, whether an expression matches it, or the first match.
The regular expressions are Wapiti's: `.` is any character; `\d` digits, `\a` letters, `\w` both,
`\l` lower-case and `\u` upper-case letters, `\p` punctuation and symbols, `\s` white space, and
capitals their complements; any other character matches itself. `?` makes the preceding character
optional and `*` repeats it as rarely as possible. `^` at the start and `$` at the end match the
edges of the text. Classes are Unicode's.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from ...crf.model.names import pattern_key
from ...errors import Errors, SparseCRFError
from ...pipeline.features.attributes.expressions import SECONDS, searcher
from ...pipeline.features.templates import Conjunction
from ...schema import HALF

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
# Offset and column may be surrounded by blanks; @ makes a position absolute.
_MACRO = re.compile(
    r"%([a-zA-Z])\[\s*(?:(@)\s*)?([+-]?[0-9]{1,9})\s*,\s*\+?([0-9]{1,9})\s*"
    r'(?:,\s*"((?:[^"\\]|\\.)*)"\s*)?\]'
)
_SHOWN = 30  # characters of a malformed macro in messages


class ColumnView(NamedTuple):
    """A view of a text.

    command: "x" for the text, "t" for "true" or "false", "m" for the first match or "".
    lowered: whether to convert the view to lower case.
    expression: a regular expression in the dialect above, for "t" and "m".
    """

    command: str = "x"
    lowered: bool = False
    expression: str = ""

    def compile(self) -> Callable[[str], str]:
        """Return the function from a text to its view.

        RAISES: ImportError if it needs the package `regex` and it is missing.
        """
        see = _view(self.command, self.expression)
        return (lambda text: see(text).lower()) if self.lowered else see


def translate(expression: str) -> str:
    """Translate an expression of Wapiti to one of the package `regex`.

    RAISES: ValueError with the fault of the expression.
    """
    begins = expression.startswith("^")
    inner = expression[begins:]
    ends = inner.endswith("$") and not re.search(r"(?<!\\)(\\\\)*\\\$\Z", inner)
    inner = inner[: len(inner) - ends]
    pieces = [_piece(match[1], match[2]) for match in _PIECE.finditer(inner)]
    return r"\A" * begins + "".join(pieces) + r"\Z" * ends


def _piece(char: str, repeated: str) -> str:
    """Translate a character or class with its quantifier."""
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


def _view(command: str, expression: str) -> Callable[[str], str]:
    """Return the function of a command from a text to its view; see `ColumnView`."""
    if command == "x":
        return str
    search = _search(expression)
    if command == "t":
        return lambda text: "false" if search(text) is None else "true"
    return lambda text: search(text) or ""


def _search(expression: str) -> Callable[[str], str | None]:
    """Return a function that finds the first match in a text, or None."""
    import regex

    search = searcher(translate(expression), regex.DOTALL)

    def find(text: str) -> str | None:
        try:
            match = search(text)
        except TimeoutError:
            message = Errors.SC161.format(expression=expression, seconds=SECONDS, text=text[:60])
            raise SparseCRFError(message) from None
        return None if match is None else str(match.group())

    return find


class Macro(NamedTuple):
    """A macro: the view of a token's column.

    offset: in tokens, relative to the current one; if `absolute`, 1 is the first token of the
        sequence and -1 the last.
    column: number of the column, from 0.
    """

    offset: int
    absolute: bool
    column: int
    view: ColumnView


@dataclass(frozen=True)
class Pattern(Conjunction):
    """A line: its macros, and the literal texts around them.

    literals: texts before, between and after the macros; the first begins with the kind.
    line: its number in the file, from 1.
    """

    literals: tuple[str, ...]
    macros: tuple[Macro, ...]
    line: int

    @property
    def key(self) -> str:
        """The text around the macros, which is hashed together with the texts of columns."""
        return pattern_key(self.literals)


class Dialect(NamedTuple):
    """The pattern language of a program.

    name: of the program.
    kinds: the kind of a pattern by the first character of its line.
    commands: letters of macros.
    macro: description of a macro, for messages.
    absolute: whether positions may be absolute.
    furthest: the largest offset.
    before, behind: texts of positions outside of the sequence, by distance; the last text is used
        for all larger distances.
    content: returns the pattern in a line, or "".
    """

    name: str
    kinds: Mapping[str, str]
    commands: str
    macro: str
    absolute: bool
    furthest: int
    before: tuple[str, ...]
    behind: tuple[str, ...]
    content: Callable[[str], str]


def parse_patterns(text: str, dialect: Dialect, n_columns: int, source: str) -> list[Pattern]:
    """Parse all lines of a pattern file.

    n_columns: number of columns; source: of the text, for messages.
    RAISES: SparseCRFError with the line and its fault, or if there is no pattern.
    """
    lines = enumerate(text.split("\n"), start=1)
    contents = ((number, dialect.content(line)) for number, line in lines)
    patterns = [
        _Line(content, number, source, dialect=dialect, n_columns=n_columns).parse()
        for number, content in contents
        if content
    ]
    if not patterns:
        raise SparseCRFError(Errors.SC153.format(source=source, program=dialect.name))
    return patterns


class _Line(NamedTuple):
    """A line and its parser; see `parse_patterns`."""

    text: str
    number: int
    source: str
    dialect: Dialect
    n_columns: int

    def parse(self) -> Pattern:
        """Parse the line."""
        text = self.text
        if half := HALF.search(text):
            self._fail("a character, not half of one", half.start(), half.end())
        kind = self.dialect.kinds.get(text[0])
        if kind is None:
            self._fail("one of " + ", ".join(self.dialect.kinds), 0, 1)
        literals: list[str] = []
        macros: list[Macro] = []
        start = 0
        while (at := text.find("%", start)) >= 0:
            match = _MACRO.match(text, at)
            macro = match and self._macro(match)
            if match is None or macro is None:
                self._fail(self.dialect.macro, at, at + _SHOWN)
            literals.append(text[start:at])
            macros.append(macro)
            start = match.end()
        literals.append(text[start:])
        # The case of the kind is not part of a feature's text.
        literals[0] = kind + literals[0][1:]
        return Pattern(kind, tuple(literals), tuple(macros), self.number)

    def _macro(self, match: re.Match[str]) -> Macro | None:
        """Return a macro, or None if the dialect does not have it."""
        command, at, offset, column, expression = match.groups()
        dialect, has_expression = self.dialect, expression is not None
        if command not in dialect.commands or (command in "tTmM") != has_expression:
            return None
        if (at and not dialect.absolute) or abs(int(offset)) > dialect.furthest:
            return None
        if int(column) >= self.n_columns:
            values = {"column": int(column), "n": self.n_columns, "last": self.n_columns - 1}
            raise SparseCRFError(Errors.SC152.format(**self._where, **values))
        try:
            translate(expression or "")
        except ValueError as error:
            where = {"expression": expression, "position": match.start(5) - 1, "reason": error}
            raise SparseCRFError(Errors.SC154.format(**self._where, **where)) from None
        view = ColumnView(command.lower(), command.isupper(), expression or "")
        return Macro(int(offset), bool(at), int(column), view)

    def _fail(self, expected: str, start: int, end: int) -> NoReturn:
        values = {"position": start + 1, "expected": expected, "found": repr(self.text[start:end])}
        raise SparseCRFError(Errors.SC151.format(**self._where, **values))

    @property
    def _where(self) -> dict[str, object]:
        return {"source": self.source, "line": self.number, "text": self.text}
