"""Per-sequence storage of factored gradients, for solvers that store residuals."""

import numpy as np

from ..corpus.coordinates import distinct
from ..corpus.numbering import Array, Floats
from ..corpus.ragged import by_key, row_numbers
from ..kernels.factors import scatter_all
from ..kernels.indexing import take
from ..kernels.layout import Factors, Grouped, Groups, SequenceBlocks
from .lattice import Lattice
from .working import ChainWorkingLoss

Numbers = Array


class FactorStorage:
    """Layout of stored per-sequence residuals, from which gradients are computed at any weights.

    Instead of a gradient, its factors are stored (Schmidt et al. 2015, section 4.2): residuals of
    the labels, a row [Yp] for each of N tokens, and of the label pairs, a matrix [Y, Yp] for each
    of G *groups*, tokens of a sequence with the same bigram features. The size is b Yp (N + G Y)
    bytes for any number of weights; b = 8 or 4 by the workspace's precision, and Yp is Y rounded up
    to a multiple of 8. If all tokens have the same bigram features, G is the number of sequences:
    the paper's "mixed" storage. If each token has different bigram features, G is nearly N: the
    storage of marginals. The list of each sequence's feature blocks takes at most 4 bytes for each
    feature of a token.

    working: the loss on the working set [K], laid out by example.
    """

    def __init__(self, working: ChainWorkingLoss) -> None:
        lattice, self._n_labels = working.space.lattice, working.space.n_labels
        self.n_sequences = lattice.n_examples
        self._offsets = lattice.offsets[: self.n_sequences + 1]
        groups = self._group(lattice)
        self._grouped = Grouped(working.tables, groups, self._blocks_of_sequences(working))
        self._most_groups = int(np.diff(groups.seq_ptr).max(initial=0))

    def _group(self, lattice: Lattice) -> Groups:
        """Number the groups, consecutively within a sequence, and list their tokens."""
        n_tokens = int(self._offsets[-1])
        sequence = row_numbers(self._offsets)
        context = lattice.context[:n_tokens].astype(np.int64)
        paired = ~lattice.begins[:n_tokens] & (np.diff(lattice.ctx_features.indptr)[context] > 0)
        tokens = np.flatnonzero(paired)
        n_contexts = max(1, len(lattice.ctx_features.indptr) - 1)
        cells = sequence[tokens] * n_contexts + context[tokens]
        keys, group = np.unique(cells, return_inverse=True)
        members = by_key(group, len(keys))
        positions = (tokens - self._offsets[sequence[tokens]])[members.indices].astype(np.int32)
        begins = np.arange(self.n_sequences + 1) * n_contexts
        seq_ptr = np.searchsorted(keys, begins).astype(np.int64)
        return Groups(seq_ptr, members.indptr, positions, (keys % n_contexts).astype(np.int32))

    def _blocks_of_sequences(self, working: ChainWorkingLoss) -> SequenceBlocks:
        """Return the feature blocks of each sequence, ascending."""
        n_tokens, pairs = int(self._offsets[-1]), working.pairs.contexts.blocks
        weight_ptr = np.concatenate((working.unigram.ptr, working.split + working.bigram.ptr[1:]))
        n_blocks, numbers = len(weight_ptr) - 1, np.arange(self.n_sequences + 1)
        sequence = row_numbers(self._offsets)
        of_tokens = take(pairs, working.space.lattice.context[:n_tokens].astype(np.int64))
        keys = []
        for n_preceding, table in ((0, working.site_blocks), (len(working.unigram), of_tokens)):
            indptr = table.indptr[: n_tokens + 1]
            blocks = n_preceding + table.indices[: indptr[-1]]
            keys.append(np.repeat(sequence, np.diff(indptr)) * n_blocks + blocks)
        ordered = distinct(np.concatenate(keys))
        rows = (ordered % n_blocks).astype(np.int32)
        return SequenceBlocks(np.searchsorted(ordered, numbers * n_blocks), rows, weight_ptr)

    def empty(self, working: ChainWorkingLoss) -> tuple[Numbers, Numbers]:
        """Return residuals of zero: nodes [tokens, Yp] and pairs [groups, Y, Yp]."""
        space = working.space
        nodes = np.zeros((int(self._offsets[-1]), space.padded), space.dtype)
        shape = (len(self._grouped.groups.context), self._n_labels, space.padded)
        return nodes, np.zeros(shape, space.dtype)

    def gradient(self, working: ChainWorkingLoss, nodes: Numbers, pairs: Numbers) -> Floats:
        """Return the sum [K] of all sequences' gradients; nodes, pairs: see `empty`."""
        total = np.zeros(len(working.coordinates))
        scatter_all(self._grouped, Factors(nodes, pairs), total)
        return total
