"""Mutate kernels, losses, decoders and solvers, and count mutants that no test detects.

    pip install cosmic-ray coverage
    python -m reliability.mutants --sample 1500 --seed 0

Kernels run as plain Python. Each test first runs alone, to record the lines it executes. A mutant
is run against the tests of its statement, fastest first. A second call resumes the first; `--again`
repeats survivors; use a separate `--output` for each sample. `equivalent_mutants.jsonl` lists
mutants with unchanged behaviour, with reasons; they are not run.
"""

import gc
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

import typer
from measure import PROJECT
from measure.tables import table

from .forks import PACKAGE, Items, Mutant, append, attack, collect, in_forks, read_rows, run_tests

MUTATED = "kernels loss decoding model/file.py penalty.py solvers"
COMPILER = "kernels/numba_support"  # unused when kernels run as Python
TESTS = "tests/kernels tests/loss tests/decoding tests/model tests/solvers tests/corpus"
TESTS += " tests/features/test_classes.py tests/features/test_featurizer.py"
TRAINING = "clusters path prior"
TESTS += "".join(f" tests/training/test_{name}.py" for name in TRAINING.split())
LONGEST, MOST = 5.0, 24.0  # maximum CPU seconds of a test with fixtures, and of a mutant's tests
BATCH = 200  # mutants
KNOWN = Path(__file__).with_name("equivalent_mutants.jsonl")
SHOWN = "path", "function", "operator", "before", "after"
# Code without effect: children of nodes, and nodes by their first words.
UNREAD = {("tfpdef", 2), ("annassign", 1)}
SKIPPED = {"raise_stmt": "raise", "if_stmt": "if TYPE_CHECKING", "decorated": "@overload"}
SKIPPED |= {"decorator": ("@kernel", "@inlined")}
STATEMENTS = {
    "if_stmt",
    "for_stmt",
    "while_stmt",
    "with_stmt",
    "try_stmt",
    "funcdef",
    "simple_stmt",
}


def cover(path: Path, items: Items) -> None:
    """Append the package lines that each new test executes, and its CPU seconds, or None."""
    from coverage import Coverage

    def measure(name: str) -> None:
        measured = Coverage(data_file=None, include=[f"{PACKAGE}/*"], messages=False)
        measured.start()
        run_tests({name: LONGEST / 5.0}, items)
        measured.stop()
        data = measured.get_data()
        files = {os.path.relpath(file, PACKAGE): data.lines(file) for file in data.measured_files()}
        append(path, {"test": name, "seconds": sum(os.times()[:2]), "lines": files})

    gc.freeze()
    known = {row["test"] for row in read_rows(path)}
    for name, code, _ in in_forks([name for name in items if name not in known], measure):
        if code:
            append(path, {"test": name, "seconds": None, "lines": {}})


def tests_of(mutant: Mutant, rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return the CPU seconds of the tests that execute a mutant's statement, fastest first.

    The first case of each test comes before second cases. For code run at import: the tests that
    execute its file, by lines per second.
    """
    path, is_late = mutant.path, bool(mutant.function)
    if not is_late:
        rows = sorted(rows, key=lambda row: -len(row["lines"].get(path, ())) / row["seconds"])
    cases = defaultdict[str, list[tuple[str, float]]](list)
    for row in rows:
        lines = row["lines"].get(path, ())
        if any(mutant.first <= line <= mutant.last or not is_late for line in lines):
            cases[row["test"].split("[")[0]].append((row["test"], row["seconds"]))
    found, total = [], 0.0
    for case in chain.from_iterable(zip_longest(*cases.values())):
        total += case[1] if case else 0.0
        if case and total <= MOST:
            found.append(case)
    return dict(sorted(found, key=lambda case: case[1]))


def place_of(leaf: Any) -> tuple[str, int, int] | None:
    """Return a leaf's function and the lines of its statement; None for annotations and errors."""
    name, lines, child, node = "", None, leaf, leaf.parent
    while node is not None:
        i = node.children.index(child)
        if (node.type, i) in UNREAD:
            return None
        if node.type in SKIPPED and node.get_code(False).startswith(SKIPPED[node.type]):
            return None
        if node.type in STATEMENTS and not lines:
            lines = child.start_pos[0], child.end_pos[0]
        if node.type == "funcdef":
            if child is node.annotation:
                return None
            name = node.name.value if child is node.children[-1] else name
        elif node.type == "classdef" and name:
            name = f"{node.name.value}.{name}"
        child, node = node, node.parent
    return name, *(lines or (leaf.start_pos[0],) * 2)


def draw(paths: list[str], n: int, seed: int, done: set[str]) -> Iterator[Mutant]:
    """Yield those of n random mutants that are not done; independent of changes to other lines."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names

    made = {name: get_operator(name) for name in operator_names()}
    operators = {name: each() for name, each in made.items() if not each.arguments()}
    sources = {path: (PACKAGE / path).read_text("utf8") for path in paths}
    drawn, seen = [], Counter[str]()
    for path, source in sources.items():
        tree, lines = get_ast(source), source.splitlines()
        nodes = [*ast_nodes(tree)]
        for name, operator in operators.items():
            positions = (p for node in nodes for p, _ in operator.mutation_positions(node))
            for i, position in enumerate(positions):
                if place := place_of(tree.get_leaf_for_position(position)):
                    text = f"{seed} {path} {name} {position[1]} {lines[position[0] - 1]}"
                    seen[text] += 1
                    digest = sha256(f"{text} {seen[text]}".encode()).hexdigest()
                    drawn.append((digest[:16], path, name, i, position[0] - 1, place))
    for digest, path, name, i, line, place in sorted(drawn)[:n]:
        if digest in done:
            continue
        code = mutate_code(sources[path], operators[name], i)
        before, after = (text.splitlines()[line].strip() for text in (sources[path], code))
        key = place[0], name.removeprefix("core/"), before, after
        yield Mutant(digest, path, *key, *place[1:], code)


def is_described(row: dict[str, Any], known: dict[str, str]) -> bool:
    """Return whether a mutant contains all texts of an entry of equivalent mutants."""
    return all(text in row[name] for name, text in known.items() if name != "reason")


def report(found: list[dict[str, Any]]) -> str:
    """Return the survivors and a table by directory."""
    known = read_rows(KNOWN)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    survivors = []
    for row in found:
        if row["result"] == "survived" and any(is_described(row, each) for each in known):
            row["result"] = "equivalent"
        if row["result"] == "survived":
            survivors.append(" | ".join(str(row[name]) for name in SHOWN))
        for folder in (row["path"].split("/")[0], "all"):
            counts[folder][row["result"]] += 1
    lines = []
    for folder, n in sorted(counts.items()):
        killed, whole = n["killed"] + n["time limit"], n.total()
        shares = (f"{100 * killed / each:.1f}" for each in (whole, whole - n["equivalent"]))
        lines.append([folder, *map(str, (whole, killed, n["equivalent"], n["survived"])), *shares])
    header = ["", "mutants", "killed", "equivalent", "survived", "% of all", "% of others"]
    return "\n".join([*survivors, table(header, lines)])


def main(
    sample: int = 1500,
    seed: int = 0,
    files: str = MUTATED,
    tests: str = TESTS,
    again: bool = False,
    output: Path = PROJECT / "metrics" / "reliability",
) -> None:
    """Run a sample of mutants, and print survivors and a table."""
    output.mkdir(parents=True, exist_ok=True)
    covered, results, names = output / "lines.jsonl", output / "mutants.jsonl", tests.split()
    for _, code, _ in in_forks([names], partial(collect, partial(cover, covered))):
        assert not code
    roots = [PACKAGE / name for name in files.split()]
    paths = [each for root in roots for each in ([root] if root.suffix else root.rglob("*.py"))]
    relative = [str(path.relative_to(PACKAGE)) for path in paths if COMPILER not in str(path)]
    found = [row for row in read_rows(results) if not again or row["result"] != "survived"]
    results.write_text("".join(json.dumps(row) + "\n" for row in found))
    new = draw(relative, sample, seed, {row["id"] for row in found})
    rows = [row for row in read_rows(covered) if row["seconds"]]
    rows.sort(key=lambda row: row["seconds"])
    known = read_rows(KNOWN)
    while some := [*islice(new, BATCH)]:  # partial results are a random sample
        equal = {each.id for each in some for it in known if is_described(each._asdict(), it)}
        own = {each.id: {} if each.id in equal else tests_of(each, rows) for each in some}
        attack(some, own, names, results)
    typer.echo(report(read_rows(results)))


if __name__ == "__main__":
    typer.run(main)
