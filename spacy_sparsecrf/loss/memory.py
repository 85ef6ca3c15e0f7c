"""The chain loss a sequence at a time, with a memory of each sequence's last gradient."""

from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ..kernels.residuals import rows_of_sequences, scatter_all
from ..kernels.sag import sag_pass
from ..kernels.sampling import set_leaves
from .lattice import Csr, Lattice
from .walks import one_sequence
from .working import Floats, WorkingLoss

Numbers = NDArray[Any]
Memory = tuple[Floats, Floats, Numbers, Numbers, Floats, Floats]
_Kind = TypeVar("_Kind", bound="SequenceMemory")
Rules = tuple[int, bool, float, float, float, float, float]


class SequenceMemory:
    """What SAG stores of each sequence's last gradient, and passes that use it.

    A gradient is not stored, but what makes it up whatever the weights (Schmidt 2015, section
    4.2): residuals of the sequence's labels, a row [Yp] for each of N tokens, and of its pairs, a
    matrix [Y, Yp] for each of G *groups*, tokens of the sequence with the same bigram tests. That
    is b Yp (N + G Y) bytes, b = 8 or 4 by the workspace's precision, Yp = Y rounded up to a
    multiple of 8, whatever the number of weights. With bigram tests that are on everywhere, G is
    the number of sequences: the paper's "mixed" storage. Where each token has bigram tests of its
    own, G is nearly N: that of marginals. Not stored with a state: three numbers for each weight,
    and a list of each sequence's rows, at most 4 bytes for each test of a token.

    working: the loss on the weights to learn, [K], laid out for a stochastic solver.
    """

    def __init__(self, working: WorkingLoss) -> None:
        lattice, self._n_labels = working.space.lattice, working.space.n_labels
        # Constrained copies come last.
        self.n_sequences = len(lattice.twin) - int((lattice.twin >= 0).sum())
        self._offsets = lattice.offsets[: self.n_sequences + 1]
        self._group(lattice)
        self._ctx_rows = working.bigram.of(lattice.ctx_tests)
        ptrs = (working.unigram.ptr, working.split + working.bigram.ptr[1:])
        self._row_ptr = np.concatenate(ptrs)
        self._own = self._rows_of_sequences(working)
        self._workspaces = self._make_workspaces(working)

    @classmethod
    def of(cls: type[_Kind], working: WorkingLoss) -> _Kind:
        """The one of a working loss, made when it is first asked for."""
        made = _MADE.get(working)
        # That of another kind has other workspaces.
        if type(made) is not cls:
            made = _MADE[working] = cls(working)
        return made

    def _group(self, lattice: Lattice) -> None:
        """Number the groups, those of a sequence together; list their tokens."""
        n_tokens = int(self._offsets[-1])
        sequence = np.repeat(np.arange(self.n_sequences), np.diff(self._offsets))
        context = lattice.context[:n_tokens].astype(np.int64)
        paired = ~lattice.begins[:n_tokens] & (np.diff(lattice.ctx_tests.indptr)[context] > 0)
        tokens = np.flatnonzero(paired)
        n_contexts = max(1, len(lattice.ctx_tests))
        keys, group = np.unique(
            sequence[tokens] * n_contexts + context[tokens], return_inverse=True
        )
        order = np.argsort(group, kind="stable")
        bounds = np.searchsorted(group[order], np.arange(len(keys) + 1)).astype(np.int64)
        places = (tokens - self._offsets[sequence[tokens]])[order].astype(np.int32)
        self._grp_tokens = Csr(bounds, places)
        self._grp_context = (keys % n_contexts).astype(np.int32)
        first = np.arange(self.n_sequences + 1) * n_contexts
        self._seq_ptr = np.searchsorted(keys, first).astype(np.int64)

    def _rows_of_sequences(self, working: WorkingLoss) -> Csr:
        """The rows that each sequence has, bigram rows after all others."""
        lattice = working.space.lattice
        stamp = np.empty(len(self._row_ptr) - 1, dtype=np.int64)
        indptr = np.zeros(self.n_sequences + 1, dtype=np.int64)
        indices = np.empty(0, dtype=np.int32)
        for _ in range(2):
            rows_of_sequences(
                self._offsets,
                working.token_rows.indptr,
                working.token_rows.indices,
                lattice.context,
                self._ctx_rows.indptr,
                self._ctx_rows.indices,
                len(working.unigram),
                stamp,
                indptr,
                indices,
            )
            # Counted the first time, filled the second.
            indices = indices if len(indices) else np.empty(indptr[-1], dtype=np.int32)
        return Csr(indptr, indices)

    def _make_workspaces(self, working: WorkingLoss) -> tuple[Numbers, ...]:
        """What `sag_pass` takes from `gradient` on; the first two are zeros between passes."""
        space, pairs = working.space, working.pairs
        n_weights, n_entries = len(working.coordinates), pairs.contexts.n_entries
        longest = int(np.diff(space.lattice.offsets).max())
        most = int(np.diff(self._seq_ptr).max(initial=0))
        matrix = pairs.psi.shape[1:]
        psi, shift = pairs.new_matrices()
        return (
            *(np.zeros(n_weights) for _ in range(3)),
            np.zeros((longest, space.padded)),
            np.zeros((most, space.n_labels, space.padded)),
            np.zeros((space.n_labels, space.padded)),
            psi,
            shift,
            np.zeros(n_entries),
            np.zeros(n_entries),
            np.zeros(len(pairs.rewritten), dtype=np.bool_),
            np.zeros(len(psi) + len(pairs.rewritten), dtype=np.int64),
            np.zeros(1, dtype=np.int64),
            np.zeros(matrix),
            *(np.zeros((longest, space.padded)) for _ in range(3)),
            one_sequence(longest),
            np.zeros(longest),
        )

    def empty(self, working: WorkingLoss) -> tuple[Numbers, Numbers]:
        """No residuals: nodes [tokens, Yp] and pairs [groups, Y, Yp], the same for all weights."""
        space = working.space
        nodes = np.zeros((int(self._offsets[-1]), space.padded), space.dtype)
        shape = (len(self._grp_context), self._n_labels, space.padded)
        return nodes, np.zeros(shape, space.dtype)

    def gradient(self, working: WorkingLoss, nodes: Numbers, pairs: Numbers) -> Floats:
        """The sum [K] of the stored gradients; nodes, pairs: see `empty`."""
        lattice = working.space.lattice
        total = np.zeros(len(working.coordinates))
        scatter_all(
            self._n_labels,
            lattice.n_previous,
            self._offsets,
            working.token_rows.indptr,
            working.token_rows.indices,
            working.unigram.ptr,
            working.unigram.places,
            self._seq_ptr,
            self._grp_context,
            lattice.context,
            self._ctx_rows.indptr,
            self._ctx_rows.indices,
            working.bigram.ptr,
            working.bigram.places,
            nodes,
            pairs,
            total[: working.split],
            total[working.split :],
        )
        return total

    def run(
        self,
        working: WorkingLoss,
        draws: Floats,
        rules: Rules,
        rates: tuple[float, float],
        memory: Memory,
    ) -> int:
        """Step over sequences.

        draws: [steps, 2] float64, uniform in [0, 1); rules: mode, saga, fresh, revisit, grow,
        least_norm, caution; rates: l1 and lambda; memory: theta, total, nodes, pairs, curvatures,
        common, in and out: see `sag_pass`. RETURNS: the number of evaluations in line searches.
        """
        lattice = working.space.lattice
        contexts = working.pairs.contexts
        n_leaves = 1 << max(1, self.n_sequences - 1).bit_length()
        tree = np.zeros(2 * n_leaves), np.zeros(2 * n_leaves)
        set_leaves(*tree, memory[4])
        n_forward: int = sag_pass(
            draws,
            *rules,
            *rates,
            self._n_labels,
            lattice.n_previous,
            lattice.offsets,
            lattice.labels,
            lattice.allowed,
            lattice.weights,
            lattice.twin[: self.n_sequences],
            working.heads.tokens.indptr,
            working.heads.tokens.indices,
            working.heads.table,
            working.token_rows.indptr,
            working.token_rows.indices,
            working.unigram.ptr,
            working.unigram.places,
            contexts.context,
            contexts.matrix_of,
            contexts.constant,
            contexts.matrix_rows.indptr,
            contexts.matrix_rows.indices,
            working.bigram.ptr,
            working.bigram.places,
            contexts.ent_ptr,
            contexts.ent_start,
            contexts.ent_previous,
            contexts.ent_label,
            contexts.ent_place,
            contexts.entry_weights.indptr,
            contexts.entry_weights.indices,
            working.split,
            self._seq_ptr,
            self._grp_tokens.indptr,
            self._grp_tokens.indices,
            self._grp_context,
            lattice.context,
            self._ctx_rows.indptr,
            self._ctx_rows.indices,
            self._own.indptr,
            self._own.indices,
            self._row_ptr,
            *memory,
            *tree,
            np.zeros(self.n_sequences, dtype=np.int64),
            np.zeros(len(self._row_ptr) - 1, dtype=np.int64),
            np.zeros(len(draws) + 1),
            np.zeros(len(draws) + 1),
            *self._workspaces,
        )
        return n_forward


# They last as long as their losses: a solver has nothing but settings and states.
_MADE: WeakKeyDictionary[WorkingLoss, SequenceMemory] = WeakKeyDictionary()
