"""Assertions of the checks, with messages."""

import reprlib
from typing import Any

import numpy as np

from spacy_sparsecrf.errors import SparseCRFError


def require_same(fact: str, got: Any, expected: Any) -> None:
    """Check that two values are equal; arrays, also in lists or tuples, must be bit-identical.

    fact: states the violation.
    """
    assert _same(got, expected), f"{fact} ({reprlib.repr(got)}, not {reprlib.repr(expected)})"


def is_refused(function: Any, *args: Any, **named: Any) -> bool:
    """Return whether a call raises SparseCRFError."""
    try:
        function(*args, **named)
    except SparseCRFError:
        return True
    return False


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)
