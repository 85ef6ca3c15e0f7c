"""exp and log from sums and products only, with the same results on all processors.

The functions of the C library and of NumPy differ between systems and processors in the last
place. LLVM vectorises this exp, but compiles math.exp to a scalar call.
"""

from typing import Any

import numpy as np

from .layout import Floats
from .numba_support import inlined, kernel
from .simd import multiply_add
from .small import fill

_LOG2E = 1.4426950408889634
# ln 2 split so that n * _LN2_HIGH is exact for |n| < 2**11 (Cody & Waite).
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
# Adding 1.5 * 2**52 rounds to an integer and leaves that integer in the low mantissa bits:
# AVX2 has no float64 -> int64 conversion.
_ROUND = 6755399441055744.0
_LOWEST = -708.0
_LARGEST = 700.0
# About half of ln 2: below it, exp(x) - 1 needs no power of two.
_HALF_LN2 = 0.34
_LEAST_NORMAL = 2.2250738585072014e-308
# The bits of sqrt(1/2), rounded up. Subtracting them from the bits of a number leaves the exponent
# for which its mantissa is in [sqrt(1/2), sqrt(2)).
_ROOT_BITS = 0x3FE6A09E667F3BCD


@inlined(forceinline=True)
def _increase(r: float) -> float:
    """Return exp(r) - 1 for |r| <= ln(2)/2: Taylor to degree 12, truncated by 2e-16 relative."""
    # Estrin's scheme, by pairs of powers and pairs of pairs: term by term (Horner), each product
    # would wait for the previous one.
    square = r * r
    fourth = square * square
    second = multiply_add(r, 1.0 / 6.0, 0.5)
    low = multiply_add(multiply_add(r, 1.0 / 120.0, 1.0 / 24.0), square, second)
    second = multiply_add(r, 1.0 / 5040.0, 1.0 / 720.0)
    high = multiply_add(multiply_add(r, 1.0 / 362880.0, 1.0 / 40320.0), square, second)
    second = multiply_add(r, 1.0 / 39916800.0, 1.0 / 3628800.0)
    top = multiply_add(square, 1.0 / 479001600.0, second)
    return multiply_add(  # type: ignore[no-any-return]
        multiply_add(multiply_add(top, fourth, high), fourth, low), square, r
    )


@inlined(forceinline=True)
def _power(x: float) -> float:
    """Return exp(x) for x in [-708, 700], accurate to a few units in the last place."""
    rounded = multiply_add(x, _LOG2E, _ROUND)
    n = rounded - _ROUND
    r = multiply_add(-n, _LN2_LOW, multiply_add(-n, _LN2_HIGH, x))
    exponent = np.float64(rounded).view(np.int64) << 52
    scale = np.int64(exponent + np.int64(0x3FF0000000000000)).view(np.float64)
    return float((_increase(r) + 1.0) * scale)


@kernel
def exp_shifted(row: Floats, n: int, shift: float) -> None:
    """Replace row[:n] by exp(row[:n] - shift), accurate to a few units in the last place.

    row: [>= n] float64, or float32, then computed in float64; n: a multiple of 8 lets the loop
        vectorise without remainder.
    shift: so that no argument exceeds 700; arguments below -708 are clamped to -708 (3e-308, about
        the smallest normal number).
    """
    for i in range(n):
        row[i] = _power(max(np.float64(row[i]) - shift, _LOWEST))


@inlined
def exp(x: float) -> float:
    """Return the exponential of x, accurate to a few units in the last place."""
    if abs(x) <= _LARGEST:
        return _power(x)
    if abs(x) < 2.0 * _LARGEST:
        half = _power(0.5 * x)
        return half * half
    return x if x != x else np.inf if x > 0.0 else 0.0


@inlined
def expm1(x: float) -> float:
    """Return exp(x) - 1, also accurate for small x."""
    return _increase(x) if abs(x) < _HALF_LN2 else exp(x) - 1.0


@inlined
def _log_of_sum(fraction: float) -> float:
    """Return log(1 + fraction) for 1 + fraction in [sqrt(1/2), sqrt(2)): 2 artanh as a series."""
    s = fraction / (2.0 + fraction)
    square, total = s * s, 0.0
    for n in range(23, 1, -2):
        total = multiply_add(total, square, 1.0 / n)
    return float(2.0 * multiply_add(total * square, s, s))


@inlined
def log(x: float) -> float:
    """Return the natural logarithm, accurate to a few units in the last place."""
    if not 0.0 < x < np.inf:
        return -np.inf if x == 0.0 else x if x > 0.0 else np.nan
    exponent = 0
    if x < _LEAST_NORMAL:
        x, exponent = x * 2.0**54, -54
    bits = np.float64(x).view(np.int64)
    binade = (bits - _ROOT_BITS) >> 52
    fraction = np.int64(bits - (binade << 52)).view(np.float64) - 1.0
    n = float(binade + exponent)
    return float(n * _LN2_HIGH + (n * _LN2_LOW + _log_of_sum(fraction)))


@inlined
def log1p(x: float) -> float:
    """Return log(1 + x), also accurate for small x."""
    return _log_of_sum(x) if abs(x) < 0.25 else log(1.0 + x)


@inlined
def exp_of(x: Any) -> Any:
    """Return exp(x), 0 below -708, of a real number, or of a complex one as in `log_of`."""
    real = x.real
    return (_power(max(real, _LOWEST)) if real >= _LOWEST else 0.0) * (1.0 + (x - real))


@inlined
def log_of(x: Any) -> Any:
    """Return log(x) of a real number, or of a complex one, whose imaginary part is a derivative."""
    return log(x.real) + (x - x.real) / x.real


@inlined
def exponentiate(row: Floats) -> None:
    """Replace the elements of a row [n] float64 by their exp."""
    is_near = True
    for x in row:
        # False for NaN.
        is_near &= abs(x) <= _LARGEST
    if is_near:
        exp_shifted(row, len(row), 0.0)
        return
    for i in range(len(row)):
        row[i] = exp(row[i])


@inlined
def largest(row: Floats) -> float:
    """Return the largest element of a row whose length is a multiple of 8, in float64."""
    # Four independent maxima: each comparison waits for the previous one of its maximum.
    a, b, c, d = row[0], row[1], row[2], row[3]
    for i in range(4, len(row), 4):
        a, b = max(a, row[i]), max(b, row[i + 1])
        c, d = max(c, row[i + 2]), max(d, row[i + 3])
    return np.float64(max(max(a, b), max(c, d)))


@inlined
def exp_relative(row: Floats, n: int) -> float:
    """Exponentiate row[:n] relative to its maximum, and return the maximum; the padding becomes 0.

    row: [Yp], Yp a multiple of 8.
    """
    # The padding must not be the maximum.
    fill(row, n, len(row), row[0])
    top: float = largest(row)
    exp_shifted(row, len(row), top)
    fill(row, n, len(row), 0.0)
    return top
