"""A worker pool of actors on a Ray cluster; lost workers are replaced."""

import atexit
import logging
import os
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4
from warnings import catch_warnings, simplefilter
from weakref import finalize

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError

from .. import progress
from ..crf.parallel import Args, WorkerPool
from ..errors import Errors, SparseCRFError

logger = logging.getLogger("spacy")

# Seconds in which the workers must start; others may use the cluster too.
_PATIENCE = 300.0
# Size in bytes of the object store of a cluster that is started here.
_STORE_BYTES = 200_000_000


# Namespace of a cluster that a pool has started, which other components of the pipeline share.
_NAMESPACE = "spacy_sparsecrf"


class _Actor:
    """A worker in its own process. make: creates it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        progress.be_quiet(True)
        self._worker = make()

    def begin(self) -> None:
        """Return once the actor has started."""

    def call(self, method: str, *args: Any) -> Any:
        """Call a method. RETURNS: its result."""
        return getattr(self._worker, method)(*args)


class RayWorkerPool(WorkerPool):
    """A pool of Ray actors; see `WorkerPool`.

    on: settings of `ray_engine.Ray`; make: creates a worker. If Ray is already initialised in this
    process, its cluster is used, and left running.
    RAISES: SparseCRFError if no cluster can be reached, or if it has too few cores, or none free.
    """

    def __init__(self, on: Any, make: Callable[[], Any]) -> None:
        self._on = on
        self._n_lost = 0
        # Calls that a replaced worker repeats: methods, and the arguments of each worker.
        self._repeated: list[tuple[str, list[Args]]] = []
        with catch_warnings():
            simplefilter("ignore")  # Ray's warnings do not concern users of this package
            is_ours = _connect(on)
            # A cluster started here runs nothing else, and must have room for another component.
            self._n_cpus = 0 if is_ours else on.cpus_per_worker
            self._make = ray.put(make)
            self._actors = [self._start() for _ in range(on.num_workers)]
            self._end = finalize(self, _stop, self._actors, is_ours)
            # At exit before Ray's own end, which it has registered when it was imported.
            self._end.atexit = False
            atexit.register(self._end)
            begun = [actor.begin.remote() for actor in self._actors]
            if len(ray.wait(begun, num_returns=len(begun), timeout=_PATIENCE)[0]) < len(begun):
                self.close()
                values = {"num_workers": on.num_workers, "cpus_per_worker": on.cpus_per_worker}
                raise SparseCRFError(Errors.SC910.format(**values))

    def __len__(self) -> int:
        return len(self._actors)

    def _start(self) -> Any:
        # Ray lists the actors that have names: as long as there is one, the cluster is used.
        actor = ray.remote(num_cpus=self._n_cpus, max_restarts=0)(_Actor)
        return actor.options(name=uuid4().hex).remote(self._make)

    def ask(self, method: str, arguments: Sequence[Args], *, keep: bool = False) -> list[Any]:
        """See `WorkerPool.ask`."""
        with catch_warnings():
            simplefilter("ignore")
            pending = [self._call(i, method, args) for i, args in enumerate(arguments)]
            answers = [self._answer(i, method, arguments[i], ref) for i, ref in enumerate(pending)]
        if keep:
            self._repeated.append((method, list(arguments)))
        return answers

    def _call(self, i: int, method: str, args: Args) -> Any:
        return self._actors[i].call.remote(method, *args)

    def _answer(self, i: int, method: str, args: Args, pending: Any) -> Any:
        """Return the result of worker i; a lost worker is replaced."""
        while True:
            try:
                return ray.get(pending)
            except RayActorError as error:
                self._replace(i, error)
                pending = self._call(i, method, args)
            except RayTaskError as error:
                raise error.cause from None
            except RayError as error:
                raise SparseCRFError(Errors.SC908.format(reason=_first_line(error))) from error

    def _replace(self, i: int, error: Exception) -> None:
        """Start a new worker i, and repeat the kept calls on it."""
        while True:
            self._n_lost += 1
            if self._n_lost > self._on.max_restarts:
                raise SparseCRFError(Errors.SC907.format(n=self._n_lost, reason=_first_line(error)))
            logger.info("worker %d was lost and is replaced", i)
            self._actors[i] = self._start()
            try:
                ray.get([self._call(i, method, args[i]) for method, args in self._repeated])
                return
            except RayActorError as again:
                error = again

    def share(self, value: Any) -> Any:
        """See `WorkerPool.share`."""
        return ray.put(value)

    def close(self) -> None:
        """Stop the workers, and the cluster if it was started here."""
        self._end()


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]


def _connect(on: Any) -> bool:
    """Connect to a cluster, or start one. RETURNS: whether a pool of this process started it."""
    if ray.is_initialized():
        return bool(ray.get_runtime_context().namespace == _NAMESPACE)
    settings: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if on.address is None:
        settings["num_cpus"] = on.num_workers * on.cpus_per_worker
        settings |= {"include_dashboard": False, "object_store_memory": _STORE_BYTES}
        settings["namespace"] = _NAMESPACE
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray.init(address=on.address or "local", **settings)
    except (RayError, ConnectionError, RuntimeError, ValueError) as error:
        values = {"address": on.address, "reason": _first_line(error)}
        raise SparseCRFError(Errors.SC909.format(**values)) from error
    return on.address is None


def _stop(actors: list[Any], is_ours: bool) -> None:
    """Stop the actors, and their cluster if it was started here and no other pool uses it."""
    if not ray.is_initialized():
        return
    for actor in actors:
        ray.kill(actor)
    if is_ours and not ray.util.list_named_actors():
        ray.shutdown()
