"""Prediction of labels of sequences, by the plain decoder at first, then by the kernels.

Loading the kernels takes longer than labelling thousands of short sequences plainly. So a process
that has not loaded them labels plainly at first, and loads them, once, if it goes on.
"""

import math
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

from ...crf.decoding.once import Names, Once
from ...crf.decoding.plain import PlainChain
from ..crfsuite_file import FEW_LABELS, CrfsuiteModel
from .items import Numbered, Vocabulary, check_length, read_numbers

if TYPE_CHECKING:
    from ...crf.decoding.posterior import Posterior
    from .opened_model import TrainedWeights
    from .scoring import CompiledRoad

_BLOCK = 256  # sequences per batch
_MOST_STEPS = 1_000_000
"""Weights that are added plainly, in 1,000 to 5,000 short texts, before the kernels are loaded."""
_FLOAT = struct.Struct("f")

Weights: TypeAlias = "CrfsuiteModel | TrainedWeights"


class Predictor:
    """Labels sequences. names, numbers: of the labels; once: names for `Once`."""

    def __init__(self, weights: Weights, once: Names = ()) -> None:
        self.weights, self._vocabulary = weights, Vocabulary(weights.find)
        self.names = weights.labels
        self.numbers = {label: number for number, label in enumerate(self.names)}
        self._once = Once(self.names, once) if once else None
        self._plain: PlainRoad | None = None
        is_fresh = "numba" not in sys.modules and len(self.names) <= FEW_LABELS
        if isinstance(weights, CrfsuiteModel) and is_fresh:
            self._plain = PlainRoad(weights, self._once)

    def chain(self, xseq: Iterable[Any]) -> "PlainChain | Posterior":
        """Read a sequence. RETURNS: the distribution of its labels."""
        read = read_numbers((xseq,), self._vocabulary)
        return self._road(read).chain(read)

    def label(self, xseq: Iterable[Any]) -> list[str]:
        """Return the most probable labels of a sequence."""
        return self.best(self.chain(xseq))

    def best(self, chain: "PlainChain | Posterior") -> list[str]:
        """Return the most probable labels of a sequence that was read."""
        ids = chain.labels() if self._once is None else self._once.best(chain)
        return [self.names[y] for y in ids]

    def labels(self, X: Iterable[Any]) -> Iterator[list[str]]:
        """Yield the most probable labels of each sequence."""
        names = self.names
        for read in self._blocks(X):
            yield from ([names[y] for y in ids] for ids in self._road(read).labels(read))

    def marginals(self, X: Iterable[Any]) -> Iterator[list[dict[str, float]]]:
        """Yield p(y_t = y | x) of each sequence: a dict by label for each token."""
        for read in self._blocks(X):
            for rows in self._road(read).marginals(read):
                yield [dict(zip(self.names, row, strict=True)) for row in rows]

    def log_probability(self, chain: "PlainChain | Posterior", yseq: Sequence[str]) -> float:
        """Compute log p(y | x) of a sequence that was read; -inf with unknown labels.

        RAISES: SparseCRFError if x and y differ in length.
        """
        ids = [self.numbers.get(label, -1) for label in yseq]
        check_length("X[0]", len(chain), "y[0]", len(ids))
        return -math.inf if -1 in ids else chain.log_probability(ids)

    def _blocks(self, X: Iterable[Any]) -> Iterator[Numbered]:
        """Read sequences in batches."""
        sequences, n_read = iter(X), 0
        while block := [*islice(sequences, _BLOCK)]:
            yield read_numbers(block, self._vocabulary, n_read)
            n_read += len(block)

    def _road(self, read: Numbered) -> "PlainRoad | CompiledRoad":
        if self._plain is not None:
            if not self._plain.is_over(read):
                return self._plain
            self._plain, self._vocabulary = None, Vocabulary(self.trained.find)
        return self._compiled

    @cached_property
    def trained(self) -> "TrainedWeights":
        """All weights."""
        if not isinstance(self.weights, CrfsuiteModel):
            return self.weights
        from .opened_model import TrainedWeights  # imports numpy

        return TrainedWeights.of_crfsuite(self.weights)

    @cached_property
    def _compiled(self) -> "CompiledRoad":
        from .scoring import CompiledRoad  # imports numba

        return CompiledRoad(self.trained, self._once)


class PlainRoad:
    """Predicts in the standard library alone."""

    left = _MOST_STEPS  # of all models of the process

    def __init__(self, weights: CrfsuiteModel, once: Once | None = None) -> None:
        self._best = PlainChain.labels if once is None else once.best
        self._weights, self._states = weights, lru_cache(None)(weights.states)
        self._n_labels = len(weights.labels)

    def is_over(self, read: Numbered) -> bool:
        """Count the weights that sequences need; return whether they are too many."""
        PlainRoad.left -= 2 * len(read.numbers) + len(read.sizes) * (self._n_labels + 1) ** 2
        return PlainRoad.left < 0

    @cached_property
    def _pairs(self) -> list[list[float]]:
        """The weights of transitions: [Y + 1, Y], from labels and from the beginning."""
        table = [[0.0] * self._n_labels for _ in range(self._n_labels + 1)]
        for previous, label, weight in self._weights.transitions():
            table[previous][label] += weight
        return table

    def chain(self, read: Numbered) -> PlainChain:
        """Return the distribution of the label sequences of one sequence."""
        [chain] = self._chains(read)
        return chain

    def labels(self, read: Numbered) -> Iterator[list[int]]:
        """Yield the most probable labels of each sequence."""
        return map(self._best, self._chains(read))

    def marginals(self, read: Numbered) -> Iterator[list[list[float]]]:
        """Yield p(y_t = y | x) of each sequence: [T, Y]."""
        return (chain.marginals() for chain in self._chains(read))

    def _chains(self, read: Numbered) -> Iterator[PlainChain]:
        scores, m = [], 0
        for size in read.sizes:
            of_token = [0.0] * self._n_labels
            for k in range(m, m + size):
                number = read.numbers[k]
                x = read.values.get(k, 1.0)
                if x != 1.0:
                    (x,) = _FLOAT.unpack(_FLOAT.pack(x))  # as the kernels read it
                for label, weight in self._states(number) if number > 0 else ():
                    of_token[label] += x * weight
            scores.append(of_token)
            m += size
        for a, b in pairwise(read.ends):
            yield PlainChain(scores[a:b], [self._pairs] * (b - a))
