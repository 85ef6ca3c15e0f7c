"""Lines of text files, which may be compressed, and sentences made of them."""

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ..errors import Errors, SparseCRFError

BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"


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
