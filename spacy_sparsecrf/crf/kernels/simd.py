"""Operations of kernels on vectors of 8 numbers; the Python implementation.

In kernels each function is LLVM IR (see `numba_support.intrinsics`). Sums are added in a fixed
order, and a product plus a number is rounded once (fused multiply-add): results are equal in Python
and on all processors with such an instruction (x86-64-v3, 64-bit ARM).
"""

from typing import Any

import numpy as np

WIDTH = 8


def prefetch(array: np.ndarray, place: Any) -> None:
    """Prefetch the cache line of an element of a contiguous array; in Python, do nothing."""


def zeros(like: np.ndarray) -> np.ndarray:
    """Return a vector of zeros of an array's type."""
    return np.zeros(WIDTH, like.dtype)


def wide_zeros() -> np.ndarray:
    """Return a vector of zeros in float64."""
    return np.zeros(WIDTH)


def read(array: np.ndarray, place: int) -> np.ndarray:
    """Return the 8 elements of a contiguous array, flattened, from a place on."""
    return np.array(array.reshape(-1)[place : place + WIDTH])


def write(vector: np.ndarray, array: np.ndarray, place: int) -> None:
    """Write a vector to 8 elements of a contiguous array, flattened, from a place on."""
    array.reshape(-1)[place : place + WIDTH] = vector


def multiply_add(x: Any, y: Any, z: Any) -> Any:
    """Return x * y + z, rounded once, of the widest type of the arguments."""
    kind = np.result_type(*map(np.asarray, (x, y, z))).type
    try:
        (a, b), (c, d), (e, f) = (float(number).as_integer_ratio() for number in (x, y, z))
        numerator, denominator = a * c * f + e * b * d, b * d * f
        quotient = numerator / denominator
    except (OverflowError, ValueError):  # not finite
        return kind(x) * kind(y) + kind(z)
    if not numerator:
        return kind(x) * kind(y) + kind(z)  # the sign of zero
    if kind is np.float32 and np.float64(quotient).view(np.int64) & 1 == 0:
        # Round an inexact result to odd, so that rounding to float32 equals rounding once.
        n, m = quotient.as_integer_ratio()
        if n * denominator != numerator * m:
            towards = np.inf if n * denominator < numerator * m else -np.inf
            quotient = np.nextafter(quotient, towards)
    return kind(quotient)


def add_multiple(total: np.ndarray, x: Any, vector: np.ndarray) -> np.ndarray:
    """Return total + x * vector, of the type of `total`; x: a number or a vector."""
    x = np.broadcast_to(np.asarray(x, total.dtype), total.shape)
    triples = zip(x, vector.astype(total.dtype), total, strict=True)
    return np.array([multiply_add(a, b, c) for a, b, c in triples])


def sum_of(vector: np.ndarray) -> Any:
    """Return the sum of the elements of a vector."""
    a, b, c, d = vector[:4] + vector[4:]
    return (a + b) + (c + d)


def write_sums(four: tuple[np.ndarray, ...], array: np.ndarray, place: int) -> None:
    """Write the sums of the elements of each of four vectors to an array from a place on."""
    array[place : place + 4] = [sum_of(vector) for vector in four]
