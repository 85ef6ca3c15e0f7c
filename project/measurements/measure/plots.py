"""Plots: matplotlib figures saved as .png files, skipped without matplotlib."""

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
        from matplotlib.figure import Figure
    except ImportError:
        msg.warn("matplotlib is not installed: no plots")
        return None
    return Figure(figsize=(width, height), layout="constrained")


def line_styles(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return a colour, a line style and a label for each name."""
    import matplotlib

    colours = matplotlib.colormaps["tab10"].colors  # type: ignore[attr-defined]
    return {
        name: {"color": colours[i % len(colours)], "ls": _STYLES[i // len(colours)], "label": name}
        for i, name in enumerate(names)
    }


def label(axes: Any, **settings: Any) -> None:
    """Set scales, labels and title, and draw a grid."""
    axes.set(**settings)
    axes.grid(alpha=0.25)


def save(figure: "Figure", path: Path) -> None:
    """Write a plot; path: of the .png file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=_DPI)
