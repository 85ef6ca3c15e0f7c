"""Attributes of tokens with their arguments, in the template language.

    read   := name                                    (most attributes)
            | name "(" length ")"                     prefix suffix
            | name "(" text ")"                       regex match span phrase
            | name "(" low "," high [ "," text ] ")"  ngrams
            | name "(" text [ "," bits ] ")"          cluster
            | name [ "(" bins ")" ]                   vector
            | "value" "(" "_" "." name ")"            a numeric extension attribute
            | "_" "." name                            an extension attribute
    text   := '"' character* '"' | "'" character* "'"

In a text, a backslash escapes a quotation mark. Every other backslash is part of the text, so that
regular expressions do not need doubled backslashes. Names of spans, phrases and clusters that are
words need no quotation marks. Several dollar signs in a row are read as one, because spaCy doubles
dollar signs each time that it saves and loads a config.
"""

import re
from typing import NamedTuple, NoReturn

from ..errors import Errors, MissingExtraError, SparseCRFError, nearest
from ..schema import HALF
from .attributes import words as attributes
from .attributes.expressions import find_fault
from .attributes.words import (
    AFFIX,
    CLUSTER,
    EXPRESSION,
    EXTENSION,
    NGRAMS,
    PHRASE,
    SPAN,
    VALUE,
    VECTOR,
)

_TEXT = re.compile(r'"(?:\\.|[^"\\])*"' + r"|'(?:\\.|[^'\\])*'", re.DOTALL)
_PIECE = re.compile(r"\\.|.", re.DOTALL)
_WORD = re.compile(r"\w+")
_ESCAPED = ('\\"', "\\'")

_BLANKS = re.compile(r"\s*")
_INTEGER = re.compile(r"[+-]?[0-9]{1,9}(?![0-9])")
_TOKEN = re.compile(r"[+-]?\w+|.", re.DOTALL)

LIMIT = 1000  # of offsets and lengths, so that both are small integers everywhere
MOST_BINS = 100
MOST_BITS = 64  # of a path


class Cursor:
    """A position in the text of one template, for parsing and for error messages.

    text: of the template; number: its position in the list, from 1, for messages.
    """

    def __init__(self, text: str, number: int) -> None:
        self.text = text
        self.number = number
        self.at = 0
        if half := HALF.search(text):
            self.fail("a character, not half of one", at=half.start())
        self._skip_blanks()

    def is_at_end(self) -> bool:
        """Return whether all of the text is read."""
        return self.at == len(self.text)

    def take(self, pattern: re.Pattern[str]) -> str:
        """Read a match at the position, and the blanks after it; "" without a match."""
        match = pattern.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        self._skip_blanks()
        return match.group()

    def take_char(self, chars: str) -> str:
        """Read one of these characters, and the blanks after it; "" for another character."""
        return self.take(re.compile(f"[{re.escape(chars)}]"))

    def take_integer(self, low: int, what: str, high: int = LIMIT) -> int:
        """Read an integer in low..high, or fail. what: description of it for the message."""
        start = self.at
        digits = self.take(_INTEGER)
        if not digits or not low <= int(digits) <= high:
            self.fail(f"{what}, a whole number from {low} to {high}", at=start)
        return int(digits)

    def expect(self, char: str, more: str = "") -> None:
        """Read a character, or fail. more: text after the character in the message."""
        if not self.take_char(char):
            self.fail(f"'{char}'{more}")

    def fail(self, expected: str, at: int | None = None) -> NoReturn:
        """Raise SparseCRFError with the expected and the found text, at the position or at `at`."""
        at = self.at if at is None else at
        match = _TOKEN.match(self.text, at)
        found = repr(match.group()) if match else "the end of the template"
        values = {"position": at + 1, "expected": expected, "found": found}
        raise SparseCRFError(Errors.SC101.format(number=self.number, template=self.text, **values))

    def _skip_blanks(self) -> None:
        match = _BLANKS.match(self.text, self.at)
        self.at = match.end() if match else self.at


class Read(NamedTuple):
    """An attribute with its arguments.

    name: in `attributes.NAMES`.
    length: in characters, of an affix or of the shortest n-grams; or number of bins of a vector, 0
        for real values; or number of bits of a word class, 0 for all; 0 for other attributes.
    argument: text, such as a regular expression; "" for attributes without a text.
    longest: in characters, of n-grams.
    """

    name: str
    length: int = 0
    argument: str = ""
    longest: int = 0

    @property
    def is_real(self) -> bool:
        """Return whether the values are real-valued features, see `tokens`."""
        return self.name == VALUE or (self.name == VECTOR and self.length == 0)

    def __str__(self) -> str:
        """Return the canonical text, which parses to an equal `Read`."""
        if self.name == EXTENSION:
            return f"{EXTENSION}.{self.argument}"
        if self.name == VALUE:
            return f"{VALUE}({EXTENSION}.{self.argument})"
        given = [str(n) for n in (self.length, self.longest) if n]
        if self.argument:
            given.insert(0 if self.name == CLUSTER else len(given), quote(self.argument))
        return f"{self.name}({','.join(given)})" if given else self.name


def quote(text: str) -> str:
    """Return a text as an argument: in quotation marks, with inner quotation marks escaped."""
    pieces = (match.group() for match in _PIECE.finditer(text))
    return '"' + "".join('\\"' if piece == '"' else piece for piece in pieces) + '"'


def parse_read(cursor: Cursor) -> Read:
    """Parse an attribute with its arguments, or fail."""
    start = cursor.at
    name = cursor.take(_WORD)
    if name not in attributes.NAMES:
        near = nearest(name, attributes.NAMES).rstrip()
        known = f"an attribute, one of {', '.join(attributes.NAMES)}"
        cursor.fail(f"{known} ({near})" if near else known, at=start)
    return _parse_arguments(cursor, name)


def _parse_arguments(cursor: Cursor, name: str) -> Read:
    """Parse the arguments of an attribute whose name was read."""
    if name in AFFIX:
        cursor.expect("(", f" and a length, as in {name}(3)")
        length = cursor.take_integer(1, "a length")
        cursor.expect(")")
        return Read(name, length)
    if name in EXPRESSION:
        cursor.expect("(", f""" and a regular expression, as in {name}("^[0-9]+$")""")
        argument = _parse_expression(cursor)
        cursor.expect(")")
        return Read(name, argument=argument)
    if name == NGRAMS:
        return _parse_ngrams(cursor)
    if name in (SPAN, PHRASE, CLUSTER):
        return _parse_named(cursor, name)
    if name == VECTOR:
        if not cursor.take_char("("):
            return Read(name)
        bins = cursor.take_integer(2, "a number of bins", MOST_BINS)
        cursor.expect(")")
        return Read(name, bins)
    if name == EXTENSION:
        return Read(name, argument=_parse_extension(cursor))
    if name == VALUE:
        cursor.expect("(", f" and an extension attribute, as in {name}({EXTENSION}.score)")
        if not cursor.take_char(EXTENSION):
            cursor.fail(f"an extension attribute, as in {EXTENSION}.score")
        argument = _parse_extension(cursor)
        cursor.expect(")")
        return Read(name, argument=argument)
    return Read(name)


def _parse_extension(cursor: Cursor) -> str:
    """Parse the rest of `"_" "." name`, after `"_"`."""
    cursor.expect(".", " and the name of an extension attribute, as in _.is_city")
    return cursor.take(_WORD) or cursor.fail("the name of an extension attribute")


def _parse_ngrams(cursor: Cursor) -> Read:
    """Parse `"(" low "," high [ "," text ] ")"`."""
    cursor.expect("(", f" and two lengths, as in {NGRAMS}(2,4)")
    low = cursor.take_integer(1, "a length", attributes.LONGEST_NGRAM)
    cursor.expect(",", f" and the length of the longest n-grams, as in {NGRAMS}(2,4)")
    high = cursor.take_integer(low, "the length of the longest n-grams", attributes.LONGEST_NGRAM)
    marks = ""
    if cursor.take_char(","):
        start = cursor.at
        marks = _parse_text(cursor, "two characters that mark the ends of words,")[0]
        if len(marks) != 2:
            cursor.fail("two characters that mark the ends of words", at=start)
    if not cursor.take_char(")"):
        cursor.fail("')'" if marks else "',' or ')'")
    return Read(NGRAMS, low, marks, high)


def _parse_named(cursor: Cursor, name: str) -> Read:
    """Parse `"(" text ")"`, for a cluster `"(" text [ "," bits ] ")"`."""
    example = 'cluster("brown",4)' if name == CLUSTER else f'{name}("places")'
    cursor.expect("(", f" and a name, as in {example}")
    argument, bits = cursor.take(_WORD) or _parse_text(cursor, "a name, alone or")[0], 0
    if name == CLUSTER and cursor.take_char(","):
        bits = cursor.take_integer(1, "a number of bits", MOST_BITS)
    if not cursor.take_char(")"):
        cursor.fail("',' or ')'" if name == CLUSTER and not bits else "')'")
    return Read(name, bits, argument)


def _parse_text(cursor: Cursor, what: str) -> tuple[str, list[int]]:
    """Parse a non-empty text.

    RETURNS: the text, and the positions in the template of its characters and of its end.
    """
    start = cursor.at
    quoted = cursor.take(_TEXT)
    if len(quoted) <= 2:
        cursor.fail(f"{what} between quotation marks", at=start)
    text = ""
    positions: list[int] = []
    for match in _PIECE.finditer(quoted, 1, len(quoted) - 1):
        piece, at = match.group(), start + match.start()
        if piece == "$" == text[-1:]:
            continue
        text += piece[1:] if piece in _ESCAPED else piece
        positions += [at] if piece in _ESCAPED else range(at, at + len(piece))
    return text, [*positions, start + len(quoted) - 1]


def _parse_expression(cursor: Cursor) -> str:
    """Parse a text that is a regular expression."""
    text, positions = _parse_text(cursor, "a regular expression")
    where = {"number": cursor.number, "template": cursor.text}
    try:
        fault = find_fault(text)
    except ImportError as error:
        raise MissingExtraError(Errors.SC110.format(**where)) from error
    if fault is not None:
        reason, at = fault
        position = positions[min(at, len(text))] + 1
        raise SparseCRFError(Errors.SC111.format(**where, position=position, reason=reason))
    return text
