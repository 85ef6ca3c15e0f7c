"""What kernels that visit a sequence at a time take of a working loss."""

import numpy as np

from ..kernels.groups import Chains, ContextRows, PairTables, Potentials, TokenRows, Vectors
from .walks import one_sequence
from .working import WorkingLoss


def chains_of(working: WorkingLoss) -> Chains:
    """The sequences, and those that are constrained copies."""
    lattice = working.space.lattice
    return Chains(
        working.space.n_labels,
        lattice.offsets,
        lattice.twin,
        lattice.labels,
        lattice.allowed,
        lattice.weights,
    )


def token_rows_of(working: WorkingLoss) -> TokenRows:
    """Where the unigram weights are that tokens have."""
    return TokenRows(
        working.split,
        working.heads.tokens.indptr,
        working.heads.tokens.indices,
        working.heads.table,
        working.token_rows.indptr,
        working.token_rows.indices,
        working.unigram.ptr,
        working.unigram.places,
    )


def pair_tables_of(working: WorkingLoss) -> PairTables:
    """Where the bigram weights are that contexts have."""
    contexts = working.pairs.contexts
    return PairTables(
        working.space.lattice.n_previous,
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
    )


def tables_of(working: WorkingLoss) -> tuple[Chains, TokenRows, PairTables]:
    """The corpus and the weights, as kernels take them first."""
    return chains_of(working), token_rows_of(working), pair_tables_of(working)


def context_rows_of(working: WorkingLoss) -> ContextRows:
    """The bigram rows of the corpus' contexts."""
    lattice = working.space.lattice
    rows = working.bigram.of(lattice.ctx_tests)
    return ContextRows(lattice.context, rows.indptr, rows.indices)


def new_potentials(working: WorkingLoss) -> Potentials:
    """Potentials of which none was evaluated, but matrices of ones."""
    pairs = working.pairs
    psi, shift = pairs.new_matrices()
    n_entries, n_contexts = pairs.contexts.n_entries, len(pairs.rewritten)
    return Potentials(
        psi,
        shift,
        np.zeros(n_entries),
        np.zeros(n_entries),
        np.zeros(n_contexts, dtype=np.bool_),
        np.zeros(len(psi) + n_contexts, dtype=np.int64),
    )


def new_vectors(working: WorkingLoss, parts: tuple[int, ...] = ()) -> Vectors:
    """Forward and backward vectors of any one sequence; parts: (2,) where copies have theirs."""
    space = working.space
    longest = int(np.diff(space.lattice.offsets).max())
    alpha, backward, marginals = (np.zeros((*parts, longest, space.padded)) for _ in range(3))
    return Vectors(
        alpha,
        backward,
        marginals,
        np.zeros(2),
        one_sequence(longest),
        np.zeros(longest),
        np.zeros(working.pairs.psi.shape[1:]),
        np.zeros(2, dtype=np.int64),
        np.array([1.0, -1.0]),
    )
