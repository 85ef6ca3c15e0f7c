"""The engine with workers on one machine or several, by Ray, which is imported on demand."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar

from ..crf.parallel import WorkerPool
from ..errors import Errors, MissingExtraError, SparseCRFError
from ..pipeline.encoding import EncodedExamples, Job
from ..registry import crf_engines


@crf_engines("spacy_sparsecrf.Ray.v1")
@dataclass(frozen=True, kw_only=True)
class Ray:
    """Workers of a Ray cluster, each of which reads and holds a part of the corpus.

    num_workers: number of workers, with cpus_per_worker cores each; address: of a cluster, "auto"
    for the cluster of this machine, None to start one here and stop it in the end; max_restarts:
    total number of lost workers that are replaced.
    RAISES: SparseCRFError for a number out of range.
    """

    divides: ClassVar[bool] = True

    num_workers: int = 2
    address: str | None = None
    cpus_per_worker: int = 1
    max_restarts: int = 10

    def __post_init__(self) -> None:
        for key, low in (("num_workers", 1), ("cpus_per_worker", 1), ("max_restarts", 0)):
            value = getattr(self, key)
            if value < low:
                raise SparseCRFError(Errors.SC904.format(key=key, value=value, low=low))

    def compile(self, job: Job) -> EncodedExamples:
        """Read the files of the corpus with workers, which keep the sequences.

        RAISES: SparseCRFError if Ray is not installed, and as `gathering.divide`.
        """
        from .gathering import divide

        return divide(job, self.cpus_per_worker, self.pool)

    def pool(self, make: Callable[[], Any]) -> WorkerPool:
        """Start a pool of workers. make: creates a worker.

        RAISES: SparseCRFError if Ray is not installed, or if no cluster can be reached.
        """
        if find_spec("ray") is None:
            raise MissingExtraError(Errors.SC905)
        from .ray_pool import RayWorkerPool

        return RayWorkerPool(self, make)
