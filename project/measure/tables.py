"""Markdown tables and formatting of cells; unknown figures give empty cells."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

ItemT = TypeVar("ItemT")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the first column is left-aligned, other columns are right-aligned."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def tabulate(items: Iterable[ItemT], columns: Mapping[str, Callable[[ItemT], str]]) -> str:
    """Return a table with a row for each item; columns: functions of an item, by header.

    Trailing blanks of a header, which distinguish equal headers as keys, are removed.
    """
    header = [name.rstrip() for name in columns]
    return table(header, [[cell(item) for cell in columns.values()] for item in items])


def read_rows(text: str) -> list[list[str]]:
    """Return the rows of the first table in a text, without its header."""
    lines = [line.strip() for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines[2:]]


def number(value: float) -> str:
    """Format with three significant digits, without exponents for common values."""
    if value == 0.0 or abs(value) >= 1000.0:
        return f"{value:,.0f}"
    text = f"{value:.3g}"
    return f"{value:.6f}".rstrip("0") if "e" in text else text


def shown(value: float | None, form: str = "", unit: float = 1.0, missing: str = "") -> str:
    """Format a figure; form: "" for `number`; missing: the cell for None."""
    if value is None:
        return missing
    return format(value / unit, form) if form else number(value / unit)


def percent(value: float | None) -> str:
    """Format an error rate in percent."""
    return shown(value, ".2f")


def whole(value: float | None) -> str:
    """Format without decimals."""
    return shown(value, ",.0f")


def count(value: float | None) -> str:
    """Format a number of weights, rounded from a million."""
    for unit, name in ((1e9, "G"), (1e6, "M")):
        if value is not None and value >= unit:
            return f"{number(value / unit)} {name}"
    return whole(value)


def share(part: float | None, total: float | None) -> str:
    """Format a part as a percentage."""
    return "" if part is None or total is None else f"{100.0 * part / total:.1f} %"
