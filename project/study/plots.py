"""A figure for each race: gap and test error, against passes and against seconds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reports.plots import colours, label, new_figure, save

from .gaps import gaps

_FLOOR = 1e-9
_STYLES = ("-", "--", ":", "-.")


def draw(record: Mapping[str, Any], path: Path) -> None:
    """Draw a race.

    record: of `race`; path: without its suffix, for a .png and an .svg file. Does nothing but say
    so where matplotlib is not installed.
    """
    figure = new_figure(11.0, 7.6)
    if figure is None:
        return
    grid = figure.subplots(2, 2, sharey="row")
    names = list(record["courses"])
    for column, (axis, unit) in enumerate((("passes", "passes"), ("cpu", "processor seconds"))):
        for name, (colour, again) in colours(names).items():
            line = {"color": colour, "ls": _STYLES[again], "lw": 1.3, "label": name}
            draw_gaps(grid[0, column], record, name, axis, line)
            draw_errors(grid[1, column], record, name, axis, line)
        for row in (0, 1):
            label(grid[row, column], xscale="log", xlabel=unit)
    grid[0, 0].set(yscale="log", ylabel="(objective - minimum) / minimum")
    grid[1, 0].set_ylabel("wrong test labels, %")
    lowest = min(error for course in record["courses"].values() for _, error in course["errors"])
    grid[1, 0].set_ylim(0.97 * lowest, 1.6 * lowest)
    figure.suptitle(f"{record['race']}: l1 = {record['l1']:g}, l2 = {record['l2']:g}")
    figure.legend(*grid[1, 0].get_legend_handles_labels(), loc="outside right upper", frameon=False)
    save(figure, path)


def draw_gaps(
    axes: Any, record: Mapping[str, Any], name: str, axis: str, line: dict[str, Any]
) -> None:
    """Draw a contestant's gap to the minimum, where it minimises the objective."""
    if name in record["no_objective"] or not record["courses"][name]["passes"]:
        return
    heights = [max(value, _FLOOR) for value in gaps(record, name)]
    axes.plot(record["courses"][name][axis], heights, **line)


def draw_errors(
    axes: Any, record: Mapping[str, Any], name: str, axis: str, line: dict[str, Any]
) -> None:
    """Draw a contestant's test error."""
    course = record["courses"][name]
    points = [(course[axis][i], error) for i, error in course["errors"]]
    axes.plot([x for x, _ in points], [y for _, y in points], **line)
