"""Plots: figures of matplotlib, where it is installed, as .png and .svg files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


def colours(names: Sequence[str]) -> Mapping[str, tuple[Any, int]]:
    """A colour for each name, and how often the ten that there are had been given before."""
    import matplotlib

    table = matplotlib.colormaps["tab10"].colors  # type: ignore[attr-defined]
    return {name: (table[i % len(table)], i // len(table)) for i, name in enumerate(names)}


def label(axes: Any, **settings: Any) -> None:
    """Set scales, labels and title, and draw a grid."""
    axes.set(**settings)
    axes.grid(alpha=0.25)


def save(figure: "Figure", path: Path) -> None:
    """Write a .png and an .svg file; path: without suffix. Equal figures give equal files."""
    import matplotlib

    path.parent.mkdir(parents=True, exist_ok=True)
    # Neither dates nor random names of elements.
    with matplotlib.rc_context({"svg.hashsalt": "figures", "svg.fonttype": "none"}):
        figure.savefig(path.with_name(path.name + ".svg"), metadata={"Date": None})
    figure.savefig(path.with_name(path.name + ".png"), dpi=_DPI)
