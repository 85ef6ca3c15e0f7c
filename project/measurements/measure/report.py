"""From stored figures to a document: `python -m measure.report NAME METRICS PROJECT`.

NAME is a package of the project whose module `tables` has a `Report`. A document has a head and
sections. A report replaces the head's paragraph that begins with `Measured on`, and everything in
a section after its prose.
"""

import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from wasabi import msg

from .results import Row, is_trial, machines_of, read_rows

ItemT = TypeVar("ItemT")
Records = Mapping[str, list[Row]]
Sections = Mapping[str, Sequence[str]]
_MEASURED = "Measured on"


@dataclass(frozen=True)
class Report:
    """A document, and how its sections are made.

    name: of the file; trial: data of a trial, for its warning; sections: returns paragraphs by
    title, given the rows of each file by its stem, and the published sections; prose: titles of
    sections whose first paragraph is handwritten; draw: writes plots to a directory; kept: a file
    of the project, whose rows complete those of `results.jsonl`.
    """

    name: str
    trial: str
    sections: Callable[[Records, Sections], Sections]
    prose: frozenset[str] = frozenset()
    draw: Callable[[Records, Path], None] = lambda records, folder: None
    kept: str = ""

    def write(self, metrics: Path, project: Path, plots: str) -> None:
        """Write the document next to the figures; after a full run, also to the project."""
        records = {path.stem: read_rows(path) for path in sorted(metrics.glob("*.jsonl"))}
        trial = is_trial(row for rows in records.values() for row in rows)
        if self.kept and not trial:
            records["results"] = _with_kept(records.get("results", []), project / self.kept)
        self.draw(records, metrics)
        text = self.render(records, project / self.name, trial)
        (metrics / self.name).write_text(text, encoding="utf-8")
        if trial:
            msg.warn(f"A trial: only {metrics / self.name} is written")
            return
        (project / self.name).write_text(text, encoding="utf-8")
        for path in sorted(metrics.glob("*.png")):
            (project / plots).mkdir(parents=True, exist_ok=True)
            shutil.copy(path, project / plots / path.name)
        msg.good(f"{project / self.name}")

    def render(self, records: Records, path: Path, trial: bool) -> str:
        """Return the text; published sections that have no new figures are kept."""
        head, published = read_document(path)
        sections = self.sections(records, {} if trial else published)
        rows = [row for own in records.values() for row in own]
        others = not trial and not self.kept and published.keys() - sections.keys()
        kept = next((each for each in head if each.startswith(_MEASURED)), "") if others else ""
        measured = measured_on(machines_of(rows), kept)
        blocks = [measured if each.startswith(_MEASURED) else each for each in head]
        if trial:
            blocks.insert(-1, f"**A trial on {self.trial}: the figures mean nothing.**")
        for title in dict.fromkeys([*published, *sections]):
            if title in sections:
                prose = published.get(title, [""])[:1] if title in self.prose else []
                blocks += [f"## {title}", *prose, *sections[title]]
            elif not trial:
                blocks += [f"## {title}", *published[title]]
        return "\n\n".join(block.strip() for block in blocks if block) + "\n"


def _with_kept(rows: list[Row], path: Path) -> list[Row]:
    """Complete rows by those of a file, and write all to it."""
    import srsly

    kept = {row["name"]: row for row in srsly.read_jsonl(path)} if path.exists() else {}
    for row in rows:
        machine = {key: row["session"]["machine"][key] for key in ("processor", "date")}
        own = {k: v for k, v in row.items() if k not in ("name", "session", "experiment")}
        kept[row["name"]] = {"name": row["name"], **machine, **own}
    srsly.write_jsonl(path, kept.values())
    return [{**row, "session": {"quick": False, "machine": row}} for row in kept.values()]


def read_document(path: Path) -> tuple[list[str], dict[str, Sequence[str]]]:
    """Return the paragraphs of a document's head, and those of each section by title."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    head, *blocks = re.split(r"^## ", text, flags=re.MULTILINE)
    parts = [block.split("\n", 1) for block in blocks]
    sections = {title.strip(): rest.strip().split("\n\n") for title, rest in parts}
    return head.strip().split("\n\n"), sections


def measured_on(machines: Iterable[Mapping[str, Any]], kept: str = "") -> str:
    """List machines in a line; kept: a published line, whose machines are listed last."""
    keys = "processor", "date", "commit"
    found = [", ".join(m[key] for key in keys if key in m) for m in machines]
    found += filter(None, re.sub(rf"^{_MEASURED}:? |\.$", "", kept).split("; "))
    return f"{_MEASURED}: {'; '.join(dict.fromkeys(found))}."


# Tables; unknown figures give empty cells


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


def rows_of(text: str) -> list[list[str]]:
    """Return the rows of the first table in a text, without its header."""
    lines = [line.strip() for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines[2:]]


def number(value: float) -> str:
    """Format with three significant digits, without exponents for common values."""
    if value == 0.0 or abs(value) >= 1000.0:
        return f"{value:,.0f}"
    text = f"{value:.3g}"
    return f"{value:.6f}".rstrip("0") if "e" in text else text


def shown(value: float | None, form: str = "", missing: str = "") -> str:
    """Format a figure; form: "" for `number`; missing: the cell for None."""
    if value is None:
        return missing
    return format(value, form) if form else number(value)


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


def main(
    name: Annotated[str, typer.Argument(help="Package of the report")],
    metrics: Annotated[Path, typer.Argument(help="Directory of the stored figures")],
    project: Annotated[Path, typer.Argument(help="Directory of the report")],
) -> None:
    """Write a report on the figures so far."""
    report: Report = import_module(f"{name}.tables").REPORT
    report.write(metrics, project, f"{name}/plots")


if __name__ == "__main__":
    typer.run(main)
