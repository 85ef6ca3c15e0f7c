"""Results are the same compiled and in Python, and on different processors."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite import binding

from .compiled_cases import all_kernels
from .processors import NATIVE, imitating
from .recorded import Copies, arrays_of, run_recorded

ROOT = Path(__file__).parents[2]


class InPython:
    """Repeats the first calls of each kernel in Python, as passed, and with other numbers."""

    def __init__(self, n_calls: int) -> None:
        self.n_calls, self.rng = n_calls, np.random.default_rng(0)
        self.calls: Counter[str] = Counter()
        self.different: Counter[str] = Counter()
        self._repeats = False

    def __call__(self, name: str, kernel: Any, arguments: tuple[Any, ...]) -> Any:
        """Run a kernel, and repeat it before."""
        self.calls[name] += 1
        if self._repeats:  # a kernel that a kernel calls
            return kernel.py_func(*arguments)
        if self.calls[name] <= self.n_calls:
            self._repeats = True
            self._repeat(name, kernel, Copies().of(arguments))
            self._repeat(name, kernel, Copies(0.1, self.rng).of(arguments))
            self._repeats = False
        return kernel(*arguments)

    def _repeat(self, name: str, kernel: Any, arguments: tuple[Any, ...]) -> None:
        again = Copies().of(arguments)
        compiled, plain = kernel(*arguments), kernel.py_func(*again)
        pairs = zip(arrays_of((compiled, arguments)), arrays_of((plain, again)), strict=True)
        self.different[name] += not all(np.array_equal(*pair, equal_nan=True) for pair in pairs)


def check(n_calls: int) -> None:
    in_python = InPython(n_calls)
    run_recorded(in_python)
    assert [name for name, _ in all_kernels() if not in_python.calls[name]] == []
    assert +in_python.different == Counter()


@pytest.mark.usefixtures("everything_compiled")
@pytest.mark.parametrize("n_calls", [2, pytest.param(500, marks=pytest.mark.slow)])
def test_kernels_leave_the_same_numbers_compiled_and_in_python(n_calls: int) -> None:
    # In a process of its own: code that is bound to a kernel is kept until the end of a process.
    code = f"from tests.kernels.test_same_results import check; check({n_calls})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.skipif(not binding.get_host_cpu_features().get("avx2"), reason="no x86-64-v3")
def test_all_solvers_train_the_same_models_for_processors(tmp_path: Path) -> None:
    newest = "skylake-avx512" if binding.get_host_cpu_features().get("avx512vl") else NATIVE
    found = []
    for cpu in ("x86-64-v3", newest):
        done = subprocess.run(
            [sys.executable, "-m", "tests.kernels.processors"],
            capture_output=True,
            text=True,
            env={**os.environ, **imitating(cpu, tmp_path)},
        )
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert len(found[0]) > 10
    assert [name for name in found[0] if found[0][name] != found[1][name]] == []
