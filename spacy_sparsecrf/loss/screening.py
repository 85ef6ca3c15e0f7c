"""Screening of inactive weights: gradients beyond a threshold.

The gradients are sums of residuals over the tokens of each feature. Gradients of label
pairs are computed only where the marginals of single tokens allow a violation.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..corpus.csr import Csr
from ..kernels.layout import ContextsOf
from ..kernels.screening import (
    Chosen,
    GoldTokens,
    add_chosen_pairs,
    add_counts,
    choose_labels,
    screen_labels,
    screen_pairs,
)
from ..parallel import Chunks, cut
from .lattice import Floats, Ints, Longs
from .working import WorkingLoss
from .workspace import Workspace, tokens_by

Found = tuple[Longs, Floats]

# Potential weights whose gradients one call may write: 2 MB a thread.
_SCREENED = 1 << 16
# Sums of marginals and of pair marginals agree up to this many square roots of the precision.
_SLACK = 8.0


def _runs(chunks: Chunks, ptr: Longs, held: int) -> list[Chunks]:
    """Group consecutive chunks of features whose sums fit in memory at once.

    ptr: [features + 1] int64, position of the sums of a feature; held: numbers that fit.
    """
    found: list[Chunks] = []
    for chunk in chunks:
        if found and ptr[chunk[1]] - ptr[found[-1][0][0]] <= held:
            found[-1].append(chunk)
        else:
            found.append([chunk])
    return found


def screen_unigrams(space: Workspace, threshold: float) -> list[Found]:
    """Find the unigram weights whose loss gradient exceeds a threshold in magnitude.

    space: with the residuals of the point. RETURNS: lists of coordinates [n] int64, ascending, and
    gradients [n] float64.
    """
    tokens = space.lattice.feature_tokens

    def screen(first: int, last: int) -> Found:
        n, row = (last - first) * space.n_labels, np.zeros(space.padded)
        coordinates, gradients = np.empty(n, np.int64), np.empty(n)
        args = space.n_labels, tokens.indptr, tokens.indices, space.residual, threshold, row
        found = screen_labels(first, last, *args, coordinates, gradients)
        return coordinates[:found].copy(), gradients[:found].copy()

    return space.workers.map(screen, _chunks(space))


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
        n_contexts = len(lattice.ctx_features)
        self._of_shard = [
            tokens_by(shard, lattice.context[shard.begin : shard.end], n_contexts)
            for shard in space.shards
        ]
        n_tokens = np.bincount(lattice.context, minlength=n_contexts)
        sizes = n_tokens[lattice.feature_contexts.indices]
        ends = np.concatenate(([0], np.cumsum(sizes)))[lattice.feature_contexts.indptr]
        self._n_tokens: Longs = np.diff(ends)

    def screen(self, working: WorkingLoss, theta: Floats, threshold: float) -> list[Found]:
        """Find the bigram weights whose gradient exceeds a threshold; see `screen_unigrams`."""
        lattice = self._space.lattice
        contexts = _sorted_by(lattice.feature_contexts, working.pairs.contexts.active)
        chosen = self._choose(threshold)
        ptr, found = chosen.area_ptr, []
        n_chunks = max(self._space.limits.n_chunks, int(ptr[-1] >> 20))
        chunks = cut(np.diff(ptr) * self._n_tokens, n_chunks)
        chunks = [chunk for chunk in chunks if ptr[chunk[1]] > ptr[chunk[0]]]
        for run in _runs(chunks, ptr, self._space.limits.held_pairs):
            found += self._screen_run(working, theta, contexts, chosen, threshold, run)
        return found

    def _choose(self, threshold: float) -> Chosen:
        """Choose the pairs that can have a gradient beyond a threshold."""
        space, n_labels = self._space, self._space.n_labels
        slack = _SLACK * float(np.sqrt(np.finfo(space.dtype).eps))

        def choose(first: int, last: int) -> tuple[NDArray[Any], ...]:
            counts = np.zeros((last - first, 4, space.padded + 1))
            for i in range(len(space.shards)):
                self._add_counts(i, first, last, counts)
            n_rows, n_columns = (np.zeros(last - first, np.int64) for _ in range(2))
            most = (last - first) * (n_labels + 1)
            rows, columns = (np.empty(most, np.uint16) for _ in range(2))
            choose_labels(n_labels, counts, slack, threshold, n_rows, rows, n_columns, columns)
            return n_rows, rows[: n_rows.sum()].copy(), n_columns, columns[: n_columns.sum()].copy()

        n = len(space.lattice.feature_contexts)
        chunks = cut(self._n_tokens, max(space.limits.n_chunks, n * n_labels >> 20))
        found = space.workers.map(choose, chunks)
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
        for i in working.visit(theta):
            own = self._of_shard[i], self._gold(i), working.vectors(i)
            space.workers.map(add_chosen_pairs, chunks, *args, *own, totals)
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
