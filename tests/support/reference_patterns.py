"""Reference for pattern files: expands each line to the text that the other program makes."""

import re
from collections.abc import Callable, Sequence

import regex

from spacy_sparsecrf.interop.patterns.macros import translate

Table = Sequence[Sequence[str]]
Outside = Callable[[int], str]

MACRO = re.compile(
    r'%([xtm])\[ *(@?) *([+-]?\d+) *, *(\d+)(?:,"((?:\\.|[^"\\])*)")?\]', re.IGNORECASE
)


def wapiti_outside(distance: int) -> str:
    """Return the text of a position after the sequence; before it, if distance is negative."""
    number = str(abs(distance)) if abs(distance) <= 4 else "#"
    return f"_x{'-' if distance < 0 else '+'}{number}"


def crfpp_outside(distance: int) -> str:
    return f"_B{distance:+d}"


def expand(line: str, table: Table, t: int, outside: Outside = wapiti_outside) -> str:
    """Expand a line at token t of a sequence of rows."""

    def value(match: re.Match[str]) -> str:
        command, absolute, offset, column, expression = match.groups()
        at = int(offset)
        if not absolute:
            at += t
        elif at < 0:
            at += len(table)
        else:
            at -= 1
        if at < 0:
            text = outside(at)
        elif at >= len(table):
            text = outside(at - len(table) + 1)
        else:
            text = table[at][int(column)]
        if command in "tT":
            text = "false" if search(expression, text) is None else "true"
        elif command in "mM":
            text = search(expression, text) or ""
        return text.lower() if command.isupper() else text

    return line[0].lower() + MACRO.sub(value, line[1:])


def lines_of(text: str) -> list[str]:
    """Return the patterns of a Wapiti file."""
    lines = [line.split("#")[0].rstrip() for line in text.split("\n")]
    return [line for line in lines if line]


def search(expression: str, text: str) -> str | None:
    """Return the first part of a text that matches a Wapiti expression."""
    found = regex.search(translate(expression), text, regex.DOTALL)
    return None if found is None else str(found.group())
