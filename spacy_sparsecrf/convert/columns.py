"""Text files, which may be compressed: their lines, sentences made of lines, and columns.

A line is a token; its columns are separated by tabs or by blanks, as Wapiti and CRF++ read them.
"""

import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ..errors import Errors, SparseCRFError
from .guessing import guess_columns

BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"
TAB, BLANKS = "\t", " "
N_GUESSED = 1000  # sentences by which columns are guessed
_DESCRIBED = {TAB: "one tab each", BLANKS: "blanks"}
_BLANKS = re.compile("[ \t]+")


class Row(NamedTuple):
    """A token. line: its number in the file, from 1; values: of its columns."""

    line: int
    values: list[str]


Sentence: TypeAlias = list[Row]
Split: TypeAlias = Callable[[int, str], Row]


@dataclass(frozen=True)
class Source:
    """A file of sentences, read.

    path: for messages; columns: what the columns are, see `attributes`; sentences: rows with a
    value for each column.
    """

    path: Path
    columns: tuple[str, ...]
    sentences: Iterator[Sentence]


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a UTF-8 file, numbered from 1, without their ends.

    path: compressed by gzip if it ends in .gz. Lines end with LF, or CR and LF; a byte-order mark
    is passed over.
    RAISES: SparseCRFError where the file is not UTF-8 or cannot be decompressed.
    """
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
        try:
            for number, line in enumerate(lines, start=1):
                text = _decode(path, number, line).removesuffix("\n").removesuffix("\r")
                yield number, text.removeprefix(BOM) if number == 1 else text
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise SparseCRFError(Errors.SC618.format(path=path, reason=error)) from error


def _decode(path: Path, number: int, line: bytes) -> str:
    try:
        return line.decode("utf8")
    except UnicodeDecodeError as error:
        message = Errors.SC610.format(path=path, line=number, reason=error.reason)
        raise SparseCRFError(message) from error


def sentences(lines: Iterable[tuple[int, str]], split: Split) -> Iterator[Sentence]:
    """Cut lines at empty ones into sentences. split: makes a row of a line that is not empty."""
    rows: Sentence = []
    for number, line in lines:
        if line:
            rows.append(split(number, line))
        elif rows:
            yield rows
            rows = []
    if rows:
        yield rows


def wrong_width(path: Path, row: Row, expected: int, why: str, separator: str) -> SparseCRFError:
    """An error about a row with too many or too few columns."""
    return SparseCRFError(
        Errors.SC611.format(
            path=path,
            line=row.line,
            found=len(row.values),
            expected=expected,
            why=why,
            separator=separator,
        )
    )


def read_columns(path: Path, columns: Sequence[str] = (), separator: str = "") -> Source:
    """Read a file of columns.

    path: of the file, which may be compressed (.gz); columns: what its columns are; by default they
    are guessed by the values of the first sentences, see `guess_columns`; separator: TAB, BLANKS
    (any number of blanks and tabs), or by default a tab if the first line has one. A line that
    starts with # is a token; sentences end with an empty line.
    RAISES: SparseCRFError, when read, for a line with another number of columns.
    """
    lines = read_lines(path)
    first = next((entry for entry in lines if entry[1].strip(" \t")), None)
    if first is None:
        return Source(path, tuple(columns), iter(()))
    separator = separator or (TAB if TAB in first[1] else BLANKS)
    width = len(_split(separator, *first).values)
    why = "as --columns says" if columns else f"as in line {first[0]}"
    rows = _checked(path, chain([first], lines), separator, len(columns) or width, why)
    if columns:
        return Source(path, tuple(columns), rows)
    head = [*islice(rows, N_GUESSED)]
    guessed = guess_columns(row.values for sentence in head for row in sentence)
    return Source(path, guessed, chain(head, rows))


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
            raise wrong_width(path, row, width, why, _DESCRIBED[separator])
        return row

    if separator == BLANKS:
        # A line of blanks has no columns.
        lines = ((number, line.strip(" \t")) for number, line in lines)
    return sentences(lines, split)


def write_sentence(rows: Iterable[Sequence[str]], separator: str = TAB) -> str:
    """Write a sentence, with the empty line behind it."""
    return "".join(f"{separator.join(row)}\n" for row in rows) + "\n"
