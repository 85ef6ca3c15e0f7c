"""Write BENCHMARKS.md from the stored figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from . import crfpp, crfsuite, wapiti
from .kept import NOTHING, SEPARATOR, Kept, read_kept
from .machine import ABSENT
from .publishing import publish
from .records import Record, read_record
from .sections import SECTIONS, Section, body_of
from .tables import table
from .targets import render as render_targets

COMMAND = "python -m spacy project run bench project"
NAME = "BENCHMARKS.md"
PLOTS = "bench/plots"
_HEAD = """# Benchmarks

Written by `{command}`, and `bench-brown`; do not edit. Figures are medians of
alternating repetitions: ours, peer, ours, peer, ... Seconds are those of the clock, with seconds of
the processor, of all threads, in parentheses; M/s are millions of tokens a second. `x` says how
many times more the peer took. `>` marks runs that were cut off before they got there: lower bounds.
Repetitions of what was measured here are in `metrics/bench/`. A full run keeps sections, and rows
of targets, that were not measured again as they were published. Where training is compared the
penalty is l1 = 0.5, l2 = 0.00001, and there is no start label, which peers do not have.
"""
_QUICK = """
**A trial on samples of the data, with few repetitions: the figures mean nothing.**
"""


def read_records(directory: Path) -> dict[str, Record]:
    """Read the records that are there, by name of the benchmark."""
    paths = {section.name: directory / f"{section.name}.json" for section in SECTIONS}
    return {name: read_record(path) for name, path in paths.items() if path.exists()}


def machine_table(records: Mapping[str, Record], kept: Mapping[str, Sequence[str]]) -> str:
    """What the figures were measured on; where benchmarks differ in it, all that they say.

    kept: values of what was not measured again, by row; they come last.
    """
    found: dict[str, list[str]] = {name: [] for name in kept}
    for record in records.values():
        for name, value in _flat(record.machine).items():
            found.setdefault(name, []).append(value)
    for name, published in kept.items():
        found[name] += published
    rows = [[name, SEPARATOR.join(dict.fromkeys(values))] for name, values in found.items()]
    return table(["measured on", ""], rows)


def _flat(machine: Mapping[str, Any]) -> dict[str, str]:
    labels = {"memory_gb": "memory, GB", "wapiti_build": "Wapiti's build", "wapiti": "Wapiti"}
    labels |= {"crf_learn": "CRF++"}
    flat: dict[str, str] = {}
    for name, value in machine.items():
        if isinstance(value, dict):
            flat |= {str(key): str(version) for key, version in value.items()}
        else:
            flat[labels.get(name, name)] = str(value)
    if flat.get("Wapiti") == ABSENT:
        flat.pop("Wapiti's build", None)
    return flat


def absent_peers(record: Record) -> list[str]:
    """Peers that were not there when a record was made."""
    machine = record.machine
    absent = {
        wapiti.NAME: machine["wapiti"] == ABSENT,
        crfpp.NAME: machine["crf_learn"] == ABSENT,
        crfsuite.NAME: machine["packages"]["python-crfsuite"] == "not installed",
    }
    return [name for name, is_absent in absent.items() if is_absent]


def render(records: Mapping[str, Record], plots: list[str], kept: Kept = NOTHING) -> str:
    """The whole report; plots: names of .svg files; kept: what was published before."""
    parts = [_HEAD.format(command=COMMAND)]
    if any(record.quick for record in records.values()):
        parts.append(_QUICK)
    parts += [machine_table(records, kept.machine)]
    parts += ["\n## Targets\n", render_targets(records, kept.targets)]
    for section in SECTIONS:
        if section.name in records:
            parts.append(render_section(section, records[section.name], plots))
        elif section.title in kept.sections:
            parts.append("\n" + kept.sections[section.title])
    return "\n".join(parts).rstrip() + "\n"


def render_section(section: Section, record: Record, plots: list[str]) -> str:
    """Heading, text, tables, remarks, plots."""
    absent = [name for name in section.peers if name in absent_peers(record)]
    parts = [f"\n## {section.title}\n", section.text, "", body_of(section, record, absent)]
    settings = ", ".join(f"{name} {value}" for name, value in record.settings.items())
    parts += [f"\n{remark}" for remark in record.remarks]
    parts += [f"\nSettings: {settings}."] if settings else []
    if section.name == "objective":
        parts += [f"\n![{name.removesuffix('.svg')}]({PLOTS}/{name})" for name in plots]
    return "\n".join(parts)


def main(
    metrics: Annotated[Path, typer.Argument(help="Directory of the stored figures")],
    project: Annotated[Path, typer.Argument(help="Where BENCHMARKS.md belongs")],
) -> None:
    """Write the report; unless it is a trial, with what was published and not measured again."""
    metrics.mkdir(parents=True, exist_ok=True)
    records = read_records(metrics)
    plots = sorted(path.name for path in metrics.glob("*.svg"))
    quick = any(record.quick for record in records.values())
    titles = [section.title for section in SECTIONS if section.name not in records]
    kept = NOTHING if quick else read_kept(project / NAME, titles)
    publish(render(records, plots, kept), NAME, metrics, project, PLOTS, quick)


if __name__ == "__main__":
    typer.run(main)
