"""What this machine can do at most, on one thread: multiply-adds, products of matrices, memory.

As `python -m bench.peaks` it writes the speed of numpy's product of matrices, in GFLOP/s: in a
process of its own, because its library reads its number of threads when it is loaded.
"""

import sys

import numpy as np
from numba import njit

from .timing import measured, run_process

# Read by the libraries that numpy may come with.
_LIBRARIES = ("OPENBLAS", "MKL", "OMP", "VECLIB_MAXIMUM")
ONE_THREAD = {
    f"{name}_THREADS" if name.endswith("MAXIMUM") else f"{name}_NUM_THREADS": "1"
    for name in _LIBRARIES
}
_TRIALS = 7
_LANE_ITEMS = 2048
# Multiply-adds of one element in `_multiply_add`: four chains of sixteen.
_CHAINS, _LINKS = 4, 16


@njit(fastmath={"contract"}, error_model="numpy")
def _multiply_add(x: np.ndarray, start: np.ndarray, out: np.ndarray, times: int) -> None:
    """Polynomials in four independent chains; the compiler makes vectors of the loop over i.

    start: [4], of x's type, as literals would make float64 of float32.
    """
    p, q, r, s = start[0], start[1], start[2], start[3]
    for _ in range(times):
        for i in range(len(x)):
            v = x[i]
            a, b, c, d = p, q, r, s
            for _ in range(16):
                a = a * v + p
                b = b * v + q
                c = c * v + r
                d = d * v + s
            out[i] = (a + b) + (c + d)


@njit(error_model="numpy")
def _triad(a: np.ndarray, b: np.ndarray, c: np.ndarray, factor: float) -> None:
    for i in range(len(a)):
        a[i] = b[i] + factor * c[i]


def multiply_add(dtype: str) -> float:
    """GFLOP/s of multiply-adds on data in the first cache."""
    x = np.linspace(0.1, 0.9, _LANE_ITEMS).astype(dtype)
    start, out, times = np.linspace(0.1, 0.4, 4).astype(dtype), np.empty_like(x), 2000
    _multiply_add(x, start, out, 1)
    seconds = []
    for _ in range(_TRIALS):
        with measured() as cost:
            _multiply_add(x, start, out, times)
        seconds.append(cost.wall)
    return 2 * _CHAINS * _LINKS * len(x) * times / min(seconds) / 1e9


def triad(n: int = 1 << 24) -> float:
    """GB/s of a := b + s c on arrays of n float64 that no cache holds: 24 bytes an element."""
    a, b, c = np.zeros(n), np.ones(n), np.ones(n)
    _triad(a, b, c, 3.0)
    seconds = []
    for _ in range(_TRIALS):
        with measured() as cost:
            _triad(a, b, c, 3.0)
        seconds.append(cost.wall)
    return 24 * n / min(seconds) / 1e9


def matrix_product(n: int = 1024) -> float:
    """GFLOP/s of numpy's product of float64 matrices, in this process."""
    a = np.random.default_rng(0).normal(size=(n, n))
    out = np.empty_like(a)
    np.matmul(a, a, out=out)
    seconds = []
    for _ in range(_TRIALS):
        with measured() as cost:
            np.matmul(a, a, out=out)
        seconds.append(cost.wall)
    return 2 * n**3 / min(seconds) / 1e9


def all_peaks() -> dict[str, float]:
    """Every peak, by name; the highest of the float64 ones is `peak`."""
    said = run_process([sys.executable, "-m", "bench.peaks"], ONE_THREAD).output
    product, loop = float(said.split()[-1]), multiply_add("float64")
    return {
        "multiply-add, float64": loop,
        "multiply-add, float32": multiply_add("float32"),
        "matrix product, float64": product,
        "peak": max(loop, product),
        "triad": triad(),
    }


if __name__ == "__main__":
    sys.stdout.write(f"{matrix_product()}\n")
