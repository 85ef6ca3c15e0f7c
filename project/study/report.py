"""Write SOLVERS.md and the figures from the stored courses."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import srsly
import typer
from bench.publishing import publish
from bench.tables import number, table

from .contestants import RACES
from .gaps import AFTER, GAPS, error_after, final_error, lowest_gap, minimum, reached
from .plots import draw

COMMAND = "python -m spacy project run solvers project"
PLOTS = "study/plots"
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
_QUICK = """
**A trial on a few sequences: the figures mean nothing.**
"""


def read_courses(directory: Path) -> list[dict[str, Any]]:
    """Read the races that were run, in the order of the study."""
    paths = [directory / f"{race.name}.json" for race in RACES]
    return [srsly.read_json(path) for path in paths if path.exists()]


def shown(value: float | None, form: str = "") -> str:
    """A figure, or a dash."""
    if value is None:
        return "-"
    return format(value, form) if form else number(value)


def gap_rows(record: Mapping[str, Any]) -> list[list[str]]:
    """Of each contestant: passes and seconds to the gaps, the smallest gap, errors."""
    rows = []
    for name in record["courses"]:
        cells = [name, record["sources"][name]]
        if name in record["no_objective"]:
            cells += ["-"] * (2 * len(GAPS) + 1)
        else:
            for axis in ("passes", "cpu"):
                cells += [shown(reached(record, name, gap, axis)) for gap in GAPS]
            lowest = lowest_gap(record, name)
            cells.append("-" if lowest is None else f"{max(lowest, 1e-9):.0e}")
        cells += [shown(error_after(record, name, passes), ".2f") for passes in AFTER]
        rows.append([*cells, shown(final_error(record, name), ".2f")])
    return rows


def longer_runs(record: Mapping[str, Any]) -> str:
    """Who may take longer than the others."""
    names = [name for name, factor in record["longer"].items() if factor > 1.0]
    most = max(record["longer"].values(), default=1.0)
    return f", {most:g} times the seconds for {', '.join(names)}" if names else ""


def render_race(record: Mapping[str, Any]) -> str:
    """Heading, table and figure of a race."""
    header = [
        "",
        "after",
        *(f"passes to {gap:.0e}" for gap in GAPS),
        *(f"s to {gap:.0e}" for gap in GAPS),
        "smallest gap",
        *(f"error after {passes:g}" for passes in AFTER),
        "at the end",
    ]
    weights = "observed pairs only" if record["observed_only"] else f"{record['weights']:,} weights"
    text = (
        f"{record['sequences']:,} sequences, {record['tokens']:,} tokens, {record['labels']} "
        f"labels, {weights}; l1 = {record['l1']:g}, l2 = {record['l2']:g}; "
        f"minimum {minimum(record):.6f}; "
        f"at most {record['limits']['cap']:g} s and {record['limits']['most']:g} passes each"
        f"{longer_runs(record)}."
    )
    failures = [
        f"\n{name} gave up: {course['failure']}"
        for name, course in record["courses"].items()
        if course["failure"]
    ]
    tuned = [
        f"\n{name}: {setting}, the best power of ten after a tenth of the run."
        for name, setting in record.get("tuned", {}).items()
    ]
    picture = f"![{record['race']}]({PLOTS}/{record['race']}.svg)"
    return "\n".join(
        [
            f"\n## {record['race']}\n",
            text,
            "",
            table(header, gap_rows(record)),
            *tuned,
            *failures,
            "",
            picture,
        ]
    )


def render(records: Sequence[Mapping[str, Any]]) -> str:
    """The whole report."""
    parts = [_HEAD]
    if any(record["quick"] for record in records):
        parts.append(_QUICK)
    machines = {
        f"{machine['processor']}, {machine['date']}, commit {machine['commit']}": None
        for record in records
        for machine in (*record.get("earlier", []), record["machine"])
    }
    parts.append(f"Measured on: {'; '.join(machines)}.")
    parts += map(render_race, records)
    return "\n".join(parts).rstrip() + "\n"


def main(
    courses: Annotated[Path, typer.Argument(help="Directory of the stored courses")],
    project: Annotated[Path, typer.Argument(help="Where SOLVERS.md belongs")],
) -> None:
    """Write the report; that of a trial stays beside the courses."""
    records = read_courses(courses)
    text = render(records)
    for record in records:
        draw(record, courses / record["race"])
    is_trial = any(record["quick"] for record in records)
    publish(text, "SOLVERS.md", courses, project, PLOTS, is_trial)


if __name__ == "__main__":
    typer.run(main)
