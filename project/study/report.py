"""Write SOLVERS.md and its plots from the stored courses."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import typer
from measure.document import Document, Metrics, Project, Published, measured_on, read_published
from measure.plots import label, line_styles, new_figure, save
from measure.results import Row, is_trial, machines_of, read_rows
from measure.tables import shown, table

from .contestants import RACES, Race

DOCUMENT = Document("SOLVERS.md", "a few sequences", "study/plots")
GAPS = (1e-2, 1e-4, 1e-6)
# Numbers of passes after which errors are compared.
AFTER = (1.0, 5.0, 20.0)
# Smaller gaps are drawn as this gap.
_FLOOR = 1e-9
# Formats a figure, "-" if it was never reached.
dashed = partial(shown, missing="-")


class Courses:
    """The courses of a race by contestant, and the lowest objective of all."""

    def __init__(self, race: Race, rows: Sequence[Row]) -> None:
        found = {row["name"]: row for row in rows}
        self.race, self.reference = race, found["reference"]
        self.contestants = [one for one in race.contestants if one.name in found]
        self.rows = {one.name: found[one.name] for one in self.contestants}
        self.skipped = {one.name for one in race.contestants if not one.objective}
        lowest = [self.reference["lowest"]]
        for name in self.rows.keys() - self.skipped:
            lowest += self.rows[name]["objective"]
        self.minimum = float(min(lowest))

    def gaps(self, name: str) -> list[float]:
        """Return (objective - minimum) / minimum after each step of a contestant."""
        return [value / self.minimum - 1.0 for value in self.rows[name]["objective"]]

    def reached(self, name: str, gap: float, axis: str) -> float | None:
        """Return passes, or seconds, until a contestant was within a gap; None = never."""
        pairs = zip(self.gaps(name), self.rows[name][axis], strict=True)
        return next((float(spent) for value, spent in pairs if value <= gap), None)

    def error_after(self, name: str, passes: float = float("inf")) -> float | None:
        """Return the last test error counted within this number of passes."""
        row = self.rows[name]
        found = [error for i, error in row["errors"] if row["passes"][i] <= passes]
        return found[-1] if found else None


def gap_rows(courses: Courses) -> list[list[str]]:
    """Return for each contestant: passes and seconds to the gaps, the smallest gap, errors."""
    rows = []
    for one in courses.contestants:
        cells = ["-"] * (2 * len(GAPS) + 1)
        if one.objective:
            axes = [(gap, axis) for axis in ("passes", "cpu") for gap in GAPS]
            cells = [dashed(courses.reached(one.name, *each)) for each in axes]
            lowest = min(courses.gaps(one.name), default=None)
            cells.append("-" if lowest is None else f"{max(lowest, _FLOOR):.0e}")
        errors = [courses.error_after(one.name, passes) for passes in (*AFTER, float("inf"))]
        rows.append([one.name, one.source, *cells, *(dashed(error, ".2f") for error in errors)])
    return rows


def section(courses: Courses) -> list[str]:
    """Return text, table, remarks and plot of a race."""
    header = ["", "after"]
    header += [f"{axis} to {gap:.0e}" for axis in ("passes", "s") for gap in GAPS]
    header += ["smallest gap", *(f"error after {passes:g}" for passes in AFTER), "at the end"]
    rows = courses.rows.values()
    told = [
        f"{row['tuned']}, the best power of ten after a tenth of the run."
        for row in rows
        if row["tuned"]
    ]
    told += [f"{row['name']} gave up: {row['failure']}" for row in rows if row["failure"]]
    picture = DOCUMENT.picture(courses.race.name)
    return [describe_race(courses), table(header, gap_rows(courses)), *told, picture]


def describe_race(courses: Courses) -> str:
    """Return a description of the problem and the limits."""
    given = (list(courses.rows.values()) or [courses.reference])[-1]["session"]["settings"]
    longer = [name for name, row in courses.rows.items() if row["longer"] > 1.0]
    most = max((row["longer"] for row in courses.rows.values()), default=1.0)
    weights = f"{given['potential weights']:,} weights"
    return (
        f"{given['sentences']:,} sequences, {given['tokens']:,} tokens, {given['labels']} labels, "
        f"{'observed pairs only' if courses.race.observed_only else weights}; "
        f"l1 = {given['l1']:g}, l2 = {given['l2']:g}; minimum {courses.minimum:.6f}; "
        f"at most {given['cap']:g} s and {given['most']:g} passes each"
        + (f", {most:g} times the seconds for {', '.join(longer)}." if longer else ".")
    )


def draw(courses: Courses, path: Path) -> None:
    """Draw gap and test error against passes and seconds; path: without suffix."""
    figure = new_figure(11.0, 7.6)
    if figure is None:
        return
    grid = figure.subplots(2, 2, sharey="row")
    styles = line_styles(list(courses.rows))
    for column, (axis, unit) in enumerate((("passes", "passes"), ("cpu", "processor seconds"))):
        for name, row in courses.rows.items():
            line = {**styles[name], "lw": 1.3}
            if name not in courses.skipped and row["passes"]:
                heights = [max(value, _FLOOR) for value in courses.gaps(name)]
                grid[0, column].plot(row[axis], heights, **line)
            points = [(row[axis][i], error) for i, error in row["errors"]]
            grid[1, column].plot([x for x, _ in points], [y for _, y in points], **line)
        for each in grid[:, column]:
            label(each, xscale="log", xlabel=unit)
    grid[0, 0].set(yscale="log", ylabel="(objective - minimum) / minimum")
    grid[1, 0].set_ylabel("wrong test labels, %")
    lowest = min(error for row in courses.rows.values() for _, error in row["errors"])
    grid[1, 0].set_ylim(0.97 * lowest, 1.6 * lowest)
    penalty = courses.race.penalty
    figure.suptitle(f"{courses.race.name}: l1 = {penalty.l1:g}, l2 = {penalty.l2:g}")
    figure.legend(*grid[1, 0].get_legend_handles_labels(), loc="outside right upper", frameon=False)
    save(figure, path)


def render(records: Mapping[str, Courses], published: Published, trial: bool) -> str:
    """Return the report; published sections of races that were not run again are kept."""
    rows = [row for courses in records.values() for row in courses.rows.values()]
    others = not trial and published.sections.keys() - records.keys()
    measured = measured_on(machines_of(rows), published.measured if others else "")
    sections = {name: section(courses) for name, courses in records.items()}
    return DOCUMENT.render(published, measured, sections, trial)


def main(metrics: Metrics, project: Project) -> None:
    """Write the report; a trial writes it next to the courses."""
    files = [(race, read_rows(metrics / f"{race.name}.jsonl")) for race in RACES]
    records = {race.name: Courses(race, rows) for race, rows in files if rows}
    trial = is_trial(courses.reference for courses in records.values())
    for name, courses in records.items():
        draw(courses, metrics / name)
    text = render(records, read_published(project / DOCUMENT.name), trial)
    DOCUMENT.publish(text, metrics, project, trial)


if __name__ == "__main__":
    typer.run(main)
