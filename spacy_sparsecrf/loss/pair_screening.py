"""The gradient of all potential bigram weights, of which only violators are kept.

Computed of those alone that can be violators, by what the marginals of single tokens tell.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.pair_screening import (
    add_chosen_pairs,
    add_counts,
    choose_labels,
    screen_pairs,
)
from ..parallel import Chunks, cut
from .lattice import Csr
from .residual_sums import from_sums
from .working import WorkingLoss
from .workspace import Workspace, kept_tables

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
Found = tuple[Longs, Floats]

# Pairs whose gradients are held at once: 512 MB.
_HELD_PAIRS = 1 << 26
_CHUNKS = 64
# Sums of marginals agree with sums of pair marginals but for this many roots of the precision.
_SLACK = 8.0


@dataclass(frozen=True)
class _Chosen:
    """The pairs of each test that are computed: all of a label of `rows` and one of `columns`.

    rows, columns: labels by test, uint16; area_ptr: [tests + 1] int64, cumulated pairs.
    """

    rows: Csr
    columns: Csr
    area_ptr: Longs


class PairScreening:
    """Finds violators among the bigram weights.

    space: of the losses; n_unigram: what coordinates of bigram weights begin with.
    """

    def __init__(self, space: Workspace, n_unigram: int) -> None:
        lattice = space.lattice
        self._space = space
        self._n_unigram = n_unigram
        n_contexts, store = len(lattice.ctx_tests), lattice.store
        self._of_block = [
            kept_tables(
                block.tokens_by(lattice.context[block.begin : block.end], n_contexts), store
            )
            for block in space.blocks
        ]
        n_tokens = store.counts(lattice.context, n_contexts)
        sizes = n_tokens[lattice.test_contexts.indices]
        ends = np.concatenate(([0], np.cumsum(sizes)))[lattice.test_contexts.indptr]
        self._n_tokens: Longs = np.diff(ends)

    def screen(self, working: WorkingLoss, theta: Floats, threshold: float) -> list[Found]:
        """Find the weights whose loss gradient exceeds a threshold in magnitude.

        working, theta: where it is taken, as `WorkingLoss.prepare_screening` left it. RETURNS:
        parts of coordinates [n] int64, ascending, and gradients [n] float64.
        """
        lattice = self._space.lattice
        contexts = _sorted_by(lattice.test_contexts, working.pairs.contexts.active)
        chosen = self._choose(working, theta, threshold)
        parts = []
        for chunks in _runs(chosen.area_ptr, self._n_tokens):
            parts += self._screen_run(working, theta, contexts, chosen, threshold, chunks)
        return parts

    def _choose(self, working: WorkingLoss, theta: Floats, threshold: float) -> _Chosen:
        """Which pairs can have a gradient beyond a threshold."""
        space, n_labels = self._space, self._space.n_labels
        slack = _SLACK * float(np.sqrt(np.finfo(space.dtype).eps))

        def choose(first: int, last: int, counts: Floats) -> tuple[NDArray[Any], ...]:
            n_rows, n_columns = (np.zeros(last - first, np.int64) for _ in range(2))
            most = (last - first) * (n_labels + 1)
            rows, columns = (np.empty(most, np.uint16) for _ in range(2))
            choose_labels(n_labels, counts, slack, threshold, n_rows, rows, n_columns, columns)
            return n_rows, rows[: n_rows.sum()].copy(), n_columns, columns[: n_columns.sum()].copy()

        n = len(space.lattice.test_contexts)
        chunks = cut(self._n_tokens, max(_CHUNKS, n * n_labels >> 20))
        shape = 4, space.padded + 1
        found = from_sums(
            working, theta, chunks, shape, len(space.blocks), self._add_counts, choose
        )
        empty = np.empty(0, np.int64), np.empty(0, np.uint16)
        n_rows, rows, n_columns, columns = (
            np.concatenate(part) for part in zip((*empty, *empty), *found, strict=True)
        )
        return _Chosen(
            Csr(_pointers(n_rows), rows),
            Csr(_pointers(n_columns), columns),
            _pointers(n_rows * n_columns),
        )

    def _add_counts(self, i: int, first: int, last: int, counts: Floats) -> None:
        """Add block i to the counts of labels of tests first:last."""
        space, block, (inner, starts) = self._space, self._space.blocks[i], self._of_block[i]
        lattice = space.lattice
        add_counts(
            first,
            last,
            space.n_labels,
            lattice.test_contexts.indptr,
            lattice.test_contexts.indices,
            inner.indptr,
            inner.indices,
            starts.indptr,
            starts.indices,
            lattice.labels[block.begin : block.end],
            lattice.token_weight[block.begin : block.end],
            space.residual_of(block),
            counts,
        )

    def _screen_run(
        self,
        working: WorkingLoss,
        theta: Floats,
        contexts: Csr,
        chosen: _Chosen,
        threshold: float,
        chunks: Chunks,
    ) -> list[Found]:
        """Screen the chosen pairs of chunks of tests, whose contexts are given."""
        space = self._space
        ptr = chosen.area_ptr
        totals = np.zeros(ptr[chunks[-1][1]] - ptr[chunks[0][0]])
        for i in working.visit(theta, vectors=True):
            add = self._adder(working, contexts, chosen, i, ptr - ptr[chunks[0][0]], totals)
            space.workers.map(add, chunks)
        return space.workers.map(
            lambda first, last: self._collect(
                chosen, ptr - ptr[chunks[0][0]], threshold, first, last, totals
            ),
            chunks,
        )

    def _adder(
        self,
        working: WorkingLoss,
        columns: Csr,
        chosen: _Chosen,
        i: int,
        area_ptr: Longs,
        totals: Floats,
    ) -> Callable[[int, int], None]:
        """What adds the chosen pairs of block i to the totals of tests."""
        space, contexts = self._space, working.pairs.contexts
        lattice, block, (inner, starts) = space.lattice, space.blocks[i], self._of_block[i]

        def add(first: int, last: int) -> None:
            add_chosen_pairs(
                first,
                last,
                space.n_labels,
                chosen.rows.indptr,
                chosen.rows.indices,
                chosen.columns.indptr,
                chosen.columns.indices,
                area_ptr,
                columns.indptr,
                columns.indices,
                contexts.active,
                contexts.matrix_of,
                contexts.ent_ptr,
                contexts.ent_previous,
                contexts.ent_label,
                working.pairs.ent_value,
                inner.indptr,
                inner.indices,
                starts.indptr,
                starts.indices,
                lattice.labels[block.begin : block.end],
                lattice.token_weight[block.begin : block.end],
                space.alpha,
                space.backward,
                working.pairs.psi,
                totals,
            )

        return add

    def _collect(
        self,
        chosen: _Chosen,
        area_ptr: Longs,
        threshold: float,
        first: int,
        last: int,
        totals: Floats,
    ) -> Found:
        """The violators among the chosen pairs of tests first:last, given their gradients."""
        most = int(area_ptr[last] - area_ptr[first])
        coordinates, gradients = np.empty(most, np.int64), np.empty(most)
        found = screen_pairs(
            first,
            last,
            self._space.n_labels,
            self._space.lattice.n_previous,
            chosen.rows.indptr,
            chosen.rows.indices,
            chosen.columns.indptr,
            chosen.columns.indices,
            area_ptr,
            totals,
            threshold,
            coordinates,
            gradients,
        )
        return self._n_unigram + coordinates[:found], gradients[:found].copy()


def _pointers(sizes: Longs) -> Longs:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def _runs(area_ptr: Longs, n_tokens: Longs) -> list[Chunks]:
    """Cut tests into chunks of about equal work, and these into runs that can be held at once."""
    sizes = np.diff(area_ptr)
    runs: list[Chunks] = []
    for chunk in cut(sizes * n_tokens, max(_CHUNKS, int(area_ptr[-1] >> 20))):
        if runs and area_ptr[chunk[1]] - area_ptr[runs[-1][0][0]] <= _HELD_PAIRS:
            runs[-1].append(chunk)
        elif area_ptr[chunk[1]] > area_ptr[chunk[0]]:
            runs.append([chunk])
    return runs


def _sorted_by(table: Csr, key: NDArray[np.int32]) -> Csr:
    """Order the entries of each row of a ragged table by a key of the entry."""
    row = np.repeat(np.arange(len(table)), np.diff(table.indptr))
    return Csr(table.indptr, table.indices[np.lexsort((key[table.indices], row))])
