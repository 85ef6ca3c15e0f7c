"""Kernels as tests call them: compiled, or in Python."""

from functools import cache
from typing import Any

from numba.core.registry import CPUDispatcher

from spacy_sparsecrf.kernels.numba_support import kernel as compile_kernel


@cache
def compiled(kernel: Any) -> Any:
    """The compiled kernel, of one that only kernels call too."""
    # An inlined function has no code but as a part of a kernel.
    return kernel if isinstance(kernel, CPUDispatcher) else compile_kernel(kernel)


def function(kernel: Any, jit: bool) -> Any:
    """The compiled kernel, or the Python function it is compiled from."""
    return compiled(kernel) if jit else getattr(kernel, "py_func", kernel)
