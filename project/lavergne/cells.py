"""Figures as cells of tables; one that is not known leaves its cell empty."""

from bench.tables import number

from .figures import Figures


def shown(value: float | None, form: str, unit: float = 1.0) -> str:
    """A figure in a format."""
    return "" if value is None else format(value / unit, form)


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


def numbered(error: float | None, iterations: int | None) -> str:
    """An error rate, and the iteration that it is of, or their number."""
    known = error is not None and iterations is not None
    return percent(error) + (f" ({iterations})" if known else "")


def both(labels: float | None, parts: float | None) -> str:
    """Error rates of labels and of their parts."""
    return " / ".join(filter(None, [percent(labels), percent(parts)]))


def share(part: float | None, total: float | None) -> str:
    """A part as a percentage."""
    return "" if part is None or total is None else f"{100.0 * part / total:.1f} %"


def mark(one: Figures) -> str:
    """A mark where the run was cut."""
    return "*" if one.cut else ""


def cost(one: Figures) -> list[str]:
    """Seconds, with a mark, and the peak of memory."""
    return [f"{whole(one.cpu)}{mark(one)}", whole(one.peak_mb)]
