"""Write BENCHMARKS.md from the rows of all benchmarks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from measure.document import Document, Published, read_published
from measure.machine import ABSENT
from measure.results import Row, is_trial, machines_of, read_rows
from measure.tables import read_rows as rows_of
from measure.tables import table

from . import targets
from .peers import CRFSUITE, WAPITI
from .record import Options, compared

Records = Mapping[str, Sequence[Row]]
TARGETS = "Targets"
_SEPARATOR = "; "


@dataclass(frozen=True)
class Benchmark:
    """A section of the report: heading, and the module that measures and makes its tables.

    peers: tools that may be missing; kind: suffix of the module's functions; row_names: number of
    leading cells that identify a row, to keep published rows without new figures; 0 = keep none.
    """

    title: str
    module: str
    peers: tuple[str, ...] = ()
    kind: str = ""
    row_names: int = 0

    def measure(self, options: Options) -> None:
        """Run the measurements."""
        getattr(import_module(f"bench.{self.module}"), f"measure{self.kind}")(options)

    def tables(self, rows: list[Row], absent: list[str]) -> list[str]:
        """Return the tables."""
        module = import_module(f"bench.{self.module}")
        found: list[str] = getattr(module, f"tables{self.kind}", compared)(rows, absent)
        return found


_W, _C = WAPITI, CRFSUITE
BENCHMARKS = {
    "agreement": Benchmark("The same problem", "agreement", (_W, _C)),
    "gradient": Benchmark("One gradient", "speed", (_W, _C), "_gradients"),
    "objective": Benchmark("Time to the best objective", "objective", (_W, _C)),
    "whole": Benchmark("Whole runs", "whole", (_C,), row_names=2),
    "sgd": Benchmark("An epoch of SGD-L1", "speed", (_W,), "_epochs"),
    "threads": Benchmark("Threads", "speed", (_W,), "_threads"),
    "memory": Benchmark("Peak memory of training", "memory", (_W,)),
    "decode": Benchmark("From Doc to labels", "decode", (_C,)),
    "templates": Benchmark("From Doc to features", "decode", kind="_features"),
    "startup": Benchmark("Start-up", "startup"),
    "kernels": Benchmark("Kernels and the machine's peaks", "kernels"),
    "floor": Benchmark("The chain and its floor", "floor"),
    "brown": Benchmark("Brown: 443 labels", "brown", (_W,)),
}
DOCUMENT = Document(
    "BENCHMARKS.md",
    "samples of the data, with few repetitions",
    "bench/plots",
    frozenset(one.title for one in BENCHMARKS.values()),
)


def machine_table(machines: Iterable[Mapping[str, Any]], kept: str) -> str:
    """Return a table of machine properties, with all values if sessions differ.

    kept: the published table, for values of rows that were not measured again; listed last.
    """
    published = {name: value.split(_SEPARATOR) for name, value in rows_of(kept)}
    found: dict[str, list[str]] = {name: [] for name in published}
    labels = {"memory_gb": "memory, GB", "wapiti_build": "Wapiti's build", "wapiti": "Wapiti"}
    for machine in machines:
        left_out = {"packages", "wapiti_build" if _lacks(machine, _W) else ""}
        for name, value in {**machine, **machine["packages"]}.items():
            if name not in left_out:
                found.setdefault(labels.get(name, name), []).append(str(value))
    for name, values in published.items():
        found[name] += values
    lines = [[name, _SEPARATOR.join(dict.fromkeys(values))] for name, values in found.items()]
    return table(["measured on", ""], lines)


def _lacks(machine: Mapping[str, Any], peer: str) -> bool:
    if peer == _W:
        return bool(machine["wapiti"] == ABSENT)
    return bool(machine["packages"]["python-crfsuite"] == "not installed")


def with_kept_rows(body: str, published: Sequence[str], row_names: int) -> str:
    """Return a table that also has the published rows that were not measured again."""
    kept = rows_of("\n".join(block for block in published if block.startswith("|")))
    rows = {tuple(row[:row_names]): row for row in (*kept, *rows_of(body))}
    lines = ("| " + " | ".join(row) + " |" for row in rows.values())
    return "\n".join([*body.splitlines()[:2], *lines])


def section_of(
    one: Benchmark, rows: list[Row], pictures: Sequence[str], kept: Sequence[str]
) -> list[str]:
    """Return tables, remarks, settings and plots; kept: paragraphs of the published section."""
    absent = [peer for peer in one.peers if _lacks(rows[-1]["session"]["machine"], peer)]
    body, *more = one.tables(rows, absent)
    if one.row_names:
        body = with_kept_rows(body, kept, one.row_names)
    given = rows[-1]["session"]["settings"].items()
    settings = ", ".join(f"{name} {value}" for name, value in given)
    told = [f"Settings: {settings}."] if settings else []
    notes = [row["remark"] for row in rows if "remark" in row]
    return [body, *more, *notes, *told, *pictures]


def render(records: Records, plots: Sequence[str], published: Published, trial: bool) -> str:
    """Return the whole report; plots: names without suffix."""
    everything = [row for rows in records.values() for row in rows]
    known = {} if trial else published.sections
    is_whole = all(name in records for name, one in BENCHMARKS.items() if one.title in known)
    kept = "" if trial or is_whole else published.measured
    wanted = "\n".join(published.sections.get(TARGETS, ()))
    sections = {TARGETS: [targets.render(records, wanted, trial)]}
    for name in records.keys() & BENCHMARKS.keys():
        pictures = [DOCUMENT.picture(plot) for plot in plots if name == "objective"]
        one, rows = BENCHMARKS[name], list(records[name])
        sections[one.title] = section_of(one, rows, pictures, known.get(one.title, ()))
    return DOCUMENT.render(published, machine_table(machines_of(everything), kept), sections, trial)


def write_report(options: Options) -> None:
    """Write the report; unless it is a trial, keep published rows that were not measured again."""
    metrics = options.folder / "metrics" / "bench"
    records = {name: read_rows(metrics / f"{name}.jsonl") for name in BENCHMARKS}
    records = {name: rows for name, rows in records.items() if rows}
    trial = is_trial(row for rows in records.values() for row in rows)
    plots = sorted(path.stem for path in metrics.glob("*.svg"))
    published = read_published(options.folder / DOCUMENT.name)
    text = render(records, plots, published, trial)
    DOCUMENT.publish(text, metrics, options.folder, trial)
