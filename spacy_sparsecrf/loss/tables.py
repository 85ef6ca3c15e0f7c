"""What kernels that visit a sequence at a time take of a working loss."""

import numpy as np

from ..kernels.layout import Tables, Vectors, Visit
from .working import WorkingLoss


def tables_of(working: WorkingLoss) -> Tables:
    """The corpus and the weights."""
    pairs = working.pairs
    return Tables(working.sequences, working.unigrams, pairs.contexts.arrays, pairs.bigrams)


def new_visit(working: WorkingLoss) -> Visit:
    """Workspaces of visits to any sequence of the corpus, in float64."""
    space, pairs = working.space, working.pairs
    longest = int(np.diff(space.lattice.offsets).max())
    potentials = pairs.new_potentials()
    most_entries = int(np.diff(pairs.contexts.ent_ptr).max(initial=0))
    matrix = potentials.psi.shape[1:]

    def new_vectors() -> Vectors:
        alpha, backward, marginals = (np.zeros((longest, space.padded)) for _ in range(3))
        scales, norms = np.zeros(longest), np.zeros(longest)
        return Vectors(alpha, backward, marginals, scales, norms, np.zeros(matrix))

    return Visit(
        potentials,
        new_vectors(),
        new_vectors(),
        np.arange(longest, dtype=np.int32),
        np.zeros(most_entries),
        np.zeros(matrix),
    )
