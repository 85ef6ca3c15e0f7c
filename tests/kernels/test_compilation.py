"""`warmup` compiles everything ahead of time, and no kernel twice because of its types."""

import os
import shutil
import subprocess
import sys
from itertools import combinations
from types import ModuleType

import pytest

from spacy_sparsecrf.crf.kernels.numba_support import bind, kernel
from spacy_sparsecrf.crf.kernels.numba_support.recording import recorded

from ..support.compiled_cases import Call, Signatures, compile_all


def accidents(first: Call, second: Call, *, widths: bool) -> set[str]:
    """Return the arguments whose types differ between two calls for no good reason.

    widths: whether both float widths may occur; then a difference in width is accepted if all
    differing arguments have one width in one call and the other width in the other call.
    """
    pairs = list(zip(first, second, strict=True))
    found = {name for (name, a, _), (_, b, _) in pairs if a != b}
    differing = {name: (a, b) for (name, _, a), (_, _, b) in pairs if a != b}
    mixed = any(len(set(side)) > 1 for side in zip(*differing.values(), strict=True))
    return found | set(differing) if mixed or not widths else found


def check(compiled: Signatures, precision: str) -> None:
    assert sum(map(bool, compiled.values())) > 30
    found = {
        name: set().union(*(accidents(*two, widths=precision == "float32") for two in pairs))
        for name, calls in compiled.items()
        if (pairs := list(combinations(calls, 2)))
    }
    assert {name: arguments for name, arguments in found.items() if arguments} == {}


def test_no_kernel_is_compiled_twice_by_accident(everything_compiled):
    check(everything_compiled.signatures, "float64")


@pytest.mark.slow
def test_no_kernel_of_single_precision_is_compiled_twice_by_accident(tmp_path):
    # The speed of the compiled code is irrelevant.
    check(compile_all(tmp_path, "float32", NUMBA_OPT="0")[0], "float32")


def test_after_warmup_nothing_is_left_to_compile(everything_compiled, tmp_path):
    assert "Kernels are compiled" in everything_compiled.told
    # The command logs its progress, but no notice of compilation, which the user requested.
    assert all(line.startswith("[") for line in everything_compiled.log.splitlines())
    assert "once:" not in everything_compiled.log
    cache = shutil.copytree(everything_compiled.cache, tmp_path / "cache")
    compiled = sorted(path.name for path in cache.rglob("*.nbc"))
    assert any(name.startswith("minibatch.finish_pass") for name in compiled)
    assert any(name.startswith("viterbi.viterbi") for name in compiled)
    # Nor for the process that helps the first training: it compiles what a training calls.
    helper = ["spacy_sparsecrf.tools.compile_ahead"]
    for module in ["spacy_sparsecrf", "warmup", "--prediction"], helper:
        again = subprocess.run(
            [sys.executable, "-m", *module],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        )
        assert sorted(path.name for path in cache.rglob("*.nbc")) == compiled
        assert "Compiling" not in again.stderr


def test_kernels_are_recorded_as_python_calls_them(monkeypatch):
    @kernel
    def inner(x: float) -> float:
        return x + 1.0

    @kernel
    def outer(x: float) -> float:
        return 2.0 * inner(x)

    module = ModuleType("recorded.part")
    module.inner, module.outer = inner, outer
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with recorded("recorded") as compilations:
        assert outer(1.5) == 5.0 and bind(outer, 1.0)(2.0) == 6.0 and inner(1) == 2.0
    assert [name for name, _ in compilations] == ["outer", "inner"] and not outer.signatures
    compile_outer = next(iter(compilations.values()))
    assert compile_outer()(1.5) == 5.0 and len(outer.signatures) == 1
