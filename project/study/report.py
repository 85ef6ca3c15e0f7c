"""Write SOLVERS.md and its plots from the stored courses."""

from collections.abc import Iterator, Mapping
from functools import partial

import typer
from reports.document import NOTHING, Document, Metrics, Project, Published, Section, read_published
from reports.records import Stored, is_trial, read_records
from reports.tables import shown, table

from .contestants import RACES
from .gaps import AFTER, GAPS, error_after, final_error, lowest_gap, minimum, reached
from .plots import draw

COMMAND = "python -m spacy project run solvers project"
_HEAD = f"""# The solvers compared

Written by `{COMMAND}`; do not edit. What follows from it is in
[docs/solvers.md](../docs/solvers.md).

All start from weights of zero, on one thread. A gap is (objective - minimum) / minimum, the minimum
being the lowest objective of all, and of a longer run. A pass is an evaluation of every sequence,
or as many of single ones; forward passes of line searches count, and so do products with the
Hessian. The evaluation by which a stochastic solver reports is not counted, but its time is.
Seconds are of the processor. Trials of settings are not counted. A dash: not reached before the run
ended: at its limit, or after two steps running that did not lower the objective.
"""
DOCUMENT = Document("SOLVERS.md", _HEAD, "a few sequences", "study/plots")
_MEASURED = "Measured on: "
# What was never reached.
dashed = partial(shown, missing="-")


def gap_rows(record: Stored) -> list[list[str]]:
    """Of each contestant: passes and seconds to the gaps, the smallest gap, errors."""
    rows = []
    for name in record["courses"]:
        cells = [name, record["sources"][name]]
        if name in record["no_objective"]:
            cells += ["-"] * (2 * len(GAPS) + 1)
        else:
            for axis in ("passes", "cpu"):
                cells += [dashed(reached(record, name, gap, axis)) for gap in GAPS]
            lowest = lowest_gap(record, name)
            cells.append("-" if lowest is None else f"{max(lowest, 1e-9):.0e}")
        cells += [dashed(error_after(record, name, passes), ".2f") for passes in AFTER]
        rows.append([*cells, dashed(final_error(record, name), ".2f")])
    return rows


def longer_runs(record: Stored) -> str:
    """Who may take longer than the others."""
    names = [name for name, factor in record["longer"].items() if factor > 1.0]
    most = max(record["longer"].values(), default=1.0)
    return f", {most:g} times the seconds for {', '.join(names)}" if names else ""


def render_race(record: Stored) -> Section:
    """Text, table, remarks and plot of a race."""
    header = [
        "",
        "after",
        *(f"passes to {gap:.0e}" for gap in GAPS),
        *(f"s to {gap:.0e}" for gap in GAPS),
        "smallest gap",
        *(f"error after {passes:g}" for passes in AFTER),
        "at the end",
    ]
    tuned = [
        f"{name}: {setting}, the best power of ten after a tenth of the run."
        for name, setting in record.get("tuned", {}).items()
    ]
    failures = [
        f"{name} gave up: {course['failure']}"
        for name, course in record["courses"].items()
        if course["failure"]
    ]
    rows = table(header, gap_rows(record))
    picture = DOCUMENT.picture(record["race"])
    return Section(record["race"], (describe_race(record), rows, *tuned, *failures, picture))


def describe_race(record: Stored) -> str:
    """The problem, and the limits."""
    weights = "observed pairs only" if record["observed_only"] else f"{record['weights']:,} weights"
    return (
        f"{record['sequences']:,} sequences, {record['tokens']:,} tokens, {record['labels']} "
        f"labels, {weights}; l1 = {record['l1']:g}, l2 = {record['l2']:g}; "
        f"minimum {minimum(record):.6f}; "
        f"at most {record['limits']['cap']:g} s and {record['limits']['most']:g} passes each"
        f"{longer_runs(record)}."
    )


def measured_on(records: Mapping[str, Stored], kept: str) -> str:
    """All machines; kept: the head of a report whose races are kept: its machines come last."""
    machines = [
        f"{machine['processor']}, {machine['date']}, commit {machine['commit']}"
        for record in records.values()
        for machine in (*record.get("earlier", []), record["machine"])
    ]
    for line in kept.splitlines():
        if line.startswith(_MEASURED):
            machines += line.removeprefix(_MEASURED).removesuffix(".").split("; ")
    return f"{_MEASURED}{'; '.join(dict.fromkeys(machines))}."


def render(records: Mapping[str, Stored], kept: Published = NOTHING) -> str:
    """The whole report; kept: what was published before of races that were not run again."""
    names = [race.name for race in RACES]
    others = [name for name in names if name not in records and name in kept.sections]
    measured = measured_on(records, kept.head if others else "")
    return DOCUMENT.render(measured, _sections(records, kept), is_trial(records))


def _sections(records: Mapping[str, Stored], kept: Published) -> Iterator[Section | str]:
    for name in dict.fromkeys([*(race.name for race in RACES), *records]):
        if name in records:
            yield render_race(records[name])
        elif name in kept.sections:
            yield kept.sections[name]


def main(metrics: Metrics, project: Project) -> None:
    """Write the report, with what was published of races that were not run again; that of a trial
    has none of them, and stays beside the courses.
    """
    metrics.mkdir(parents=True, exist_ok=True)
    records = read_records(metrics, [race.name for race in RACES])
    trial = is_trial(records)
    for name, record in records.items():
        draw(record, metrics / name)
    kept = NOTHING if trial else read_published(project / DOCUMENT.name)
    DOCUMENT.publish(render(records, kept), metrics, project, trial)


if __name__ == "__main__":
    typer.run(main)
