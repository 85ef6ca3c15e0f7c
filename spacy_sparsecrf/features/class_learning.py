"""Word classes from text, by the exchange algorithm, or from vectors, by spherical k-means."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..progress import progress

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]

_EDGE, _RARE = 0, 1  # word numbers of line ends, and of all rare words
_BUFFER = 1 << 22  # word pairs buffered before counting
_STEP = 500  # words between progress updates
_TABLE = 1 << 16  # length of the table of n log n
_CHUNK = 4096  # vectors compared at once


class BigramCounter:
    """Incremental counts of words and of word bigrams in lines; a line ends in a word "".

    Memory grows with the number of distinct words and bigrams.
    """

    def __init__(self) -> None:
        self._ids = {"": _EDGE}
        self._buffer: list[int] = [_EDGE]
        self._pairs, self._counts = np.empty(0, np.int64), np.empty(0, np.int64)
        self.n_tokens = 0

    def add(self, words: Sequence[str]) -> None:
        """Count the words of a line."""
        ids = self._ids
        self._buffer += [ids.setdefault(word, len(ids)) for word in words]
        self._buffer.append(_EDGE)
        self.n_tokens += len(words)
        if len(self._buffer) > _BUFFER:
            self._count()

    def _count(self) -> None:
        buffer = np.array(self._buffer, dtype=np.int64)
        self._buffer = [int(buffer[-1])]
        new = buffer[:-1] << 32 | buffer[1:]
        self._pairs, self._counts = _summed(
            np.concatenate((self._pairs, new)),
            np.concatenate((self._counts, np.ones(len(new), np.int64))),
        )

    def bigrams(self, min_count: int) -> "BigramCounts":
        """Return the counts. min_count: words with lower counts are merged into one."""
        self._count()
        first, second = self._pairs >> 32, self._pairs & 0xFFFFFFFF
        counts = np.bincount(second, self._counts, minlength=len(self._ids)).astype(np.int64)
        words = [*self._ids]
        frequent = set(np.flatnonzero(counts >= min_count).tolist()) - {_EDGE}
        kept = np.array(sorted(frequent, key=lambda i: (-counts[i], words[i])), dtype=np.int64)
        number = np.full(len(words), _RARE, dtype=np.int64)
        number[_EDGE] = _EDGE
        number[kept] = np.arange(len(kept)) + _RARE + 1
        pairs, totals = _summed(number[first] << 32 | number[second], self._counts)
        return BigramCounts(
            [words[i] for i in kept.tolist()], pairs >> 32, pairs & 0xFFFFFFFF, totals
        )


def _summed(keys: Longs, counts: Longs) -> tuple[Longs, Longs]:
    """Sum counts by key. RETURNS: distinct keys, ascending, and their sums."""
    order = np.argsort(keys, kind="stable")
    distinct, first = np.unique(keys[order], return_index=True)
    return distinct, np.add.reduceat(counts[order], first) if len(first) else counts


@dataclass(frozen=True)
class BigramCounts:
    """Counts of word bigrams.

    words: by descending frequency, numbered from 2; number 0 is the end of a line, 1 all rare
    words; first, second: [K] int64, pairs of numbers, ascending; counts: [K] int64.
    """

    words: list[str]
    first: Longs
    second: Longs
    counts: Longs

    def neighbours(self) -> tuple[Any, Any, Longs, Longs]:
        """Return arguments of the kernel: left and right neighbours, counts [V] int64 of words,
        and counts [V] int64 of words that follow themselves.
        """
        from ..kernels.exchange import Neighbours

        n = len(self.words) + _RARE + 1
        apart = self.first != self.second
        sides = []
        for own, other in ((self.second, self.first), (self.first, self.second)):
            order = np.argsort(own[apart], kind="stable")
            ptr = np.append(0, np.cumsum(np.bincount(own[apart], minlength=n)))
            numbers = other[apart][order].astype(np.int32)
            sides.append(Neighbours(ptr.astype(np.int64), numbers, self.counts[apart][order]))
        counts, selves = (
            np.bincount(self.second[which], self.counts[which], minlength=n).astype(np.int64)
            for which in (slice(None), ~apart)
        )
        return sides[0], sides[1], counts, selves


def exchange_classes(bigrams: BigramCounts, n_classes: int, n_iterations: int) -> Longs:
    """Assign words to the classes of a bigram model by likelihood, see `kernels.exchange`.

    n_classes: of words that are not rare; n_iterations: maximum number of passes over all words.
    RETURNS: [V] int64, the class of each word, from 0.
    """
    from ..kernels.exchange import Classes, WordExchange, exchange, fill_table

    fixed = _RARE + 1  # separate classes of line ends and of rare words
    n, n_all = len(bigrams.words), n_classes + fixed
    left, right, counts, own = bigrams.neighbours()
    of_word = np.arange(n + fixed, dtype=np.int32)
    of_word[fixed:] = np.arange(n) % n_classes + fixed
    sizes = np.bincount(of_word, counts, minlength=n_all).astype(np.int64)
    pairs = of_word[bigrams.first].astype(np.int64) * n_all + of_word[bigrams.second]
    after = np.bincount(pairs, bigrams.counts, minlength=n_all * n_all).astype(np.int64)
    after = after.reshape(n_all, n_all)
    classes = Classes(of_word, sizes, after, np.ascontiguousarray(after.T))
    table = np.zeros(_TABLE)
    fill_table(table)
    work = np.empty(n_all), np.zeros((2, n_all), np.int64), np.empty(n_all, np.int32)
    given = WordExchange(left, right, counts, own, table, *work)
    words = np.arange(fixed, n + fixed)
    with progress("Exchanging words", "words", n_iterations * n) as shown:
        for _ in range(n_iterations):
            n_moved = 0
            for begin in range(0, n, _STEP):
                n_moved += exchange(words[begin : begin + _STEP], fixed, given, classes)
                shown.done += min(_STEP, n - begin)
            shown.detail = f"{n_moved} have moved"
            if not n_moved:
                break
    return of_word[fixed:].astype(np.int64) - fixed


def vector_classes(
    vectors: NDArray[np.floating], n_classes: int, n_iterations: int, seed: int
) -> Longs:
    """Assign vectors to classes by direction: spherical k-means (Dhillon & Modha 2001).

    vectors: [V, D], not zero; seed: of the choice of initial centres.
    RETURNS: [V] int64, the class of each vector, from 0.
    """
    unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    rng = np.random.default_rng(seed)
    centres = unit[rng.permutation(len(unit))[:n_classes]]
    found = np.full(len(unit), -1, dtype=np.int64)
    with progress("Moving centres", "iterations", n_iterations) as shown:
        for _ in shown.over(range(n_iterations)):
            nearest, similarity = _nearest(unit, centres)
            if (nearest == found).all():
                break
            found = nearest
            centres = np.zeros_like(centres)
            np.add.at(centres, found, unit)
            # An empty centre moves to one of the vectors least similar to their own centres.
            empty = np.flatnonzero(np.bincount(found, minlength=len(centres)) == 0)
            centres[empty] = unit[np.argsort(similarity, kind="stable")[: len(empty)]]
            centres /= np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-12)
    return found


def _nearest(
    unit: NDArray[np.float32], centres: NDArray[np.float32]
) -> tuple[Longs, NDArray[np.float32]]:
    """Return the nearest centre of each vector, and its similarity: [V] each."""
    nearest, similarity = np.empty(len(unit), np.int64), np.empty(len(unit), np.float32)
    for begin in range(0, len(unit), _CHUNK):
        own = slice(begin, begin + _CHUNK)
        products = unit[own] @ centres.T
        nearest[own] = products.argmax(axis=1)
        similarity[own] = products.max(axis=1)
    return nearest, similarity


def write_classes(words: Sequence[str], classes: Longs) -> Iterator[str]:
    """Yield lines of words and their classes in the format "word2vec", ordered by class."""
    for i in np.argsort(classes, kind="stable").tolist():
        yield f"{words[i]} {classes[i]}\n"
