"""Rows of figures, one JSON object per line, appended after each measurement.

A line with the key `session` describes the session of the following lines: `quick` (a trial),
`settings` and `machine`. Each other line has a `name`; a later line replaces an earlier line with
the same name.
"""

import datetime
import platform
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import srsly
import typer
from wasabi import msg

Row = dict[str, Any]

Quick = Annotated[
    bool, typer.Option("--quick/--full", help="Samples and few iterations, to see that all works")
]


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file, each with its `session`; of trials only if there are no others."""
    rows: dict[str, Row] = {}
    session: Row = {}
    for line in srsly.read_jsonl(path) if path.exists() else ():
        if "session" in line:
            session = line["session"]
        else:
            rows[line["name"]] = {**line, "session": session}
    full = [row for row in rows.values() if not row["session"]["quick"]]
    return full or list(rows.values())


def is_trial(rows: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether any row belongs to a trial."""
    return any(row["session"]["quick"] for row in rows)


def machines_of(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return the machines that rows were measured on."""
    found = {srsly.json_dumps(row["session"]["machine"]): row["session"]["machine"] for row in rows}
    return list(found.values())


@cache
def describe() -> dict[str, Any]:
    """Return processor, Python, date and commit, but no names or paths."""
    return {
        "date": datetime.date.today().isoformat(),
        "processor": _processor(),
        "python": platform.python_version(),
        "commit": _commit(),
    }


def _processor() -> str:
    """Return the model of the processor."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def _commit() -> str:
    """Return the commit of the repository, with a + if there are uncommitted changes."""
    if shutil.which("git") is None:
        return "unknown"
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty=+"]
    done = subprocess.run([*command, "--exclude=*"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


class Results:
    """A file of rows to write.

    settings: shown in the report; keep: earlier rows to keep: "all", all if they have the "same"
    settings, or "none". A full run replaces the rows of a trial; a trial keeps no rows of a full
    run.
    """

    def __init__(
        self,
        path: Path,
        quick: bool = False,
        settings: Mapping[str, Any] | None = None,
        keep: Literal["all", "same", "none"] = "all",
    ) -> None:
        self.path, self.quick = path, quick
        self.settings = dict(settings or {})
        self._session: Row = {"quick": quick, "settings": self.settings, "machine": describe()}
        self._has_header = False
        there = read_rows(path)
        changed = any(row["session"]["settings"] != self.settings for row in there)
        stale = keep == "none" or (keep == "same" and changed) or is_trial(there) != quick
        # A trial keeps the file of a full run: its rows are appended, and ignored when reading.
        if stale and (not quick or is_trial(there)):
            path.unlink(missing_ok=True)
        self.rows = {} if stale else {row["name"]: row for row in there}

    def add(self, name: str, **figures: Any) -> None:
        """Append a row."""
        lines: list[Row] = [] if self._has_header else [{"session": self._session}]
        lines.append({"name": name, **figures})
        self._has_header = True
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(f"{srsly.json_dumps(line)}\n" for line in lines)
        self.rows[name] = {**lines[-1], "session": self._session}
        msg.text(name)

    def remark(self, text: str) -> None:
        """Append a sentence for the report."""
        self.add(text, remark=text)
