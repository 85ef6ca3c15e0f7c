"""CSV with a token in each row, as lines of columns that tabs separate."""

import csv
from collections.abc import Iterator
from pathlib import Path

from ..errors import Errors, SparseCRFError
from .columns import TAB, Line
from .text_files import read_lines

_DELIMITERS = ",;|\t"


def csv_lines(path: Path) -> Iterator[Line]:
    """Yield the rows of a CSV file, cells separated by tabs.

    The delimiter is the most frequent of _DELIMITERS in the first line, or is named by a line sep=;
    before it, as spreadsheets write.
    RAISES: SparseCRFError for a cell with a tab or a line end, such as after a quote that is not
        closed.
    """
    lines = [f"{line}\n" for line in read_lines(path)]
    is_named = bool(lines) and lines[0].lower().startswith("sep=")
    delimiter = max(_DELIMITERS, key=lambda sign: "".join(lines[:1]).count(sign))
    rows = csv.reader(lines[is_named:], delimiter=delimiter)
    begin = 1 + is_named
    try:
        for cells in rows:
            if any(TAB in cell or "\n" in cell for cell in cells):
                raise csv.Error("a cell has a tab or a line end; is a quote not closed?")
            yield begin, TAB.join(cells)
            begin = rows.line_num + 1 + is_named
    except csv.Error as error:
        reason = f"line {begin}: {error}"
        raise SparseCRFError(Errors.SC624.format(path=path, reason=reason)) from error
