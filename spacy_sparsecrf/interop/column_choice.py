"""Find the columns of words and entities in a file whose columns are not given.

A column of entities has only labels such as B-PER, or O, in all lines. Words are in the first
column, or in the second if the first numbers the tokens. Tags and other columns are never chosen.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, NoReturn

from ..errors import Errors, SparseCRFError
from .attributes import DOCSTART, ENTITIES, IGNORED, WORDS, is_header, names_words
from .columns import (
    MARKS,
    ColumnLayout,
    Line,
    Sentence,
    Source,
    layout_of,
    lines_of,
    sentences_of,
    source_of,
)
from .schemes import MISSING, OUTSIDE, is_label, label_type, standard_label

_SHOWN = 3  # values of a column in messages


def choose_columns(path: Path, separator: str = "") -> Source[Sentence]:
    """Read a file of columns, and find those of words and entities.

    separator: see `read_columns`.
    RAISES: SparseCRFError with the choices if words or entities are not in exactly one column.
    """
    lines = [*lines_of(path)]
    layout = layout_of(path, separator, lines)
    table = _Table(layout, lines)
    if not table.n:
        return Source(path)
    word = table.word()
    label = table.label(word)
    names = {word: WORDS, label: ENTITIES}
    layout.columns = [names.get(i, IGNORED) for i in range(layout.width)]
    layout.labels = [label]
    source = source_of(layout, lines)
    source.notes.append(f"Columns are read as {','.join(source.columns)} (see --columns)")
    if other := next((x for x in table.counts[label] if x != standard_label(x)), None):
        source.notes.append(f"Labels such as {other} are read as {standard_label(other)}")
    return source


class _Labels(NamedTuple):
    """The labels in a column. types: of spans; n: lines with a label."""

    column: int
    labels: Collection[str]
    types: Sequence[str]
    n: int


class _Table:
    """Counts the values of each column of a file. n: lines of tokens; names: in a header."""

    def __init__(self, layout: ColumnLayout, lines: Sequence[Line]) -> None:
        self._layout, self._lines = layout, lines
        self.counts: list[Counter[str]] = [Counter() for _ in range(layout.width)]
        self.n, self._n_pairs, self._n_repeated = 0, 0, [0, 0]
        self._is_numbered = layout.width > 1
        for rows in sentences_of(layout, lines, []):
            self._add([row for row in rows if row.values[0] != DOCSTART])
        tokens = (entry for entry in lines if entry[1].strip(" \t"))
        self._first = next((e for e in tokens if not e[1].startswith(MARKS)), (0, ""))
        names = layout.split(*self._first)
        self._names = names if is_header(names) else [""] * layout.width

    def _add(self, rows: Sentence) -> None:
        for row in rows:
            for counter, value in zip(self.counts, row.values, strict=True):
                counter[value] += 1
        firsts = [row.values[0].removesuffix(".") for row in rows]
        base = int("1" in firsts[:1])
        self._is_numbered &= firsts == [str(i + base) for i in range(len(firsts))]
        self.n += len(rows)
        self._n_pairs += max(0, len(rows) - 1)
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
        if n_others > self.n / 2 or is_repeated or not is_named:
            self._refuse(f"column {word + 1} does not look like words")
        return word

    def label(self, word: int) -> int:
        """Return the only column that has labels in all lines.

        RAISES: SparseCRFError with the columns that have labels in most lines.
        """
        found = [self._labels_of(i) for i in range(word + 1, self._layout.width)]
        most = [each for each in found if each.n > self.n / 2]
        # A column of O is no rival beside one with entities; behind other words, it is.
        runs = [each.column - i for i, each in enumerate(most)]  # equal for neighbours
        typed = {run for each, run in zip(most, runs, strict=True) if each.types}
        both = zip(most, runs, strict=True)
        most = [each for each, run in both if each.types or run not in typed]
        if not most:
            self._refuse("no column has labels such as B-PER and O in all lines")
        if len(most) > 1:
            self._refuse(f"{len(most)} columns have labels such as B-PER and O", word, most)
        if most[0].n < self.n:
            self._refuse_odd_line(word, most[0])
        return most[0].column

    def _labels_of(self, column: int) -> _Labels:
        counter = self.counts[column]
        # Other tags may look like PER-B too, but not if some tokens have the outside label.
        standard = standard_label if OUTSIDE in counter else str
        typed = {value: label_type(standard(value)) for value in counter}
        fits = {x for x in counter if typed[x] or x == OUTSIDE or x in MISSING}
        n = sum(counter[x] for x in fits) if fits.difference(MISSING) else 0
        return _Labels(column, fits, sorted({*typed.values()} - {""}), n)

    def _refuse_odd_line(self, word: int, found: _Labels) -> NoReturn:
        """Name the first line without a label. RAISES: SparseCRFError."""
        rows = (row for rows in sentences_of(self._layout, self._lines, []) for row in rows)
        tokens = (row for row in rows if row.values[0] != DOCSTART)
        row = next(row for row in tokens if row.values[found.column] not in found.labels)
        self._first = row.line, "\t".join(row.values)
        odd = f"{found.n} of {self.n} lines, but not in this one: {row.values[found.column]!r}"
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
