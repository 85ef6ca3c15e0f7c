"""Modules of the package, and what each room of it may import."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[2] / "spacy_sparsecrf"

# Top modules: they import each other and no room.
TOP: dict[str, set[str]] = {
    "errors": set(),
    "registry": {"errors"},
    "schema": {"errors"},
    "atomic_write": {"errors"},
    "compatible": {"errors"},
    "progress": {"errors"},
    "training_log": set(),
    "portable": set(),
}
# Rooms of `crf`, each with the rooms of `crf` it may import; all of them may import top modules.
CRF: dict[str, set[str]] = {
    "kernels": set(),
    "compilation": {"kernels"},
    "memory": set(),
    "parallel": {"kernels"},
    "penalty": {"parallel"},
    "corpus": {"kernels", "parallel"},
}
CRF["loss"] = {*CRF, "corpus"}
# Solvers depend on a loss and a penalty, not on their implementations.
CRF["solvers"] = {*CRF, "corpus", "loss"} - {"compilation"}
CRF["model"] = {"kernels", "parallel", "corpus"}
CRF["training"] = {*CRF} - {"compilation"}
CRF["decoding"] = {"kernels", "parallel", "corpus", "model"}
CRF["graphs"] = {*CRF} - {"compilation"}
ROOMS = {f"crf.{room}" for room in CRF}
MAY_IMPORT: dict[str, set[str]] = dict(TOP)
MAY_IMPORT |= {f"crf.{room}": {f"crf.{below}" for below in CRF[room]} | {*TOP} for room in CRF}
BELOW = {*TOP, "crf", *ROOMS}
MAY_IMPORT["pipeline.features"] = MAY_IMPORT["pipeline.targets"] = BELOW
MAY_IMPORT["pipeline"] = BELOW | {"pipeline.features", "pipeline.targets"}
EVERYTHING = {*BELOW, *MAY_IMPORT}
MAY_IMPORT["distributed"] = MAY_IMPORT["interop"] = EVERYTHING
MAY_IMPORT["tools"] = EVERYTHING | {"interop"}
# The doors: the command line, and the modules under the names of peers.
MAY_IMPORT["sklearn"] = MAY_IMPORT["pycrfsuite"] = {"interop"}
MAY_IMPORT["presidio"] = {"errors"}
MAY_IMPORT["__main__"] = {"tools"}
MAY_IMPORT["__init__"] = EVERYTHING | {"tools"}  # lazily, on first access of a name
# Rooms that others import when they first need them: inside functions, or for types.
MAY_IMPORT_INSIDE = {"pipeline": {"tools", "distributed"}, "tools": {"distributed"}}
MAY_IMPORT_INSIDE["training_log"] = {"tools"}


class Module(NamedTuple):
    """A module of the package: its dotted name in the package, and its syntax tree."""

    name: str
    is_package: bool
    tree: ast.Module

    @property
    def room(self) -> str:
        return room_of(self.name)


def room_of(name: str) -> str:
    """Return the room of a module: its longest prefix with rules."""
    parts = name.split(".")
    prefixes = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((prefix for prefix in prefixes if prefix in MAY_IMPORT), parts[0])


def relative_imports(nodes: Iterable[ast.AST], package: list[str]) -> Iterator[list[str]]:
    """Yield the names that relative imports in a package import, by their parts."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            base += node.module.split(".") if node.module else []
            yield from ([*base, alias.name] for alias in node.names)


@cache
def modules() -> dict[str, Module]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        is_package = parts[-1] == "__init__" and len(parts) > 1
        name = ".".join(parts[:-1] if is_package else parts)
        found[name] = Module(name, is_package, ast.parse(path.read_text(encoding="utf-8")))
    return found
