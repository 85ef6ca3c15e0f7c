"""The blocks of Python of a page run, one after the other."""

import re
from pathlib import Path

import pytest

from .test_docs import ROOT

PAGES = [ROOT / "docs" / "migration.md"]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.M)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page.name, "exec"), names)
