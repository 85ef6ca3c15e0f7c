"""Screening of inactive weights: gradients beyond a threshold.

The gradients are sums of residuals over the tokens of each feature. Gradients of label
pairs are computed only where the marginals of single tokens allow a violation.
"""

from collections.abc import Sequence

import numpy as np

from ..corpus.coordinates import Coordinates
from ..corpus.numbering import Floats, Longs, Mask
from ..corpus.ragged import pointers, row_numbers
from ..kernels.layout import ContextsOf, Tables, TokensBy
from ..kernels.screening import Chosen, add_chosen_pairs, add_counts, screen_labels
from ..parallel import Chunks, cut
from .pair_potentials import tokens_by
from .working import ChainWorkingLoss
from .workspace import Workspace

Found = tuple[Longs, Floats]

# Potential weights whose gradients one call may write: 2 MB a thread.
_SCREENED = 1 << 16
# Sums of marginals and of pair marginals agree up to this many square roots of the precision.
_SLACK = 8.0


def screen_unigrams(space: Workspace, threshold: float) -> list[Found]:
    """Find the unigram weights whose loss gradient exceeds a threshold in magnitude.

    space: with the residuals of the point. RETURNS: lists of coordinates [n] int64, ascending, and
    gradients [n] float64.
    """
    sizes = np.diff(space.lattice.feature_sites.indptr)
    # The mean in the cost of each feature keeps chunks of rare features below twice a buffer.
    cost = sizes + int(sizes.sum()) // max(1, len(sizes))
    n_chunks = max(space.n_chunks, -(-len(sizes) * space.n_labels // _SCREENED))
    return space.workers.map(_screen_labels, cut(cost, n_chunks), space, threshold)


def _screen_labels(first: int, last: int, space: Workspace, threshold: float) -> Found:
    """Screen the unigram weights of features first:last."""
    sites, row = space.lattice.feature_sites, np.zeros(space.padded)
    n = (last - first) * space.n_labels
    coordinates, gradients = np.empty(n, np.int64), np.empty(n)
    n_found = screen_labels(
        first,
        last,
        n_labels=space.n_labels,
        col_ptr=sites.indptr,
        col_sites=sites.indices,
        residual=space.residual,
        threshold=threshold,
        row=row,
        coordinates=coordinates,
        gradients=gradients,
    )
    return coordinates[:n_found].copy(), gradients[:n_found].copy()


class PairScreening:
    """Screening of bigram weights.

    space: of the losses; coding: what coordinates stand for.
    """

    def __init__(self, space: Workspace, coding: Coordinates) -> None:
        lattice = space.lattice
        contexts = lattice.feature_contexts
        self._space, self._coding = space, coding
        self._features = ContextsOf(contexts.indptr, contexts.indices)
        self._row = row_numbers(contexts.indptr)
        n_contexts = len(lattice.ctx_features.indptr) - 1
        self._tokens: list[TokensBy] = []
        for shard in space.shards:
            context = lattice.context[shard.begin : shard.end]
            self._tokens.append(tokens_by(shard, context, n_contexts))
        n_tokens = np.bincount(lattice.context, minlength=n_contexts)
        ends = pointers(n_tokens[contexts.indices])[contexts.indptr]
        self._n_tokens: Longs = np.diff(ends)

    def screen(self, working: ChainWorkingLoss, theta: Floats, threshold: float) -> list[Found]:
        """Find the bigram weights whose gradient exceeds a threshold; see `screen_unigrams`."""
        space, active = self._space, working.pairs.contexts.active
        violators: list[Found] = []
        chosen = self._chosen(working.shards, threshold)
        contexts, ptr = self._features.contexts, chosen.area_ptr
        # The contexts of a feature by active context.
        by_active = contexts[np.lexsort((active[contexts], self._row))]
        features = self._features._replace(contexts=by_active)
        n_chunks = max(space.limits.n_chunks, int(ptr[-1] >> 20))
        chunks = cut(np.diff(ptr) * self._n_tokens, n_chunks)
        for run in _runs(chunks, ptr, space.limits.held_pairs):
            begin, end = ptr[run[0][0]], ptr[run[-1][1]]
            # Positions of areas are relative to the first of these totals.
            placed, totals = chosen._replace(area_ptr=ptr - begin), np.zeros(end - begin)
            for i in working.visit(theta):
                space.workers.map(
                    add_chosen_pairs,
                    run,
                    chosen=placed,
                    features=features,
                    active=active,
                    pairs=working.pairs.arrays,
                    tokens=self._tokens[i],
                    sequences=working.shards[i].sequences,
                    vectors=working.vectors(i),
                    totals=totals,
                )
            violators += space.workers.map(self._collect, run, placed, threshold, totals)
        return violators

    def _chosen(self, shards: Sequence[Tables], threshold: float) -> Chosen:
        """Choose the pairs that can have a gradient beyond a threshold."""
        space, n_labels, n = self._space, self._space.n_labels, len(self._n_tokens)
        previous, at = np.empty((n, n_labels + 1), np.bool_), np.empty((n, n_labels), np.bool_)
        chunks = cut(self._n_tokens, max(space.limits.n_chunks, n * n_labels >> 20))
        space.workers.map(
            self._choose, chunks, shards=shards, threshold=threshold, previous=previous, at=at
        )
        n_rows, n_columns = previous.sum(axis=1), at.sum(axis=1)
        return Chosen(
            row_ptr=pointers(n_rows),
            rows=np.nonzero(previous)[1].astype(np.uint16),
            column_ptr=pointers(n_columns),
            columns=np.nonzero(at)[1].astype(np.uint16),
            area_ptr=pointers(n_rows * n_columns),
        )

    def _choose(
        self,
        first: int,
        last: int,
        *,
        shards: Sequence[Tables],
        threshold: float,
        previous: Mask,
        at: Mask,
    ) -> None:
        """Choose the labels of features first:last whose pairs can have |gradient| > threshold.

        The gradient of (o, y', y) is E - O, expected minus observed counts. Each count is at least
        0, and at most the count of y' before tokens with o and the count of y at these tokens:
        |gradient| <= max(min(E[y'], E[y]), min(O[y'], O[y])).

        previous: [O, Y + 1], at: [O, Y], out, the chosen labels before and at the tokens.
        """
        space, n_labels = self._space, self._space.n_labels
        counts = np.zeros((last - first, 4, space.padded + 1))
        for shard, tokens, tables in zip(space.shards, self._tokens, shards, strict=True):
            residual = space.residual[shard.begin : shard.end]
            add_counts(
                first,
                last,
                counts=counts,
                features=self._features,
                tokens=tokens,
                sequences=tables.sequences,
                residual=residual,
            )
        slack = _SLACK * float(np.sqrt(np.finfo(space.dtype).eps))
        expected, observed = counts[:, ::2], counts[:, 1::2]
        # Bounds that, up to rounding, exceed the threshold.
        bounds = np.maximum(expected, observed) + slack * (expected + observed)
        previous[first:last] = bounds[:, 0, : n_labels + 1] > threshold
        at[first:last] = bounds[:, 1, :n_labels] > threshold

    def _collect(
        self, first: int, last: int, chosen: Chosen, threshold: float, totals: Floats
    ) -> Found:
        """Return the violators among the chosen pairs of features first:last."""
        row_ptr, rows, column_ptr, columns, area_ptr = chosen
        begin, end = area_ptr[first], area_ptr[last]
        beyond = begin + np.flatnonzero(np.abs(totals[begin:end]) > threshold)
        feature = np.searchsorted(area_ptr, beyond, side="right") - 1
        width = column_ptr[feature + 1] - column_ptr[feature]
        row, column = np.divmod(beyond - area_ptr[feature], width)
        previous = rows[row_ptr[feature] + row].astype(np.int64)
        label = columns[column_ptr[feature] + column].astype(np.int64)
        feature += self._coding.n_unigram
        return self._coding.encode(feature, previous, label), totals[beyond]


def _runs(chunks: Chunks, ptr: Longs, held: int) -> list[Chunks]:
    """Group consecutive chunks of features whose sums fit in memory at once.

    ptr: [features + 1] int64, position of the sums of a feature; held: numbers that fit.
    """
    runs: list[Chunks] = []
    for chunk in chunks:
        if runs and ptr[chunk[1]] - ptr[runs[-1][0][0]] <= held:
            runs[-1].append(chunk)
        else:
            runs.append([chunk])
    return runs
