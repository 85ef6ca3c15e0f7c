"""Columns: a token a line, separated by tabs or by blanks, as Wapiti and CRF++ read them too."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from .lines import Row, Sentence, Source, read_lines, sentences, wrong_width

TAB, BLANKS = "\t", " "
SEPARATORS = {TAB: "one tab each", BLANKS: "blanks"}

_BLANKS = re.compile("[ \t]+")


def read_columns(path: Path, columns: Sequence[str] = (), separator: str = "") -> Source:
    """Read a file of columns.

    path: of the file, which may be compressed (.gz); columns: what its columns are; by default the
    first is "orth", the last "tag", and others are ignored; separator: TAB, BLANKS (any number of
    blanks and tabs), or by default a tab if the first line has one. A line that starts with # is
    a token; sentences end with an empty line.
    RAISES: SparseCRFError, when read, for a line with another number of columns.
    """
    lines = read_lines(path)
    first = next((entry for entry in lines if entry[1].strip(" \t")), None)
    if first is None:
        return Source(path, tuple(columns), iter(()))
    separator = separator or (TAB if TAB in first[1] else BLANKS)
    width = len(_split(separator, *first).values)
    expected = tuple(columns) or _default(width)
    why = "as --columns says" if columns else f"as in line {first[0]}"
    rows = _checked(path, chain([first], lines), separator, len(expected), why)
    return Source(path, expected, rows)


def _default(width: int) -> tuple[str, ...]:
    return ("orth", *["_"] * (width - 2), "tag") if width > 1 else ("orth",)


def _split(separator: str, number: int, line: str) -> Row:
    if separator == TAB:
        return Row(number, line.split(TAB))
    return Row(number, _BLANKS.split(line.strip(" \t")))


def _checked(
    path: Path, lines: Iterable[tuple[int, str]], separator: str, width: int, why: str
) -> Iterator[Sentence]:
    def split(number: int, line: str) -> Row:
        row = _split(separator, number, line)
        if len(row.values) != width:
            raise wrong_width(path, row, width, why, SEPARATORS[separator])
        return row

    if separator == BLANKS:
        # A line of blanks has no columns.
        lines = ((number, line.strip(" \t")) for number, line in lines)
    return sentences(lines, split)


def write_sentence(rows: Iterable[Sequence[str]], separator: str = TAB) -> str:
    """Write a sentence, with the empty line behind it."""
    return "".join(f"{separator.join(row)}\n" for row in rows) + "\n"
