"""Plots: matplotlib figures saved as .png and .svg files, skipped without matplotlib."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wasabi import msg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 120
_STYLES = ("-", "--", ":", "-.")


def new_figure(width: float, height: float) -> "Figure | None":
    """Return a figure, with its size in inches; without matplotlib, warn and return None."""
    try:
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure
    except ImportError:
        msg.warn("matplotlib is not installed: no plots")
        return None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    return figure


def line_styles(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return a colour, a line style and a label for each name."""
    import matplotlib

    table = matplotlib.colormaps["tab10"].colors  # type: ignore[attr-defined]
    return {
        name: {"color": table[i % len(table)], "ls": _STYLES[i // len(table)], "label": name}
        for i, name in enumerate(names)
    }


def label(axes: Any, **settings: Any) -> None:
    """Set scales, labels and title, and draw a grid."""
    axes.set(**settings)
    axes.grid(alpha=0.25)


def save(figure: "Figure", path: Path) -> None:
    """Write reproducible .png and .svg files; path: without suffix."""
    import matplotlib

    path.parent.mkdir(parents=True, exist_ok=True)
    # No dates, and no random names of elements.
    with matplotlib.rc_context({"svg.hashsalt": "figures", "svg.fonttype": "none"}):
        figure.savefig(path.with_name(path.name + ".svg"), metadata={"Date": None})
    figure.savefig(path.with_name(path.name + ".png"), dpi=_DPI)
