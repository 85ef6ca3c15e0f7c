"""A polynomial exp that LLVM vectorises (math.exp is a scalar call there)."""

import numpy as np

from .layout import Floats
from .numba_support import inlined, kernel
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


@kernel(fastmath={"contract"})
def exp_shifted(row: Floats, n: int, shift: float) -> None:
    """Replace row[:n] by exp(row[:n] - shift), accurate to a few units in the last place.

    row: [>= n] float64, or float32, then computed in float64; n: a multiple of 8 lets the loop
        vectorise without remainder.
    shift: so that no argument is above 700; those below -708 are taken as -708 (3e-308: no smaller
        normal number exists).
    """
    for i in range(n):
        x = max(row[i] - shift, _LOWEST)
        rounded = x * _LOG2E + _ROUND
        whole = rounded - _ROUND
        r = (x - whole * _LN2_HIGH) - whole * _LN2_LOW
        # Taylor to degree 12 on |r| <= ln(2)/2: truncation 2e-16 relative. In pairs of powers and
        # pairs of these (Estrin): term by term, each product would wait for the one before.
        square = r * r
        fourth = square * square
        low = (r * (1.0 / 120.0) + 1.0 / 24.0) * square + (r * (1.0 / 6.0) + 0.5)
        high = (r * (1.0 / 362880.0) + 1.0 / 40320.0) * square + (r * (1.0 / 5040.0) + 1.0 / 720.0)
        top = square * (1.0 / 479001600.0) + (r * (1.0 / 39916800.0) + 1.0 / 3628800.0)
        p = ((top * fourth + high) * fourth + low) * square + r + 1.0
        exponent = np.float64(rounded).view(np.int64) << 52
        row[i] = p * np.int64(exponent + np.int64(0x3FF0000000000000)).view(np.float64)


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
        row[i] = np.exp(row[i])


@inlined
def largest(row: Floats) -> float:
    """Return the largest element of a row whose length is a multiple of 8."""
    # Four maxima: each comparison waits for the one before.
    a, b, c, d = row[0], row[1], row[2], row[3]
    for i in range(4, len(row), 4):
        a, b = max(a, row[i]), max(b, row[i + 1])
        c, d = max(c, row[i + 2]), max(d, row[i + 3])
    return float(max(max(a, b), max(c, d)))


@inlined
def exp_relative(row: Floats, n: int) -> float:
    """Exponentiate row[:n] relative to its maximum, which is returned; the padding becomes 0.

    row: [Yp], Yp a multiple of 8.
    """
    # The padding must not be the maximum.
    fill(row, n, len(row), row[0])
    top: float = largest(row)
    exp_shifted(row, len(row), top)
    fill(row, n, len(row), 0.0)
    return top
