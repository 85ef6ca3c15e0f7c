"""The tables and plots of SOLVERS.md, from the stored courses."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from measure.plots import label, line_styles, new_figure, save
from measure.report import Records, Report, Sections, shown, table
from measure.results import Row

from .contestants import RACES, Race

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
    picture = f"![{courses.race.name}](study/plots/{courses.race.name}.png)"
    return [describe_race(courses), table(header, gap_rows(courses)), *told, picture]


def describe_race(courses: Courses) -> str:
    """Return a description of the problem and the limits."""
    given = (list(courses.rows.values()) or [courses.reference])[-1]["session"]["settings"]
    longer = [name for name, row in courses.rows.items() if row["longer"] > 1.0]
    most = max((row["longer"] for row in courses.rows.values()), default=1.0)
    weights = "observed" if courses.race.observed_only else f"{given['potential weights']:,}"
    return (
        f"{given['sentences']:,} sequences, {given['tokens']:,} tokens, {given['labels']} labels, "
        f"{weights} weights; "
        f"l1 = {given['l1']:g}, l2 = {given['l2']:g}; minimum {courses.minimum:.6f}; "
        f"at most {given['cap']:g} s and {given['most']:g} passes each"
        + (f", {most:g} times the seconds for {', '.join(longer)}." if longer else ".")
    )


def draw(courses: Courses, path: Path) -> None:
    """Draw gap and test error against passes and seconds; path: of the .png file."""
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


def courses_of(records: Records) -> Iterator[Courses]:
    """Yield the courses of each race that has been run."""
    for race in RACES:
        if race.name in records:
            yield Courses(race, records[race.name])


def sections(records: Records, published: Sections) -> Sections:
    """Return a section for each race."""
    return {courses.race.name: section(courses) for courses in courses_of(records)}


def draw_all(records: Records, folder: Path) -> None:
    """Draw each race."""
    for courses in courses_of(records):
        draw(courses, folder / f"{courses.race.name}.png")


REPORT = Report("SOLVERS.md", "a few sequences", sections, draw=draw_all)
