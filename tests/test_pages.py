"""Code in README and the pages runs, and prints the output they show."""

import gc
import io
import json
import re
import subprocess
import sys
from inspect import signature

import catalogue
import pytest
import spacy
from spacy.training.loggers import console_logger_v3

from spacy_sparsecrf.interop.portable_javascript import node

from .support import page_blocks
from .support.documents import DOCUMENTS, ROOT

# Questions of readers to the search, and the page that answers.
SEARCHES = {
    "license": "faq/",
    "python version": "faq/",
    "API stability": "faq/",
    "how many examples": "faq/",
    "CoNLL": "conll/",
    "which solver": "solvers/",
    "SC608": "reference/messages/",
    "SCW208": "warnings/",
    "top features": "commands/",
    "gazetteer": "word-classes/",
}

PAGES = [page for page in DOCUMENTS if page_blocks.blocks_of(page)]


@pytest.fixture(scope="module")
def parts_of_spacy() -> None:
    """Let spaCy register its parts, which it does at first use, before a page runs."""
    spacy.blank("en").add_pipe("sparse_crf")


# The few sentences of pages have no tags, and labels of few types.
@pytest.mark.filterwarnings("ignore:.*SCW205")
@pytest.mark.filterwarnings("ignore:Task supports sharding")  # spacy-llm, of any function
@pytest.mark.filterwarnings("ignore:.*SCW251.*DATE is in")  # the page says so
# spaCy relies on the garbage collector to close the files of a package.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_runs(page, tmp_path, monkeypatch, own_extensions, parts_of_spacy):
    """Run a page as its reader does: in an empty directory, from the first block to the last."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    # What a page registers is unregistered afterwards.
    monkeypatch.setattr(catalogue, "REGISTRY", catalogue.REGISTRY.copy())
    names = {"__name__": "__main__"}
    page_blocks.run_page(page, names)
    gc.collect()
    for test in [value for name, value in names.items() if name.startswith("test_")]:
        test(**dict.fromkeys(signature(test).parameters, tmp_path))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_and_outputs_fit_a_terminal(page):
    assert page_blocks.too_wide(page) == []


def test_short_names_tell_components_apart_in_the_log():
    nlp = spacy.blank("xx")
    nlp.add_pipe("sparse_crf", "tags")
    nlp.add_pipe("sparse_crf_ner", "names")
    nlp.config["training"] = {"max_steps": 1, "eval_frequency": 1, "score_weights": {}}
    log = io.StringIO()
    console_logger_v3()(nlp, log, log)
    assert log.getvalue().split()[:6] == ["E", "#", "LOSS", "TAGS", "LOSS", "NAMES"]


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    shown = (tmp_path / "mathematics" / "index.html").read_text(encoding="utf-8")
    assert "<mark" in (tmp_path / "notebooks/entities/index.html").read_text(encoding="utf-8")
    assert shown.count("<math") > 20 and "$" not in re.sub(r"<script.*?</script>", "", shown)
    assert not re.search(r"</p>\s*<math", shown)  # no formula stands apart from its sentence
    assert (tmp_path / "fonts" / "formulas.ttf").stat().st_size > 100_000
    index = json.loads((tmp_path / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"].partition("/")[0] for entry in index["docs"]}
    assert "entities" in found and "modules" not in found
    # The theme's own search lists the page with the answer first.
    program = node() or pytest.skip("needs Node, of the extra test")
    command = [program, ROOT / "tests" / "pages" / "search.js", tmp_path, *SEARCHES]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    pages = [line.partition("#")[0] for line in done.stdout.splitlines()]
    assert dict(zip(SEARCHES, pages, strict=True)) == SEARCHES


def test_a_page_that_shows_something_else_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text('```python\nprint("b")\n```\n\n```text\na\n```\n', encoding="utf-8")
    with pytest.raises(AssertionError):
        page_blocks.run_page(page, {})
    page.write_text("```ini\n[components.crf]\nl3 = 1\n```\n", encoding="utf-8")
    with pytest.raises(ValueError, match="l3"):
        page_blocks.run_page(page, {})
