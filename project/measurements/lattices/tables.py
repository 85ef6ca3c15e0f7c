"""The tables and plots of LATTICES.md, from the stored courses."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from measure.plots import label, line_styles, new_figure, save
from measure.report import Records, Report, Sections, percent, shown, tabulate
from measure.results import Row

from .pictures import NOISES
from .race import OPTIMISERS

METHODS = {
    "lbp": "loopy belief propagation",
    "mean_field": "mean field",
    "pseudo_likelihood": "pseudo-likelihood",
}
# Tolerances relative to the lowest objective of L-BFGS: "near", and a looser one.
_NEAR, _ROUGH = 1e-3, 1e-2


class Race:
    """The courses for one type of noise and one inference method.

    lowest: the lowest objective of L-BFGS. RAISES: LookupError if L-BFGS was not run.
    """

    def __init__(self, rows: Sequence[Row], method: str) -> None:
        self.courses = [row for row in rows if row.get("method") == method]
        self.method = method
        (batch,) = self.of("L-BFGS")
        self.lowest = min(batch["objective"])

    def of(self, name: str) -> list[Row]:
        """Return the courses of an optimiser. RAISES: LookupError if there is none."""
        found = [course for course in self.courses if course["optimiser"] == name]
        if not found:
            raise LookupError(name)
        return found

    def best(self, name: str) -> Row:
        """Return an optimiser's course with the best gain: first to be near, or lowest end."""
        return min(self.of(name), key=lambda each: (self.near(each), each["objective"][-1]))

    def near(self, course: Row, share: float = _NEAR) -> float:
        """Return passes to within a tolerance of the lowest objective; infinite if not reached."""
        goal = self.lowest * (1.0 + share)
        pairs = zip(course["passes"], course["objective"], strict=True)
        return next((passes for passes, value in pairs if value <= goal), np.inf)

    def end(self, course: Row) -> str:
        """Return the last objective, and remarks on stability and on L-BFGS before convergence."""
        if course["failure"]:
            return "below 0" if "SC376" in course["failure"] else "unstable"
        before, last = course["objective"][-2:]
        if course["failure"] or max(course["objective"]) > course["objective"][0]:
            return f"{last:.2f}, once above the first"
        falls = course["optimiser"] == "L-BFGS" and before > last * (1.0 + _NEAR)
        return f"{last:.2f}" + (", still falling" if falls else "")


def _passes(value: float) -> str:
    return "–" if np.isinf(value) else f"{value:g}"


def noise_section(noise: str, rows: Sequence[Row]) -> list[str]:
    """Return the section on one type of noise."""
    (nodes,) = (row for row in rows if row["name"] == "nodes")
    settings = nodes["session"]["settings"]
    blocks = [
        f"Logistic regression on nodes alone: {percent(nodes['logistic'])} % of the test pixels "
        "are wrong."
    ]
    for method in dict.fromkeys(row["method"] for row in rows if "method" in row):
        race, name = Race(rows, method), METHODS[method]
        columns: dict[str, Callable[[Row], str]] = {
            "": lambda course: course["optimiser"],
            "gain": lambda course: f"{course['eta']:g}" if course["eta"] else "",
            "objective": race.end,
            f"passes to within {_ROUGH:.0%} of L-BFGS": lambda course, race=race: _passes(
                race.near(course, _ROUGH)
            ),
            f"to {_NEAR:.1%}": lambda course, race=race: _passes(race.near(course)),
            "test error, %": lambda course: percent(course["errors"][-1][1]),
            "CPU s": lambda course: shown(course["cpu"][-1], ".0f"),
            "most pictures not converged": lambda course: str(max(course["open"])),
        }
        title = f"**{name[0].upper()}{name[1:]}**, {settings['passes']} passes, of L-BFGS at most "
        blocks += [title + "twice as many:", tabulate(race.courses, columns)]
    text = f"Objective and test error against passes, {noise} noise"
    return [*blocks, f"![{text}](lattices/plots/{noise}-courses.png)"]


# Plots


def draw_courses(rows: Sequence[Row], path: Path) -> None:
    """Draw objective and test error against passes, each with its best gain, as in figure 4."""
    ran = list(dict.fromkeys(row["method"] for row in rows if "method" in row))
    figure = new_figure(8.0, 3.0 * len(ran))
    if figure is None:
        return
    styles, most = line_styles(OPTIMISERS), rows[0]["session"]["settings"]["passes"]
    for (left, right), method in zip(figure.subplots(len(ran), 2, squeeze=False), ran, strict=True):
        race, name = Race(rows, method), METHODS[method]
        names = {course["optimiser"] for course in race.courses}
        for one in (name for name in OPTIMISERS if name in names):
            course = race.best(one)
            text = f"{one}, {course['eta']:g}" if one != "L-BFGS" else one
            style = {**styles[one], "label": text}
            left.plot(course["passes"], course["objective"], **style)
            at, errors = zip(*course["errors"], strict=True)
            right.plot([course["passes"][i] for i in at], errors, **style)
        start, lowest = race.courses[0]["objective"][0], race.lowest
        # The Bethe approximation is not a bound, so its objective may fall below zero.
        scale = "log" if lowest > 0.0 else "symlog"
        label(left, xlabel="passes", ylabel="training objective", title=name, yscale=scale)
        left.set(ylim=(lowest - 0.01 * abs(lowest), 1.05 * start), xlim=(0.0, most))
        label(right, xlabel="passes", ylabel="wrong test pixels, %", title=name, yscale="log")
        right.set(xlim=(0.0, most))
        left.legend(frameon=False, fontsize="small")
    save(figure, path)


def sections(records: Records, published: Sections) -> Sections:
    """Return a section for each type of noise."""
    return {f"{n.capitalize()} noise": noise_section(n, records[n]) for n in NOISES if n in records}


def draw(records: Records, folder: Path) -> None:
    """Draw the courses of each type of noise."""
    for noise in (noise for noise in NOISES if noise in records):
        draw_courses(records[noise], folder / f"{noise}-courses.png")


REPORT = Report("LATTICES.md", "small pictures", sections, draw=draw)
