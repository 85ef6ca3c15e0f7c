"""Pages of HTML, which load nothing else: the files next to this one, filled by Jinja2."""

import math
import re
from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from zlib import crc32

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

N_SHOWN = 5  # features for, and against, a label
_TINTS = {"B": 5, "I": -6, "L": 0, "U": 10}
_TINTED = re.compile(r"(?:([BILU])-)?(.*)", re.DOTALL)
_SEED = 153838  # gives PER, LOC, ORG, MISC; NP, VP, PP; PERSON, CITY, CODE, PRODUCT distant hues


class Page:
    """An object that can be shown as a page.

    page: the file of this folder that shows it.
    """

    page: ClassVar[str]

    def _repr_html_(self) -> str:
        """The page in a frame of its own, as notebooks show it."""
        style = "width: 100%; height: 36rem; border: 0"
        return f'<iframe srcdoc="{escape(render(self))}" style="{style}"></iframe>'


def render(
    shown: Page, title: str = "", n: int = N_SHOWN, made: Mapping[str, str] | None = None
) -> str:
    """Render an explanation, or a report of mistakes, as a page of HTML.

    The page loads nothing else, and can be written to a file.

    Parameters
    ----------
    shown : DocExplanation, ModelExplanation, Report or Calibration
        The object to show.
    title : str, default ""
        Its heading, or "" for the default heading.
    n : int, default 5
        Number of features for, and against, a token's label.
    made : mapping of str to str, optional
        Names and values of its footer, such as the data.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> page = render(pipe.explain(), title="Travel")
    >>> page[:15], "<h1>Travel" in page
    ('<!DOCTYPE html>', True)
    """
    return fill(shown.page, shown=shown, title=title, n=n, made=made)


def fill(file: str, **values: Any) -> str:
    """Fill a file of this folder with values."""
    return _environment().get_template(file).render(values)


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(signed=_signed, colour=_colour, breaks=_breaks, percent=percent)
    environment.filters["log10"] = math.log10
    return environment


def _signed(value: float, digits: int = 3) -> str:
    """A weight with its sign; without it where all digits are 0."""
    text = f"{value:+.{digits}f}"
    return text if float(text) else text[1:]


def percent(share: float) -> str:
    """Return a share in percent; a dash for nan, such as the precision of no predictions."""
    return "–" if math.isnan(share) else f"{100 * share:.2f}"


def _colour(label: str) -> str:
    """Return CSS: the hue of a type, on all pages the same, tinted by B, I, L, U; O is grey."""
    if re.match("O(-|$)", label):
        return "--s: 0%"
    tint, label = _TINTED.match(label).groups()  # type: ignore[union-attr]
    hue = crc32(label.encode(), _SEED) % 360
    return f"--h: {hue}" + (f"; --tint: {_TINTS[tint]}%" if tint else "")


def _breaks(name: str) -> "Markup":
    """Let a feature's name break after the parts of a conjunction."""
    from markupsafe import Markup, escape

    return Markup("|<wbr>").join(map(escape, name.split("|")))
