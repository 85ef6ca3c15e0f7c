"""Assertions of the checks, with messages."""

from typing import Any

import numpy as np

from ..errors import Errors


def name_of(part: Any) -> str:
    """Return the name of an object's class, or of a function."""
    return str(getattr(part, "__name__", type(part).__name__))


def require(part: Any, fact: str, holds: object) -> None:
    """Check a condition. fact: states the violation. RAISES: AssertionError with part and fact."""
    if not holds:
        raise AssertionError(Errors.SC660.format(part=name_of(part), fact=fact))


def require_same(part: Any, fact: str, got: Any, expected: Any) -> None:
    """Check that two values are equal; arrays, also in lists or tuples, must be bit-identical."""
    if not _same(got, expected):
        values = {"got": _short(got), "expected": _short(expected)}
        raise AssertionError(Errors.SC661.format(part=name_of(part), fact=fact, **values))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]} ..."
