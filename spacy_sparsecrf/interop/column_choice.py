"""Read files of columns, and find those of words and entities if columns are not given.

A column of entities has only labels such as B-PER, or O, in all lines. Words are in the first
column, or in the second if the first numbers the tokens. Tags and other columns are never chosen.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple, NoReturn

from ..errors import Errors, SparseCRFError, brief
from .column_attributes import (
    DOCSTART,
    ENTITIES,
    IGNORED,
    SENTENCE,
    WORDS,
    is_header,
    names_words,
    of_spans,
)
from .columns import MARKS, ColumnLayout, Sentence, Source, numbered, sentences_of
from .schemes import MISSING, OUTSIDE, is_label, label_type, standard_label

_SHOWN = 3  # values of a column in messages


def read_columns(layout: ColumnLayout, columns: Sequence[str]) -> Source[Sentence]:
    """Read a file of columns, with given attributes, or find those of words and entities.

    RAISES: SparseCRFError with the choices if words or entities are not in exactly one column; when
        read, for a line with another number of columns.
    """

    def sentences(source: Source[Sentence]) -> Iterable[Sentence]:
        read = sentences_of(layout, source.notes)
        is_numbered = SENTENCE in source.columns
        return numbered(read, source.columns.index(SENTENCE)) if is_numbered else read

    source = Source(layout.path, sentences)
    if columns:
        layout.width, layout.why = len(columns), f"as --columns {','.join(columns)} says"
    else:
        columns = _choose(layout, source.notes)
    source.columns = tuple(columns)
    layout.columns, layout.labels = columns, [*map(columns.index, of_spans(columns))]
    return source


def _choose(layout: ColumnLayout, notes: dict[str, str]) -> Sequence[str]:
    """Return the columns of words and entities; add notes. RAISES: see `read_columns`."""
    table = _Table(layout)
    word = table.word()
    label = table.label(word)
    columns = _named(word, label, layout.width)
    if table.has_numbers:
        columns[0] = SENTENCE
    notes["columns"] = f"Columns are read as {','.join(columns)} (see --columns)"
    if other := next((x for x in table.counts[label] if x != standard_label(x)), None):
        notes["labels"] = f"Labels such as {other} are read as {standard_label(other)}"
    return columns


def _named(word: int, label: int, width: int) -> list[str]:
    """Return the columns of a file of which two are known: of words, and of labels."""
    names = {word: WORDS, label: ENTITIES}
    return [names.get(i, IGNORED) for i in range(width)]


class _Labels(NamedTuple):
    """The labels in a column. types: of spans; n: lines with a label."""

    column: int
    labels: Collection[str]
    types: Sequence[str]
    n: int


class _Table:
    """The rows of a file.

    n: number of them; counts: of the values of each column; has_numbers: whether the header says
    that the first column numbers the sentences.
    """

    def __init__(self, layout: ColumnLayout) -> None:
        self._layout = layout
        sentences = sentences_of(layout, {})
        self._sentences = [[row for row in rows if row.values[0] != DOCSTART] for rows in sentences]
        self._rows = [row for rows in self._sentences for row in rows]
        self.n = len(self._rows)
        if not self.n:
            raise SparseCRFError(Errors.SC612.format(path=layout.path, remedy="Check the path"))
        self.counts = [Counter(row.values[i] for row in self._rows) for i in range(layout.width)]
        tokens = (entry for entry in layout.lines if entry[1].strip(" \t"))
        self._first = next((e for e in tokens if not e[1].startswith(MARKS)), (0, ""))
        self._header = layout.split(self._first[1])
        named = is_header(self._header) and self._header[0].lower().startswith("sent")
        self.has_numbers = named and not names_words(self._header[0])

    def word(self) -> int:
        """Return the column of words. RAISES: SparseCRFError if its values do not look like it."""
        word = int(self._layout.width > 1 and all(map(_is_numbered, self._sentences)))
        if self.has_numbers:
            word = next(i for i, name in enumerate(self._header) if names_words(name))
        values = self.counts[word].items()
        n_others = sum(n for value, n in values if is_label(value) or not value.strip("0123456789"))
        pairs = [pair for rows in self._sentences for pair in pairwise(rows)]
        n_repeated = sum(a.values[word] == b.values[word] for a, b in pairs)
        is_repeated = n_repeated > len(pairs) / 2
        is_named = not is_header(self._header) or names_words(self._header[word])
        # All words may begin with a language, en: or de:.
        starts = {value[: value.find(":") + 1] for value in self.counts[word]}
        has_prefix = len(values) > 1 and len(starts) == 1 and min(starts)[:1].isalpha()
        if n_others > self.n / 2 or is_repeated or has_prefix or not is_named:
            self._refuse(f"column {word + 1} does not look like words")
        return word

    def label(self, word: int) -> int:
        """Return the only column that has labels in all lines.

        RAISES: SparseCRFError with the columns that have labels in most lines.
        """
        columns = map(self._labels_of, range(word + 1, self._layout.width))
        most = [labels for labels in columns if labels.n > self.n / 2]
        typed = [labels for labels in most if labels.types or labels.n < self.n]
        # A column of O alone next to one with entities is no choice; behind other words, it is.
        if len(typed) == 1 and most[-1].column - most[0].column == len(most) - 1:
            most = typed
        if not most:
            self._refuse("no column has labels such as B-PER and O in all lines")
        if len(most) > 1:
            self._refuse(f"{len(most)} columns have labels such as B-PER and O", word, most)
        column, labels, _, n = most[0]
        if n < self.n:
            row = next(row for row in self._rows if row.values[column] not in labels)
            self._first = row.line, "\t".join(row.values)
            odd = f"{n} of {self.n} lines, but not in this one: {brief(row.values[column])}"
            self._refuse(f"column {column + 1} has labels in {odd}", word, most)
        return column

    def _labels_of(self, column: int) -> _Labels:
        counter = self.counts[column]
        # Other tags may look like PER-B too, but not if some tokens have the outside label.
        standard = standard_label if OUTSIDE in counter else str
        typed = {value: label_type(standard(value)) for value in counter}
        fits = {x for x in counter if typed[x] or x == OUTSIDE or x in MISSING}
        n = sum(counter[x] for x in fits) if fits.difference(MISSING) else 0
        return _Labels(column, fits, sorted({*typed.values()} - {""}), n)

    def _refuse(self, reason: str, word: int = 0, choices: Sequence[_Labels] = ()) -> NoReturn:
        """Show the options. RAISES: SparseCRFError."""
        width = self._layout.width
        options = []
        for choice in choices:
            counts = self.counts[choice.column].items()
            n = sum(count for x, count in counts if label_type(standard_label(x)))
            columns = ",".join(_named(word, choice.column, width))
            types = ", ".join(choice.types) or "none"
            options.append(f"--columns {columns} ({n} labels of {types})")
        if not choices:
            columns = ",".join([WORDS, *[IGNORED] * (width - 2), "tag"][:width])
            options.append(f"for example --columns {columns}")
        number, text = self._first
        where = {"path": self._layout.path, "line": number, "text": text.strip()[:60]}
        message = Errors.SC637.format(**where, reason=reason, options=" or ".join(options))
        raise SparseCRFError(message)


def _is_numbered(rows: Sentence) -> bool:
    """Return whether the first column numbers the tokens of a sentence, from 0 or 1."""
    firsts = [row.values[0].removesuffix(".") for row in rows]
    base = int("1" in firsts[:1])
    return firsts == [str(i + base) for i in range(len(firsts))]
