"""Options and measurements of benchmarks, and the table that most benchmarks share.

A measurement is a row with these keys. data: data set; what: row of the table; tool: column; wall,
cpu: seconds of each repetition; mb: peak memory of a child process, else 0; items: number of tokens
processed, for rates; and further figures.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from measure.processes import Cost
from measure.report import number, table
from measure.results import Results, Row

OURS = "sparsecrf"


@dataclass(frozen=True)
class Options:
    """Options of a benchmark run.

    folder: with corpus/, training/ and metrics/; data: see `measure.data`; repeats: of each side, 0
    for the benchmark's default; names, tools: to run, all if empty; before: Python with an earlier
    version of the package.
    """

    folder: Path = Path()
    data: str = ""
    quick: bool = False
    repeats: int = 0
    names: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    before: str = ""

    def times(self, usual: int) -> int:
        """Return the number of repetitions of each side."""
        return 1 if self.quick else self.repeats or usual

    def record(self, benchmark: str, folder: str = "bench", **settings: Any) -> "Record":
        """Start the results of a benchmark."""
        path = self.folder / "metrics" / folder / f"{benchmark}.jsonl"
        keep = self.names or self.tools
        return Record(path, self.quick, settings, "all" if keep else "none")


class Record(Results):
    """The results of a benchmark."""

    def compare(
        self, data: str, what: str, sides: Mapping[str, Sequence[Cost]], **more: Any
    ) -> None:
        """Add the costs of the sides of a comparison, by tool."""
        for tool, costs in sides.items():
            walls, cpus = [cost.wall for cost in costs], [cost.cpu for cost in costs]
            own = {"data": data, "what": what, "tool": tool, "mb": max(c.peak_mb for c in costs)}
            self.add(f"{data}, {what}, {tool}", **own, wall=walls, cpu=cpus, **more)


def measurements(rows: Iterable[Row]) -> list[Row]:
    """Return the measurements among rows."""
    return [row for row in rows if "tool" in row]


def middle(row: Row) -> float:
    """Return the median wall seconds."""
    return float(median(row["wall"]))


def cell(row: Row | None) -> str:
    """Format a measurement: seconds (with processor seconds in parentheses), or tokens/s."""
    if row is None:
        return ""
    if "items" in row:
        return f"{number(row['items'] / middle(row) / 1e6)} M/s"
    return f"{number(middle(row))} s ({number(median(row['cpu']))})"


def ratio(ours: Row | None, peer: Row | None) -> str:
    """Return the peer's seconds divided by ours; nothing if a side is missing."""
    if ours is None or peer is None:
        return ""
    value = middle(peer) / middle(ours)
    return f"{value:.{1 if value < 20 else 0}f}x"


def tools_of(found: Iterable[Row]) -> list[str]:
    """Return the tools in rows, ours first, then others in order of appearance."""
    tools = dict.fromkeys(row["tool"] for row in found)
    return sorted(tools, key=lambda tool: not tool.startswith(OURS))


def compared(rows: Sequence[Row]) -> str:
    """Return a table with a row for each measurement, a column for each tool, and ratios."""
    found = measurements(rows)
    tools = tools_of(found)
    peers = [tool for tool in tools if not tool.startswith(OURS)]
    lines: dict[str, dict[str, Row]] = {}
    for row in found:
        lines.setdefault(f"{row['data']}: {row['what']}", {})[row["tool"]] = row
    shown = []
    for name, cells in lines.items():
        ratios = [ratio(cells.get(OURS), cells.get(peer)) for peer in peers]
        shown.append([name, *(cell(cells.get(tool)) for tool in tools), *ratios])
    return table(["", *tools, *(f"{peer} / ours" for peer in peers)], shown)
