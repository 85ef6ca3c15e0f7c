"""The figure: phoneme error against active weights, ours and the paper's."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reports.plots import colours, label, new_figure, save

from .experiments import FAMILIES, phonemes, structured
from .figures import Figures
from .paper import PUBLISHED
from .sections import family_of, grm, method_of

_MARKERS = {"OWL-QN": "o", "SGD-L1": "s", "BCD": "^", "OWL-QN, as published": "D"}
_STAGED = "in stages, by labels"


def points(known: Mapping[str, Figures]) -> list[tuple[str, str, float, float]]:
    """Feature set, series, active weights, and error of each point."""
    found: list[tuple[str, str, float, float]] = []

    def add(name: str, series: str) -> None:
        one = known.get(name)
        if one is not None and one.active is not None:
            found.append((family_of(name), series, one.active, one.test))

    for name in (one.name for one in phonemes()):
        add(name, method_of(name))
        paper = PUBLISHED.get(name)
        if paper is not None and paper.active:
            found.append((family_of(name), f"{method_of(name)}, paper", paper.active, paper.error))
    for name in (one.name for one in structured() if one.name.endswith("-by-labels")):
        add(name, _STAGED)
    return found


def draw(known: Mapping[str, Figures], path: Path) -> None:
    """Draw the figure.

    path: without its suffix, for a .png and an .svg file. Does nothing but say so where matplotlib
    is not installed.
    """
    figure = new_figure(9.0, 5.6)
    if figure is None:
        return
    axes = figure.subplots()
    given = {family: colour for family, (colour, _) in colours(list(map(grm, FAMILIES))).items()}
    for family, series, n_active, error in points(known):
        axes.plot(n_active, error, ls="", ms=8, **_marks(given[family], series))
    _legend(axes, given, {series for _, series, _, _ in points(known)})
    label(axes, xscale="log", xlabel="active weights", ylabel="wrong phonemes of the test part, %")
    save(figure, path)


def _marks(colour: Any, series: str) -> dict[str, Any]:
    """How a point looks: hollow where it is the paper's."""
    is_paper = series.endswith(", paper")
    marker = _MARKERS.get(series.removesuffix(", paper"), "*")
    face = "none" if is_paper else colour
    return {"marker": marker, "markeredgecolor": colour, "markerfacecolor": face}


def _legend(axes: Any, given: Mapping[str, Any], series: set[str]) -> None:
    for family, colour in given.items():
        axes.plot([], [], ls="", marker="o", color=colour, label=family)
    for name in sorted(series):
        axes.plot([], [], ls="", ms=8, label=name, **_marks("0.3", name))
    axes.legend(frameon=False, fontsize="small")
