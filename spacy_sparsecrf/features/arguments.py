"""What a test reads from a token: an attribute, and its arguments in the template language.

    read   := name                                    (most attributes)
            | name "(" length ")"                     prefix suffix
            | name "(" text ")"                       regex match
    text   := '"' character* '"' | "'" character* "'"

In a text a backslash before a quotation mark stands for the mark alone; every other backslash is
part of the text, so that regular expressions need none of theirs doubled.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ..errors import Errors, SparseCRFError
from .attributes import AFFIX, EXPRESSION
from .expressions import find_fault

if TYPE_CHECKING:
    from .templates import _Reader

_TEXT = re.compile(r'"(?:\\.|[^"\\])*"' + r"|'(?:\\.|[^'\\])*'", re.DOTALL)
_PIECE = re.compile(r"\\.|.", re.DOTALL)
_ESCAPED = ('\\"', "\\'")


class Read(NamedTuple):
    """An attribute with its arguments.

    name: in `attributes.NAMES`.
    length: in characters, of an affix; 0 for attributes that take none.
    argument: text, such as a regular expression; "" for attributes that take none.
    """

    name: str
    length: int = 0
    argument: str = ""

    def __str__(self) -> str:
        """The canonical text, which parses to the same."""
        given = [str(self.length)] if self.length else []
        if self.argument:
            given.append(quote(self.argument))
        return f"{self.name}({','.join(given)})" if given else self.name


def quote(text: str) -> str:
    """Write a text as an argument: between quotation marks, those in it with a backslash."""
    pieces = (match.group() for match in _PIECE.finditer(text))
    return '"' + "".join('\\"' if piece == '"' else piece for piece in pieces) + '"'


def parse_read(reader: _Reader, name: str) -> Read:
    """Parse the arguments of an attribute whose name was read, or fail."""
    if name in AFFIX:
        _expect(reader, "(", f" and a length, as in {name}(3)")
        length = reader.take_integer(1, "a length")
        _expect(reader, ")")
        return Read(name, length)
    if name in EXPRESSION:
        _expect(reader, "(", f""" and a regular expression, as in {name}("^[0-9]+$")""")
        argument = _parse_expression(reader)
        _expect(reader, ")")
        return Read(name, argument=argument)
    return Read(name)


def _expect(reader: _Reader, char: str, more: str = "") -> None:
    if not reader.take_char(char):
        reader.fail(f"'{char}'{more}")


def _parse_text(reader: _Reader, what: str) -> tuple[str, list[int]]:
    """Parse a text that is not empty.

    RETURNS: the text, and the positions in the template of its characters and of its end.
    """
    start = reader.at
    quoted = reader.take(_TEXT)
    if len(quoted) <= 2:
        reader.at = start
        reader.fail(f"{what} between quotation marks")
    text = ""
    positions: list[int] = []
    for match in _PIECE.finditer(quoted, 1, len(quoted) - 1):
        piece, at = match.group(), start + match.start()
        text += piece[1:] if piece in _ESCAPED else piece
        positions += [at] if piece in _ESCAPED else range(at, at + len(piece))
    return text, [*positions, start + len(quoted) - 1]


def _parse_expression(reader: _Reader) -> str:
    """Parse a text that is a regular expression."""
    text, positions = _parse_text(reader, "a regular expression")
    where = {"number": reader.number, "template": reader.text}
    try:
        fault = find_fault(text)
    except ImportError as error:
        raise SparseCRFError(Errors.SC110.format(**where)) from error
    if fault is not None:
        reason, at = fault
        position = positions[min(at, len(text))] + 1
        raise SparseCRFError(Errors.SC111.format(**where, position=position, reason=reason))
    return text
