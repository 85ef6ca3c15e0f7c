"""A cache in which the kernels of all solvers were compiled, and for what types."""

import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import spacy_sparsecrf

# The name, the type and the width of each argument of a call; see `signatures`.
Call = list[tuple[str, str, str]]
Signatures = dict[str, list[Call]]


@dataclass(frozen=True)
class AllCompiled:
    """What a process with an empty cache compiled for all solvers in double precision.

    cache: the directory that has the code, which tests do not change.
    """

    cache: Path
    signatures: Signatures


def compile_all(precision: str, cache: Path, **environment: str) -> Signatures:
    """Run all solvers in a process of its own; an empty cache hides nothing of what they call."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), **environment}
    command = [sys.executable, "-m", "tests.kernels.signatures", precision]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    found: Signatures = json.loads(done.stdout)
    return found


def all_kernels() -> Iterator[tuple[str, Any]]:
    """The name of each kernel with that of its module, and the kernel."""
    package = Path(spacy_sparsecrf.__file__).parent
    for path in sorted(package.rglob("*.py")):
        if "numba_support import" in path.read_text(encoding="utf-8"):
            parts = path.relative_to(package.parent).with_suffix("").parts
            module = importlib.import_module(".".join(parts))
            for name, value in vars(module).items():
                if hasattr(value, "signatures") and value.py_func.__module__ == module.__name__:
                    yield f"{parts[-1]}.{name}", value


def lend(cache: Path) -> None:
    """Copy code to where this process looks for it, of kernels of which nothing is there."""
    for name, kernel in all_kernels():
        if kernel.cache.is_kept and not kernel.cache.has_code:
            for path in cache.rglob(f"{name}-*.nb?"):
                shutil.copy(path, kernel.cache.cache_path)
