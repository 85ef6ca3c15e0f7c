"""A cache of the kernels of all solvers, and the types they were compiled for."""

import importlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import spacy_sparsecrf

from .processes import run_python

# Name, type and float width of each argument of a call; see `signatures`.
Call = list[tuple[str, str, str]]
Signatures = dict[str, list[Call]]


@dataclass(frozen=True)
class AllCompiled:
    """The result of the command `warmup`, from an empty cache.

    cache: directory of the code; tests must not modify it; told, log: standard output and error.
    """

    cache: Path
    signatures: Signatures
    told: str
    log: str


def compile_all(cache: Path, *precision: str, **environment: str) -> tuple[Signatures, str, str]:
    """Run all solvers in a new process; an empty cache shows all kernels they call.

    precision: none for the command `warmup`. RETURNS: argument types, standard output and error.
    """
    environment = {"NUMBA_CACHE_DIR": str(cache), **environment}
    done = run_python("-m", "tests.support.signatures", *precision, env=environment)
    told, _, found = done.stdout.rpartition("\n")
    return json.loads(found), told, done.stderr


def all_kernels() -> Iterator[tuple[str, Any]]:
    """Yield each kernel with its name, qualified by its module."""
    package = Path(spacy_sparsecrf.__file__).parent
    for path in sorted(package.rglob("*.py")):
        if "numba_support import" in path.read_text(encoding="utf-8"):
            parts = path.relative_to(package.parent).with_suffix("").parts
            module = importlib.import_module(".".join(parts))
            for name, value in vars(module).items():
                if hasattr(value, "signatures") and value.py_func.__module__ == module.__name__:
                    yield f"{parts[-1]}.{name}", value


def lend(cache: Path) -> None:
    """Copy missing kernel code from `cache` to the cache of this process."""
    for name, kernel in all_kernels():
        if kernel.cache.is_kept and not kernel.cache.has_code:
            for path in cache.rglob(f"{name}-*.nbc"):
                shutil.copy(path, kernel.cache.cache_path)
