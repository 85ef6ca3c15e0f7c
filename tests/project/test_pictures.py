"""Pictures of the pages exist, are shown, fit light and dark pages, and are drawn alike again."""

import json
import re
from pathlib import Path

import pytest
import spacy
from pictures.__main__ import PICTURES
from pictures.charts import figures
from pictures.measure import explained

from ..support import page_blocks

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
# The site shows the logo.
PAGES = [ROOT / "README.md", ROOT / "mkdocs.yml", *(ROOT / "docs").glob("*.md")]


def test_pages_show_pictures_that_exist_and_fit_both_schemes():
    texts = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    shown = set(re.findall(r"\bimages/([\w.-]+)", texts))
    assert shown == {path.name for path in IMAGES.iterdir()}
    assert {f"{name}.svg" for name in PICTURES} <= shown
    for path in set(IMAGES.glob("*.svg")) - {IMAGES / "logo.svg"}:  # drawn for both
        text = path.read_text(encoding="utf-8")
        assert re.search(r"prefers-color-scheme: ?dark", text), path.name
        assert len(text) < 40_000, path.name
    for name in shown:
        if name.endswith("-light.png"):
            assert name.replace("-light", "-dark") in shown
        assert name.endswith((".svg", "-light.png", "-dark.png"))


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_drawn_alike_again(name, tmp_path):
    pytest.importorskip("matplotlib")
    for path in (tmp_path / "1.svg", tmp_path / "2.svg"):
        PICTURES[name](path)
    assert (tmp_path / "1.svg").read_bytes() == (tmp_path / "2.svg").read_bytes()
    # The same figures as in the published picture.
    texts = [
        re.findall(r"<text.*?>(.*?)<", x.read_text(encoding="utf-8"))
        for x in (path, IMAGES / f"{name}.svg")
    ]
    assert texts[0] == texts[1]


def test_the_picture_of_an_explanation_is_of_the_run_that_readme_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page_blocks.run_page(ROOT / "README.md", {"__name__": "__main__"})
    found = explained(spacy.load("tickets/model-best"))
    drawn = {key: value for key, value in figures("explanation").items() if key in found}
    assert page_blocks.alike(json.dumps(drawn), json.dumps(found))
