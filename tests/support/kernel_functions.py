"""Kernels for tests: compiled, or as plain Python."""

from functools import cache
from typing import Any

from numba.core.registry import CPUDispatcher

from spacy_sparsecrf.crf.kernels.numba_support import kernel as compile_kernel


@cache
def compiled(kernel: Any) -> Any:
    """Return the compiled kernel, also of a function that only kernels call."""
    # An inlined function is otherwise compiled only as part of a kernel.
    return kernel if isinstance(kernel, CPUDispatcher) else compile_kernel(kernel)


def function(kernel: Any, jit: bool) -> Any:
    """Return the compiled kernel, or the Python function it is compiled from."""
    return compiled(kernel) if jit else getattr(kernel, "py_func", kernel)
