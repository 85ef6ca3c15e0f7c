"""Reference for pattern files: expands each line to the text that the other program makes."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence

Table = Sequence[Sequence[str]]
Outside = Callable[[int], str]

MACRO = re.compile(
    r'%([xtm])\[ *(@?) *([+-]?\d+) *, *(\d+)(?:,"((?:\\.|[^"\\])*)")?\]', re.IGNORECASE
)
IS: dict[str, Callable[[str], bool]] = {
    "a": str.isalpha,
    "d": lambda char: unicodedata.category(char) == "Nd",
    "l": str.islower,
    "p": lambda char: unicodedata.category(char)[0] in "PS",
    "s": str.isspace,
    "u": str.isupper,
    "w": lambda char: char.isalpha() or unicodedata.category(char) == "Nd",
}


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
    if expression.startswith("^"):
        end = match(expression[1:], text, 0)
        return None if end is None else text[:end]
    for begin in range(len(text) + 1):
        end = match(expression, text, begin)
        if end is not None:
            return text[begin:end]
    return None


def match(expression: str, text: str, at: int) -> int | None:
    """Return the end of a match that starts at a position, or None."""
    if expression == "":
        return at
    if expression == "$":
        return at if at == len(text) else None
    size = 2 if expression[0] == "\\" else 1
    one, rest = expression[:size], expression[size:]
    for end, following in tries(one, rest, text, at):
        found = match(following, text, end)
        if found is not None:
            return found
    return None


def tries(one: str, rest: str, text: str, at: int) -> Iterator[tuple[int, str]]:
    """Yield matches of one character or class, with all repetition counts, preferred first."""
    fits = at < len(text) and is_one(one, text[at])
    if rest[:1] == "*":
        yield at, rest[1:]
        while at < len(text) and is_one(one, text[at]):
            at += 1
            yield at, rest[1:]
    elif rest[:1] == "?":
        if fits:
            yield at + 1, rest[1:]
        yield at, rest[1:]
    elif fits:
        yield at + 1, rest


def is_one(one: str, char: str) -> bool:
    """Return whether a character matches the expected character or class."""
    if one == ".":
        return True
    if one[0] == "\\" and one[1].lower() in IS:
        return IS[one[1].lower()](char) is one[1].islower()
    return char == one[-1]
