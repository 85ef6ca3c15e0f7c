"""A published document: its head, what it was measured on, its sections."""

import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

Metrics = Annotated[Path, typer.Argument(help="Directory of the stored figures, and of plots")]
Project = Annotated[Path, typer.Argument(help="Where the document belongs")]


@dataclass(frozen=True)
class Section:
    """A section; blocks: of Markdown, between which a line is left free."""

    title: str
    blocks: tuple[str, ...]

    def __str__(self) -> str:
        """Heading and blocks."""
        return "\n\n".join([f"## {self.title}", *filter(None, self.blocks)])


@dataclass(frozen=True)
class Document:
    """What stays the same in a document.

    name: of the file; head: title and introduction; trial: what a trial is of, for the sentence
    that warns of one; plots: directory of its plots in the project.
    """

    name: str
    head: str
    trial: str
    plots: str

    def render(self, measured: str, sections: Iterable[Section | str], is_trial: bool) -> str:
        """The whole text; measured: what says where; sections: as text where they were kept."""
        warning = f"**A trial on {self.trial}: the figures mean nothing.**" if is_trial else ""
        blocks = [self.head, warning, measured, *map(str, sections)]
        return "\n\n".join(block.strip() for block in blocks if block) + "\n"

    def picture(self, name: str, text: str = "") -> str:
        """A plot, by its name without suffix; text: instead of it, where it cannot be seen."""
        return f"![{text or name}]({self.plots}/{name}.svg)"

    def publish(self, text: str, metrics: Path, project: Path, is_trial: bool) -> None:
        """Leave the text beside figures and plots; that of a full run in the project too."""
        (metrics / self.name).write_text(text, encoding="utf-8")
        if is_trial:
            msg.warn(f"A trial: only {metrics / self.name} is written")
            return
        (project / self.name).write_text(text, encoding="utf-8")
        (project / self.plots).mkdir(parents=True, exist_ok=True)
        for path in sorted([*metrics.glob("*.svg"), *metrics.glob("*.png")]):
            shutil.copy(path, project / self.plots / path.name)
        msg.good(f"{project / self.name}")


@dataclass(frozen=True)
class Published:
    """What a document says as it is published; sections: with headings, by title."""

    head: str
    sections: Mapping[str, str]


NOTHING = Published("", {})


def read_published(path: Path) -> Published:
    """Take a document apart; it is empty where there is none."""
    if not path.exists():
        return NOTHING
    head, *blocks = re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    sections = {block.split("\n", 1)[0].strip(): f"## {block.rstrip()}" for block in blocks}
    return Published(head, sections)
