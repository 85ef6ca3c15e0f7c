"""Loops over one row of numbers that several kernels share."""

from typing import Any

import numpy as np

from .compiled import inner
from .layout import Floats


@inner(fastmath={"reassoc"})
def row_sum(row: Floats, n: int) -> float:
    """Return the sum of row[:n]."""
    found = 0.0
    for i in range(n):
        found += row[i]
    return found


@inner(fastmath={"reassoc", "contract"})
def dot(a: Floats, b: Floats) -> float:
    """Return the inner product of two rows [n] in float64."""
    found = 0.0
    for i in range(len(a)):
        found += float(a[i]) * float(b[i])
    return found


@inner
def reciprocal(number: Any) -> Any:
    """Return 1 / number, NaN for 0: numba raises an error there for complex numbers."""
    return number * np.nan if number == 0.0 else 1.0 / number


# Inlined, so that a constant number of elements unrolls the loops.
@inner(forceinline=True)
def normalise(n: int, row: Floats) -> Any:
    """Divide row[:n], real or complex, by its sum, and return the sum."""
    # Of the type of the row, but at least float64.
    found = 0.0 * row[0]
    for i in range(n):
        found += row[i]
    factor = reciprocal(found)
    for i in range(n):
        row[i] *= factor
    return found
