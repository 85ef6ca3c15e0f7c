"""The chain loss a sequence at a time, with a memory of each sequence's last gradient."""

from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ..kernels.groups import Groups, Residuals
from ..kernels.residuals import rows_of_sequences
from ..kernels.sag import Progress, sag_pass
from ..kernels.sag_rules import Rules
from ..kernels.sampling import set_leaves
from ..kernels.slopes import scatter_all
from .lattice import Csr, Lattice
from .tables import context_rows_of, new_potentials, new_vectors, tables_of
from .working import Floats, WorkingLoss

Numbers = NDArray[Any]
Memory = tuple[Floats, Floats, Numbers, Numbers, Floats, Floats]
_Kind = TypeVar("_Kind", bound="SequenceMemory")


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
        self._rows = context_rows_of(working)
        ptrs = (working.unigram.ptr, working.split + working.bigram.ptr[1:])
        self._row_ptr = np.concatenate(ptrs)
        own = self._rows_of_sequences(working)
        groups = Groups(
            self._seq_ptr,
            self._grp_tokens.indptr,
            self._grp_tokens.indices,
            self._grp_context,
            own.indptr,
            own.indices,
            self._row_ptr,
        )
        # What kernels take of the corpus and the weights.
        self._tables: tuple[Any, ...] = (*tables_of(working), groups, self._rows)
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
        stamp = np.empty(len(self._row_ptr) - 1, dtype=np.int64)
        indptr = np.zeros(self.n_sequences + 1, dtype=np.int64)
        indices = np.empty(0, dtype=np.int32)
        for _ in range(2):
            rows_of_sequences(
                self._offsets,
                working.token_rows.indptr,
                working.token_rows.indices,
                self._rows.context,
                self._rows.ctx_ptr,
                self._rows.ctx_rows,
                len(working.unigram),
                stamp,
                indptr,
                indices,
            )
            # Counted the first time, filled the second.
            indices = indices if len(indices) else np.empty(indptr[-1], dtype=np.int32)
        return Csr(indptr, indices)

    def _make_workspaces(self, working: WorkingLoss) -> tuple[Any, ...]:
        """What `sag_pass` takes from `gradient` on; the first two are zeros between passes."""
        space = working.space
        vectors = new_vectors(working)
        most = int(np.diff(self._seq_ptr).max(initial=0))
        fresh = np.zeros_like(vectors.alpha), np.zeros((most, space.n_labels, space.padded))
        return (
            *(np.zeros(len(working.coordinates)) for _ in range(3)),
            Residuals(*fresh),
            np.zeros((space.n_labels, space.padded)),
            new_potentials(working),
            np.zeros(1, dtype=np.int64),
            vectors,
        )

    def empty(self, working: WorkingLoss) -> tuple[Numbers, Numbers]:
        """No residuals: nodes [tokens, Yp] and pairs [groups, Y, Yp], the same for all weights."""
        space = working.space
        nodes = np.zeros((int(self._offsets[-1]), space.padded), space.dtype)
        shape = (len(self._grp_context), self._n_labels, space.padded)
        return nodes, np.zeros(shape, space.dtype)

    def gradient(self, working: WorkingLoss, nodes: Numbers, pairs: Numbers) -> Floats:
        """The sum [K] of the stored gradients; nodes, pairs: see `empty`."""
        total = np.zeros(len(working.coordinates))
        arguments: tuple[Any, ...] = (*self._tables, Residuals(nodes, pairs), total)
        scatter_all(*arguments)
        return total

    def run(self, draws: Floats, rules: Rules, memory: Memory) -> int:
        """Step over sequences.

        draws: [steps, 2] float64, uniform in [0, 1); memory: theta, total, nodes, pairs,
        curvatures, common, in and out: see `sag_pass`.
        RETURNS: the number of evaluations in line searches.
        """
        theta, total, nodes, pairs, curvatures, common = memory
        n_leaves = 1 << max(1, self.n_sequences - 1).bit_length()
        sums, tops = np.zeros(2 * n_leaves), np.zeros(2 * n_leaves)
        set_leaves(sums, tops, curvatures)
        progress = Progress(
            sums,
            tops,
            np.zeros(self.n_sequences, dtype=np.int64),
            np.zeros(len(self._row_ptr) - 1, dtype=np.int64),
            np.zeros(len(draws) + 1),
            np.zeros(len(draws) + 1),
        )
        arguments: tuple[Any, ...] = (
            draws,
            rules,
            *self._tables,
            theta,
            total,
            Residuals(nodes, pairs),
            curvatures,
            common,
            progress,
            *self._workspaces,
        )
        return int(sag_pass(*arguments))


# They last as long as their losses: a solver has nothing but settings and states.
_MADE: WeakKeyDictionary[WorkingLoss, SequenceMemory] = WeakKeyDictionary()
