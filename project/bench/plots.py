"""Plots: objective against time."""

from pathlib import Path
from typing import Any

from .publishing import new_figure, save

# In the order of the tools; colours that differ in lightness too.
_COLOURS = ("#0b6e4f", "#c8553d", "#3d5a98")
_FLOOR = 1e-6


def draw(race: dict[str, Any], best: float, title: str, path: Path) -> None:
    """Draw how far each tool's objective is above the best, over seconds, both on log scales.

    race: what the benchmark `objective` stores of a comparison; path: without its suffix, for a
    .png and an .svg file. Does nothing but say so where matplotlib is not installed.
    """
    figure = new_figure(7.0, 4.2)
    if figure is None:
        return
    axes = figure.add_subplot()
    for colour, (tool, runs) in zip(_COLOURS, race["runs"].items(), strict=False):
        for i, run in enumerate(runs):
            points = [
                (wall, max(objective / best - 1.0, _FLOOR))
                for wall, objective in zip(run["wall"], run["objective"], strict=True)
                if objective is not None
            ]
            label = tool if i == 0 else None
            axes.plot(*zip(*points, strict=True), color=colour, lw=1.4, alpha=0.8, label=label)
    axes.axhline(1e-3, color="0.5", lw=0.8, ls="--")
    axes.set(xscale="log", yscale="log", xlabel="seconds", title=title)
    axes.set_ylabel("(objective - best) / best")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    save(figure, path)
