"""Text files, which may be compressed: their lines, sentences made of lines, and columns.

A line is a token; its columns are separated by tabs or by blanks, as Wapiti and CRF++ read them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ..cli.files import read_lines
from ..errors import Errors, SparseCRFError
from .attributes import DOCSTART, ENTITIES, IGNORED, guess_columns, is_header, span_key
from .recognition import check_labels, first_lines, is_numbered, refuse_running_text
from .schemes import standard_label

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


@dataclass
class Source:
    """A file of sentences, read.

    path: for messages; columns: what the columns are, see `attributes`; sentences: rows with a
    value for each column, but for a row whose first is -DOCSTART-; has_marks: whether such rows
    begin documents, and are no tokens; n_multiword: number of CoNLL-U's multiword tokens in the
    sentences that have been read; notes: what was done to the file, for the user.
    """

    path: Path
    columns: tuple[str, ...]
    sentences: Iterator[Sentence]
    has_marks: bool = True
    n_multiword: int = 0
    notes: tuple[str, ...] = ()


def sentences(lines: Iterable[tuple[int, str]], split: Split) -> Iterator[Sentence]:
    """Cut lines at empty ones, and before -DOCSTART-, into sentences.

    split: makes a row of a line that is not empty.
    """
    rows: Sentence = []
    for number, line in lines:
        row = split(number, line) if line else None
        if rows and (row is None or row.values[0] == DOCSTART):
            yield rows
            rows = []
        if row is not None:
            rows.append(row)
    if rows:
        yield rows


def wrong_width(path: Path, row: Row, expected: int, why: str, separator: str) -> SparseCRFError:
    """An error about a row with too many or too few columns."""
    where = {"path": path, "line": row.line, "found": len(row.values), "expected": expected}
    return SparseCRFError(Errors.SC611.format(**where, why=why, separator=separator))


def read_columns(path: Path, columns: Sequence[str] = (), separator: str = "") -> Source:
    """Read a file of columns.

    path: of the file, which may be compressed (.gz); columns: what its columns are; by default they
    are guessed by the values of the first sentences, see `guess_columns`; separator: TAB, BLANKS
    (any number of blanks and tabs), or by default a tab if the first line has one. A line that
    starts with # is a token; sentences end with an empty line. Blanks around a value are no part of
    it. A first line that names columns is left out, and without `columns` a first column that
    numbers the tokens. -DOCSTART- begins a document, and need not have all columns.
    RAISES: SparseCRFError for running text, and when read, for a line with another number of
    columns.
    """
    if not columns:
        refuse_running_text(path, first_lines(path))
    lines, head = read_lines(path), []
    for entry in lines:
        head.append(entry)
        if entry[1].strip(" \t") and not entry[1].startswith(DOCSTART):
            break
    else:
        return Source(path, tuple(columns), iter(()))
    number, first = head[-1]
    separator = separator or (TAB if TAB in first else BLANKS)
    values = _split(separator, number, first).values
    width = len(columns) or len(values)
    why = "as --columns says" if columns else f"as in line {number}"

    def split(number: int, line: str) -> Row:
        row = _split(separator, number, line)
        if len(row.values) != width and row.values[0] != DOCSTART:
            raise wrong_width(path, row, width, why, _DESCRIBED[separator])
        return row

    entries: Iterable[tuple[int, str]] = chain(head, lines)
    if separator == BLANKS:
        # A line of blanks has no columns.
        entries = ((number, line.strip(" \t")) for number, line in entries)
    notes: tuple[str, ...] = ()
    if is_header(values):
        notes = (f"Line {number} is a header and is left out: {first.strip()}",)
        entries = ((line, text) for line, text in entries if line != number)
    rows = sentences(entries, split)
    if columns:
        return Source(path, tuple(columns), rows, notes=notes)
    return _guessed(Source(path, (), rows, notes=notes))


def _guessed(source: Source) -> Source:
    """Guess the columns of a source that has none, by its first sentences; see `read_columns`."""
    head, notes = [*islice(source.sentences, N_GUESSED)], source.notes
    found: Iterator[Sentence] = chain(head, source.sentences)
    tokens = ([row.values for row in rows if row.values[0] != DOCSTART] for rows in head)
    if is_numbered(tokens):
        notes += ("The first column numbers the tokens and is left out",)
        found = map(_without_number, found)
        head = [*map(_without_number, head)]
    columns = guess_columns(row.values for rows in head for row in rows)
    labelled = [i for i, name in enumerate(columns) if i and name != IGNORED]
    for i in labelled:
        values = [row.values[i] for rows in head for row in rows if row.values[0] != DOCSTART]
        check_labels(source.path, columns[i], values)
    return Source(source.path, columns, found, notes=notes + _note_of_labels(columns, head))


def _without_number(rows: Sentence) -> Sentence:
    return [row if row.values[0] == DOCSTART else Row(row.line, row.values[1:]) for row in rows]


def read_tagged(path: Path, columns: Sequence[str] = ()) -> Source:
    r"""Read text of word/TAG, a sentence a line; \/ is a slash of the word.

    columns: what word and tag are; by default as in `read_columns`.
    RAISES: SparseCRFError, when read, for a field without a tag.
    """

    def found() -> Iterator[Sentence]:
        for number, line in read_lines(path):
            rows = []
            for field in line.split():
                word, slash, tag = field.rpartition("/")
                if not (word and slash and tag) and field != DOCSTART:
                    raise wrong_width(path, Row(number, [field]), 2, "word/TAG", "a slash")
                values = [word.replace("\\/", "/"), tag] if field != DOCSTART else [field]
                rows.append(Row(number, values))
            if rows:
                yield rows

    source = Source(path, tuple(columns), found())
    return source if columns else _guessed(source)


def _note_of_labels(columns: Sequence[str], found: Iterable[Sentence]) -> tuple[str, ...]:
    """Say that labels of spans are read as B-PER, if some are written otherwise."""
    mark = next((i for i, name in enumerate(columns) if name == ENTITIES or span_key(name)), None)
    if mark is None:
        return ()
    # -DOCSTART- may stand alone in its line.
    values = (value for rows in found for row in rows for value in row.values[mark : mark + 1])
    other = next((value for value in values if standard_label(value) != value), "")
    return (f"Labels such as {other} are read as {standard_label(other)}",) if other else ()


def _split(separator: str, number: int, line: str) -> Row:
    if separator == TAB:
        # A value of blanks only may be a token.
        return Row(number, [value.strip(" ") or value for value in line.split(TAB)])
    return Row(number, _BLANKS.split(line.strip(" \t")))


def write_sentence(rows: Iterable[Sequence[str]], separator: str = TAB) -> str:
    """Write a sentence, with the empty line behind it."""
    return "".join(f"{separator.join(row)}\n" for row in rows) + "\n"
