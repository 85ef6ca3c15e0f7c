"""Which kernels a function calls, for which types, without compiling them."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import get_ident
from typing import Any

Compilation = Callable[[], Any]


class _Recorder:
    """Runs kernels as plain Python, and records what would be compiled.

    compilations: by a kernel's name and types, the function that compiles it, in the order of their
    first calls. Kernels that kernels call are compiled with these.
    """

    def __init__(self) -> None:
        self.compilations: dict[tuple[str, Any], Compilation] = {}
        self._threads_inside: set[int] = set()

    def compile(self, kernel: Any, compile: Callable[..., Any], signature: Any) -> Any:
        """Return what runs instead of a kernel's code for a signature."""
        if get_ident() in self._threads_inside:
            return kernel.py_func
        name = kernel.__name__, signature
        self.compilations.setdefault(name, partial(compile, signature))
        return partial(self._run, kernel.py_func)

    def _run(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        self._threads_inside.add(get_ident())
        try:
            return function(*arguments, **named)
        finally:
            self._threads_inside.remove(get_ident())


@contextmanager
def recorded(package: str) -> Iterator[dict[tuple[str, Any], Compilation]]:
    """Record calls of the kernels in all modules of a package that are imported."""
    modules = [sys.modules[name] for name in sys.modules if name.startswith(f"{package}.")]
    functions = [value for module in modules for value in vars(module).values()]
    kernels = {id(function): function for function in functions if hasattr(function, "py_func")}
    compilers = [(kernel, kernel.compile) for kernel in kernels.values()]
    recorder = _Recorder()
    for kernel, compile in compilers:
        kernel.compile = partial(recorder.compile, kernel, compile)
    try:
        yield recorder.compilations
    finally:
        for kernel, compile in compilers:
            kernel.compile = compile
