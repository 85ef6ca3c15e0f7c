"""Find the columns of words and entities in a file whose columns are not given.

A column of entities has only labels such as B-PER, or O, in all lines. Words are in the first
column, or in the second if the first numbers the tokens. Tags and other columns are never chosen.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, NoReturn

from ..errors import Errors, SparseCRFError
from .attributes import DOCSTART, ENTITIES, IGNORED, WORDS, is_header, names_words
from .columns import (
    MARKS_OF_COMMENTS,
    ColumnLayout,
    Line,
    Row,
    Sentence,
    Source,
    lines_of,
    separator_of,
    source_of,
)
from .schemes import MISSING, OUTSIDE, is_label, label_type, standard_label

_SHOWN = 3  # values of a column in messages


def choose_columns(path: Path, separator: str = "") -> Source:
    """Read a file of columns, and find those of words and entities.

    separator: see `read_columns`.
    RAISES: SparseCRFError with the choices if words or entities are not in exactly one column.
    """
    lines = [*lines_of(path)]
    tokens = [entry for entry in lines if entry[1].strip(" \t")]
    tokens = [entry for entry in tokens if not entry[1].startswith(DOCSTART)]
    tokens = [entry for entry in tokens if not entry[1].startswith(MARKS_OF_COMMENTS)] or tokens
    if not tokens:
        return Source(path, (), iter(()))
    found = separator_of(separator, [line for _, line in tokens])
    layout = ColumnLayout(path, separator, found)
    widths = Counter(len(layout.split(*entry)) for entry in tokens)
    ((layout.width, _),) = widths.most_common(1)
    layout.why = "as in most lines"
    table = _Table(layout, lines, tokens[0])
    word = table.word()
    label = table.label(word)
    names = {word: WORDS, label: ENTITIES}
    layout.columns = [names.get(i, IGNORED) for i in range(layout.width)]
    layout.labels = [label]
    source = source_of(layout, lines)
    if other := next((x for x in table.counts[label] if x != standard_label(x)), None):
        source.notes.append(f"Labels such as {other} are read as {standard_label(other)}")
    return source


class _Labels(NamedTuple):
    """A column with labels in most lines. types: of spans; n: lines with a label."""

    column: int
    types: Sequence[str]
    n: int


class _Table:
    """Counts the values of each column of a file. first: line of a token, for messages."""

    def __init__(self, layout: ColumnLayout, lines: Sequence[Line], first: Line) -> None:
        self._layout, self._lines, self._first = layout, lines, first
        self.counts: list[Counter[str]] = [Counter() for _ in range(layout.width)]
        self._is_numbered, self._n, self._n_pairs = layout.width > 1, 0, 0
        self._n_repeated, self._names = [0, 0], [""] * layout.width
        for rows in self._sentences():
            self._add(rows)

    def _sentences(self) -> Iterator[Sentence]:
        """Yield the sentences without marks, comments and a possible header."""
        rows: Sentence = []
        is_first = True
        for number, line in self._lines:
            values = self._layout.values(number, line)
            if not values or values[0] == DOCSTART:
                if rows:
                    yield rows
                    rows = []
            elif not line.startswith(MARKS_OF_COMMENTS):
                self._layout.check(number, values)
                if is_first and is_header(values):
                    self._names = values
                else:
                    rows.append(Row(number, values))
                is_first = False
        if rows:
            yield rows

    def _add(self, rows: Sentence) -> None:
        for row in rows:
            for counter, value in zip(self.counts, row.values, strict=True):
                counter[value] += 1
        firsts = [row.values[0].removesuffix(".") for row in rows]
        base = int(firsts[0] == "1")
        self._is_numbered &= firsts == [str(i + base) for i in range(len(firsts))]
        self._n += len(rows)
        self._n_pairs += len(rows) - 1
        for i in range(min(2, self._layout.width)):
            pairs = pairwise(row.values[i] for row in rows)
            self._n_repeated[i] += sum(a == b for a, b in pairs)

    def word(self) -> int:
        """Return the column of words. RAISES: SparseCRFError if its values do not look like it."""
        word = int(self._is_numbered)
        values = self.counts[word].items()
        n_others = sum(n for value, n in values if is_label(value) or not value.strip("0123456789"))
        is_named = names_words(self._names[word]) or not any(map(names_words, self._names))
        is_repeated = self._n_repeated[word] > self._n_pairs / 2
        if n_others > self._n / 2 or is_repeated or not is_named:
            self._refuse(f"column {word + 1} does not look like words")
        return word

    def label(self, word: int) -> int:
        """Return the only column that has labels in all lines.

        RAISES: SparseCRFError with the columns that have labels in most lines.
        """
        found = [self._labels_of(i) for i in range(word + 1, self._layout.width)]
        most = [each for each in found if each.n > self._n / 2]
        most = [each for each in most if each.types] or most
        if not most:
            self._refuse("no column has labels such as B-PER and O in all lines")
        if len(most) > 1:
            self._refuse(f"{len(most)} columns have labels such as B-PER and O", word, most)
        if most[0].n < self._n:
            self._refuse_odd_line(word, most[0])
        return most[0].column

    def _labels_of(self, column: int) -> _Labels:
        counter = self.counts[column]
        # Other tags may look like PER-B too, but not if some tokens have the outside label.
        standard = standard_label if OUTSIDE in counter else str
        typed = {value: label_type(standard(value)) for value in counter}
        fits = [x for x in counter if typed[x] or x == OUTSIDE or x in MISSING]
        n = sum(counter[x] for x in fits) if any(x not in MISSING for x in fits) else 0
        return _Labels(column, sorted({*typed.values()} - {""}), n)

    def _refuse_odd_line(self, word: int, found: _Labels) -> NoReturn:
        """Name the first line without a label. RAISES: SparseCRFError."""
        rows = (row for rows in self._sentences() for row in rows)
        row = next(row for row in rows if not is_label(row.values[found.column]))
        self._first = row.line, "\t".join(row.values)
        odd = f"{found.n} of {self._n} lines, but not in this one: {row.values[found.column]!r}"
        self._refuse(f"column {found.column + 1} has labels in {odd}", word, [found])

    def _refuse(self, reason: str, word: int = 0, found: Sequence[_Labels] = ()) -> NoReturn:
        """Show the options. RAISES: SparseCRFError."""
        width = self._layout.width
        options = []
        for each in found:
            n = sum(n for x, n in self.counts[each.column].items() if label_type(standard_label(x)))
            names = {word: WORDS, each.column: ENTITIES}
            columns = ",".join(names.get(i, IGNORED) for i in range(width))
            options.append(f"--columns {columns} ({n} labels of {', '.join(each.types) or 'none'})")
        if not found:
            shown = (", ".join([*counter][:_SHOWN]) for counter in self.counts)
            values = "; ".join(f"{i} has {own}" for i, own in enumerate(shown, start=1))
            columns = ",".join([WORDS, *[IGNORED] * (width - 2), "tag"][:width])
            options.append(f"for example --columns {columns} (column {values})")
        number, text = self._first
        where = {"path": self._layout.path, "line": number, "text": text.strip()[:60]}
        message = Errors.SC637.format(**where, reason=reason, options=" or ".join(options))
        raise SparseCRFError(message)
