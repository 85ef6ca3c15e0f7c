"""Kernels as tests call them: compiled, or in Python."""

from functools import cache
from typing import Any

from numba import njit
from numba.core.registry import CPUDispatcher

from spacy_sparsecrf.kernels.linking import KernelCompiler


@cache
def compiled(kernel: Any) -> Any:
    """The compiled kernel, of one that only kernels call too."""
    if isinstance(kernel, CPUDispatcher):
        return kernel
    # What it calls has no code but as a part of a kernel.
    return njit(pipeline_class=KernelCompiler, error_model="numpy")(kernel)


def function(kernel: Any, jit: bool) -> Any:
    """The compiled kernel, or the Python function it is compiled from."""
    return compiled(kernel) if jit else getattr(kernel, "py_func", kernel)
