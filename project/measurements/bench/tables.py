"""The tables of BENCHMARKS.md. Published rows that were not measured again are kept."""

from collections.abc import Sequence

from measure.report import Records, Report, Sections, rows_of
from measure.results import Row

from . import decode, intervals, single, whole
from .record import compared

SECTIONS = {
    "gradient": ("One gradient", compared, 1),
    "whole": ("Whole runs", whole.tables, 2),
    "intervals": ("Intervals of test scores", intervals.tables, 2),
    "scaling": ("Whole runs by size and threads", whole.scaling_table, 1),
    "sampled": ("Seconds of whole runs", whole.sampled_table, 1),
    "decode": ("From Doc to labels", decode.tables, 2),
    "raw": ("From raw text to entities", decode.raw_table, 2),
    "single": ("One short text", single.tables, 1),
}


def with_kept_rows(body: str, published: Sequence[str], row_names: int) -> str:
    """Add published rows next to those of the same first cell.

    row_names: number of leading cells that identify a row.
    """
    kept = rows_of("\n".join(block for block in published if block.startswith("|")))
    rows = {tuple(row[:row_names]): row for row in (*kept, *rows_of(body))}
    first = [name for name, *_ in rows.values()]
    ordered = sorted(rows.values(), key=lambda row: first.index(row[0]))
    lines = ("| " + " | ".join(row) + " |" for row in ordered)
    return "\n".join([*body.splitlines()[:2], *lines])


def section(rows: list[Row], name: str, published: Sequence[str]) -> list[str]:
    """Return the table, remarks and settings of a benchmark."""
    _, tables, row_names = SECTIONS[name]
    body = tables(rows)
    # Tables of other columns, because a tool is missing, do not take published rows.
    if any(block.startswith(body.splitlines()[0]) for block in published):
        body = with_kept_rows(body, published, row_names)
    given = rows[-1]["session"]["settings"].items()
    settings = ", ".join(f"{key} {value}" for key, value in given)
    notes = [row["remark"] for row in rows if "remark" in row]
    return [body, *notes, *([f"Settings: {settings}."] if settings else [])]


def sections(records: Records, published: Sections) -> Sections:
    """Return the sections of benchmarks that were measured."""
    found = {}
    for name, (title, *_) in SECTIONS.items():
        if name in records:
            found[title] = section(records[name], name, published.get(title, ()))
    return found


REPORT = Report(
    "BENCHMARKS.md",
    "samples of the data, with few repetitions",
    sections,
    frozenset(title for title, *_ in SECTIONS.values()),
)
