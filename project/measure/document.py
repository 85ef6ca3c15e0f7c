"""Documents with handwritten prose and generated figures.

A document has a head and sections.
A report replaces the head's paragraph that begins with `Measured on` or with the table
`| measured on`, and everything in a section after its prose.
"""

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from wasabi import msg

Metrics = Annotated[Path, typer.Argument(help="Directory of the stored figures, and of plots")]
Project = Annotated[Path, typer.Argument(help="Directory of the report")]

_MEASURED = ("Measured on", "| measured on")


@dataclass(frozen=True)
class Published:
    """A published report: paragraphs of its head, and paragraphs of each section by title."""

    head: Sequence[str]
    sections: Mapping[str, Sequence[str]]

    @property
    def measured(self) -> str:
        """The paragraph of the head that lists the machines."""
        return next((each for each in self.head if each.startswith(_MEASURED)), "")


def read_published(path: Path) -> Published:
    """Split a report into head and sections."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    head, *blocks = re.split(r"^## ", text, flags=re.MULTILINE)
    parts = [block.split("\n", 1) for block in blocks]
    sections = {title.strip(): rest.strip().split("\n\n") for title, rest in parts}
    return Published(head.strip().split("\n\n"), sections)


def measured_on(machines: Iterable[Mapping[str, Any]], kept: str = "") -> str:
    """List machines in a line; kept: a published line, whose machines are listed last."""
    found = [", ".join([m["processor"], m["date"], *_commit(m)]) for m in machines]
    found += filter(None, re.sub(r"^Measured on:? |\.$", "", kept).split("; "))
    return f"Measured on: {'; '.join(dict.fromkeys(found))}."


def _commit(machine: Mapping[str, Any]) -> list[str]:
    return [f"commit {machine['commit']}"] if "commit" in machine else []


@dataclass(frozen=True)
class Document:
    """A report file.

    name: of the file; trial: data of a trial, for its warning; plots: directory of plots in the
    project; prose: titles of the sections whose first paragraph is handwritten.
    """

    name: str
    trial: str
    plots: str
    prose: frozenset[str] = frozenset()

    def render(
        self,
        published: Published,
        measured: str,
        sections: Mapping[str, Sequence[str]],
        is_trial: bool = False,
    ) -> str:
        """Return the text with new sections; other sections are kept, except in a trial.

        sections: paragraphs by title.
        """
        head = [measured if each.startswith(_MEASURED) else each for each in published.head]
        if is_trial:
            head.insert(-1, f"**A trial on {self.trial}: the figures mean nothing.**")
        kept = {} if is_trial else published.sections
        for title in dict.fromkeys([*published.sections, *sections]):
            if title in sections:
                prose = published.sections.get(title, [""])[:1] if title in self.prose else []
                head += [f"## {title}", *prose, *sections[title]]
            elif title in kept:
                head += [f"## {title}", *kept[title]]
        return "\n\n".join(block.strip() for block in head if block) + "\n"

    def picture(self, name: str, text: str = "") -> str:
        """Return the Markdown of a plot; name: without suffix; text: alternative text."""
        return f"![{text or name}]({self.plots}/{name}.svg)"

    def publish(self, text: str, metrics: Path, project: Path, is_trial: bool) -> None:
        """Write the text next to figures and plots; after a full run, also to the project."""
        metrics.mkdir(parents=True, exist_ok=True)
        (metrics / self.name).write_text(text, encoding="utf-8")
        if is_trial:
            msg.warn(f"A trial: only {metrics / self.name} is written")
            return
        (project / self.name).write_text(text, encoding="utf-8")
        (project / self.plots).mkdir(parents=True, exist_ok=True)
        for path in sorted([*metrics.glob("*.svg"), *metrics.glob("*.png")]):
            shutil.copy(path, project / self.plots / path.name)
        msg.good(f"{project / self.name}")
