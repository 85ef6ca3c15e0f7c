"""Kernels as tests call them: compiled, or in Python."""

from functools import cache
from typing import Any

from numba import njit
from numba.core.registry import CPUDispatcher


@cache
def compiled(kernel: Any) -> Any:
    """The compiled kernel, of one that only kernels call too."""
    return kernel if isinstance(kernel, CPUDispatcher) else njit(error_model="numpy")(kernel)


def function(kernel: Any, jit: bool) -> Any:
    """The compiled kernel, or the Python function it is compiled from."""
    return compiled(kernel) if jit else getattr(kernel, "py_func", kernel)
