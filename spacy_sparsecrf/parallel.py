"""Threads over fixed chunks of work, so that results do not depend on how many threads run.

Vector arithmetic whose result does not depend on how many threads a BLAS library uses.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .errors import Errors, SparseCRFError

ResultT = TypeVar("ResultT")

Chunks = list[tuple[int, int]]


class Workers:
    """Runs a function over chunks in `n_threads` threads; results come in the chunks' order.

    The kernels release the GIL. n_threads: 0 = one a core.
    RAISES: SparseCRFError where n_threads is negative.
    """

    def __init__(self, n_threads: int) -> None:
        if n_threads < 0:
            raise SparseCRFError(Errors.SC304.format(value=n_threads))
        self.n_threads = n_threads or _n_cores()
        self._pool: ThreadPoolExecutor | None = None

    def map(self, function: Callable[..., ResultT], chunks: Chunks, *given: Any) -> list[ResultT]:
        """Call function(first, last, *given) for every chunk.

        RETURNS: the results in the order of the chunks, whichever thread ran them.
        """
        if self.n_threads == 1 or len(chunks) < 2:
            return [function(*chunk, *given) for chunk in chunks]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n_threads, thread_name_prefix="sparsecrf")
        return list(self._pool.map(lambda chunk: function(*chunk, *given), chunks))


def _n_cores() -> int:
    """Cores that this process may use, where the system tells."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cut(cost: NDArray[np.int64], n_chunks: int) -> Chunks:
    """Cut a row of items into at most n_chunks runs of about equal cost.

    cost: [n] int64, >= 0. RETURNS: the non-empty runs (first, last), in order; they depend on
        the cost alone.
    """
    n = len(cost)
    if n == 0:
        return []
    # Every item counts at least 1, so that rows without work are spread as well.
    cumulated = np.cumsum(cost + 1)
    goals = cumulated[-1] * np.arange(1, n_chunks) / n_chunks
    bounds = np.unique(np.concatenate(([0], np.searchsorted(cumulated, goals), [n])))
    return list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))


def dot(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Inner product of two vectors [K]: einsum sums in one thread, `a @ b` in any number."""
    return float(np.einsum("k,k->", a, b))
