"""Arrays that kernels take together.

numba takes a named tuple apart into its arrays, as if each were an argument, and keeps the code of
a kernel that takes one in its cache on disk. Functions that are called for each token or row take
arrays: a group is handed on with all of its fields.
"""

from typing import NamedTuple

import numpy as np


class Chains(NamedTuple):
    """Sequences and their labels, of which there are Y.

    offsets: [S + 1], tokens of each; twin: [>= n] constrained copy of the n that are visited, -1 =
    none; labels: [N], -1 = missing; allowed: [N, W], labels that a token may have (see `sets`);
    weights: [S] float64.
    """

    n_labels: int
    offsets: np.ndarray
    twin: np.ndarray
    labels: np.ndarray
    allowed: np.ndarray
    weights: np.ndarray


class TokenRows(NamedTuple):
    """Unigram weights, `split` of them, by token; see `potentials`.

    head_ptr [N + 1], heads: CSR of a token's rows in `table` [H, Yp]; tok_ptr [N + 1], tok_rows: of
    all others; row_ptr [R + 1]: weights of a row; row_labels: [split], their labels.
    """

    split: int
    head_ptr: np.ndarray
    heads: np.ndarray
    table: np.ndarray
    tok_ptr: np.ndarray
    tok_rows: np.ndarray
    row_ptr: np.ndarray
    row_labels: np.ndarray


class PairTables(NamedTuple):
    """Bigram weights by context; see `context_matrices` and `entries.correct`.

    n_previous: Y, or Y + 1 with a start label; context: [N] of a token; matrix_of: [C] of a
    context; constant: [M], matrices of ones; mat_ptr [M + 1], mat_rows: CSR of a matrix's rows;
    pair_ptr, pair_places: weights of a row, and their places in a matrix; ent_ptr [C + 1],
    ent_start [C]: entries of a context; ent_previous, ent_label, ent_place: [E], their pairs;
    weight_ptr [E + 1], weights: CSR of their weights.
    """

    n_previous: int
    context: np.ndarray
    matrix_of: np.ndarray
    constant: np.ndarray
    mat_ptr: np.ndarray
    mat_rows: np.ndarray
    pair_ptr: np.ndarray
    pair_places: np.ndarray
    ent_ptr: np.ndarray
    ent_start: np.ndarray
    ent_previous: np.ndarray
    ent_label: np.ndarray
    ent_place: np.ndarray
    weight_ptr: np.ndarray
    weights: np.ndarray


class Potentials(NamedTuple):
    """Exponentiated potentials of pairs, out of date but for what was visited last.

    psi: [M, Y + 1, Yp], ones where constant; shift: [M]; value, change: [E]; rewritten: [C] (see
    `entries.correct`); stamp: [M + C] int64, the visit at which each was evaluated last.
    """

    psi: np.ndarray
    shift: np.ndarray
    value: np.ndarray
    change: np.ndarray
    rewritten: np.ndarray
    stamp: np.ndarray


class Vectors(NamedTuple):
    """What forward-backward writes of one sequence of at most T tokens; workspaces.

    alpha, backward, marginals: [T, Yp], or [2, T, Yp] with those of a constrained copy; log_z: [2];
    walk: [T] of any one sequence; scales: [T]; scratch: [Y + 1, Yp]; bounds: [2] int64, the first
    0; signs: [2], 1 and -1.
    """

    alpha: np.ndarray
    backward: np.ndarray
    marginals: np.ndarray
    log_z: np.ndarray
    walk: np.ndarray
    scales: np.ndarray
    scratch: np.ndarray
    bounds: np.ndarray
    signs: np.ndarray


class PairSums(NamedTuple):
    """Workspaces of updates of bigram weights.

    tokens: [T] int32 0, 1, 2, ...; sums: [largest number of entries of a context]; residual:
    [Y + 1, Yp].
    """

    tokens: np.ndarray
    sums: np.ndarray
    residual: np.ndarray


class ContextRows(NamedTuple):
    """Bigram rows of a token: context [N], of the corpus, ctx_ptr and ctx_rows, CSR of those."""

    context: np.ndarray
    ctx_ptr: np.ndarray
    ctx_rows: np.ndarray


class Groups(NamedTuple):
    """The groups of sequences, see `residuals`, and the rows that sequences have.

    seq_ptr: [n + 1], groups of each sequence; grp_ptr [G + 1], grp_tokens: CSR of a group's tokens,
    which count from the sequence's first; grp_context: [G], of the corpus; own_ptr [n + 1],
    own_rows: CSR of a sequence's rows, of which row_ptr [R + 1] has the weights, bigram rows last.
    """

    seq_ptr: np.ndarray
    grp_ptr: np.ndarray
    grp_tokens: np.ndarray
    grp_context: np.ndarray
    own_ptr: np.ndarray
    own_rows: np.ndarray
    row_ptr: np.ndarray


class Residuals(NamedTuple):
    """Residuals of all sequences, or of one: nodes [tokens, Yp], pairs [groups, Y, Yp]."""

    nodes: np.ndarray
    pairs: np.ndarray
