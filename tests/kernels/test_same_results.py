"""Results are the same compiled and in Python, and on different CPUs."""

import json
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite import binding

from ..support.compiled_cases import all_kernels
from ..support.processors import NATIVE, imitating
from .recorded import Copies, arrays_of, recording, run_all

ROOT = Path(__file__).parents[2]


class InPython:
    """Records the first calls of each kernel, and repeats them compiled and in Python.

    n_kept: number of recorded calls; repeating a kernel also records calls of inner kernels.
    """

    def __init__(self, n_kept: int) -> None:
        self.n_kept = n_kept
        self.kept: dict[str, list[tuple[Any, Any]]] = defaultdict(list)
        self.calls: Counter[str] = Counter()
        self.different: Counter[str] = Counter()
        self._repeats = False

    def __call__(self, name: str, kernel: Any, arguments: tuple[Any, ...]) -> Any:
        """Run a kernel, and record its arguments first."""
        if len(self.kept[name]) < self.n_kept:
            self.kept[name].append((kernel, Copies().of(arguments)))
        # While repeating in Python, inner kernels run in Python too.
        return (kernel.py_func if self._repeats else kernel)(*arguments)

    def repeat(self) -> None:
        """Repeat the calls, and those of inner kernels that repeats record."""
        self._repeats, done = True, -1
        while done < self.calls.total():
            done = self.calls.total()
            for name in list(self.kept):
                for kernel, arguments in self.kept[name][self.calls[name] :]:
                    self._repeat(name, kernel, arguments)

    def _repeat(self, name: str, kernel: Any, arguments: tuple[Any, ...]) -> None:
        given, again = (Copies().of(arguments) for _ in range(2))
        both = (kernel(*given), given), (kernel.py_func(*again), again)
        self.calls[name] += 1
        pairs = zip(*map(arrays_of, both), strict=True)
        self.different[name] += not all(map(has_same_bits, *zip(*pairs, strict=True)))


def has_same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether numbers are the same, including the sign of zero; NaNs are equal."""
    first, second = (np.signbit(x) | np.isnan(x) if x.dtype.kind == "f" else x for x in (a, b))
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(first, second)


def check(precision: str, n_kept: int) -> None:
    in_python = InPython(n_kept)
    with recording(in_python):
        run_all(precision)
        in_python.repeat()
    calls, seconds = in_python.calls, time.process_time()
    sys.stdout.write(f"{precision}: {len(calls)} kernels, {calls.total()} calls, {seconds:.0f} s\n")
    assert [name for name, _ in all_kernels() if not calls[name]] == []
    assert +in_python.different == Counter()


@pytest.mark.usefixtures("everything_compiled")
@pytest.mark.parametrize(
    ("precision", "n_kept"),
    [
        ("float64", 2),
        *(pytest.param(p, 16, marks=pytest.mark.slow) for p in ("float64", "float32")),
    ],
)
def test_kernels_leave_the_same_numbers_compiled_and_in_python(precision, n_kept) -> None:
    # In a new process, because code that is bound to a kernel is kept until the process ends.
    call = f"check({precision!r}, {n_kept})"
    code = f"from tests.kernels.test_same_results import check; {call}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    sys.stdout.write(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not binding.get_host_cpu_features().get("avx2"), reason="no x86-64-v3")
def test_all_solvers_train_the_same_models_for_processors(tmp_path):
    newest = "skylake-avx512" if binding.get_host_cpu_features().get("avx512vl") else NATIVE
    found = []
    for cpu in ("x86-64-v3", newest):
        done = subprocess.run(
            [sys.executable, "-m", "tests.support.processors"],
            capture_output=True,
            text=True,
            env={**os.environ, **imitating(cpu, tmp_path)},
        )
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert len(found[0]) > 10
    assert [name for name in found[0] if found[0][name] != found[1][name]] == []
