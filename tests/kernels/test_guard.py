"""If numba lacks a private name, its standard pipeline is used and gives the same labels."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spacy_sparsecrf.kernels import numba_support

# The private names that are imported, and the used attributes of their objects.
NAMES = [
    "numba.core.caching.CompileResultCacheImpl._locator_classes",
    "numba.core.caching.FunctionCache._load_overload",
    "numba.core.caching.IndexDataCacheFile._load_index",
    "numba.core.caching.NullCache",
    "numba.core.codegen.JITCodeLibrary._codegen._tm",
    "numba.core.codegen.JITCodeLibrary._final_module",
    "numba.core.codegen.JITCodeLibrary._finalized",
    "numba.core.codegen.JITCodeLibrary.enable_object_caching",
    "numba.core.compiler.Compiler",
    "numba.core.options.DefaultOptions._nrt",
    "numba.core.options.DefaultOptions.no_cfunc_wrapper",
    "numba.core.options.DefaultOptions.no_cpython_wrapper",
    "numba.core.registry.cpu_target.target_context.codegen",
    "numba.core.runtime.nrt.rtsys.initialize",
]


def imported() -> set[str]:
    """Return the names in numba's private modules that the package imports."""
    found = set()
    for path in Path(numba_support.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("numba.core"):
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def run(*names: str, cache: Path) -> list[list[Any]]:
    """Return the output of `missing_names` for each name."""
    command = [sys.executable, "-m", "tests.kernels.missing_names", *names]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_private_name_that_is_imported_is_made_missing_below():
    assert all(any(path.startswith(name) for path in NAMES) for name in imported())
    assert all(any(path.startswith(name) for name in imported()) for path in NAMES)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked")
def test_without_a_private_name_the_standard_pipeline_gives_the_same_results(tmp_path):
    # The standard pipeline's code is compiled once; other processes load it from the cache.
    found = {name: result for name, *result in run(*NAMES, cache=tmp_path / "standard")}
    [(_, is_standard, expected)] = run("", cache=tmp_path / "linked")
    assert not is_standard
    # Without the options of these names, code counts references but is still linked.
    links = {name for name in NAMES if name.endswith(("_nrt", "no_cfunc_wrapper"))}
    assert found == {name: [name not in links, expected] for name in NAMES}
