"""Vector arithmetic whose result does not depend on how many threads a BLAS library uses."""

import numpy as np
from numpy.typing import NDArray


def dot(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Inner product of two vectors [K]: einsum sums in one thread, `a @ b` in any number."""
    return float(np.einsum("k,k->", a, b))
