"""The notebooks of docs/notebooks run, and reproduce their stored outputs."""

import pytest

from .support.notebook_cells import NOTEBOOKS, cells_of, run_notebook, text_of
from .support.page_blocks import alike


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_does(path, tmp_path):
    cells = cells_of(path, "code")
    for cell, outputs in zip(cells, run_notebook(path, tmp_path), strict=True):
        shown, found = text_of(cell["outputs"]), text_of(outputs)
        assert alike(shown, found), f"{''.join(cell['source'])}\n{found}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_short(path):
    words = " ".join("".join(cell["source"]) for cell in cells_of(path, "markdown")).split()
    assert len(cells_of(path, "code")) <= 10 and len(words) <= 220
