"""The look of all pictures: SVG files whose colours follow the scheme of a page, light or dark."""

import re
from html import escape
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Colours by name: in the light scheme, which charts are drawn with, and in the dark one.
COLOURS = {
    "ink": ("#1f2328", "#e6edf3"),
    "faint": ("#b9c0c9", "#5f6874"),
    "ours": ("#1f66b5", "#6cb0f5"),
    "crfsuite": ("#b4530a", "#f2a65a"),
    "spacy": ("#767c85", "#9aa1ab"),
    "other": ("#8b3fa0", "#d49be6"),
    "paper": ("#fefefe", "#1e2129"),
}
# Tools keep their colours in all pictures; OTHER is for a second line of ours.
INK, FAINT, OURS, CRFSUITE, SPACY, OTHER, PAPER = (light for light, _ in COLOURS.values())
# Units of a picture's width, and pixels that a page shows them in. Letters have 14 units.
WIDTH, SHOWN, SIZE = 400, 480, 14
FONT = "system-ui, sans-serif"
_SPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
_HEAD = re.compile(r"^.*?(?=<svg)", flags=re.DOTALL)
_ROOT = re.compile(r"<svg\b[^>]*viewBox=\"0 0 ([\d.]+) ([\d.]+)\"[^>]*>")


def style() -> str:
    """Return the style block: a variable for each colour in both schemes."""
    parts = [[f"--{name}:{both[i]};" for name, both in COLOURS.items()] for i in (0, 1)]
    light, dark = map("".join, parts)
    return f"<style>svg{{{light}}}@media (prefers-color-scheme:dark){{svg{{{dark}}}}}</style>"


def new_chart(height: int, panels: int = 1, **more: Any) -> "tuple[Figure, list[Any]]":
    """Return a chart and its panels, one below the other; height: in units."""
    import matplotlib
    from matplotlib.figure import Figure

    settings = {"svg.fonttype": "none", "svg.hashsalt": "pictures", "font.size": SIZE}
    settings |= dict.fromkeys(("axes.labelcolor", "text.color", "xtick.color", "ytick.color"), INK)
    settings |= {"axes.edgecolor": FAINT, "grid.color": FAINT, "axes.titlelocation": "left"}
    settings |= {"axes.titlesize": SIZE, "axes.spines.top": False, "axes.spines.right": False}
    matplotlib.rcParams.update(settings)
    figure = Figure(figsize=(WIDTH / 72, height / 72), layout="constrained")
    return figure, list(figure.subplots(panels, squeeze=False, **more)[:, 0])


def save_chart(figure: "Figure", path: Path, title: str) -> None:
    """Write a chart; title: for readers who do not see it."""
    text = StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(text, format="svg", transparent=True, metadata=nothing)
    svg = re.sub(r"<(metadata|style)\b.*?</\1>|<!--.*?-->", "", text.getvalue(), flags=re.DOTALL)
    svg = re.sub(r"'DejaVu Sans'[^;\"]*", FONT, _HEAD.sub("", svg))
    save_svg(svg, path, title)


def element(name: str, content: str = "", **attributes: object) -> str:
    """Return an element; `stroke_width=2` is the attribute `stroke-width="2"`."""
    given = " ".join(f'{key.replace("_", "-")}="{value}"' for key, value in attributes.items())
    return f"<{name} {given}>{content}</{name}>" if content else f"<{name} {given}/>"


def text(x: float, y: float, content: str, fill: str = INK, size: int = SIZE, **more: Any) -> str:
    """Return a text; anchor: start, middle or end; other attributes as for `element`."""
    given = {"x": round(x, 1), "y": round(y, 1), "fill": fill, "font_size": size}
    return element("text", escape(content), **given, **more)


def save_diagram(parts: list[str], height: int, path: Path, title: str) -> None:
    """Write a picture of elements."""
    view = f'<svg viewBox="0 0 {WIDTH} {height}">\n'
    body = element("g", "\n".join(parts), font_family=FONT)
    save_svg(f"{view}{body}\n</svg>", path, title)


def save_svg(svg: str, path: Path, title: str) -> None:
    """Write a picture whose colours are those of the light scheme."""
    for name, (light, _) in COLOURS.items():
        svg = svg.replace(light, f"var(--{name})")
    head = f'<svg {_SPACES} viewBox="0 0 \\1 \\2" width="{SHOWN}" role="img">'
    # A background, because a page may be light on a dark system.
    paper = '<rect width="100%" height="100%" fill="var(--paper)"/>'
    head += f"<title>{escape(title)}</title>\n{style()}\n{paper}"
    lines = (line.strip() for line in _ROOT.sub(head, svg, count=1).splitlines())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(filter(None, lines)) + "\n", encoding="utf-8")
