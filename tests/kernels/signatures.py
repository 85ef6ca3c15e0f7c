"""Runs all that `warmup` compiles, in one precision, and tells for what types that was done.

Run as a module, with a precision as its argument and an empty cache: counts are of a process, and
code from the disk hides what was compiled with it.
"""

import json
import sys
import warnings
from typing import Any

from numba import types

from spacy_sparsecrf.cli.warmup import all_kinds, train_and_predict
from spacy_sparsecrf.errors import SparseCRFWarning

from .compiled_cases import Signatures, all_kernels


def run_all(precision: str) -> None:
    """Train by each solver, and each kind of model, and predict."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SparseCRFWarning)
        for config in all_kinds():
            # Weights are stored as wide as they are learnt: no kernel needs both.
            train_and_predict({**config, "precision": precision, "dtype": precision})


def told(kind: Any) -> tuple[str, str]:
    """A type without the width of an array of floats, and that width."""
    if isinstance(kind, types.BaseNamedTuple):
        parts = [told(part) for part in kind.types]
        fields = [f"{name}: {part}" for name, (part, _) in zip(kind.fields, parts, strict=True)]
        return f"({', '.join(fields)})", " ".join(width for _, width in parts if width)
    if isinstance(kind, types.Array) and isinstance(kind.dtype, types.Float):
        return str(kind).replace(str(kind.dtype), "float"), str(kind.dtype)
    return str(kind), ""


def signatures() -> Signatures:
    """The arguments of each kernel, and their types in each call that was compiled, or loaded."""
    found = {}
    for name, kernel in all_kernels():
        code = kernel.py_func.__code__
        arguments = list(code.co_varnames[: code.co_argcount])
        calls = [[told(kind) for kind in signature] for signature in kernel.signatures]
        found[name] = arguments, calls
    return found


if __name__ == "__main__":
    run_all(sys.argv[1])
    sys.stdout.write(json.dumps(signatures()))
