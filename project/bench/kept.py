"""What a published report says of benchmarks that were not run again."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SEPARATOR = "; "
_TARGETS = "Targets"


@dataclass(frozen=True)
class Kept:
    """What to keep of a report.

    machine: values of each row of the table of the machine; targets: rows, by first cell;
    sections: texts, headings included, by title.
    """

    machine: Mapping[str, Sequence[str]]
    targets: Mapping[str, Sequence[str]]
    sections: Mapping[str, str]


NOTHING = Kept({}, {}, {})


def read_kept(path: Path, titles: Collection[str]) -> Kept:
    """Read what to keep; titles: of the sections that were not measured again."""
    if not path.exists():
        return NOTHING
    head, *blocks = re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = {block.split("\n", 1)[0].strip(): block for block in blocks}
    sections = {title: f"## {found[title].rstrip()}" for title in titles if title in found}
    # Without a section to keep, nothing in the report comes from the machine of that time.
    if not sections:
        return NOTHING
    machine = {name: value.split(SEPARATOR) for name, value in _rows(head)}
    return Kept(machine, {row[0]: row for row in _rows(found.get(_TARGETS, ""))}, sections)


def _rows(text: str) -> list[list[str]]:
    """The rows of the only table in a text, without its header."""
    lines = [line.strip() for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines[2:]]
