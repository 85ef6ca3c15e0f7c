"""Rules of the package's structure, checked on its source: imports, sizes, names, privacy."""

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from .support.rooms import (
    MAY_IMPORT,
    MAY_IMPORT_INSIDE,
    PACKAGE,
    Module,
    modules,
    relative_imports,
    room_of,
)

SEE_DOCS = {"pipeline", "pipeline.features", "pipeline.targets", "tools", "interop", "distributed"}
SEE_DOCS |= {"presidio"}
KERNELS_IMPORT = {"numba", "numpy"}

# The only package that may use private names of numba, behind a guard.
NUMBA_SUPPORT = "crf.kernels.numba_support"
NUMBA_PUBLIC = {"numba", "numba.extending"}

MOST_ARGUMENTS = 12
MOST_LINES = 40
MOST_TOP_MODULES, MOST_ROOMS = 12, 10
MOST_TOKENS = 3500  # of code in a file
# Public names with an underscore: methods of named tuples, spaCy's extensions.
PUBLIC = {"_", "_replace", "_asdict", "_fields", "_make"}

# Permitted exceptions, with reasons.
EXCEPTIONS: dict[str, dict[str, str]] = {
    "imports": {
        "crf.kernels.numba_support.intrinsics imports llvmlite": "intrinsics are written in it",
        "crf.kernels.numba_support.linking imports llvmlite": "it has the passes over a kernel",
    },
    "privacy": {},
    "numba": {"crf.compilation": "events are documented, in this module"},
    "arguments": {
        "pipeline.factories.make_sparse_crf": "spaCy checks a config's keys against arguments",
        "tools.cli.convert.convert": "typer makes an option of each argument",
        "crf.training.training.Training.__init__": "the settings of a run, by name",
    },
    "tokens": {"portable": "it is copied as one file"},
}


def imported(module: Module, *, inside: bool = True) -> Iterator[str]:
    """Yield all modules of the package that a module imports.

    inside: whether to yield imports inside functions and for types.
    """
    known = modules()
    package = module.name.split(".") if module.is_package else module.name.split(".")[:-1]
    nodes = ast.walk(module.tree) if inside else module.tree.body
    for parts in relative_imports(nodes, package):
        name = ".".join(parts)
        yield name if name in known else ".".join(parts[:-1]) or "__init__"


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


def test_rooms_import_only_lower_rooms():
    offenders = set()
    for module in modules().values():
        allowed = MAY_IMPORT.get(module.room, set()) | {module.room, "__init__"}
        at_top = set(imported(module, inside=False))
        for name in imported(module):
            inside = set() if name in at_top else MAY_IMPORT_INSIDE.get(module.room, set())
            if room_of(name) not in allowed | inside:
                offenders.add(f"{module.name} imports {name}")
        if module.room == "crf.kernels":
            others = set(libraries(module)) - KERNELS_IMPORT
            offenders |= {f"{module.name} imports {name}" for name in others}
        if module.room not in SEE_DOCS and "spacy" in libraries(module):
            offenders.add(f"{module.name} imports spacy")
    hold("imports", offenders)


def test_a_solver_folder_is_imported_only_by_itself():
    """Solvers are accessed through the registry, so that their kernels stay private."""
    folders = {path.parent.name for path in (PACKAGE / "crf/solvers").glob("*/__init__.py")}
    offenders = set()
    for module in modules().values():
        for name in imported(module):
            package = name.split(".")[:3]
            is_folder = package[:2] == ["crf", "solvers"] and package[-1] in folders
            if is_folder and module.name.split(".")[:3] != package:
                offenders.add(f"{module.name} imports {name}")
    hold("folders", offenders)


def test_only_users_of_the_component_import_it():
    """Its parts get values, and are independent of it."""
    importers = {m.name for m in modules().values() if "pipeline.component" in imported(m)}
    assert importers == {
        "__init__",
        "pipeline.factories",
        "tools.analysis.calibration",
        "tools.analysis.error_analysis",
        "tools.analysis.search",
        "tools.cli.common",
        "tools.cli.debug",
        "tools.cli.import_model",
        "interop.export_formats",
        "interop.exporting",
        "interop.importing",
        "interop.portable_folder",
        "interop.portable_model",
        "interop.portable_sources",
        "interop.portable_tokenizer",
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
    assert len(list(PACKAGE.glob("*/__init__.py"))) <= MOST_ROOMS


def test_nothing_reads_what_is_private_to_another_object():
    others = [m for m in modules().values() if not m.name.startswith(NUMBA_SUPPORT)]
    hold("privacy", {read for module in others for read in private_reads(module)})


# How a line is written


PRONOUNS = {"own", "found", "each", "given", "kept", "known", "whole", "both", "rest", "place"}
PRONOUNS |= {"before", "after", "first", "last", "result", "results", "items", "info", "obj", "tmp"}
MOST_PACKED, MOST_POSITIONAL, MOST_STARRED, MOST_PRONOUNS = 15, 70, 95, 0.02
CHANNELS = re.compile(
    r"\b(extract_stack|_getframe|ContextVar|mallopt|malloc_trim)\b|\bvars\(.*\)(\[|\.(update|pop))"
    r"|__dict__(\[|\.(update|pop))"
)


def names_of_packed_tuples(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the variables to which a function assigns a tuple that it writes out."""
    names = set()
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
            continue
        for target in node.targets:
            if isinstance(target, ast.Name):
                names.add(target.id)
            elif isinstance(target, ast.Tuple):
                pairs = zip(target.elts, node.value.elts, strict=False)
                names |= {ast.unparse(a) for a, b in pairs if isinstance(b, ast.Tuple)}
    return names


def starred(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """Yield the starred arguments of calls in a function, except its own `*args`."""
    variable = function.args.vararg.arg if function.args.vararg else ""
    for node in ast.walk(function):
        for argument in node.args if isinstance(node, ast.Call) else ():
            if isinstance(argument, ast.Starred) and ast.unparse(argument.value) != variable:
                yield ast.unparse(argument.value)


def test_calls_say_what_they_pass():
    """No tuple is packed to be unpacked in the next call, and many values have names."""
    packed, unpacked, positional = [], [], []
    for module in modules().values():
        for name, function in functions(module):
            tuples = names_of_packed_tuples(function)
            values = [*starred(function)]
            packed += [f"{name}: *{value}" for value in values if value in tuples]
            if module.room != "crf.kernels":
                unpacked += [f"{name}: *{value}" for value in values]
        for node in ast.walk(module.tree) if module.room != "crf.kernels" else ():
            if isinstance(node, ast.Call):
                n_bare = sum(not isinstance(argument, ast.Starred) for argument in node.args)
                positional += [f"{module.name}:{node.lineno}"] if n_bare >= 5 else []
    assert len(packed) <= MOST_PACKED, packed
    assert len(positional) <= MOST_POSITIONAL, positional
    assert len(unpacked) <= MOST_STARRED, unpacked


def test_names_say_what_things_are():
    names = [
        node.id
        for module in modules().values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    counts = Counter(names)
    n_pronouns = sum(counts[name] for name in PRONOUNS)
    assert n_pronouns <= MOST_PRONOUNS * len(names), {name: counts[name] for name in PRONOUNS}


def test_no_hidden_channels():
    """No frames, context variables or allocator settings; one context sets a threshold."""
    paths = [path for path in PACKAGE.rglob("*.py") if "numba_support" not in path.parts]
    texts = {path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8") for path in paths}
    assert [name for name, text in texts.items() if CHANNELS.search(text)] == []
    assert {name for name, text in texts.items() if "set_threshold" in text} == {"pipeline/loop.py"}


def n_tokens(text: str) -> int:
    """Return the number of tokens of code without docstrings, comments and line ends."""
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    skipped |= {tokenize.ENCODING, tokenize.ENDMARKER}
    docs = set()
    for node in ast.walk(ast.parse(text)):
        has_docstring = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if has_docstring and ast.get_docstring(node) is not None:
            docs |= {*range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type not in skipped and token.start[0] not in docs for token in tokens)


def test_a_file_is_one_concept():
    sizes = {}
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        sizes[name] = n_tokens(path.read_text(encoding="utf-8"))
    hold("tokens", {name for name, size in sizes.items() if size > MOST_TOKENS})


def test_file_names_are_unique():
    names = Counter(path.name for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")
    assert [name for name, n in names.items() if n > 1] == []


def test_tests_share_the_helpers_of_one_folder():
    """A test imports no other test, and a helper has two users, or is a program too."""
    tests = Path(__file__).parent
    users: dict[str, set[Path]] = {}
    strays = []
    for path in sorted(tests.rglob("*.py")):
        *package, name = path.relative_to(tests).with_suffix("").parts
        text = path.read_text(encoding="utf-8")
        if package == ["support"] and "\nif __name__ ==" in text:
            users[name] = {path, tests}
        if package[:1] != ["support"] and name not in ("__init__", "conftest", "reference"):
            strays += [] if name.startswith("test_") else [f"{path}: no test"]
        for parts in relative_imports(ast.walk(ast.parse(text)), package):
            strays += [f"{path}: {part}" for part in parts if part.startswith("test_")]
            if parts[0] == "support" and package[:2] != parts[:2]:
                users.setdefault(parts[1], set()).add(path)
    assert strays == []
    assert [helper for helper, files in users.items() if len(files) < 2] == []
