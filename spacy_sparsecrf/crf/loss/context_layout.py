"""Layout of contexts: which features are in shared matrices, and which are sparse corrections.

Contexts with the same features in the working set are merged. Some features of a context form its
*matrix*, which all contexts with those features share. The weights of its other features are
*sparse corrections*: label pairs in which its potentials differ from the matrix. A cost model
chooses between two layouts: frequent features in matrices, or no matrix with weights, which is the
sparse forward-backward of Lavergne 2010, section 4.1. In both, a context with many corrections gets
its own matrix.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..corpus.numbering import Floats, Ints, Longs, Mask
from ..corpus.ragged import pointers, row_numbers
from ..kernels import layout
from ..kernels.indexing import select, take, transpose
from ..kernels.layout import Csr
from .feature_blocks import FeatureBlocks
from .workspace import Limits, Workspace

# Costs in units of the three products with one matrix element (see `Limits`): building an element;
# products with an element of a matrix outside the near cache.
_BUILD = 7.0
_UNCACHED = 1.3
_CACHE_BYTES = 1 << 20
# Bytes of a matrix element and its gradient, and of sparse corrections for each of their weights.
_BYTES_PER_ELEMENT = 16.0
BYTES_PER_ENTRY = 60.0


class ContextLayout(NamedTuple):
    """Matrices and sparse corrections of merged contexts.

    blocks: feature blocks of each of the C' contexts of the corpus; active: [C'] int32, its merged
    context; context: [N] int32, merged context of a token; matrix_blocks: feature blocks of a
    matrix; arrays: matrix and corrections of a context; correction_context: [E] int32;
    correction_weights, weight_corrections: weights of a correction, and its transpose.
    """

    blocks: Csr
    active: Ints
    context: Ints
    matrix_blocks: Csr
    arrays: layout.Contexts
    correction_context: Ints
    correction_weights: Csr
    weight_corrections: Csr


def lay_out_contexts(
    space: Workspace, rows: FeatureBlocks, cost_model: "type[CostModel]"
) -> ContextLayout:
    """Choose the matrices and sparse corrections of the contexts.

    space: for its lattice and limits; rows: bigram feature blocks; cost_model: of an evaluation.
    """
    lattice = space.lattice
    blocks = select(lattice.ctx_features, rows.number())
    # Sets of blocks are compared by random sums modulo 2**64, as features are by their hashes.
    marks = np.random.default_rng(0).integers(1, 1 << 63, len(rows), dtype=np.uint64)
    sums = row_sums(blocks, marks[blocks.indices])
    _, representative, active = np.unique(sums, return_index=True, return_inverse=True)
    merged, context = take(blocks, representative), active.astype(np.int32)[lattice.context]
    model = cost_model(space, rows, blocks=merged, marks=marks, context=context)
    choice, other = map(model.choose, model.shares(space.limits))
    if other.cost < choice.cost:
        choice = other
    matrix_blocks = take(_selected(merged, choice.in_matrix), choice.context_of)
    arrays, weights = _with_corrections(
        _selected(merged, ~choice.in_matrix),
        rows,
        space,
        matrix_of=choice.matrix_of.astype(np.int32),
        constant=(np.diff(matrix_blocks.indptr) == 0) & (lattice.valid is None),
    )
    return ContextLayout(
        blocks,
        active=active.astype(np.int32),
        context=context,
        matrix_blocks=matrix_blocks,
        arrays=arrays,
        correction_context=row_numbers(arrays.corr_ptr).astype(np.int32),
        correction_weights=weights,
        weight_corrections=transpose(weights, int(rows.ptr[-1])),
    )


def row_sums(table: Csr, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the sum of the values [nnz] of each row, modulo 2**64."""
    ends = np.zeros(len(values) + 1, np.uint64)
    np.cumsum(values, out=ends[1:])
    sums: NDArray[np.uint64] = np.diff(ends[table.indptr])
    return sums


def _selected(table: Csr, mask: Mask) -> Csr:
    """Return a table without the entries that a mask [nnz] excludes."""
    return Csr(pointers(mask)[table.indptr], table.indices[mask])


class _Choice(NamedTuple):
    """A layout: cost of an evaluation; in_matrix: [nnz], which blocks of contexts are in matrices;
    context_of: [M], a context of each matrix; matrix_of: [C].
    """

    cost: float
    in_matrix: Mask
    context_of: Longs
    matrix_of: Longs


class CostModel:
    """Cost model of an evaluation, for a division of features into matrices and corrections.

    space, rows: see `lay_out_contexts`; blocks: of the merged contexts; marks: [R] uint64, random;
    context: [N]. Here potentials are built once per evaluation.
    """

    def __init__(
        self,
        space: Workspace,
        rows: FeatureBlocks,
        *,
        blocks: Csr,
        marks: NDArray[np.uint64],
        context: Ints,
    ) -> None:
        self._limits, self._lattice = space.limits, space.lattice
        self._blocks, self._context = blocks, context
        self._area = float(space.n_labels * space.padded)
        n, lengths = len(blocks.indptr) - 1, np.diff(blocks.indptr)
        self._row = row_numbers(blocks.indptr)
        self._sizes, self._marks = np.diff(rows.ptr)[blocks.indices], marks[blocks.indices]
        self._tokens = np.bincount(context, minlength=n).astype(np.float64)
        self._n_exps = self._builds(self._tokens)
        # Without a start label, the first token of a sequence has no bigram feature.
        n_tokens = max(1.0, self._tokens[lengths > 0].sum())
        per_block = np.bincount(blocks.indices, self._tokens[self._row], minlength=len(rows))
        self._share = (per_block / n_tokens)[blocks.indices]

    @staticmethod
    def shares(limits: Limits) -> tuple[float, float]:
        """Return the two candidate shares of the tokens, see `Limits`."""
        return limits.shares

    @staticmethod
    def _builds(tokens: Floats) -> Floats:
        """Return how often the potentials of contexts with these numbers of tokens are built."""
        return np.ones(len(tokens))

    def _n_built(self, weighted: Mask, matrix_of: Longs) -> float:
        """Return the number of matrices with weights that are built; see `_matrix_cost`."""
        return float(weighted.sum())

    def choose(self, least_share: float) -> _Choice:
        """Put features with a minimum share of the tokens into matrices, and all features of
        contexts that would have too many corrections; above a limit of memory, any other is better.
        """
        limits, n = self._limits, len(self._blocks.indptr) - 1
        in_matrix = self._share >= least_share
        n_weights = np.bincount(self._row, np.where(in_matrix, 0, self._sizes), minlength=n)
        per_weight = limits.correction * self._tokens + limits.correction_exp * self._n_exps
        cost_alone = self._area * ((_UNCACHED - 1.0) * self._tokens + _BUILD * self._n_exps)
        alone = n_weights * per_weight > cost_alone
        if _BYTES_PER_ELEMENT * self._area * alone.sum() <= limits.matrix_bytes:
            in_matrix |= alone[self._row]
            n_weights[alone] = 0
        sums = row_sums(self._blocks, np.where(in_matrix, self._marks, np.uint64(0)))
        marked, context_of, matrix_of = np.unique(sums, return_index=True, return_inverse=True)
        of_matrices = _BYTES_PER_ELEMENT * self._area * len(context_of)
        of_corrections = BYTES_PER_ENTRY * n_weights.sum()
        cost = float((n_weights * per_weight).sum()) + self._matrix_cost(marked > 0, matrix_of)
        if of_matrices > limits.matrix_bytes or of_corrections > limits.correction_bytes:
            cost = 1e30 * (of_matrices + of_corrections)
        return _Choice(cost, in_matrix, context_of=context_of, matrix_of=matrix_of)

    def _matrix_cost(self, weighted: Mask, matrix_of: Longs) -> float:
        """Return the cost of building matrices and of their products; matrices of ones are free."""
        if self._lattice.valid is not None:
            weighted = np.ones_like(weighted)
        uncached = 8.0 * self._area * len(weighted) > _CACHE_BYTES
        n_products = float(self._tokens[weighted[matrix_of]].sum())
        products = self._area * (_UNCACHED if uncached else 1.0) * n_products
        return products + _BUILD * self._area * self._n_built(weighted, matrix_of)


class SequentialCostModel(CostModel):
    """Cost model where potentials are built for each sequence, as solvers by example do."""

    @staticmethod
    def shares(limits: Limits) -> tuple[float, float]:
        """See `CostModel.shares`."""
        return limits.shares_by_example

    @staticmethod
    def _builds(tokens: Floats) -> Floats:
        return tokens

    def _n_built(self, weighted: Mask, matrix_of: Longs) -> float:
        """Return the number of tokens whose matrix has weights and differs from the previous."""
        matrix = matrix_of[self._context]
        changes = self._lattice.begins | (matrix != np.append(-1, matrix[:-1]))
        return float((changes & weighted[matrix]).sum())


def _with_corrections(
    lines: Csr, rows: FeatureBlocks, space: Workspace, *, matrix_of: Ints, constant: Mask
) -> tuple[layout.Contexts, Csr]:
    """Number the sparse corrections of each context: the label pairs of its blocks in `lines`.

    matrix_of, constant: see `layout.Contexts`. RETURNS: the contexts; weights of each correction.
    """
    n_labels, padded = space.n_labels, space.padded
    n, area = len(lines.indptr) - 1, (n_labels + 1) * padded
    of_blocks = Csr(rows.ptr, np.arange(len(rows.places), dtype=np.int32))
    ptr, weights = take(of_blocks, lines.indices.astype(np.int64))
    context = row_numbers(lines.indptr)
    keys = np.repeat(context * area, np.diff(ptr)) + rows.places[weights]
    # The weights of a correction stay in the order of the blocks.
    order = np.argsort(keys, kind="stable")
    corrected, begins = np.unique(keys[order], return_index=True)
    bounds = np.arange(n + 1) * area
    position = (corrected % area).astype(np.int32)
    previous, label = np.stack(np.divmod(position, padded)).astype(np.uint16)
    contexts = layout.Contexts(
        matrix_of,
        constant=constant,
        corr_ptr=np.searchsorted(corrected, bounds),
        corr_start=np.searchsorted(corrected, bounds[:-1] + n_labels * padded),
        corr_previous=previous,
        corr_label=label,
        corr_place=position,
    )
    return contexts, Csr(np.append(begins, len(order)).astype(np.int64), weights[order])
