"""Run `warmup`, or all that it compiles in one precision, and print the compiled types.

Run as a module, with an empty cache and, for other settings than `warmup`, a precision as argument:
signatures are recorded per process, and cached code hides the functions it was compiled with.
"""

import json
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from numba import types

from spacy_sparsecrf.__main__ import app
from spacy_sparsecrf.errors import SparseCRFWarning
from spacy_sparsecrf.tools.cli.warmup import all_kinds, train_and_predict

from .compiled_cases import Signatures, all_kernels


def run_all(precision: str) -> None:
    """Train with each solver and each type of model, and predict."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SparseCRFWarning)
        for config in all_kinds():
            # Weights are stored with the precision of training: no kernel needs both.
            train_and_predict({**config, "learning": {"precision": precision, "dtype": precision}})


def told(name: str, kind: Any) -> Iterator[tuple[str, str, str]]:
    """Yield name, type without float width, and float width of an argument.

    Each field of a named tuple has its own entry.
    """
    if isinstance(kind, types.BaseNamedTuple):
        for field, part in zip(kind.fields, kind.types, strict=True):
            yield from told(f"{name}.{field}", part)
    elif isinstance(kind, types.Array) and isinstance(kind.dtype, types.Float):
        yield name, str(kind).replace(str(kind.dtype), "float"), str(kind.dtype)
    else:
        yield name, str(kind), ""


def signatures() -> Signatures:
    """Return the argument types of each kernel in each call that was compiled or loaded."""
    found: Signatures = {}
    for title, kernel in all_kernels():
        code, found[title] = kernel.py_func.__code__, []
        for signature in kernel.signatures:
            arguments = zip(code.co_varnames, signature, strict=False)
            found[title].append([part for named in arguments for part in told(*named)])
    return found


if __name__ == "__main__":
    run_all(sys.argv[1]) if sys.argv[1:] else app(["warmup"], standalone_mode=False)
    sys.stdout.write(json.dumps(signatures()))
