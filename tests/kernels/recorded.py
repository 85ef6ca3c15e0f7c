"""Calls of all kernels, as trainings and predictions make them, run twice: compiled, and in Python.

A `Recorder` takes the place of a kernel wherever the package has it, also within other kernels.
"""

import importlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import types
from numba.extending import typeof_impl

from .compiled_cases import all_kernels

Check = Callable[[str, Any, tuple[Any, ...]], Any]


class Recorder:
    """A kernel whose calls from Python are handed to a check."""

    def __init__(self, name: str, kernel: Any, check: Check) -> None:
        self.name, self.kernel, self.check = name, kernel, check

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)

    def compile(self, signature: Any) -> Any:
        """What `bind` asks for."""
        return self

    def __call__(self, *arguments: Any) -> Any:
        return self.check(self.name, self.kernel, arguments)


@typeof_impl.register(Recorder)
def _typeof(recorder: Recorder, _: Any) -> types.Dispatcher:
    return types.Dispatcher(recorder.kernel)  # for kernels that call this one


class Copies:
    """Copies of arrays, of which those share memory that did before."""

    def __init__(self) -> None:
        self.roots: dict[int, np.ndarray] = {}

    def of(self, value: Any) -> Any:
        """A copy of arguments."""
        if isinstance(value, np.ndarray):
            root = value
            while isinstance(root.base, np.ndarray):
                root = root.base
            buffer = self.roots.setdefault(id(root), root.copy(order="K"))
            begin = value.__array_interface__["data"][0] - root.__array_interface__["data"][0]
            return np.ndarray(value.shape, value.dtype, buffer, begin, value.strides)
        if isinstance(value, tuple):
            parts = map(self.of, value)
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        return value


def arrays_of(value: Any) -> Iterator[np.ndarray]:
    """The arrays in arguments or results, at any depth."""
    if isinstance(value, tuple):
        for part in value:
            yield from arrays_of(part)
    elif isinstance(value, np.ndarray | float | int | np.generic):
        yield np.asarray(value)


@contextmanager
def recording(check: Check) -> Iterator[None]:
    """Hand each call of a kernel to a check, which returns what the kernel would."""
    recorders = {id(kernel): Recorder(name, kernel, check) for name, kernel in all_kernels()}
    patched = [
        (module, name, value)
        for title, module in list(sys.modules.items())
        if title.startswith("spacy_sparsecrf")
        for name, value in list(vars(module).items())
        if id(value) in recorders
    ]
    for module, name, value in patched:
        setattr(module, name, recorders[id(value)])
    try:
        yield
    finally:
        for module, name, value in patched:
            setattr(module, name, value)
