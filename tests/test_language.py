"""Documents, messages and help use standard terms and short sentences."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest
import typer.main

from spacy_sparsecrf import errors
from spacy_sparsecrf.__main__ import app

from .notebook_cells import NOTEBOOKS, cells_of
from .test_docs import ROOT

PAGES = sorted([*(ROOT / "docs").glob("*.md"), *ROOT.glob("*.md")])
PAGES += NOTEBOOKS
# Phrases that are hard to read, and titles that nobody would search for.
PHRASES = re.compile(
    r"\b(anew|befalls?|besides|shall|beside (?!the )|come along|is told|are told|is warned of"
    r"|at hand|(?-i:Those (?:that|of|who))|what is (told|said|learnt|there)|need not be said"
    r"|signs of life|to mend|mended)\b",
    re.IGNORECASE,
)
TITLES = re.compile(r"^#+ (What|How|Who|That|Why|Where|Whether|Which)\b", re.MULTILINE)
LONGEST, MEDIAN = 35, 18
# Skipped text: code, tables, lists of names.
CODE = re.compile(
    r"^```.*?^```$|^ {4,}[^\n]*$|^ *\|[^\n]*$|^\$\$.*?\$\$$", flags=re.MULTILINE | re.DOTALL
)


def prose(page: Path) -> str:
    """Return the text of a page or notebook without code, tables, link targets and formulas."""
    text = page.read_text(encoding="utf8")
    if page.suffix == ".ipynb":
        text = "\n\n".join("".join(cell["source"]) for cell in cells_of(page, "markdown"))
    text = CODE.sub("\n\n", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"`[^`]*`|\$[^$\n]+\$", "code", text)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of paragraphs and list items, without headings."""
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|\n(?=#)", text):
        if not block.lstrip().startswith(("#", "<")):
            yield from re.split(r"(?<=[.!?:;])\s+", " ".join(block.split()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_use_standard_terms_and_short_sentences(page: Path):
    text = prose(page)
    assert not (found := [match[0] for match in PHRASES.finditer(text)]), found
    assert not (found := [match[0] for match in TITLES.finditer(text)]), found
    lengths = {sentence: len(sentence.split()) for sentence in sentences(text) if sentence}
    assert not (found := [each for each, n in lengths.items() if n > LONGEST]), found
    assert median(lengths.values()) <= MEDIAN


def messages() -> Iterator[tuple[str, str]]:
    for group in (errors.Errors, errors.Warnings):
        yield from (
            (name, str(text)) for name, text in vars(group).items() if name.startswith("SC")
        )


def helps() -> Iterator[tuple[str, str]]:
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        yield name, command.help or ""
        yield from (
            (f"{name} {each.name}", getattr(each, "help", "") or "") for each in command.params
        )


def test_messages_and_help_use_standard_terms():
    found = {
        name: match[0] for name, text in (*messages(), *helps()) if (match := PHRASES.search(text))
    }
    assert not found


# Imperatives that begin a remedy, at the start of a sentence or after "or".
REMEDIES = re.compile(
    r"\{remedy\}|(?:^|[.;,:)?}] |\n| or |and )(add|annotate|begin|calibrate|call|change|check"
    r"|choose|combine|complete|convert|copy|correct|count|fill|find|free|give|import|keep|leave"
    r"|let|load|lower|move|name|number|put|raise|read|register|reinstall|remove|rename|repair"
    r"|restore|resume|retrain|rewrite|run|separate|set|start|train|upgrade|use|write)\b",
    re.IGNORECASE,
)


def test_every_message_names_a_value_or_a_place_and_a_remedy():
    assert len([*messages()]) > 200
    assert not {name for name, text in messages() if not REMEDIES.search(text)}
    place = re.compile(r"\{\w|`[^`]+`|\[[a-z.]+|--\w|=|[A-Za-z]_[a-z]")
    # SC312 is about the bytes of a model, which have no name.
    assert {name for name, text in messages() if not place.search(text)} <= {"SC312"}


def test_docstrings_use_standard_terms_and_summaries_do_not_ask():
    found = []
    for path in (ROOT / "spacy_sparsecrf").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                text = ast.get_docstring(node) or ""
                summary = text.partition("\n")[0]
                # The summary of a property may begin with "Whether".
                if re.match(r"(What|How|Where|Tell|Who)\b", summary) or PHRASES.search(text):
                    found.append(f"{path.name}: {summary}")
    assert not found
