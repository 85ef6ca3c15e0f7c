"""Rules of the package's structure, checked on its source: imports, sizes, names, privacy."""

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parent.parent / "spacy_sparsecrf"

# Packages and top-level modules, with their allowed imports; their own package is always allowed.
BASE = {"errors", "kernels", "registry", "parallel", "penalty", "progress", "schema"}
BASE |= {"atomic_write", "compatible"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "kernels": set(),
    "registry": {"errors"},
    "schema": {"errors"},
    "atomic_write": {"errors"},
    "compatible": {"errors"},
    "parallel": {"errors", "kernels"},
    "penalty": {"errors", "parallel"},
    "progress": {"errors", "kernels"},
    "corpus": BASE,
    "loss": BASE | {"corpus"},
    # Solvers depend on a loss and a penalty, not on their implementations.
    "solvers": BASE | {"loss"},
    "pages": BASE,
    "model": BASE | {"corpus", "pages"},
    "training": BASE | {"corpus", "loss", "solvers", "model"},
    "decoding": BASE | {"corpus", "model"},
    "features": BASE | {"corpus", "model"},
    "targets": BASE | {"corpus"},
}
BELOW = set(MAY_IMPORT)
MAY_IMPORT["pipeline"] = BELOW
MAY_IMPORT["cli"] = BELOW | {"pipeline"}
CORE = set(MAY_IMPORT)
# Add-ons. They are imported when they are first needed: inside functions, or for types.
ADD_ONS = {"analysis", "distributed", "graphs", "interop"}
MAY_IMPORT_INSIDE = {"pipeline": ADD_ONS - {"interop"}, "interop": {"analysis"}}
for add_on in ADD_ONS:
    MAY_IMPORT[add_on] = CORE
MAY_IMPORT["sklearn"] = MAY_IMPORT["pycrfsuite"] = {"interop"}
MAY_IMPORT["__main__"] = {"cli"} | ADD_ONS
MAY_IMPORT["__init__"] = CORE | {"analysis"}  # lazily, on first access of a name

SEE_DOCS = {"pipeline", "targets", "features", "cli"} | ADD_ONS
KERNELS_IMPORT = {"numba", "numpy"}

# The only package that may use private names of numba, behind a guard.
NUMBA_SUPPORT = "kernels.numba_support"
NUMBA_PUBLIC = {"numba", "numba.extending"}

MOST_ARGUMENTS = 12
MOST_LINES = 40
MOST_TOP_MODULES = 10
# Public names with an underscore: methods of named tuples, spaCy's extensions.
PUBLIC = {"_", "_replace", "_asdict", "_fields", "_make"}

# Permitted exceptions, with reasons.
EXCEPTIONS: dict[str, dict[str, str]] = {
    "imports": {
        "kernels.numba_support.intrinsics imports llvmlite": "numba's intrinsics are written in it",
        "kernels.numba_support.linking imports llvmlite": "it has the passes over a kernel",
    },
    "privacy": {},
    "numba": {"progress": "events are documented, in this module"},
    "arguments": {
        "pipeline.factories.make_sparse_crf": "spaCy checks a config's keys against arguments",
        "analysis.commands.tune.tune": "typer makes an option of each argument",
        "interop.commands.convert.convert": "typer makes an option of each argument",
    },
}


class Module(NamedTuple):
    """A module of the package: its dotted name in the package, and its syntax tree."""

    name: str
    is_package: bool
    tree: ast.Module

    @property
    def package(self) -> str:
        return self.name.split(".")[0]


@cache
def modules() -> dict[str, Module]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        is_package = parts[-1] == "__init__" and len(parts) > 1
        name = ".".join(parts[:-1] if is_package else parts)
        found[name] = Module(name, is_package, ast.parse(path.read_text(encoding="utf-8")))
    return found


def imported(module: Module, *, inside: bool = True) -> Iterator[str]:
    """Yield all modules of the package that a module imports.

    inside: whether to yield imports inside functions and for types.
    """
    known = modules()
    package = module.name.split(".") if module.is_package else module.name.split(".")[:-1]
    for node in ast.walk(module.tree) if inside else module.tree.body:
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = package[: len(package) - node.level + 1]
        base += node.module.split(".") if node.module else []
        for alias in node.names:
            whole = ".".join([*base, alias.name])
            yield whole if whole in known else ".".join(base) or "__init__"


def libraries(module: Module) -> Iterator[str]:
    """Yield the third-party packages that a module imports."""
    for node in ast.walk(module.tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        for name in names:
            top = name.split(".")[0]
            if top not in sys.stdlib_module_names:
                yield top


def functions(module: Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield functions and methods, also nested ones, with their dotted names in the package."""

    def within(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}.{child.name}"
                if not isinstance(child, ast.ClassDef):
                    yield name, child
            yield from within(child, name)

    yield from within(module.tree, module.name)


def n_arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of arguments, without self or cls."""
    given = function.args
    names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    own = names[:1] in (["self"], ["cls"])
    return len(names) - own + (given.vararg is not None) + (given.kwarg is not None)


def n_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of lines of the body, without the docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def private_reads(module: Module) -> Iterator[str]:
    """Yield accesses to private names of other objects: `x._y` where x is not self or cls."""
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Attribute) or node.attr in PUBLIC:
            continue
        if not node.attr.startswith("_") or node.attr.endswith("__"):
            continue
        owner = ast.unparse(node.value)
        if owner not in ("self", "cls", "super()"):
            yield f"{module.name}: {owner}.{node.attr}"


def hold(rule: str, offenders: set[str]) -> None:
    """Check a rule except for listed exceptions; each exception must still be needed."""
    stay = set(EXCEPTIONS.get(rule, ()))
    gone = sorted(stay - offenders)
    assert not gone, f"need no exception from the rule on {rule}:\n" + "\n".join(gone)
    new = sorted(offenders - stay)
    assert not new, f"break the rule on {rule}:\n" + "\n".join(new)


def test_packages_import_only_lower_packages():
    offenders = set()
    for module in modules().values():
        allowed = MAY_IMPORT[module.package] | {module.package, "__init__"}
        at_top = set(imported(module, inside=False))
        for name in imported(module):
            inside = set() if name in at_top else MAY_IMPORT_INSIDE.get(module.package, set())
            if name.split(".")[0] not in allowed | inside:
                offenders.add(f"{module.name} imports {name}")
        if module.package == "kernels":
            others = set(libraries(module)) - KERNELS_IMPORT
            offenders |= {f"{module.name} imports {name}" for name in others}
        if module.package not in SEE_DOCS and "spacy" in libraries(module):
            offenders.add(f"{module.name} imports spacy")
    hold("imports", offenders)


def test_a_solver_folder_is_imported_only_by_itself():
    """Solvers are accessed through the registry, so that their kernels stay private."""
    folders = {path.parent.name for path in (PACKAGE / "solvers").glob("*/__init__.py")}
    offenders = set()
    for module in modules().values():
        for name in imported(module):
            package = name.split(".")[:2]
            is_folder = package[0] == "solvers" and package[-1] in folders
            if is_folder and module.name.split(".")[:2] != package:
                offenders.add(f"{module.name} imports {name}")
    hold("folders", offenders)


def test_only_users_of_the_component_import_it():
    """Its parts get values, and are independent of it."""
    importers = {m.name for m in modules().values() if "pipeline.component" in imported(m)}
    assert importers == {
        "__init__",
        "pipeline.factories",
        "analysis.calibration",
        "analysis.error_analysis",
        "analysis.search",
        "cli.common",
        "cli.debug",
        "interop.commands.import_model",
        "interop.exporting",
        "interop.importing",
        "interop.sklearn.estimator",
        "interop.sklearn.pipes",
    }


def test_one_function_selects_the_loop_around_training():
    """Only the selector reads the settings of drivers; facts describe them for refusals."""
    readers = {
        name
        for module in modules().values()
        for name, function in functions(module)
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and node.attr == "stack"
        if ast.unparse(node.value).split(".")[-1] == "learning"
    }
    assert readers == {"pipeline.training_state.driver_of", "pipeline.facts.facts_of"}


def test_no_modules_import_each_other():
    edges = {module.name: set(imported(module)) for module in modules().values()}
    TopologicalSorter(edges).prepare()  # raises an error that shows the cycle


@pytest.mark.parametrize(
    ("rule", "size", "most"),
    [("arguments", n_arguments, MOST_ARGUMENTS), ("lines", n_lines, MOST_LINES)],
)
def test_functions_are_small(rule, size, most):
    named = [pair for module in modules().values() for pair in functions(module)]
    hold(rule, {name for name, function in named if size(function) > most})


def test_class_names_are_unique():
    names = Counter(
        node.name
        for module in modules().values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, n in names.items() if n > 1] == []


def test_only_numba_support_imports_private_modules_of_numba():
    offenders = set()
    for module in modules().values():
        if module.name.startswith(NUMBA_SUPPORT):
            continue
        for node in ast.walk(module.tree):
            name = node.module if isinstance(node, ast.ImportFrom) and not node.level else ""
            if name and name.split(".")[0] in ("numba", "llvmlite") and name not in NUMBA_PUBLIC:
                offenders.add(module.name)
    hold("numba", offenders)


def test_the_top_of_the_package_is_small():
    assert len(list(PACKAGE.glob("*.py"))) <= MOST_TOP_MODULES


def test_nothing_reads_what_is_private_to_another_object():
    others = [m for m in modules().values() if not m.name.startswith(NUMBA_SUPPORT)]
    hold("privacy", {read for module in others for read in private_reads(module)})
