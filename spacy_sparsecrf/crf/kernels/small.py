"""Operations on a row of numbers that several kernels share, and lookup of positions."""

from typing import Any

import numpy as np

from .layout import Floats, Ints
from .numba_support import inlined
from .simd import WIDTH, add_multiple, multiply_add, prefetch, read, sum_of, wide_zeros


@inlined
def row_sum(row: Floats, n: int) -> float:
    """Return the sum of row[:n] in float64."""
    aligned, lanes = n - n % WIDTH, wide_zeros()
    for i in range(0, aligned, WIDTH):
        lanes = add_multiple(lanes, 1.0, read(row, i))
    total = np.float64(sum_of(lanes))
    for i in range(aligned, n):
        total += row[i]
    return total


@inlined
def dot(a: Floats, b: Floats) -> float:
    """Return the inner product of two contiguous rows [n] in float64."""
    aligned, lanes = len(a) - len(a) % WIDTH, wide_zeros()
    for i in range(0, aligned, WIDTH):
        lanes = add_multiple(lanes, read(a, i), read(b, i))
    total = float(sum_of(lanes))
    for i in range(aligned, len(a)):
        total = multiply_add(float(a[i]), float(b[i]), total)
    return total


@inlined
def reciprocal(number: Any) -> Any:
    """Return 1 / number, NaN for 0: numba would raise an error for a complex 0."""
    return number * np.nan if number == 0.0 else 1.0 / number


# Inlined, so that a constant number of elements unrolls the loops.
@inlined(forceinline=True)
def normalise(n: int, row: Floats) -> Any:
    """Divide row[:n], real or complex, by its sum, and return the sum."""
    # Of the type of the row, but at least float64.
    total = np.float64(0.0) * row[0]
    for i in range(n):
        total += row[i]
    factor = reciprocal(total)
    for i in range(n):
        row[i] *= factor
    return total


@inlined
def prefetch_row(matrix: Floats, row: int) -> None:
    """Prefetch a row of a contiguous matrix [n, Yp], Yp a multiple of 8."""
    begin, width = row * matrix.shape[1], matrix.shape[1]
    for offset in range(begin, begin + width, 8):
        prefetch(matrix, offset)


@inlined
def fill(row: np.ndarray, first: int, last: int, value: float) -> None:
    """Set row[first:last] to a value; an assignment to a slice takes much longer to compile."""
    # Slice first: numba tests the sign of each index if a loop begins at a variable.
    part = row[first:last]
    for i in range(len(part)):
        part[i] = value


@inlined
def position(places: Ints, place: int) -> int:
    """Return the first index at which ascending places are not below a place.

    `np.searchsorted` does the same, but takes half a second to compile.
    """
    low, high = 0, len(places)
    while low < high:
        middle = (low + high) >> 1
        if places[middle] < place:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def add_at(places: Ints, place: int, amount: float, totals: Floats) -> None:
    """Add an amount to the total at a place, if the ascending places contain it."""
    i = position(places, place)
    if i < len(places) and places[i] == place:
        totals[i] += amount
