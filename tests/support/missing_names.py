"""Compile with a private name of numba hidden from the package.

Run as a module, with names as arguments, "" for none. numba is imported once; for each name, a
forked process hides it from the package, and writes a line of JSON: the name, whether the standard
pipeline was used, and the results.
"""

import builtins
import json
import os
import sys
import traceback
from typing import Any

import numba
import numpy as np


class Lacking:
    """A proxy without the attribute at the end of a path."""

    def __init__(self, value: Any, path: list[str]) -> None:
        self._value, self._path = value, path

    def __getattr__(self, name: str) -> Any:
        if [name] == self._path:
            raise AttributeError(name)
        value = getattr(self._value, name)
        return Lacking(value, self._path[1:]) if name == self._path[0] else value

    def __call__(self, *arguments: Any) -> Any:
        return Lacking(self._value(*arguments), self._path)


def hide(name: str) -> None:
    """Hide module.name, or an attribute of it, from the package but not from numba."""
    parts = name.split(".")
    n = max(n for n in range(1, len(parts)) if ".".join(parts[:n]) in sys.modules)
    module, import_ = ".".join(parts[:n]), builtins.__import__

    def hiding(asked: str, globals: Any = None, *more: Any, **options: Any) -> Any:
        found = import_(asked, globals, *more, **options)
        importer = (globals or {}).get("__name__", "")
        is_hidden = asked == module and importer.startswith("spacy_sparsecrf")
        return Lacking(found, parts[n:]) if is_hidden else found

    builtins.__import__ = hiding


def compile() -> list[float]:
    """Return the results of a kernel that is compiled with functions of other modules."""
    from spacy_sparsecrf.crf.kernels.numba_support import kernel
    from spacy_sparsecrf.crf.kernels.products import advance

    @kernel(allocates=True)
    def multiply(vector: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        product = np.zeros_like(vector)
        advance(vector, matrix, len(vector), product)
        return product

    found: list[float] = multiply(np.arange(8.0), np.arange(72.0).reshape(9, 8)).tolist()
    return found


def run(name: str) -> None:
    """Hide a name, compile, and write the result."""
    if name:
        hide(name)
    found = compile()

    from spacy_sparsecrf.crf.kernels.numba_support import IS_STANDARD

    sys.stdout.write(json.dumps([name, IS_STANDARD, found]) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    numba.njit(lambda x: x)(0.0)  # numba loads what it compiles with, once for all processes
    assert "spacy_sparsecrf.crf.kernels.numba_support" not in sys.modules
    for name in sys.argv[1:]:
        if os.fork():
            os.wait()
            continue
        try:
            run(name)
        except BaseException:
            traceback.print_exc()
        os._exit(0)
