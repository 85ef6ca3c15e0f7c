"""Run notebooks in one process without Jupyter: execute cells as Python, capture outputs.

Lines that begin with `!` are commands, as on pages.

`python -m tests.support.notebook_cells` runs docs/notebooks and stores the outputs of cells.
"""

import ast
import contextlib
import io
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

from .page_blocks import run_command

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))

Cell = dict[str, Any]


def cells_of(path: Path, kind: str) -> list[Cell]:
    """Return the cells of a notebook of a type: "code" or "markdown"."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == kind]


def run_notebook(path: Path, folder: Path) -> list[list[Cell]]:
    """Run a notebook in an empty directory. RETURNS: the outputs by cell."""
    names: dict[str, Any] = {"__name__": "__main__", "run_command": run_command}
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        return [
            _run_cell("".join(cell["source"]), names, number)
            for number, cell in enumerate(cells_of(path, "code"), start=1)
        ]


def _run_cell(code: str, names: dict[str, Any], number: int) -> list[Cell]:
    """Run a cell. RETURNS: its printed text, and the value of its last expression."""
    code = re.sub(r"^!(.*)$", r'print(run_command("\1"), end="")', code, flags=re.M)
    tree, last, outputs = ast.parse(code), None, []
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, f"cell {number}", "exec"), names)
        value = eval(compile(last, f"cell {number}", "eval"), names) if last else None
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(text)})
    if value is not None:
        shown = {"output_type": "execute_result", "execution_count": number, "metadata": {}}
        outputs.append({"data": _shown(value), **shown})
    return outputs


def _shown(value: Any) -> dict[str, list[str]]:
    """Return a value by MIME type. Outside of Jupyter, displaCy returns HTML as a string."""
    is_html = isinstance(value, str) and value.startswith("<")
    if is_html or hasattr(value, "_repr_html_"):
        return {"text/html": _lines(value if is_html else value._repr_html_())}
    return {"text/plain": _lines(repr(value))}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def text_of(outputs: list[Cell]) -> str:
    """Return the text and HTML of a cell's outputs."""
    parts = [
        part for each in outputs for part in (each.get("text"), *each.get("data", {}).values())
    ]
    return "\n".join("".join(part) for part in parts if part)


def store(path: Path) -> None:
    """Run a notebook and store its outputs in the file."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        found = iter(enumerate(run_notebook(path, Path(folder)), start=1))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["execution_count"], cell["outputs"] = next(found)
    text = json.dumps(notebook, indent=1, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    for each in NOTEBOOKS:
        store(each)
