"""Prediction of labels of sequences, by the plain road at first, then by the kernels.

Loading the kernels takes longer than labelling a thousand short sequences plainly. So a process
that has not loaded them labels plainly at first, and loads them in a thread if it goes on.
"""

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache, wraps
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ...crf.decoding.once import Names, Once
from ..crfsuite_file import FEW_LABELS, MAGIC, CrfsuiteModel
from .items import Numbered, Vocabulary, check_length, read_numbers
from .kernel_loading import KernelLoading, are_loaded
from .plain_road import PlainRoad, PlainSequence

if TYPE_CHECKING:
    from ...crf.decoding.posterior import Posterior
    from .opened_model import TrainedWeights
    from .scoring import CompiledRoad

    Road: TypeAlias = PlainRoad | CompiledRoad
    Method: TypeAlias = Callable[[Numbered], Iterator[list[Any]]]
    Sequenced: TypeAlias = PlainSequence | Posterior

_BLOCK = 256  # sequences per batch
_MOST_KEPT = 4  # files
WARM = "SPARSECRF_WARM"
"""Environment variable: if it is 1, kernels are loaded when a model is opened."""

Weights: TypeAlias = "CrfsuiteModel | TrainedWeights"
R = TypeVar("R")


def plain_work(method: Callable[..., R]) -> Callable[..., R]:
    """Count the time of a method, as long as the kernels are not loaded."""

    @wraps(method)
    def counted(predictor: "Predictor", /, *args: Any) -> R:
        if predictor.loading is None:
            return method(predictor, *args)
        begin = time.perf_counter()
        answer = method(predictor, *args)
        if predictor.loading is not None:
            predictor.loading.count(time.perf_counter() - begin)
        return answer

    return counted


class Predictor:
    """Labels sequences. names, numbers: of the labels; once: names for `Once`.

    loading: of the kernels, while the plain road may still be replaced.
    """

    def __init__(self, weights: Weights, once: Names = ()) -> None:
        self.weights, self._vocabulary = weights, Vocabulary(weights.numbers)
        self.names = weights.labels
        self.numbers = {label: number for number, label in enumerate(self.names)}
        self._once = Once(self.names, once) if once else None
        self._road: Road | None = None
        self.loading: KernelLoading | None = None
        has_few = len(self.names) <= FEW_LABELS
        if isinstance(weights, CrfsuiteModel) and has_few and not are_loaded():
            self._road = PlainRoad(weights, self._once, self.warm)
            self.loading = KernelLoading(self._load)
            if os.environ.get(WARM) == "1":
                self.warm()

    @plain_work
    def chain(self, xseq: Iterable[Any]) -> "Sequenced":
        """Read a sequence. RETURNS: the distribution of its labels."""
        return self._current.chain(read_numbers((xseq,), self._vocabulary))

    def label(self, xseq: Iterable[Any]) -> list[str]:
        """Return the most probable labels of a sequence."""
        return self.best(self.chain(xseq))

    @plain_work
    def best(self, chain: "Sequenced") -> list[str]:
        """Return the most probable labels of a sequence that was read."""
        ids = chain.labels() if self._once is None else self._once.best(chain)
        return [self.names[y] for y in ids]

    @plain_work
    def rows(self, chain: "Sequenced") -> list[list[float]]:
        """Compute p(y_t = y | x) of a sequence that was read: [T, Y]."""
        marginals: Any = chain.marginals()
        rows: list[list[float]] = marginals if type(marginals) is list else marginals.tolist()
        return rows

    def labels(self, X: Iterable[Any]) -> Iterator[list[str]]:
        """Yield the most probable labels of each sequence."""
        names = self.names
        return ([names[y] for y in ids] for ids in self._answers(X, lambda road: road.labels))

    def marginals(self, X: Iterable[Any]) -> Iterator[list[dict[str, float]]]:
        """Yield p(y_t = y | x) of each sequence: a dict by label for each token."""
        for rows in self._answers(X, lambda road: road.marginals):
            yield [dict(zip(self.names, row, strict=True)) for row in rows]

    @plain_work
    def log_probability(self, chain: "Sequenced", yseq: Sequence[str]) -> float:
        """Compute log p(y | x) of a sequence that was read; -inf with unknown labels.

        RAISES: SparseCRFError if x and y differ in length.
        """
        ids = [self.numbers.get(label, -1) for label in yseq]
        check_length("X[0]", len(chain), "y[0]", len(ids))
        return -math.inf if -1 in ids else chain.log_probability(ids)

    def _answers(self, X: Iterable[Any], method: "Callable[[Road], Method]") -> Iterator[list[Any]]:
        """Yield the answers of a method of the road: of batches, unless plain work is measured."""
        sequences, n_read = iter(X), 0
        while block := [*islice(sequences, _BLOCK if self.loading is None else 1)]:
            yield from self._answer(block, n_read, method)
            n_read += len(block)
            if self.loading is not None and self.loading.is_started:
                self.warm()

    @plain_work
    def _answer(
        self, block: list[Any], n_read: int, method: "Callable[[Road], Method]"
    ) -> list[Any]:
        """Read sequences, which follow others. RETURNS: the answers of a method of the road."""
        read = read_numbers(block, self._vocabulary, n_read)
        return [*method(self._current)(read)]

    def warm(self) -> "CompiledRoad | None":
        """Load the kernels now. RETURNS: the road by them; None if they cannot be loaded."""
        if self.loading is not None:
            self.loading.start().join()
        road = self._current
        return None if isinstance(road, PlainRoad) else road

    @property
    def _current(self) -> "Road":
        """The road, which changes when kernels are loaded."""
        if self._road is None:
            self._road = self._load()
        elif self.loading is not None and self.loading.road is not None:
            self._road, self.loading = self.loading.road, None
        elif self.loading is not None and self.loading.has_failed():
            self.loading = None
        return self._road

    def _load(self) -> "CompiledRoad":
        """Load the kernels: all that answers to one sequence need."""
        from .scoring import CompiledRoad  # imports numba

        weights = self.weights
        if not isinstance(weights, CrfsuiteModel):
            return CompiledRoad(weights.model, len(weights.attributes), self._once)
        from .opened_model import numbered

        road = CompiledRoad(numbered(weights), weights.n_attributes, self._once)
        chain = road.chain(Numbered([0, 2], [0, 0], [], {}))
        chain.marginals()
        chain.log_probability(chain.labels())
        return road

    @cached_property
    def trained(self) -> "TrainedWeights":
        """All weights."""
        if not isinstance(self.weights, CrfsuiteModel):
            return self.weights
        from .opened_model import TrainedWeights  # imports numpy

        return TrainedWeights.of_crfsuite(self.weights)


def open_file(path: "str | os.PathLike[str]", once: Names) -> Predictor:
    """Open a file; the last that were opened are kept. RAISES: OSError, SparseCRFError."""
    status = os.stat(path)
    version = status.st_ino, status.st_size, status.st_mtime_ns
    return _opened(os.fspath(path), version, None if once is None else (*once,))


@lru_cache(_MOST_KEPT)
def _opened(path: Any, version: tuple[int, ...], once: Names) -> Predictor:
    with open(path, "rb") as file:
        return open_bytes(file.read(), path, once)


def open_bytes(value: bytes, name: object, once: Names) -> Predictor:
    """Open a model's bytes. name: for messages. RAISES: SparseCRFError."""
    if value.startswith(MAGIC):
        return Predictor(CrfsuiteModel(value, name), once)
    from .opened_model import TrainedWeights  # imports numpy

    return Predictor(TrainedWeights.from_bytes(value, name), once)
