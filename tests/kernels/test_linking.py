"""What only kernels call is compiled in them; without private names of numba, nothing is."""

import ast
import gc
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba.core.codegen import JITCodeLibrary

from spacy_sparsecrf.crf.kernels import numba_support
from spacy_sparsecrf.crf.kernels.numba_support import bind, inlined, kernel, linking

from ..support.processes import run_python


@inlined
def double(x: float) -> float:
    return 2.0 * x


@inlined
def increase(x: float) -> float:
    return double(x) + 1.0


@inlined
def largest(row: np.ndarray) -> float:
    found = -np.inf
    for x in row:
        found = max(found, increase(x))
    return found


@pytest.fixture
def made(monkeypatch, tmp_path) -> list[tuple[str, type]]:
    """Collects the names of functions that get machine code, and the classes of their libraries."""
    # The usual cache has code from earlier test runs.
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    found: list[tuple[str, type]] = []
    make = JITCodeLibrary._finalize_specific
    monkeypatch.setattr(
        JITCodeLibrary,
        "_finalize_specific",
        lambda self: (found.append((self.name.split(".")[-1], type(self))), make(self)),
    )
    return found


def make_scale():
    @kernel
    def scale(row: np.ndarray) -> float:
        return largest(row) * double(row[0])

    return scale


def test_a_kernel_holds_what_it_calls_at_any_depth(made):
    """`double` is needed by two callers, of which one comes before the other's callee."""
    assert make_scale()(np.array([0.5, 3.0, -1.0])) == 7.0 * 1.0
    assert ("scale", linking.KernelLibrary) in made
    assert not {"double", "increase", "largest"} & {name for name, _ in made}
    assert increase(3.0) == 7.0  # called from Python, it runs as plain Python


class Part(NamedTuple):
    weight: float
    ids: np.ndarray


@inlined
def later(first: int, part: Part) -> Part:
    return Part(2.0 * part.weight, part.ids[first:])


@kernel
def use_parts(part: Part, out: np.ndarray) -> float:
    total = 0.0
    for first in range(len(part.ids)):
        weight, ids = later(first, part)
        out[first] = ids[0]
        total += weight
    return total


def test_named_tuples_are_read_made_and_returned():
    for call in (use_parts, use_parts.py_func, bind(use_parts, PART, np.zeros(4, np.int32))):
        out = np.zeros(4, np.int32)
        assert call(PART, out) == 3.0
        assert out.tolist() == [7, 1, 5, 0]


PART = Part(0.5, np.array([7, 1, 5], np.int32))


def test_an_error_in_what_a_kernel_calls_reaches_python():
    @inlined
    def check(x: float) -> float:
        if x < 0.0:
            raise ValueError("negative")
        return x

    @kernel
    def checked(x: float) -> float:
        return check(x)

    assert checked(2.0) == 2.0
    with pytest.raises(ValueError, match="negative"):
        checked(-2.0)


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_is_collected_after_compilation_if_it_was_before(collects):
    @kernel
    def negate(x: float) -> float:
        return -x

    before = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        assert negate(2.0) == -2.0
        assert gc.isenabled() == collects
    finally:
        (gc.enable if before else gc.disable)()


# If numba lacks a private name, its standard pipeline is used


# The private names that are imported, and the used attributes of their objects.
NAMES = [
    "numba.core.caching.CompileResultCacheImpl._locator_classes",
    "numba.core.caching.CompileResultCacheImpl.rebuild",
    "numba.core.caching.FunctionCache._index_key",
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
    "numba.core.serialize.dumps",
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
    environment = {"NUMBA_CACHE_DIR": str(cache)}
    done = run_python("-m", "tests.support.missing_names", *names, env=environment)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_private_name_that_is_imported_is_made_missing_below():
    assert all(any(path.startswith(name) for path in NAMES) for name in imported())
    assert all(any(path.startswith(name) for name in imported()) for path in NAMES)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked")
def test_without_a_private_name_the_standard_pipeline_gives_the_same_results(tmp_path):
    found = {name: result for name, *result in run(*NAMES, cache=tmp_path / "standard")}
    [(_, is_standard, expected)] = run("", cache=tmp_path / "linked")
    assert not is_standard
    # Without the options of these names, code counts references but is still linked.
    links = {name for name in NAMES if name.endswith(("_nrt", "no_cfunc_wrapper"))}
    assert found == {name: [name not in links, expected] for name in NAMES}
    # numba's cache does not notice changes of functions in other files.
    assert not [*tmp_path.rglob("*.nbi")]
