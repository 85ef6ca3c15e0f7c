"""Files, and dotted names of functions, that documents mention exist."""

import ast
import re
import runpy
from functools import cache
from pathlib import Path

import pytest

from spacy_sparsecrf.errors import DOCUMENTATION, Warnings
from spacy_sparsecrf.pipeline import settings
from spacy_sparsecrf.tools.cli.config import shipped_configs

from .support.documents import DOCUMENTS, PACKAGE, ROOT, has_page
from .support.rooms import CRF, MAY_IMPORT, TOP, modules

ARCHITECTURE = ROOT / "docs" / "architecture.md"
FOLDERS = ("tests/", "docs/", "project/", "spacy_sparsecrf/")
# Names of what was taken out: classes, settings, commands and their options, workflows.
REMOVED = re.compile(
    r"\b(OrthantNewton|StagedTraining|StreamSolver|OnlineTrainer|EvaluationLog|EntityRatio|WeightStore"
    r"|SparseCRF|parameter_mixing|by_shard|entity_ratio|class_learning|warm_start_(row|epochs)"
    r"|average_warm_start|serve_old_names|bench-(out-of-core|floor)|skip-chains|brown-pairs|feats"
    r"|user_program|spacy_sparsecrf (annotate|select|clusters|path))\b"
    r'|\b(store|horizon|online|overlap) = |model = "graph"|--(in-place|clear)\b'
    r"|corpus in\s+files|[Cc]osts of errors|classes from\s+vectors"
)
# Dotted names of other packages, and words that are not names in the package.
OTHERS = {"np.searchsorted", "room.module.function"}


def quoted(path: Path) -> list[str]:
    """Return texts between backticks, without blanks or arguments, outside of code blocks."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.M)
    found = [re.sub(r"\(.*\)$", "", each) for each in re.findall(r"`([^`]+)`", text)]
    return [each for each in found if not re.search(r"\s", each)]


def names_in(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    """Return the definitions in statements by name: functions, classes, constants, fields."""
    found: dict[str, ast.stmt] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id: node for target in targets if isinstance(target, ast.Name)}
    return found


def is_defined(dotted: str) -> bool:
    """Return whether the package has a module, or an object in a module, of this dotted name."""
    parts = dotted.split(".")
    for n in range(len(parts), 0, -1):
        module = modules().get(".".join(parts[:n]))
        if module is not None:
            break
    else:
        return False
    body = module.tree.body
    for name in parts[n:]:
        node = names_in(body).get(name)
        if node is None:
            return False
        body = node.body if isinstance(node, ast.ClassDef) else []
    return True


@cache
def words() -> set[str]:
    """Return all identifiers in the package's source, of any type, and names of its rooms."""
    trees = [module.tree for module in modules().values()]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    fields = ("id", "attr", "arg", "name")
    rooms = {part for room in MAY_IMPORT for part in room.split(".")}
    return rooms | {str(getattr(node, field, "")) for node in nodes for field in fields}


def fault(text: str) -> str | None:
    """Return the fault of a quoted text of docs/architecture.md, or None."""
    path, _, function = text.partition("::")
    if "/" in path or path.endswith((".py", ".md", ".toml")):
        places = [place for place in (ROOT / path, PACKAGE / path) if place.exists()]
        if not places:
            return f"{text}: no such file"
        defined = ast.parse(places[0].read_text(encoding="utf-8")).body if function else []
        return None if not function or function in names_in(defined) else f"{text}: no such test"
    if re.fullmatch(r"\w+(\.\w+)+", text):
        return None if text in OTHERS or is_defined(text) else f"{text}: not in the package"
    if re.fullmatch(r"[A-Za-z_]\w*", text):
        return None if text in words() else f"{text}: no name in the package"
    return None


def test_all_that_the_architecture_names_is_there():
    assert [found for found in map(fault, quoted(ARCHITECTURE)) if found] == []


def test_the_architecture_lists_the_import_rules():
    text = ARCHITECTURE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)/?` \|[^|]*\|([^|\n]*)\|$", text, flags=re.M)
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} - {"crf"}
    rules = CRF | {
        folder: {room.split(".")[0] for room in MAY_IMPORT[folder]} - {*TOP, folder}
        for folder in folders
    }
    assert {room: set(re.findall(r"`(\w+)`", others)) for room, others in rows} == rules


def test_the_reference_lists_every_setting():
    blocks = settings.ComponentSettings, settings.LearningSettings, settings.StackSettings
    known = {key for block in blocks for key in block.model_fields}
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert [key for key in known - {"removed"} if f"`{key}`" not in text] == []


def test_the_table_of_warnings_lists_every_code_once():
    text = (ROOT / "docs" / "warnings.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (SCW[^|]*)\|", text, flags=re.M)
    codes = re.findall(r"SCW\d+", " ".join(cells))
    assert sorted(codes) == sorted(code for code in vars(Warnings) if code.startswith("SCW"))


def test_no_name_of_what_was_removed_is_left():
    texts = [*DOCUMENTS, ROOT / "CHANGELOG.md", PACKAGE / "errors.py"]
    for files in ("**/*.cfg", "**/*.md", "**/*.py", "*.yml"):
        texts += (ROOT / "project").glob(files)
    texts += (ROOT / "configs").glob("*.cfg")
    found = {path.name: REMOVED.search(path.read_text(encoding="utf-8")) for path in texts}
    assert {name: match[0] for name, match in found.items() if match} == {}


def test_messages_and_configs_name_pages_by_their_addresses():
    named, relative = set(), set()
    for module in modules().values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.JoinedStr):
                named |= set(re.findall(r"\{DOCUMENTATION\}(/[\w/#-]+)", ast.unparse(node)))
            # Docstrings are for readers of a checkout.
            if not isinstance(node, ast.Expr):
                parts = ast.iter_child_nodes(node)
                texts = [str(part.value) for part in parts if isinstance(part, ast.Constant)]
                relative |= {text for text in texts if re.search(r"docs/[\w-]+\.md", text)}
    assert {"/entities/", "/commands/"} <= named
    for text in shipped_configs().values():
        assert f"{DOCUMENTATION}/settings/" in text
        named |= set(re.findall(re.escape(DOCUMENTATION) + r"(/[\w/#-]+)", text))
        relative |= set(re.findall(r"(?<![\w./-])docs/\S+", text))
    assert relative == set()
    assert [each for each in named if not has_page(DOCUMENTATION + each)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_and_modules_that_documents_name_are_there(document):
    faults = []
    for text in quoted(document):
        path = text.partition("::")[0]
        if path.startswith(FOLDERS) and not (ROOT / path).exists():
            faults.append(text)
        dotted = re.fullmatch(r"spacy_sparsecrf\.([a-z_]+\.[\w.]+)", text)
        if dotted and not re.search(r"\.v\d", text) and not is_defined(dotted[1]):
            faults.append(text)
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
        if not (document.parent / link).exists():
            faults.append(link)
    assert faults == []


def test_figures_on_pages_are_the_recorded_ones():
    figures = runpy.run_path(str(ROOT / "docs" / "figures.py"))
    assert figures["stale"]() == [], "run python docs/figures.py"
    readme, index = (ROOT / name for name in ("README.md", "docs/index.md"))
    # The site begins as README does.
    first, second = (
        re.findall(
            r"^- \*\*.*", re.sub(r"\]\([^)]*\)", "]", path.read_text(encoding="utf-8")), re.M
        )
        for path in (readme, index)
    )
    assert first == second and len(first) == 3
