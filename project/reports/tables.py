"""Tables in Markdown, and figures as their cells; one that is not known leaves its cell empty."""

from collections.abc import Iterable, Mapping, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the first column to the left, the others to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def with_text(text: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table below its text; nothing where it has no rows."""
    return "\n\n".join(filter(None, [text, table(header, rows)])) if rows else ""


def read_rows(text: str) -> list[list[str]]:
    """The rows of the only table in a text, without its header."""
    lines = [line.strip() for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines[2:]]


def number(value: float) -> str:
    """Three significant digits, without exponents for what occurs here."""
    if value == 0.0 or abs(value) >= 1000.0:
        return f"{value:,.0f}"
    text = f"{value:.3g}"
    return f"{value:.6f}".rstrip("0") if "e" in text else text


def shown(value: float | None, form: str = "", unit: float = 1.0, missing: str = "") -> str:
    """A figure in a format; form: "" for `number`; missing: what stands for None."""
    if value is None:
        return missing
    return format(value / unit, form) if form else number(value / unit)


def percent(value: float | None) -> str:
    """An error rate."""
    return shown(value, ".2f")


def whole(value: float | None) -> str:
    """A figure without decimals."""
    return shown(value, ",.0f")


def count(value: float | None) -> str:
    """How many weights: millions and more rounded, as potential weights are only compared."""
    for unit, name in ((1e9, "G"), (1e6, "M")):
        if value is not None and value >= unit:
            return f"{number(value / unit)} {name}"
    return whole(value)


def share(part: float | None, total: float | None) -> str:
    """A part as a percentage."""
    return "" if part is None or total is None else f"{100.0 * part / total:.1f} %"


def named(figures: Mapping[str, float]) -> str:
    """Figures, each before its name: `1,234 tokens, 5 labels`."""
    return ", ".join(f"{value:,} {name}" for name, value in figures.items())
