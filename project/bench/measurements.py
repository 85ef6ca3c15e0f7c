"""The figures of a benchmark as they are stored: each repetition, in JSON."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import srsly
from reports.machine import describe
from reports.records import Stored, write_record
from wasabi import msg

from .timing import Cost

OURS = "sparsecrf"


@dataclass
class Measurement:
    """One cell of a table.

    data: the data set; what: the row; tool: the column; wall, cpu: seconds of each repetition
    (cpu may be empty); items: how many tokens those seconds were for, 0 where it does not
    matter; peak_mb: memory instead of seconds; at_least: whether seconds are a lower bound,
    because the run was cut off; threads; note: a remark for the table.
    """

    data: str
    what: str
    tool: str
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    peak_mb: list[float] = field(default_factory=list)
    items: int = 0
    at_least: bool = False
    threads: int = 1
    note: str = ""

    @property
    def key(self) -> tuple[str, str, int]:
        """The row of the table that it stands in."""
        return self.data, self.what, self.threads

    @property
    def median(self) -> float:
        """Median of memory, where that was measured, or of wall seconds."""
        return statistics.median(self.peak_mb or self.wall)


@dataclass
class Record:
    """Everything that one benchmark found out.

    remarks: sentences for the report; details: raw figures beside the measurements.
    """

    benchmark: str
    quick: bool
    settings: dict[str, Any] = field(default_factory=dict)
    measurements: list[Measurement] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=describe)

    def add(
        self,
        data: str,
        what: str,
        sides: dict[str, list[Cost]],
        *,
        items: int = 0,
        threads: int = 1,
    ) -> None:
        """Add what the sides of a comparison took; sides: by tool."""
        for tool, costs in sides.items():
            walls, cpus = [cost.wall for cost in costs], [cost.cpu for cost in costs]
            self.measurements.append(
                Measurement(data, what, tool, walls, cpus, items=items, threads=threads)
            )
            each = ", ".join(f"{wall:.4g}" for wall in walls)
            msg.text(f"{data}, {what}, {tool}, {threads} thread(s): {each} s")

    def find(self, data: str, what: str, tool: str, threads: int = 1) -> Measurement | None:
        """A measurement, where there is one."""
        for one in self.measurements:
            if (*one.key, one.tool) == (data, what, threads, tool):
                return one
        return None

    def write(self, path: Path) -> None:
        """Store as JSON."""
        write_record(path, asdict(self))


def record_of(stored: Stored) -> Record:
    """The record that was stored."""
    cells = [Measurement(**cell) for cell in stored["measurements"]]
    return Record(**{**stored, "measurements": cells})


def read_record(path: Path) -> Record:
    """Read what `Record.write` stored."""
    return record_of(srsly.read_json(path))


def tools_of(measurements: Iterable[Measurement]) -> list[str]:
    """The tools that occur, ours first, the others in order of appearance."""
    tools = dict.fromkeys(one.tool for one in measurements)
    ours: Sequence[str] = [tool for tool in tools if tool.startswith(OURS)]
    return [*ours, *(tool for tool in tools if tool not in ours)]
