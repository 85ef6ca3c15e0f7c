"""Reports and figures: made beside the stored figures, and put into the project."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from wasabi import msg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 120


def new_figure(width: float, height: float) -> "Figure | None":
    """A figure of so many inches; None, and a word of it, where matplotlib is not installed."""
    try:
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        msg.warn("matplotlib is not installed: no plots")
        return None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    return figure


def save(figure: "Figure", path: Path) -> None:
    """Write a .png and an .svg file; path: without suffix. Equal figures give equal files."""
    import matplotlib

    path.parent.mkdir(parents=True, exist_ok=True)
    # Neither dates nor random names of elements.
    with matplotlib.rc_context({"svg.hashsalt": "figures", "svg.fonttype": "none"}):
        figure.savefig(path.with_name(path.name + ".svg"), metadata={"Date": None})
    figure.savefig(path.with_name(path.name + ".png"), dpi=_DPI)


def publish(text: str, name: str, figures: Path, project: Path, plots: str, quick: bool) -> None:
    """Leave a report and its plots beside the figures; those of a full run in the project too.

    name: of the file; figures: directory with the plots; plots: the project's directory of plots.
    """
    (figures / name).write_text(text, encoding="utf-8")
    if quick:
        msg.warn(f"A trial: only {figures / name} is written")
        return
    (project / name).write_text(text, encoding="utf-8")
    (project / plots).mkdir(parents=True, exist_ok=True)
    for path in sorted([*figures.glob("*.svg"), *figures.glob("*.png")]):
        shutil.copy(path, project / plots / path.name)
    msg.good(f"{project / name}")
