"""Write BENCHMARKS.md from the stored figures."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from reports.document import NOTHING, Document, Metrics, Project, Published, Section, read_published
from reports.machine import ABSENT
from reports.records import read_records
from reports.tables import read_rows, table

from . import crfpp, crfsuite, wapiti
from .measurements import Record, record_of
from .sections import SECTIONS, Benchmark, body_of
from .targets import render as render_targets

COMMAND = "python -m spacy project run bench project"
_HEAD = f"""# Benchmarks

Written by `{COMMAND}`, and `bench-brown`; do not edit. Figures are medians of
alternating repetitions: ours, peer, ours, peer, ... Seconds are those of the clock, with seconds of
the processor, of all threads, in parentheses; M/s are millions of tokens a second. `x` says how
many times more the peer took. `>` marks runs that were cut off before they got there: lower bounds.
Repetitions of what was measured here are in `metrics/bench/`. A full run keeps sections, and rows
of targets, that were not measured again as they were published. Where training is compared the
penalty is l1 = 0.5, l2 = 0.00001, and there is no start label, which peers do not have.
"""
DOCUMENT = Document(
    "BENCHMARKS.md", _HEAD, "samples of the data, with few repetitions", "bench/plots"
)
_TARGETS = "Targets"
_SEPARATOR = "; "


def read(directory: Path) -> dict[str, Record]:
    """Read the records that are there, by name of the benchmark."""
    stored = read_records(directory, [section.name for section in SECTIONS])
    return {name: record_of(record) for name, record in stored.items()}


def machine_table(records: Mapping[str, Record], kept: str) -> str:
    """What the figures were measured on; where benchmarks differ in it, all that they say.

    kept: the table of what was not measured again, whose values come last.
    """
    published = {name: value.split(_SEPARATOR) for name, value in read_rows(kept)}
    found: dict[str, list[str]] = {name: [] for name in published}
    for record in records.values():
        for name, value in _flat(record.machine).items():
            found.setdefault(name, []).append(value)
    for name, values in published.items():
        found[name] += values
    rows = [[name, _SEPARATOR.join(dict.fromkeys(values))] for name, values in found.items()]
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


def render(records: Mapping[str, Record], plots: Sequence[str], kept: Published = NOTHING) -> str:
    """The whole report; plots: names of .svg files; kept: what was published before."""
    titles = {one.title for one in SECTIONS if one.name not in records}
    # Without a section to keep, nothing in the report comes from what was published.
    kept = kept if titles & kept.sections.keys() else NOTHING
    trial = any(record.quick for record in records.values())
    return DOCUMENT.render(
        machine_table(records, kept.head), _sections(records, plots, kept), trial
    )


def _sections(
    records: Mapping[str, Record], plots: Sequence[str], kept: Published
) -> Iterator[Section | str]:
    """Targets, then the benchmarks; those that were not run as they are published."""
    targets = {row[0]: row for row in read_rows(kept.sections.get(_TARGETS, ""))}
    yield Section(_TARGETS, (render_targets(records, targets),))
    for one in SECTIONS:
        if one.name in records:
            yield section_of(one, records[one.name], plots, kept.sections.get(one.title, ""))
        elif one.title in kept.sections:
            yield kept.sections[one.title]


def with_kept_rows(body: str, published: str, row_names: int) -> str:
    """A table, with the rows of a published one where they are not measured again.

    row_names: cells that name a row.
    """
    rows = {tuple(row[:row_names]): row for row in read_rows(published)}
    rows |= {tuple(row[:row_names]): row for row in read_rows(body)}
    header = body.splitlines()[:2]
    return "\n".join([*header, *("| " + " | ".join(row) + " |" for row in rows.values())])


def section_of(one: Benchmark, record: Record, plots: Sequence[str], kept: str = "") -> Section:
    """Text, tables, remarks, plots; kept: the section as it is published."""
    absent = [name for name in one.peers if name in absent_peers(record)]
    settings = ", ".join(f"{name} {value}" for name, value in record.settings.items())
    told = [f"Settings: {settings}."] if settings else []
    pictures = plots if one.name == "objective" else ()
    pictures = [DOCUMENT.picture(name.removesuffix(".svg")) for name in pictures]
    body = body_of(one, record, absent)
    if one.row_names:
        body = with_kept_rows(body, kept, one.row_names)
    return Section(one.title, (one.text, body, *record.remarks, *told, *pictures))


def main(metrics: Metrics, project: Project) -> None:
    """Write the report; unless it is a trial, with what was published and not measured again."""
    metrics.mkdir(parents=True, exist_ok=True)
    records = read(metrics)
    trial = any(record.quick for record in records.values())
    plots = sorted(path.name for path in metrics.glob("*.svg"))
    kept = NOTHING if trial else read_published(project / DOCUMENT.name)
    DOCUMENT.publish(render(records, plots, kept), metrics, project, trial)


if __name__ == "__main__":
    typer.run(main)
