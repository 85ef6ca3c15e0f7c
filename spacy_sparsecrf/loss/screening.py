"""Screening of inactive weights: gradients beyond a threshold.

The gradients are sums of residuals over the tokens of each feature. Gradients of label
pairs are computed only where the marginals of single tokens allow a violation.
"""

from collections.abc import Callable
from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..corpus.encoded import MISSING
from ..kernels.layout import ContextsOf
from ..kernels.screening import (
    Chosen,
    GoldTokens,
    add_chosen_pairs,
    add_counts,
    add_residuals,
    choose_labels,
    collect_labels,
    screen_pairs,
)
from ..parallel import Chunks, cut
from .lattice import Csr, Floats, Ints, Longs
from .working import WorkingLoss
from .workspace import Workspace, tokens_by

FoundT = TypeVar("FoundT")
Found = tuple[Longs, Floats]

# Potential weights whose gradients one call may write: 2 MB a thread.
_SCREENED = 1 << 16
# Sums of marginals and of pair marginals agree up to this many square roots of the precision.
_SLACK = 8.0


def from_sums(
    working: WorkingLoss,
    theta: Floats,
    chunks: Chunks,
    shape: tuple[int, ...],
    n_sections: int,
    add: Callable[[int, int, int, Floats], None],
    collect: Callable[[int, int, Floats], FoundT],
) -> list[FoundT]:
    """Sum over the sections of the corpus for each chunk of features, and collect results.

    working, theta: point of the residuals, which are in the workspace, or computed by shard if the
    corpus is in files; chunks: of features, small enough that the sums of a chunk fit in memory;
    n_sections: sections of a corpus in memory; in files, the sections are the shards; add(i, first,
    last, sums): adds section i to the sums [last - first, *shape] of features; collect(first, last,
    sums): returns the results of a chunk. RETURNS: the results of each chunk.
    """
    space = working.space

    def in_memory(first: int, last: int) -> FoundT:
        sums = np.zeros((last - first, *shape))
        for i in range(n_sections):
            add(i, first, last, sums)
        return collect(first, last, sums)

    if not space.by_shard:
        return space.workers.map(in_memory, chunks)
    found: list[FoundT] = []
    width = prod(shape)
    for run in _runs(chunks, lambda feature: feature * width, space.limits.held_sums):
        found += _from_shards(working, theta, run, shape, add, collect)
    return found


def _from_shards(
    working: WorkingLoss,
    theta: Floats,
    chunks: Chunks,
    shape: tuple[int, ...],
    add: Callable[[int, int, int, Floats], None],
    collect: Callable[[int, int, Floats], FoundT],
) -> list[FoundT]:
    """Apply `from_sums` to consecutive chunks together: each shard is evaluated once."""
    origin, workers = chunks[0][0], working.space.workers
    sums = np.zeros((chunks[-1][1] - origin, *shape))

    def own(first: int, last: int) -> Floats:
        return sums[first - origin : last - origin]

    def adder(i: int) -> Callable[[int, int], None]:
        return lambda first, last: add(i, first, last, own(first, last))

    for i in working.visit(theta):
        workers.map(adder(i), chunks)
    return workers.map(lambda first, last: collect(first, last, own(first, last)), chunks)


def _runs(chunks: Chunks, sums_before: Callable[[int], int], held: int) -> list[Chunks]:
    """Group consecutive chunks of features whose sums fit in memory at once.

    sums_before(feature): size of the sums of all previous features.
    """
    found: list[Chunks] = []
    for chunk in chunks:
        if found and sums_before(chunk[1]) - sums_before(found[-1][0][0]) <= held:
            found[-1].append(chunk)
        else:
            found.append([chunk])
    return found


def screen_unigrams(working: WorkingLoss, theta: Floats, threshold: float) -> list[Found]:
    """Find the unigram weights whose loss gradient exceeds a threshold in magnitude.

    working, theta: point of the gradient, after `WorkingLoss.marginals`. RETURNS: lists of
    coordinates [n] int64, ascending, and gradients [n] float64.
    """
    space = working.space

    def add(i: int, first: int, last: int, sums: Floats) -> None:
        columns = space.columns[i]
        line, features = columns.between(first, last)
        tokens = columns.tokens
        add_residuals(first, features, line, tokens.indptr, tokens.indices, space.residual, sums)

    def collect(first: int, last: int, sums: Floats) -> Found:
        n = (last - first) * space.n_labels
        coordinates, gradients = np.empty(n, np.int64), np.empty(n)
        found = collect_labels(first, space.n_labels, sums, threshold, coordinates, gradients)
        return coordinates[:found].copy(), gradients[:found].copy()

    shape = (space.padded,)
    return from_sums(working, theta, _chunks(space), shape, len(space.columns), add, collect)


def _chunks(space: Workspace) -> Chunks:
    """Cut features into chunks of about equal cost whose potential weights fit into a buffer."""
    sizes = space.feature_counts
    # The mean in the cost of each feature keeps chunks of rare features below twice a buffer.
    cost = sizes + int(sizes.sum()) // max(1, len(sizes))
    return cut(cost, max(space.limits.n_chunks, -(-len(sizes) * space.n_labels // _SCREENED)))


class PairScreening:
    """Screening of bigram weights.

    space: of the losses; n_unigram: first coordinate of bigram weights.
    """

    def __init__(self, space: Workspace, n_unigram: int) -> None:
        lattice = space.lattice
        self._space = space
        self._n_unigram = n_unigram
        n_contexts, store = len(lattice.ctx_features), lattice.store
        self._of_shard = [
            tokens_by(shard, lattice.context[shard.begin : shard.end], n_contexts, store)
            for shard in space.shards
        ]
        n_tokens = store.counts(lattice.context, n_contexts)
        sizes = n_tokens[lattice.feature_contexts.indices]
        ends = np.concatenate(([0], np.cumsum(sizes)))[lattice.feature_contexts.indptr]
        self._n_tokens: Longs = np.diff(ends)

    def screen(self, working: WorkingLoss, theta: Floats, threshold: float) -> list[Found]:
        """Find the bigram weights whose gradient exceeds a threshold; see `screen_unigrams`."""
        lattice = self._space.lattice
        contexts = _sorted_by(lattice.feature_contexts, working.pairs.contexts.active)
        chosen = self._choose(working, theta, threshold)
        ptr, found = chosen.area_ptr, []
        n_chunks = max(self._space.limits.n_chunks, int(ptr[-1] >> 20))
        chunks = cut(np.diff(ptr) * self._n_tokens, n_chunks)
        chunks = [chunk for chunk in chunks if ptr[chunk[1]] > ptr[chunk[0]]]
        for run in _runs(chunks, lambda feature: int(ptr[feature]), self._space.limits.held_pairs):
            found += self._screen_run(working, theta, contexts, chosen, threshold, run)
        return found

    def _choose(self, working: WorkingLoss, theta: Floats, threshold: float) -> Chosen:
        """Choose the pairs that can have a gradient beyond a threshold."""
        space, n_labels = self._space, self._space.n_labels
        slack = _SLACK * float(np.sqrt(np.finfo(space.dtype).eps))
        if not working.is_bounded:
            # Any pair can have a large gradient.
            threshold = -1.0

        def choose(first: int, last: int, counts: Floats) -> tuple[NDArray[Any], ...]:
            n_rows, n_columns = (np.zeros(last - first, np.int64) for _ in range(2))
            most = (last - first) * (n_labels + 1)
            rows, columns = (np.empty(most, np.uint16) for _ in range(2))
            choose_labels(n_labels, counts, slack, threshold, n_rows, rows, n_columns, columns)
            return n_rows, rows[: n_rows.sum()].copy(), n_columns, columns[: n_columns.sum()].copy()

        n = len(space.lattice.feature_contexts)
        chunks = cut(self._n_tokens, max(space.limits.n_chunks, n * n_labels >> 20))
        shape = 4, space.padded + 1
        found = from_sums(
            working, theta, chunks, shape, len(space.shards), self._add_counts, choose
        )
        empty = np.empty(0, np.int64), np.empty(0, np.uint16)
        n_rows, rows, n_columns, columns = (
            np.concatenate(column) for column in zip((*empty, *empty), *found, strict=True)
        )
        ends = _pointers(n_rows), _pointers(n_columns), _pointers(n_rows * n_columns)
        return Chosen(ends[0], rows, ends[1], columns, ends[2])

    def _add_counts(self, i: int, first: int, last: int, counts: Floats) -> None:
        """Add shard i to the counts of labels of features first:last."""
        space, contexts = self._space, self._space.lattice.feature_contexts
        features = first, last, space.n_labels, ContextsOf(contexts.indptr, contexts.indices)
        residual = space.residual_of(space.shards[i])
        add_counts(*features, self._of_shard[i], self._gold(i), residual, counts)

    def _gold(self, i: int) -> GoldTokens:
        """Return the gold labels of shard i."""
        lattice, shard = self._space.lattice, self._space.shards[i]
        tokens = slice(shard.begin, shard.end)
        return GoldTokens(lattice.labels[tokens], lattice.token_weight[tokens])

    def _screen_run(
        self,
        working: WorkingLoss,
        theta: Floats,
        contexts: Csr,
        chosen: Chosen,
        threshold: float,
        chunks: Chunks,
    ) -> list[Found]:
        """Screen the chosen pairs of chunks of features, given their contexts."""
        space, ptr = self._space, chosen.area_ptr
        totals = np.zeros(ptr[chunks[-1][1]] - ptr[chunks[0][0]])
        # Positions of areas are relative to the first of these totals.
        chosen = chosen._replace(area_ptr=ptr - ptr[chunks[0][0]])
        features = ContextsOf(contexts.indptr, contexts.indices)
        args = chosen, features, working.pairs.contexts.active, working.pairs.arrays
        for i in working.visit(theta, vectors=True):
            gold = self._gold(i)
            for tokens, vectors, has_gold in working.pair_terms(i, self._of_shard[i]):
                missing = None if has_gold else np.full_like(gold.labels, MISSING)
                own = gold if missing is None else gold._replace(labels=missing)
                space.workers.map(add_chosen_pairs, chunks, *args, tokens, own, vectors, totals)
        return space.workers.map(self._collect, chunks, chosen, threshold, totals)

    def _collect(
        self, first: int, last: int, chosen: Chosen, threshold: float, totals: Floats
    ) -> Found:
        """Return the violators among the chosen pairs of features first:last."""
        most = int(chosen.area_ptr[last] - chosen.area_ptr[first])
        coordinates, gradients = np.empty(most, np.int64), np.empty(most)
        n_labels, n_previous = self._space.n_labels, self._space.lattice.n_previous
        sizes = first, last, n_labels, n_previous
        found = screen_pairs(*sizes, chosen, totals, threshold, coordinates, gradients)
        return self._n_unigram + coordinates[:found], gradients[:found].copy()


def _pointers(sizes: Longs) -> Longs:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def _sorted_by(table: Csr, key: Ints) -> Csr:
    """Sort each row of a ragged table by a key of its elements."""
    row = np.repeat(np.arange(len(table)), np.diff(table.indptr))
    return Csr(table.indptr, table.indices[np.lexsort((key[table.indices], row))])
