"""Pages of HTML, which load nothing else: the files beside this one, filled by Jinja2."""

from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from zlib import crc32

if TYPE_CHECKING:
    from jinja2 import Environment

N_SHOWN = 5  # tests for, and against, a label


class Page:
    """What can be shown as a page.

    page: the file of this folder that shows it.
    """

    page: ClassVar[str]

    def _repr_html_(self) -> str:
        """The page in a frame of its own, as notebooks show it."""
        style = "width: 100%; height: 36rem; border: 0"
        return f'<iframe srcdoc="{escape(render(self))}" style="{style}"></iframe>'


def render(shown: Page, title: str = "", n: int = N_SHOWN) -> str:
    """Render an explanation, or a report of mistakes, as a page of HTML.

    shown: such as `explain`, `explain_doc` or `find_mistakes` return; title: its heading, or "" for
    what the page is called by itself; n: number of tests for, and against, a token's label.
    """
    return _environment().get_template(shown.page).render(shown=shown, title=title, n=n)


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(Path(__file__).parent)
    found = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["signed"] = "{:+.3f}".format
    # The same on all pages.
    found.filters["hue"] = lambda label: crc32(label.encode()) % 360
    return found
