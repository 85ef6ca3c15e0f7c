"""Options and measurements of benchmarks, and the table that most benchmarks share.

A measurement is a row with these keys. data: data set; what: row of the table; tool: column; wall,
cpu: seconds of each repetition; peak_mb: memory, instead of seconds; items: number of tokens
processed, for rates; at_least: whether seconds are a lower bound because the run was cut off;
threads: if more than one; and further figures.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from measure.processes import Cost
from measure.results import Results, Row
from measure.tables import number, table

OURS = "sparsecrf"


@dataclass(frozen=True)
class Options:
    """Options of a benchmark run.

    folder: with corpus/, training/ and metrics/; data: see `measure.data`; repeats: of each side, 0
    for the benchmark's default; cap: maximum seconds of a run; names, tools: to run, all if empty;
    sentences: to train on, 0 = all.
    """

    folder: Path = Path()
    data: str = ""
    quick: bool = False
    repeats: int = 0
    cap: float = 900.0
    threads: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    sentences: int = 0

    def times(self, usual: int) -> int:
        """Return the number of repetitions of each side."""
        return 1 if self.quick else self.repeats or usual

    def corpus(self, name: str) -> Path:
        """Return the file of an encoded corpus."""
        return self.folder / "corpus" / "bench" / f"{name}.npz"

    def record(self, benchmark: str, folder: str = "bench", **settings: Any) -> "Record":
        """Start the results of a benchmark."""
        path = self.folder / "metrics" / folder / f"{benchmark}.jsonl"
        keep = self.names or self.tools
        return Record(path, self.quick, settings, "all" if keep else "none")


class Record(Results):
    """The results of a benchmark."""

    def note(self, data: str, what: str, tool: str, threads: int = 1, **figures: Any) -> None:
        """Add a measurement."""
        name = f"{data}, {what}, {tool}" + (f", {threads} threads" if threads > 1 else "")
        self.add(name, data=data, what=what, tool=tool, threads=threads, **figures)

    def compare(
        self, data: str, what: str, sides: Mapping[str, Sequence[Cost]], **more: Any
    ) -> None:
        """Add the costs of the sides of a comparison, by tool."""
        for tool, costs in sides.items():
            walls, cpus = [cost.wall for cost in costs], [cost.cpu for cost in costs]
            self.note(data, what, tool, wall=walls, cpu=cpus, **more)


def measurements(rows: Iterable[Row]) -> list[Row]:
    """Return the measurements among rows."""
    return [row for row in rows if "tool" in row]


def find(rows: Iterable[Row], data: str, what: str, tool: str, threads: int = 1) -> Row | None:
    """Return a measurement, or None if there is none."""
    wanted, keys = (data, what, tool, threads), ("data", "what", "tool", "threads")
    found = (row for row in measurements(rows) if tuple(map(row.get, keys)) == wanted)
    return next(found, None)


def middle(row: Row) -> float:
    """Return the median memory if it was measured, else the median wall seconds."""
    return float(median(row.get("peak_mb") or row["wall"]))


def cell(row: Row | None) -> str:
    """Format a measurement: seconds (with processor seconds in parentheses), tokens/s, or MB."""
    if row is None:
        return ""
    if "peak_mb" in row:
        return f"{number(middle(row))} MB"
    if "items" in row:
        return f"{number(row['items'] / middle(row) / 1e6)} M/s"
    bound = "> " if row.get("at_least") else ""
    return f"{bound}{number(middle(row))} s ({number(median(row['cpu']))})"


def ratio(ours: Row | None, peer: Row | None) -> tuple[float, bool] | None:
    """Return the peer's figure divided by ours, and whether the ratio is a lower bound.

    RETURNS: None if a side is missing, or if our run did not reach the goal.
    """
    if ours is None or peer is None or ours.get("at_least"):
        return None
    return middle(peer) / middle(ours), bool(peer.get("at_least"))


def show_ratio(found: tuple[float, bool] | None) -> str:
    """Format a ratio."""
    if found is None:
        return ""
    value, bound = found
    return f"{'> ' if bound else ''}{value:.{1 if value < 20 else 0}f}x"


def tools_of(found: Iterable[Row]) -> list[str]:
    """Return the tools in rows, ours first, then others in order of appearance."""
    tools = dict.fromkeys(row["tool"] for row in found)
    return sorted(tools, key=lambda tool: not tool.startswith(OURS))


def compared(rows: Sequence[Row], absent: Sequence[str] = ()) -> list[str]:
    """Return a table with a row for each measurement, a column for each tool, and ratios.

    absent: tools that would have a column if they were available.
    """
    found = measurements(rows)
    tools = tools_of(found)
    peers = [tool for tool in tools if not tool.startswith(OURS)]
    missing = [tool for tool in absent if tool not in tools]
    lines: dict[tuple[str, str, int], dict[str, Row]] = {}
    for row in found:
        lines.setdefault((row["data"], row["what"], row["threads"]), {})[row["tool"]] = row
    shown = []
    for (data, what, threads), cells in lines.items():
        name = f"{data}: {what}" + (f", {threads} threads" if threads > 1 else "")
        ratios = [show_ratio(ratio(cells.get(OURS), cells.get(peer))) for peer in peers]
        own = [cell(cells.get(tool)) for tool in tools]
        shown.append([name, *own, *("not on PATH" for _ in missing), *ratios])
    header = ["", *tools, *missing, *(f"{peer} / ours" for peer in peers)]
    return [table(header, shown)]
