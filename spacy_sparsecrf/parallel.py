"""Threads over fixed chunks of work, so that results do not depend on how many threads run.

Pools of workers, which have a part of the data each and run a method at once.

Vector arithmetic whose result does not depend on how many threads a BLAS library uses.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, wait
from functools import partial
from multiprocessing import get_context
from threading import Lock
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .errors import Errors, SparseCRFError

ResultT = TypeVar("ResultT")

Chunks = list[tuple[int, int]]
# The arguments of one call.
Args = tuple[Any, ...]


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

    def map(self, function: Callable[..., ResultT], chunks: Chunks, *args: Any) -> list[ResultT]:
        """Call function(first, last, *args) for every chunk.

        RETURNS: the results in the order of the chunks, whichever thread ran them.
        """
        if self.n_threads == 1 or len(chunks) < 2:
            return [function(*chunk, *args) for chunk in chunks]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n_threads - 1, thread_name_prefix="sparsecrf")
        results: list[Any] = [None] * len(chunks)
        # Threads share an index: a task for each chunk would cost as much as a small one.
        lock, next_chunk = Lock(), 0

        def run() -> None:
            nonlocal next_chunk
            try:
                while True:
                    with lock:
                        i, next_chunk = next_chunk, next_chunk + 1
                    if i >= len(chunks):
                        return
                    results[i] = function(*chunks[i], *args)
            except BaseException:
                with lock:
                    next_chunk = len(chunks)  # other threads begin nothing more
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
        return results


class WorkerPool(Protocol):
    """Objects of one class, each of which has a part of the data.

    Results depend only on the factory of the workers and on the calls that are kept, so that a lost
    worker can be replaced.
    """

    def __len__(self) -> int: ...

    def ask(self, method: str, each: Sequence[Args], *, keep: bool = False) -> list[Any]:
        """Call a method of the first workers, as many as `each` has arguments for.

        keep: whether a replaced worker must repeat this call.
        RETURNS: what each returns, in order.
        RAISES: SparseCRFError, also that of a worker.
        """
        ...

    def share(self, value: Any) -> Any:
        """Return a handle of a value for the arguments of calls; it is sent to each worker once."""
        ...

    def close(self) -> None:
        """Release the workers."""
        ...


class LocalWorkerPool:
    """A pool in this process; its workers run one after another. make: creates a worker."""

    def __init__(self, n: int, make: Callable[[], Any]) -> None:
        self._workers = [make() for _ in range(n)]

    def __len__(self) -> int:
        return len(self._workers)

    def ask(self, method: str, each: Sequence[Args], *, keep: bool = False) -> list[Any]:
        """See `WorkerPool.ask`."""
        workers = self._workers[: len(each)]
        return [getattr(own, method)(*args) for own, args in zip(workers, each, strict=True)]

    def share(self, value: Any) -> Any:
        """See `WorkerPool.share`."""
        return value

    def close(self) -> None:
        """See `WorkerPool.close`."""
        self._workers = []


class ProcessWorkerPool:
    """A pool of n processes, whose workers are alike: any does a call. make: creates one."""

    def __init__(self, n: int, make: Callable[[], Any]) -> None:
        self._n, self._make = n, make
        # Not forked: a process may have threads, such as those of progress.
        self._processes = ProcessPoolExecutor(n, get_context("spawn"))

    def __len__(self) -> int:
        return self._n

    def ask(self, method: str, each: Sequence[Args], *, keep: bool = False) -> list[Any]:
        """See `WorkerPool.ask`."""
        return list(self._processes.map(partial(_ask, self._make, method), each))

    def share(self, value: Any) -> Any:
        """See `WorkerPool.share`."""
        return value

    def close(self) -> None:
        """See `WorkerPool.close`."""
        self._processes.shutdown(cancel_futures=True)


_workers: list[Any] = []  # of a process of a `ProcessWorkerPool`


def _ask(make: Callable[[], Any], method: str, args: Args) -> Any:
    if not _workers:
        _workers.append(make())
    return getattr(_workers[0], method)(*args)


def _n_cores() -> int:
    """Return the number of cores that this process may use, where the system reports it."""
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
    """Inner product of two vectors [K], in an order that is not NumPy's, which its version sets."""
    from .kernels.small import inner_product  # settings use penalties, and not numba

    return inner_product(a, b)
