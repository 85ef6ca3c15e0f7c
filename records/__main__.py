"""Record results, compare a commit with the record, or check the seeded faults.

    python -m records record PART [NAME...]     print rows: solvers, pipelines, commands, whole
    python -m records compare [COMMIT] [PART...]    parts of a commit, default: this tree, all but whole
    python -m records faults [NUMBER...]        apply each fault to a copy; its tests must fail

Environment: SPARSECRF_DATA, the folder of data; RECORD_TRACE, a program that prints the trace;
RECORD_CUT, a regular expression of names of rows whose feature was cut on purpose.
A row is equal, shifted (equal after one row for the warm start), stops (the same steps, but more or
fewer), close (same minimum: 1e-8 relative), cut, composes (refused before), or DIFFERS, which makes the command fail.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PARTS = ("solvers", "pipelines", "commands", "whole")
# Refusals of what does not exist any more: settings, arguments, solvers, commands.
GONE = {"cut", "ConfigValidationError", "RegistryError"}
LATER = Path(tempfile.gettempdir()) / "records-scratch"


def record(part: str, names: list[str]) -> None:
    """Print the rows of a part as JSON lines, in this process."""
    LATER.mkdir(exist_ok=True)
    module = __import__(f"records.{part}", fromlist=["rows"])
    for row in module.rows(LATER, names):
        print(json.dumps(row), flush=True)


def tree_of(commit: str, folder: Path) -> Path:
    """Check a commit out, with its entry points; return its folder."""
    subprocess.run(["git", "worktree", "add", "-q", "--detach", folder, commit], check=True)
    configs = folder / "spacy_sparsecrf/configs"
    if not configs.exists():
        configs.symlink_to(folder / "configs")
    shutil.copytree(HERE, folder / "records", dirs_exist_ok=True)
    subprocess.run([sys.executable, "setup.py", "-q", "egg_info"], cwd=folder, check=True)
    return folder


def run_part(tree: Path, part: str) -> list[dict[str, Any]]:
    """Return the rows of a part in the code of a tree."""
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    command = [sys.executable, "-m", "records", "record", part]
    done = subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def near(a: Any, b: Any, tolerance: float = 1e-8) -> bool:
    """Return whether two objectives, as text, agree."""
    return abs(float(a) - float(b)) <= tolerance * abs(float(a))


def same_steps(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Return whether two runs take the same first steps; a run that has ended repeats its last."""
    path = list(dict.fromkeys(new["path"]))
    return path == old["path"][: len(path)]


def judge(old: dict[str, Any], new: dict[str, Any] | None) -> str:
    """Return the verdict on a row."""
    name = old["row"]
    if re.search(os.environ.get("RECORD_CUT", "^$"), name) or (new or {}).get("error") in GONE:
        return "cut" if "error" not in old else "equal"
    if new is None:
        return "DIFFERS (missing)"
    old, new = ({k: v for k, v in row.items() if k != "noisy"} for row in (old, new))
    if old == new:
        return "equal"
    if "error" in old:
        return "composes" if "error" not in new else f"DIFFERS ({old['error']} {new['error']})"
    if "error" in new:
        return f"DIFFERS (refused: {new['error']} {new.get('text', '')})"
    if "steps" in old and old["steps"] != new["steps"] and same_steps(old, new):
        return f"stops (the same steps, {old['steps']} and {new['steps']})"
    if "path" in old and new["path"][1 : len(old["path"])] == old["path"][:-1]:
        return "shifted"
    if "end" in old and near(old["end"]["objective"], new["end"]["objective"]):
        path = "same path, " if old["path"] == new["path"] else ""
        return f"close ({path}{old['steps']} and {new['steps']} steps)"
    if "objective" in old and near(old["objective"], new["objective"]):
        return "close"
    return "DIFFERS"


def compare(commit: str, parts: list[str]) -> int:
    """Print verdicts that are not "equal", and their counts; return 1 if a row differs."""
    with tempfile.TemporaryDirectory() as folder:
        tree = HERE.parent if commit == "." else tree_of(commit, Path(folder) / "tree")
        counts: Counter[str] = Counter()
        for part in parts:
            lines = (HERE / f"{part}.jsonl").read_text().splitlines()
            found = {row["row"]: row for row in run_part(tree, part)}
            for old in map(json.loads, lines):
                new = found.pop(old["row"], None)
                verdict = judge(old, new)
                counts[verdict.split(" ")[0]] += 1
                if verdict != "equal":
                    print(f"{verdict:<12} {old['row']}", flush=True)
                for key in old if verdict == "DIFFERS" and new else ():
                    if old[key] != new.get(key):
                        print(f"    {key}: {old[key]}\n    now: {new.get(key)}")
                if "noisy" in old and new:
                    print(f"    {old['row']}: {old['noisy']}\n    now: {new.get('noisy')}")
            print(*(f"new          {name}" for name in found), sep="\n")
        if commit != ".":
            subprocess.run(["git", "worktree", "remove", "--force", tree], check=False)
    print(dict(counts))
    return int(counts["DIFFERS"] > 0)


def check_fault(fault: dict[str, Any], tree: Path) -> str:
    """Apply a fault, run its tests, and undo it; return the outcome."""
    for name in fault["files"]:
        path = tree / name
        if path.exists() and path.read_text().count(fault["old"]) == 1:
            break
    else:
        return "NOT APPLICABLE: find the place again"
    text = path.read_text()
    path.write_text(text.replace(fault["old"], fault["new"]))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-n0",
        *fault["tests"],
    ]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    # Kernels as plain Python, so that nothing is compiled.
    environment |= {"NUMBA_DISABLE_JIT": "1"} if fault["python"] else {}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    path.write_text(text)
    last = next(iter(re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)), "")
    return f"red: {last}" if done.returncode == 1 else f"NOT RED ({done.returncode})"


def faults(numbers: list[str]) -> int:
    """Check the numbered faults, or all, on a copy of this commit."""
    lines = (HERE / "faults.jsonl").read_text().splitlines()
    with tempfile.TemporaryDirectory() as folder:
        tree, failed = tree_of("HEAD", Path(folder) / "tree"), 0
        for number, fault in enumerate(map(json.loads, lines), 1):
            if not numbers or str(number) in numbers:
                outcome = check_fault(fault, tree)
                failed += not outcome.startswith("red")
                print(f"{number:>2} {fault['what']}: {outcome}", flush=True)
        subprocess.run(["git", "worktree", "remove", "--force", tree], check=False)
    return int(failed > 0)


def main(verb: str, *arguments: str) -> int:
    """Run a verb; return the exit code."""
    if verb == "record":
        record(arguments[0], [*arguments[1:]])
        return 0
    if verb == "faults":
        return faults([*arguments])
    parts = [word for word in arguments if word in PARTS]
    commit = next(iter(word for word in arguments if word not in PARTS), ".")
    return compare(commit, parts or [*PARTS[:3]])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
