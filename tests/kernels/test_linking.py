"""Functions that only kernels call are part of kernels, and nothing by themselves."""

import gc

import numba
import numpy as np
import pytest
from numba.core.codegen import JITCodeLibrary

from spacy_sparsecrf.kernels.compiled import inner, kernel


@inner
def double(x: float) -> float:
    return 2.0 * x


@inner
def increase(x: float) -> float:
    return double(x) + 1.0


@inner
def largest(row: np.ndarray) -> float:
    found = -np.inf
    for x in row:
        found = max(found, increase(x))
    return found


def test_a_kernel_holds_what_it_calls_at_any_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    """`double` is needed by two callers, of which one comes before the other's callee."""
    made: list[str] = []
    make = JITCodeLibrary._finalize_specific
    monkeypatch.setattr(
        JITCodeLibrary, "_finalize_specific", lambda self: (made.append(self.name), make(self))
    )

    @kernel
    def scale(row: np.ndarray) -> float:
        return largest(row) * double(row[0])

    row = np.array([0.5, 3.0, -1.0])
    assert scale(row) == 7.0 * 1.0
    assert any(name.endswith("scale") for name in made)
    assert not {"double", "increase", "largest"} & set(made)
    assert increase(3.0) == 7.0  # called from Python they are Python


@pytest.mark.parametrize("version", ["0.60.0", "0.69.0", "1.0.0dev0"])
def test_another_numba_compiles_in_its_own_way(version, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[type] = []
    make = JITCodeLibrary._finalize_specific
    monkeypatch.setattr(
        JITCodeLibrary, "_finalize_specific", lambda self: (made.append(type(self)), make(self))
    )
    monkeypatch.setattr(numba, "__version__", version)

    @inner
    def triple(x: float) -> float:
        return 3.0 * x

    @kernel
    def total(row: np.ndarray) -> float:
        return triple(row[0]) + triple(row[1])

    assert total(np.array([1.0, 2.0])) == 9.0
    assert {*made} == {JITCodeLibrary}


def test_an_error_in_what_a_kernel_calls_reaches_python() -> None:
    @inner
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
def test_garbage_is_collected_after_compilation_if_it_was_before(collects: bool) -> None:
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
