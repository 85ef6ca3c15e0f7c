"""Pair potentials of working bigram weights: shared matrices plus entries; and their gradient.

Contexts that agree in their working tests are one. Of each, some tests make up a *matrix*, which
it shares with all contexts that have those tests; the weights of the others are *entries*, the
pairs in which its potentials differ from that matrix. A rule chooses, by counting operations: at
one end every context has a matrix of its own, at the other all share a matrix of ones, which is
the sparse forward-backward of Lavergne 2010, section 4.1.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..corpus.numbering import distinct_rows
from ..kernels.indexing import count_places, list_places
from ..kernels.layout import (
    BatchOrder,
    Bigrams,
    Contexts,
    ContextsOf,
    MatrixSums,
    Pairs,
    Potentials,
    Sequences,
    Slopes,
    TokensBy,
    Vectors,
)
from ..kernels.pair_counts import (
    count_entries,
    entry_sums,
    gather_bigrams,
    matrix_residuals,
    pair_sums,
    settle_entries,
)
from ..kernels.pairs import build_entries, build_matrices
from ..parallel import cut
from .lattice import Csr, Floats, Ints, Longs, Mask
from .weights import FeatureBlocks
from .workspace import LARGE_BYTES, MatrixTokens, Workspace, in_waves

Shorts = NDArray[np.uint16]

# Costs in units of one matrix element's three products, as those in `Limits`: building an element
# of a matrix; an element whose matrix is not in a near cache.
_BUILD = 7.0
_UNCACHED = 1.3
_CACHE_BYTES = 1 << 20
# What entries take for each of their weights.
_BYTES_PER_ENTRY = 60.0


@dataclass(frozen=True)
class ContextLayout:
    """Matrices and entries of active contexts.

    active: [C'] int32, active context of each context of the corpus; context: [N] int32, active
    context of a token; matrix_rows: rows of a matrix; arrays: which matrix a context has, and which
    entries; entry_context: [E] int32; entry_weights, weight_entries: weights of an entry, and back.
    """

    active: Ints
    context: Ints
    matrix_rows: Csr
    arrays: Contexts
    entry_context: Ints
    entry_weights: Csr
    weight_entries: Csr

    @property
    def n_entries(self) -> int:
        """Number of entries E."""
        return len(self.arrays.ent_place)


def lay_out_contexts(space: Workspace, rows: FeatureBlocks, stochastic: bool) -> ContextLayout:
    """Choose matrices and entries.

    space: for its lattice and limits; rows: working bigram weights; stochastic: whether
    potentials are built anew for each sequence instead of once per evaluation.
    """
    rule = _Rule(space, rows, stochastic)
    in_matrix = rule.choose()
    bases = np.where(in_matrix, rule.table, 0)
    first, matrix_of = distinct_rows(np.sort(bases, axis=1))
    matrix_rows = _csr(bases[first])
    constant = (np.diff(matrix_rows.indptr) == 0) & (space.lattice.legal is None)
    table = np.where(in_matrix, 0, rule.table)
    entries, weights = _entries(table, rows, space.n_labels, space.padded)
    ent_ptr = entries[0]
    return ContextLayout(
        rule.active,
        rule.context,
        matrix_rows,
        Contexts(matrix_of, constant, *entries),
        np.repeat(np.arange(len(table), dtype=np.int32), np.diff(ent_ptr)),
        weights,
        weights.transposed(int(rows.ptr[-1])),
    )


def bytes_of_pairs(space: Workspace, rows: FeatureBlocks) -> int:
    """About what the potentials of working bigram weights, and their gradient, take in memory.

    The arguments are those of `lay_out_contexts`.
    """
    rule = _Rule(space, rows, False)
    n_matrices, n_weights = rule.sizes(rule.choose())
    area = (space.n_labels + 1) * space.padded
    return 3 * 8 * area * n_matrices + int(_BYTES_PER_ENTRY * n_weights)


def _csr(matrix: Ints) -> Csr:
    """The ragged table of the numbers of each row that are not 0, less 1; see `Csr.padded`."""
    present = matrix > 0
    indptr = np.concatenate(([0], np.cumsum(present.sum(axis=1)))).astype(np.int64)
    return Csr(indptr, (matrix[present] - 1).astype(np.int32))


class _Rule:
    """Counts the operations of an evaluation for each way to divide tests.

    space: for its lattice and limits; rows: working bigram weights; stochastic: see
    `lay_out_contexts`. active, context: see `ContextLayout`; table: [C, R] int32, 1 + rows of a
    context.
    """

    def __init__(self, space: Workspace, rows: FeatureBlocks, stochastic: bool) -> None:
        lattice, sizes = space.lattice, np.diff(rows.ptr)
        every = np.sort(rows.of(lattice.ctx_tests).padded(), axis=1)
        representatives, self.active = distinct_rows(every)
        self.table = table = every[representatives]
        self.context = lattice.store.looked_up(self.active, lattice.context)
        self._begins, self._store = lattice.begins, lattice.store
        self._limits = space.limits
        self._area = float(space.n_labels * space.padded)
        self._stochastic = stochastic
        self._masked = lattice.legal is not None
        self._tokens = lattice.store.counts(self.context, len(table)).astype(np.float64)
        self._n_exps = self._tokens if stochastic else np.ones(len(table))
        self._sizes = np.concatenate(([0.0], sizes))[table]
        # Sets of rows are compared by sums of random numbers modulo 2**64, as costs are estimates.
        marks = np.random.default_rng(0).integers(1, 1 << 63, len(sizes) + 1, dtype=np.uint64)
        marks[0] = 0
        self._marks = marks[table]
        per_row = np.bincount(
            table.ravel(), np.repeat(self._tokens, table.shape[1]), minlength=len(sizes) + 1
        )
        # Without a start label, a sequence's first token has no test.
        n_tokens = self._tokens[(table > 0).any(axis=1)].sum()
        self._share = (per_row / max(1.0, n_tokens))[table]

    def choose(self) -> Mask:
        """Which tests belong to the matrix of their context: [C, R] bool."""
        masks: list[Mask] = []
        for mask in (mask for share in self._limits.shares for mask in self._masks(share)):
            # Several shares may say the same, and the cost of each way takes time.
            if not any(np.array_equal(mask, other) for other in masks):
                masks.append(mask)
        costs = [self._cost(mask) for mask in masks]
        return masks[int(np.argmin(costs))]

    def _masks(self, least_share: float) -> list[Mask]:
        """Tests with a share of the tokens; with these, all of contexts with too many entries.

        The latter are left out where there are none: they would be the same.
        """
        present = self.table > 0
        mask: Mask = np.logical_and(present, self._share >= least_share)
        own_cost = self._area * ((_UNCACHED - 1.0) * self._tokens + _BUILD * self._n_exps)
        own = self._entry_cost(mask) > own_cost
        return [mask, np.where(own[:, None], present, mask)] if own.any() else [mask]

    def _entry_cost(self, mask: Mask) -> Floats:
        """Operations on the entries of a context [C]."""
        entries: Floats = np.where(mask, 0.0, self._sizes).sum(axis=1)
        return entries * (self._limits.entry * self._tokens + self._limits.entry_exp * self._n_exps)

    def _matrices(self, mask: Mask) -> tuple[Longs, Longs]:
        """Contexts with distinct matrices, [M], and the matrix of each context, [C]."""
        sums = np.where(mask, self._marks, 0).sum(axis=1, dtype=np.uint64)
        _, first, matrix_of = np.unique(sums, return_index=True, return_inverse=True)
        return first, matrix_of

    def sizes(self, mask: Mask) -> tuple[int, float]:
        """Number of matrices, and of weights in entries, each counted for each context."""
        return len(self._matrices(mask)[0]), float(np.where(mask, 0.0, self._sizes).sum())

    def _cost(self, mask: Mask) -> float:
        """Operations of an evaluation; beyond all others where it takes too much memory."""
        first, matrix_of = self._matrices(mask)
        # A matrix and its gradient, in float64.
        n_bytes = 2.0 * 8.0 * self._area * len(first)
        entry_bytes = _BYTES_PER_ENTRY * float(np.where(mask, 0.0, self._sizes).sum())
        if n_bytes > self._limits.matrix_bytes or entry_bytes > self._limits.entry_bytes:
            return 1e30 * (n_bytes + entry_bytes)
        cost = self._matrix_cost(np.any(mask[first], axis=1) | self._masked, matrix_of)
        return cost + float(self._entry_cost(mask).sum())

    def _matrix_cost(self, weighted: Mask, matrix_of: Longs) -> float:
        """Operations of products with matrices, those that are not of ones, and to build them."""
        uncached = 8.0 * self._area * len(weighted) > _CACHE_BYTES
        n_products = float(self._tokens[weighted[matrix_of]].sum())
        products = self._area * (_UNCACHED if uncached else 1.0) * n_products
        n_built = float(weighted.sum())
        if self._stochastic:
            n_built = float(self._n_changes(matrix_of, weighted))
        return products + _BUILD * self._area * n_built

    def _n_changes(self, matrix_of: Longs, weighted: Mask) -> int:
        """Count the tokens with another matrix than the token before, one with weights."""
        n, before = 0, -1
        for begin, end in self._store.ranges(len(self.context)):
            matrix = matrix_of[self.context[begin:end]]
            changes = self._begins[begin:end] | (matrix != np.append(before, matrix[:-1]))
            n += int((changes & weighted[matrix]).sum())
            before = matrix[-1] if end > begin else before
        return n


def _entries(
    table: Ints, rows: FeatureBlocks, n_labels: int, padded: int
) -> tuple[tuple[Longs, Longs, Shorts, Shorts, Ints], Csr]:
    """Number the pairs that a context's remaining tests change.

    RETURNS: the fields of `Contexts` about entries, and the weights of each entry.
    """
    lines = _csr(table)
    given = lines.indptr, lines.indices, rows.ptr, rows.places
    area = (n_labels + 1) * padded
    sizes, n_weights = (np.zeros(len(table), np.int64) for _ in range(2))
    count_places(*given, np.full(area, -1, np.int32), sizes, n_weights)
    ent_ptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    n_entries = int(ent_ptr[-1])
    place = np.empty(n_entries, np.int32)
    weights = Csr(np.empty(n_entries + 1, np.int64), np.empty(n_weights.sum(), np.int32))
    n_words = -(-area // 64)
    bits, counts = np.zeros(n_words, np.uint64), np.zeros(64 * n_words, np.int64)
    list_places(*given, ent_ptr, bits, counts, place, weights.indptr, weights.indices)
    context = np.repeat(np.arange(len(table)), sizes)
    before_start = np.bincount(context[place < n_labels * padded], minlength=len(table))
    previous, label = (of_place.astype(np.uint16) for of_place in np.divmod(place, padded))
    return (ent_ptr, ent_ptr[:-1] + before_start, previous, label, place), weights


class PairPotentials:
    """Matrices and entries (see `contexts`) of working bigram weights.

    rows: the weights by test; stochastic: whether for a stochastic solver; origin: [K] float64,
    what is added to the weights that are filled in, or [0]. contexts: how they are laid out;
    arrays: what kernels take, with potentials of the weights that were filled in last, of the
    workspace's precision; bigrams: where the weights are; matrix_chunks, context_chunks,
    settle_chunks: matrices, contexts and matrices by their contexts' entries, cut into chunks;
    matrix_contexts: contexts of a matrix.
    """

    def __init__(
        self, space: Workspace, rows: FeatureBlocks, stochastic: bool, origin: Floats
    ) -> None:
        self.space = space
        self.rows = rows
        self.contexts = lay_out_contexts(space, rows, stochastic)
        self.arrays = self.new_arrays(space.dtype)
        self.potentials = self.arrays.potentials
        matrix_rows, weights = self.contexts.matrix_rows, self.contexts.entry_weights
        of_matrices = matrix_rows.indptr, matrix_rows.indices, rows.ptr, rows.places
        self.bigrams = Bigrams(
            space.lattice.n_previous, *of_matrices, weights.indptr, weights.indices, origin
        )
        self._entry_gold: Floats | None = None
        self._cut_chunks()

    def new_arrays(self, dtype: DTypeLike = np.float64) -> Pairs:
        """Pairs with potentials of which none was evaluated, but matrices of ones, and the mask."""
        n_matrices, n_labels = len(self.contexts.matrix_rows), self.space.n_labels
        n_contexts, n_entries = len(self.contexts.arrays.matrix_of), self.contexts.n_entries
        legal = self.space.lattice.legal
        shape = (n_matrices + (legal is not None), n_labels + 1, self.space.padded)
        psi = np.zeros(shape, dtype)
        psi[:n_matrices][self.contexts.arrays.constant, :, :n_labels] = 1.0
        if legal is not None:
            psi[-1, :n_labels, :n_labels] = legal[:n_labels, :n_labels]
            psi[-1, n_labels, :n_labels] = 1.0
        of_entries = np.zeros(n_entries), np.zeros(n_entries)
        rewritten = np.zeros(n_contexts, dtype=np.bool_)
        stamp = np.zeros(n_matrices + n_contexts, dtype=np.int64)
        potentials = Potentials(psi, np.zeros(n_matrices), *of_entries, rewritten, stamp)
        return Pairs(n_labels, self.contexts.arrays, potentials)

    def new_slopes(self, dtype: DTypeLike) -> Slopes:
        """Slopes of these potentials, of which none was evaluated; those of the mask are zeros."""
        potentials = self.potentials
        zeros = np.zeros_like(potentials.value), np.zeros_like(potentials.value)
        psi = np.zeros(potentials.psi.shape, dtype)
        return Slopes(psi, *zeros, np.zeros_like(potentials.stamp))

    def _cut_chunks(self) -> None:
        """Cut matrices, contexts, entries and rows into chunks of about equal work."""
        contexts, n_chunks = self.contexts, self.space.limits.n_chunks
        n_entries = np.diff(contexts.arrays.ent_ptr)
        self.matrix_chunks = cut(np.diff(contexts.matrix_rows.indptr), n_chunks)
        self.context_chunks = cut(n_entries, n_chunks)
        store = self.space.lattice.store
        tokens = store.counts(contexts.context, len(contexts.arrays.matrix_of))
        self._entry_chunks = cut(tokens[contexts.entry_context], n_chunks)
        self._row_matrices = contexts.matrix_rows.transposed(len(self.rows))
        self._row_chunks = self.rows.chunks(np.diff(self._row_matrices.indptr) + 1, n_chunks)
        by_matrix = np.argsort(contexts.arrays.matrix_of, kind="stable").astype(np.int32)
        bounds = np.arange(len(self.potentials.shift) + 1)
        ctx_ptr = np.searchsorted(contexts.arrays.matrix_of[by_matrix], bounds)
        self.matrix_contexts = ContextsOf(ctx_ptr, by_matrix)
        per_matrix = np.add.reduceat(n_entries[by_matrix], ctx_ptr[:-1])
        self.settle_chunks = cut(per_matrix, n_chunks)

    @cached_property
    def tokens(self) -> list[MatrixTokens]:
        """Of each shard, its tokens by matrix and by context."""
        contexts, n_matrices = self.contexts, len(self.potentials.shift)
        return [
            MatrixTokens(self.space, shard, contexts.context, contexts.arrays.matrix_of, n_matrices)
            for shard in self.space.shards
        ]

    @cached_property
    def walks(self) -> list[BatchOrder]:
        """Of each shard, the order of its tokens in inference."""
        contexts, space, found = self.contexts, self.space, []
        for shard, chunks in zip(space.shards, space.chunks, strict=True):
            is_large = self.potentials.psi[:1].nbytes > LARGE_BYTES
            together = len(shard.offsets) if is_large else space.limits.together
            own = contexts.context[shard.begin : shard.end]
            walk = in_waves(shard, chunks, together, own, contexts.arrays.matrix_of)
            (order,) = space.lattice.store.kept((walk.order,))
            found.append(walk._replace(order=order))
            space.lattice.store.release()
        return found

    @cached_property
    def _residual(self) -> Floats:
        """[M, Y + 1, Yp], expected minus observed pair counts of a matrix."""
        return np.zeros(self.potentials.psi.shape)

    def _count_entries(self, sequences: Iterable[Sequences]) -> Floats:
        """[E], weighted gold counts of entries."""
        gold = np.zeros(self.contexts.n_entries)
        for own, tokens in zip(sequences, self.tokens, strict=True):
            count_entries(own, self.contexts.arrays, tokens.by_context, self.space.padded, gold)
        return gold

    def fill(self, theta: Floats) -> None:
        """Exponentiate the potentials of all matrices and entries, once each.

        theta: [K] float64, the bigram weights.
        """
        workers, given = self.space.workers, (self.arrays, self.bigrams, theta)
        workers.map(build_matrices, self.matrix_chunks, *given)
        workers.map(build_entries, self.context_chunks, *given)

    def begin_sums(self) -> None:
        """Clear what is summed over shards."""
        self._entry_sums = np.zeros(self.contexts.n_entries)

    def add_shard(self, i: int, sequences: Sequences, vectors: Vectors) -> None:
        """Add the pair counts of shard i, of which these are the sequences and the vectors."""
        tokens, residual = self.tokens[i], self._residual
        given = sequences, self.arrays, self.with_sums(i, tokens.by_matrix, vectors), vectors

        def add(first: int, last: int) -> None:
            matrix_residuals(first, last, *given, i == 0, np.zeros(residual.shape[1:]), residual)

        self.space.workers.map(add, tokens.chunks)
        self.sum_entries(tokens.by_context, vectors, self._entry_sums)

    def with_sums(self, i: int, by_matrix: TokensBy, vectors: Vectors) -> MatrixSums:
        """Tokens of shard i by matrix, with sums alpha_{t-1} (x) backward_t of their spans."""
        tokens, n_labels = self.tokens[i], self.space.n_labels
        sums = np.zeros((len(tokens.spans), *self.potentials.psi.shape[1:]))
        given = n_labels, tokens.spans, by_matrix.inner_tokens, vectors, sums
        chunks = [(span, span + 1) for span in range(len(tokens.spans))]
        self.space.workers.map(pair_sums, chunks, *given)
        return MatrixSums(by_matrix, tokens.mat_spans, sums)

    def sum_entries(self, tokens: TokensBy, vectors: Vectors, sums: Floats) -> None:
        """Add products alpha_{t-1}[y'] backward_t[y] of tokens of contexts to sums [E]."""
        given = self.contexts.arrays, self.contexts.entry_context, tokens, vectors, sums
        self.space.workers.map(entry_sums, self._entry_chunks, *given)

    def finish(self, sequences: Iterable[Sequences], gradient: Floats) -> None:
        """Gather the gradient [K] of the bigram weights from what was summed.

        sequences: of each shard.
        """
        if self._entry_gold is None:
            self._entry_gold = self._count_entries(sequences)
        given, sums = (self.arrays, self.matrix_contexts), (self._residual, self._entry_sums)
        workers = self.space.workers
        workers.map(settle_entries, self.settle_chunks, *given, self._entry_gold, *sums)
        self.gather(*sums, gradient)

    def gather(self, residual: Floats, entry_residual: Floats, gradient: Floats) -> None:
        """Gather the gradient [K] of the bigram weights.

        residual: [M, Y + 1, Yp], of matrices; entry_residual: [E].
        """
        matrices, entries = self._row_matrices, self.contexts.weight_entries
        given = self.space.n_labels, self.bigrams, matrices.indptr, matrices.indices, residual
        of_entries = entries.indptr, entries.indices, entry_residual, gradient
        self.space.workers.map(gather_bigrams, self._row_chunks, *given, *of_entries)
