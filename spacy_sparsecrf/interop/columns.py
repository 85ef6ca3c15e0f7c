"""Column files, which may be compressed: one token per line, an empty line after each sentence.

Each rule is the same for all files:

- Lines end with LF, CR and LF, or CR.
- A line without values, or with no word and no label but O, ends a sentence.
- Empty fields at the end of a line that has too many are left out.
- -DOCSTART- begins a document, and may have fewer columns.
- A line before a sentence that begins with "# " is a comment if it has another number of columns,
  or no label where tokens have one. If columns have no such labels, it is refused.
- The first line is a header if a value names the words, as "Token" does, and it has no label where
  tokens have one, or else only names of columns.

In the formats tsv, wapiti and crfpp, each line is a token or ends a sentence.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, groupby
from pathlib import Path
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from ..errors import Errors, SparseCRFError
from .column_attributes import DOCSTART, UNSET, WORDS, is_header, names_words
from .schemes import MISSING, OUTSIDE, is_label
from .text_files import read_lines

TAB, BLANKS = "\t", " "
_COMMENTS = ("# ", "#\t")
MARKS = (DOCSTART, *_COMMENTS)
"""Beginnings of lines that may not be tokens."""
_BLANKS = re.compile("[ \t]+")


class Row(NamedTuple):
    """A token. line: line number in the file, from 1; values: of its columns."""

    line: int
    values: list[str]


Line: TypeAlias = tuple[int, str]  # its number, from 1, and its text
Sentence: TypeAlias = list[Row]
T = TypeVar("T")


@dataclass
class Source(Generic[T]):
    """The contents of a file of sentences, or of texts with spans.

    path: for messages; reader: of the entries, given this; of columns, the rows of a sentence, with
    a value for each column, except for rows whose first value is -DOCSTART-, which begin documents;
    columns: their attributes, see `attributes`; unset: tag, lemma or extension attribute of tokens
    that have none; left_out: numbers of items that are skipped or
    changed, by description; invalid: positions of records, and why they cannot be read; notes: on
    how the file was read so far, for the user, by their subject.
    """

    path: Path
    reader: Callable[["Source[T]"], Iterable[T]] = lambda _: ()
    columns: tuple[str, ...] = ()
    unset: str = UNSET
    left_out: Counter[str] = field(default_factory=Counter)
    invalid: list[tuple[str, str]] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)

    def entries(self) -> Iterable[T]:
        """Return the entries of the file."""
        return self.reader(self)

    @contextmanager
    def read(self, place: str) -> Iterator[None]:
        """Collect errors of the body, which reads a record or a part of it."""
        try:
            yield
        except (ValueError, RecursionError) as error:
            self.invalid.append((place, str(error)))


def lines_of(path: Path) -> Iterator[Line]:
    """Yield the lines of a file, which end with LF, CR and LF, or CR; see `read_lines`."""
    parts = (text.rstrip("\r").split("\r") for text in read_lines(path))
    return enumerate(chain.from_iterable(parts), start=1)


@dataclass
class ColumnLayout:
    """Rules of a file of columns.

    path: for messages; given: separator that the format says, or "": such files may have comments
    and a header; lines: of the file; separator: TAB, or BLANKS (any number of blanks and tabs);
    width: number of columns; why: reason of this number, for messages; columns: their attributes;
    labels: indices of columns that have labels such as B-PER or O in each token, or None if they
    are not known: then all lines that may be comments or a header are left out.
    """

    path: Path
    given: str
    lines: Sequence[Line]
    separator: str
    width: int = 0
    why: str = ""
    columns: Sequence[str] = ()
    labels: Sequence[int] | None = None

    def split(self, line: str) -> list[str]:
        """Split a line into values."""
        if self.separator == BLANKS:
            return _BLANKS.split(line.strip(" \t"))
        # A value of blanks only may be a token, and is kept.
        return [value.strip(" ") or value for value in line.split(TAB)]

    def values(self, line: str) -> list[str]:
        """Return the values of a line; empty if it ends a sentence."""
        values = self.split(line) if line.strip(" \t") else []
        while len(values) > self.width and not values[-1]:
            values.pop()
        word = self.columns.index(WORDS) if self.columns else 0
        has_word = any(value.strip(" ") for value in values[word : word + 1])
        return values if has_word or not {*values} <= {"", OUTSIDE, UNSET} else []

    def extended(self, line: str, value: str) -> str:
        """Return the line of a token with a value in one more column."""
        if self.separator == TAB:
            return TAB.join([*line.split(TAB)[: self.width], value])
        text = line.rstrip(" \t")
        return f"{text}{BLANKS if BLANKS in text else TAB}{value}"

    def check(self, number: int, values: list[str]) -> None:
        """Refuse a line with too many or too few columns. RAISES: SparseCRFError."""
        if len(values) != self.width and values[0] != DOCSTART:
            by = "one tab each" if self.separator == TAB else "blanks"
            row = Row(number, values)
            raise wrong_width(self.path, row, self.width, why=self.why, separator=by)

    def is_comment(self, number: int, line: str, values: Sequence[str]) -> bool:
        """Return whether a line before a sentence is a comment.

        RAISES: SparseCRFError if it may be a token, too.
        """
        if self.given or not line.startswith(_COMMENTS):
            return False
        if self.labels is None or len(values) != self.width:
            return True
        if not self.labels or any(values[i] in MISSING for i in self.labels):
            raise self._unclear(number, line, "comment")
        return not all(is_label(values[i]) for i in self.labels)

    def is_header(self, number: int, line: str, values: Sequence[str]) -> bool:
        """Return whether the first line has names of columns.

        RAISES: SparseCRFError if it may be a token, too.
        """
        if self.given or len(values) != self.width:
            return False
        has_labels = self.labels is None or len(self.labels) > 0
        is_named = is_header(values, has_labels)
        if not is_named and not has_labels and names_words(values[self.columns.index(WORDS)]):
            raise self._unclear(number, line, "header")
        return is_named

    def _unclear(self, number: int, line: str, what: str) -> SparseCRFError:
        where = {"path": self.path, "line": number, "text": line.strip()[:60], "what": what}
        option = f"add --format {'tsv' if self.separator == TAB else 'wapiti'}"
        return SparseCRFError(Errors.SC636.format(**where, option=option))


def layout_of(path: Path, given: str, lines: Sequence[Line] = ()) -> ColumnLayout:
    """Read the lines of a file, and return its layout; its columns are not known yet.

    lines: of the file, if they are read already; given: separator that the format says; by default
    a tab if most lines of tokens have one, else blanks. The width is that of most lines.
    """
    lines = lines or [*lines_of(path)]
    filled = [entry for entry in lines if entry[1].strip(" \t")]
    tokens = [entry for entry in filled if not entry[1].startswith(MARKS)] or filled
    n_tabs = sum(TAB in line for _, line in tokens)
    separator = given or (TAB if n_tabs > len(tokens) / 2 else BLANKS)
    layout = ColumnLayout(path, given, lines, separator, why="as in most lines")
    widths = Counter(len(layout.split(line)) for _, line in tokens)
    layout.width = max(widths, key=lambda width: widths[width], default=0)
    return layout


def sentences_of(layout: ColumnLayout, notes: dict[str, str]) -> Iterator[Sentence]:
    """Yield the sentences of a file; add notes on lines that are left out."""
    rows: Sentence = []
    begins = is_first = True
    for number, line in layout.lines:
        values = layout.values(line)
        if rows and (not values or values[0] == DOCSTART):
            yield rows
            rows = []
        if not values:
            begins = True
            continue
        if is_first and layout.is_header(number, line, values):
            is_first = False
            notes["header"] = f"Line {number} is a header and is left out: {line.strip()}"
            continue
        if begins and layout.is_comment(number, line, values):
            note = f"Comments are left out, such as line {number}: {line.strip()}"
            notes.setdefault("comments", note)
            continue
        layout.check(number, values)
        begins = values[0] == DOCSTART
        is_first = is_first and begins
        rows.append(Row(number, values))
    if rows:
        yield rows


def numbered(sentences: Iterable[Sentence], column: int) -> Iterator[Sentence]:
    """Split sentences where the value of a column changes; an empty one is no change."""
    number = ""
    for rows in sentences:
        begin = 0
        for i, row in enumerate(rows):
            value = row.values[column]
            if value not in ("", UNSET, number):
                if i > begin:
                    yield rows[begin:i]
                begin, number = i, value
        yield rows[begin:]


def paragraphs(path: Path) -> Iterator[list[Line]]:
    """Yield the lines of a file between empty lines."""
    groups = groupby(lines_of(path), key=lambda entry: entry[1] != "")
    return ([*lines] for has_text, lines in groups if has_text)


def wrong_width(path: Path, row: Row, expected: int, why: str, separator: str) -> SparseCRFError:
    """Return an error about a row with too many or too few columns."""
    text = " ".join(row.values)[:60]
    where = {"path": path, "line": row.line, "text": text, "found": len(row.values)}
    return SparseCRFError(Errors.SC611.format(**where, expected=expected, why=why, by=separator))
