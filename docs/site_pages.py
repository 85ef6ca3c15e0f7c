"""Hooks of mkdocs: documents outside of docs/, formulas, and a reference page per package."""

import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
# Documents of the repository, by what they are in the site.
DOCUMENTS = {name: name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE")}
REPORTS = ("README.md", "BENCHMARKS.md", "SOLVERS.md", "LAVERGNE.md", "LATTICES.md")
LINK = re.compile(r"(\]\()((?:\.\./)?[\w./-]+)((?:#[\w-]*)?\))")
FORMULA = re.compile(r"^\$\$(.+?)\$\$$|(?<![\\$\w])\$([^$\n]+)\$(?!\w)", flags=re.M | re.S)
CODE = re.compile(r"(^```.*?^```$|^    [^\n]*$|`[^`]*`)", flags=re.M | re.S)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the packages' pages into the navigation, below the entry that waits for them."""
    [part] = [part for part in config.nav or () if "Reference" in part]
    part["Reference"].append({"Python": [{name: f"reference/{name}.md"} for name in packages()]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is not in docs/: the repository's documents, reports with plots, reference pages."""
    pages = {page: ROOT / name for name, page in DOCUMENTS.items()}
    pages |= {f"project/{name}": ROOT / "project" / name for name in REPORTS}
    for plot in (ROOT / "project").glob("*/plots/*.svg"):
        pages[plot.relative_to(ROOT).as_posix()] = plot
    for page, path in pages.items():
        files.append(File.generated(config, page, abs_src_path=str(path)))
    for name in packages():
        heading = f"# `spacy_sparsecrf.{name}`\n\n::: spacy_sparsecrf.{name}\n"
        files.append(File.generated(config, f"reference/{name}.md", content=heading))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links to where documents are in the site, and write formulas as MathML."""
    parts = CODE.split(markdown)
    source = page.file.src_uri
    for i in range(0, len(parts), 2):
        parts[i] = LINK.sub(lambda found: _link(found, source), parts[i])
        if source == "mathematics.md":
            parts[i] = FORMULA.sub(_formula, parts[i])
    return "".join(parts)


def packages() -> list[str]:
    """The modules and packages that have a page."""
    package = ROOT / "spacy_sparsecrf"
    found = [path.parent.name for path in package.glob("*/__init__.py")]
    return sorted([*found, *(path.stem for path in package.glob("[!_]*.py"))])


def _link(found: re.Match[str], source: str) -> str:
    """A link as it is in the site."""
    before, target, after = found.groups()
    if source.startswith("project/"):
        target = re.sub(r"^\.\./docs/", "../", target)
        target = re.sub(r"^\.\./README\.md$", "../index.md", target)
    elif source in DOCUMENTS.values():
        target = re.sub(r"^docs/", "", target)
        target = re.sub(r"^README\.md$", "index.md", target)
    else:
        target = re.sub(r"^\.\./README\.md$", "index.md", target)
        target = re.sub(r"^\.\./(?=project/|[A-Z]+)", "", target)
    return before + target + after


def _formula(found: re.Match[str]) -> str:
    """A formula as MathML, which browsers show without a script."""
    block, inline = found.groups()
    if block:
        return f'<div style="margin: 1.5em 0">{convert(block, display="block")}</div>'
    # Markdown ends a paragraph before a line that begins with <math>.
    return f"<span>{convert(inline)}</span>"
