"""Records of runs as they are stored: one JSON file each, and lines of what a project keeps.

Every record says whether it is of a trial (`quick`) and what it was measured on (`machine`, see
`reports.machine`); what else it has is its writer's.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import srsly
from wasabi import msg

Stored = Mapping[str, Any]


def write_record(path: Path, record: Stored) -> None:
    """Store a record."""
    path.parent.mkdir(parents=True, exist_ok=True)
    srsly.write_json(path, dict(record))
    msg.good(f"{path.stem}: {path}")


def read_records(directory: Path, names: Iterable[str]) -> dict[str, Stored]:
    """The records that there are, by name, in the order of the names."""
    paths = {name: directory / f"{name}.json" for name in names}
    return {name: srsly.read_json(path) for name, path in paths.items() if path.exists()}


def is_trial(records: Mapping[str, Stored]) -> bool:
    """Whether any of the records is of a trial."""
    return any(record["quick"] for record in records.values())


def without_trials(records: Mapping[str, Stored]) -> dict[str, Stored]:
    """The records of full runs, where there are any; else all of them."""
    full = {name: record for name, record in records.items() if not record["quick"]}
    return full or dict(records)


def write_lines(path: Path, rows: Iterable[Any]) -> None:
    """Write dataclasses, a line of JSON each, without fields that are None."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [asdict(row).items() for row in rows]
    srsly.write_jsonl(path, [{key: v for key, v in line if v is not None} for line in lines])


def read_lines(path: Path) -> list[dict[str, Any]]:
    """What `write_lines` wrote; empty where there is no file."""
    return list(srsly.read_jsonl(path)) if path.exists() else []
