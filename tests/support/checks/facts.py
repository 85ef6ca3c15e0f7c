"""Assertions of the checks, with messages."""

from typing import Any

import numpy as np

from spacy_sparsecrf.errors import SparseCRFError


def require(part: Any, fact: str, holds: object) -> None:
    """Check a condition. fact: states the violation. RAISES: AssertionError with part and fact."""
    if not holds:
        name = getattr(part, "__name__", type(part).__name__)
        raise AssertionError(f"{name} breaks its interface: {fact}")


def require_same(part: Any, fact: str, got: Any, expected: Any) -> None:
    """Check that two values are equal; arrays, also in lists or tuples, must be bit-identical."""
    if not _same(got, expected):
        require(part, f"{fact} ({_short(got)}, not {_short(expected)})", False)


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


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]} ..."
