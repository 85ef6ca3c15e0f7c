"""Parallel execution whose results do not depend on the number of threads.

`Workers` runs a function over fixed chunks in threads. A `WorkerPool` calls a method of several
workers in parallel, each of which holds a part of the data. `dot` is independent of BLAS threads.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..errors import Errors, SparseCRFError

ResultT = TypeVar("ResultT")

Chunks = list[tuple[int, int]]
# The arguments of one call.
Args = tuple[Any, ...]


class Workers:
    """Runs a function over chunks in `n_threads` threads; results come in the chunks' order.

    The kernels release the GIL. n_threads: 0 = one per core.
    RAISES: SparseCRFError if n_threads is negative.
    """

    def __init__(self, n_threads: int) -> None:
        if n_threads < 0:
            raise SparseCRFError(Errors.SC304.format(value=n_threads))
        self.n_threads = n_threads or _n_cores()
        self._pool: ThreadPoolExecutor | None = None

    def map(
        self, function: Callable[..., ResultT], chunks: Sequence[Args], *args: Any, **named: Any
    ) -> list[ResultT]:
        """Call function(first, last, *args, **named) for every chunk.

        chunks: also with arguments of their own, see `each_with`.
        RETURNS: the results in the order of the chunks, whichever thread ran them.
        """
        outputs: list[Any] = [None] * len(chunks)
        if self.n_threads == 1 or len(chunks) < 2:
            for i, chunk in enumerate(chunks):
                outputs[i] = function(*chunk, *args, **named)
            return outputs
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n_threads - 1, thread_name_prefix="sparsecrf")
        # Threads share an index: a task per chunk would cost as much as a small chunk's work.
        lock, next_chunk = Lock(), 0

        def run() -> None:
            nonlocal next_chunk
            try:
                while True:
                    with lock:
                        i, next_chunk = next_chunk, next_chunk + 1
                    if i >= len(chunks):
                        return
                    outputs[i] = function(*chunks[i], *args, **named)
            except BaseException:
                with lock:
                    next_chunk = len(chunks)  # other threads start no further chunk
                raise

        n_helpers = min(self.n_threads, len(chunks)) - 1
        helpers = [self._pool.submit(run) for _ in range(n_helpers)]
        try:
            run()
        finally:
            begun = [helper for helper in helpers if not helper.cancel()]
            wait(begun)
        for helper in begun:
            helper.result()
        return outputs

    def close(self) -> None:
        """End the threads; another call of `map` starts new ones."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


class WorkerPool:
    """A pool of workers of one class, each with a part of the data; make: creates a worker.

    Here they are in this process, and run one after another; subclasses have other places for them.
    Results depend only on the workers' factory and on the calls with keep=True, so that a lost
    worker can be replaced.
    """

    def __init__(self, n: int, make: Callable[[], Any]) -> None:
        self._workers = [make() for _ in range(n)]

    def __len__(self) -> int:
        return len(self._workers)

    def ask(self, method: str, arguments: Sequence[Args], *, keep: bool = False) -> list[Any]:
        """Call a method of the first len(arguments) workers. arguments: of each worker.

        keep: whether the replacement of a lost worker must repeat this call.
        RETURNS: the workers' results, in order.
        RAISES: SparseCRFError, also if a worker raises it.
        """
        workers = self._workers[: len(arguments)]
        return [
            getattr(worker, method)(*args) for worker, args in zip(workers, arguments, strict=True)
        ]

    def share(self, value: Any) -> Any:
        """Return a handle to pass in calls instead of a value, which each worker receives once."""
        return value

    def close(self) -> None:
        """Release the workers."""
        self._workers = []


def _n_cores() -> int:
    """Return the number of cores available to this process, or of all cores if unknown."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cut(cost: NDArray[np.int64], n_chunks: int, first: int = 0) -> Chunks:
    """Split n items into at most n_chunks contiguous chunks of about equal cost.

    cost: [n] int64, >= 0; first: number of the first item. RETURNS: the non-empty chunks (first,
        last), in order. They depend on the cost and n_chunks only.
    """
    n = len(cost)
    if n == 0:
        return []
    # Add 1 to each cost, so that items without cost are distributed too.
    cumulated = np.cumsum(cost + 1)
    goals = cumulated[-1] * np.arange(1, n_chunks) / n_chunks
    bounds = np.unique(np.concatenate(([0], np.searchsorted(cumulated, goals), [n]))) + first
    return list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))


def each_with(chunks: Chunks, *arrays: NDArray[Any]) -> list[Args]:
    """Return the chunks, each with its item of arrays [n chunks, ..]: threads do not share it."""
    return [(*chunk, *rows) for chunk, *rows in zip(chunks, *arrays, strict=True)]


def dot(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the inner product of two vectors [K]; its order is independent of NumPy's version."""
    # Lazily: settings import penalties without numba.
    from .kernels.weight_vectors import inner_product

    return inner_product(a, b)
