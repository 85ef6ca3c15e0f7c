"""The notation of the kernels: every letter, and every named tuple of arrays.

    S   sequences                          C   contexts
    N   tokens                             M   matrices of pair potentials
    T   tokens of one sequence or batch    E   sparse corrections
    Y   labels                             O   features
    Yp  Y padded to a multiple of 8        R   feature blocks
    W   ceil(Y / 64) words of a label set  B   bundles
    K   weights of the working set

A *feature block* is the weights of one feature that are in the working set. A *bundle* is a set of
unigram features that several tokens share (for example, all features of the previous word); their
weights are summed once. A *site* is a token or a bundle: site t < N is token t with its features
outside bundles, site N + b is bundle b. A *context* is the set of bigram features of a token.
Contexts share matrices; a *sparse correction* is a label pair in which the potentials of a context
differ from its matrix.

Token t has scores s_t(y), sums of unigram weights mu[o, y], and pair potentials psi_c(y', y), exp
of sums of bigram weights lam[o, y', y], which depend on its context c only. The start label y' = Y
precedes the first token of a sequence. numba splits a named tuple into its arrays, as if each were
an argument, and caches the code of kernels that take one on disk.
"""

from typing import NamedTuple

import numpy as np

# Arrays of float64 or float32, of integers of any width, and of bools. np.float64(x) is float64
# everywhere; compiled float(x) is as wide as x, and a Python float as wide as the other operand.
Floats = np.ndarray
Ints = np.ndarray
Flags = np.ndarray


class Csr(NamedTuple):
    """A ragged table: row r has indices[indptr[r]:indptr[r + 1]]. Its `len` is not that of rows.

    indptr: [R + 1] int64; indices: [nnz] int32.
    """

    indptr: Ints
    indices: Ints


class Sequences(NamedTuple):
    """Sequences and their labels.

    n_labels: Y; offsets: [S + 1] int64, tokens of each sequence; clamped: [>= n] int32, clamped
    lattice of each of the n sequences that are examples, -1 = none; labels: [N] int32, -1 =
    missing; allowed: [N, W] uint64, labels that a token may have (see `scores`); weights: [S]
    float64, negative for a clamped lattice; token_weight: [N] float64, weight of the token's
    sequence; context: [N] int32.
    """

    n_labels: int
    offsets: Ints
    clamped: Ints
    labels: Ints
    allowed: Ints
    weights: Floats
    token_weight: Floats
    context: Ints


class Unigrams(NamedTuple):
    """Index of the unigram weights, which are the first `split` of all K.

    bundle_ptr [N + 1] int64, bundles int32: CSR, bundles of a token; table: [B, Yp], their scores;
    site_ptr [N + B + 1] int64, site_blocks int32: CSR, feature blocks of a site; block_ptr: [R + 1]
    int64, weights of a block; block_labels: [split] uint32, labels of weights (numba tests the sign
    of signed indices). A block with all Y weights is *full* and is added as a vector. A stochastic
    solver changes weights too often for a table: there, all blocks are those of tokens, and the
    table has the origin of the weights.
    """

    split: int
    bundle_ptr: Ints
    bundles: Ints
    table: Floats
    site_ptr: Ints
    site_blocks: Ints
    block_ptr: Ints
    block_labels: Ints


class Bigrams(NamedTuple):
    """Index of the bigram weights, which are in matrices and in sparse corrections.

    n_previous: Y, or Y + 1 with a start label; mat_ptr [M + 1] int64, mat_blocks int32: CSR,
    feature blocks of a matrix; block_ptr: [R + 1] int64, weights of a block; block_places: [K]
    uint32, y' * Yp + y of each weight; corr_weight_ptr [E + 1] int64, corr_weights int32: CSR,
    weights of a correction; origin: [K] float64, added to each weight, or [0] for zero.
    """

    n_previous: int
    mat_ptr: Ints
    mat_blocks: Ints
    block_ptr: Ints
    block_places: Ints
    corr_weight_ptr: Ints
    corr_weights: Ints
    origin: Floats


class Contexts(NamedTuple):
    """The matrix and the sparse corrections of each context.

    matrix_of: [C] int32; constant: [M] bool, matrices of ones, which have no weights; corr_ptr: [C
    + 1] int64, corrections of a context, ascending, of which corr_start[c]:corr_ptr[c + 1] are in
    the start row; corr_previous, corr_label: [E] uint16, y' and y; corr_place: [E] int32, y' * Yp +
    y.
    """

    matrix_of: Ints
    constant: Flags
    corr_ptr: Ints
    corr_start: Ints
    corr_previous: Ints
    corr_label: Ints
    corr_place: Ints


class Potentials(NamedTuple):
    """Exponentiated pair potentials, by matrix and by sparse correction; see `pairs`.

    psi: [M, Y + 1, Yp], the start row last, padding 0; with a mask of valid transitions one matrix
    more, the last; shift: [M] float64, log scale of a matrix; value: [E] float64, potential of a
    sparse correction; change: [E] float64, correction of products with the matrix; rewritten: [C]
    bool, contexts whose changes are values, to be written into a copy of the matrix; stamp: [M + C]
    int64, step at which a matrix, or the corrections of a context, were last evaluated, for kernels
    that evaluate only the contexts of an example.
    """

    psi: Floats
    shift: Floats
    value: Floats
    change: Floats
    rewritten: Flags
    stamp: Ints


class Pairs(NamedTuple):
    """The pair potentials Psi of every context. n_labels: Y."""

    n_labels: int
    contexts: Contexts
    potentials: Potentials


class Vectors(NamedTuple):
    """Output of inference for T tokens; see `chain`.

    alpha: [T, Yp], forward vectors; backward: [T, Yp], evidence, then the factors of pair
    marginals; marginals: [T, Yp]; scales, norms: [T] float64, logarithmic and plain factors of Z;
    scratch: [Y + 1, Yp], a workspace. The matrices have one dtype, float64 or float32.
    """

    alpha: Floats
    backward: Floats
    marginals: Floats
    scales: Floats
    norms: Floats
    scratch: Floats


class Slopes(NamedTuple):
    """Derivatives of pair potentials along a direction; see `pairs.slope_corrections`.

    psi: [M, Y + 1, Yp], of the log-potentials of a matrix; score: [E] float64, of the log-potential
    of a sparse correction; change: [E] float64, of its potential, minus the part that products
    with the matrix contain; stamp: [M + C] int64, as in `Potentials`.
    """

    psi: Floats
    score: Floats
    change: Floats
    stamp: Ints


class Tangents(NamedTuple):
    """Derivatives of `Vectors` of T tokens along a direction; see `tangents`.

    beta: [T, Yp], backward vectors, weighted as `backward` is; forward_change, backward_change:
    [T, Yp], out, factors of the derivatives of pair marginals; marginal_change: [T, Yp], in: scores
    of the direction, out: derivatives of marginals. All have the dtype of `Vectors`.
    """

    beta: Floats
    forward_change: Floats
    backward_change: Floats
    marginal_change: Floats


class BatchOrder(NamedTuple):
    """Order in which inference processes the tokens of a chunk; see `chain`.

    order: [N] int32, tokens by batch, counted from the first token of their batch, ~t where t
    begins a sequence; together: sequences of a batch; scored: whether `backward` contains scores
    of the tokens already.
    """

    order: Ints
    together: int
    scored: bool


class Columns(NamedTuple):
    """The sites of each unigram feature block, for gradients that are gathered.

    block_columns: [R] int32, column of the feature of a block, -1 for none; col_ptr [.. + 1] int64,
    col_sites int32: CSC, sites of a column.
    """

    block_columns: Ints
    col_ptr: Ints
    col_sites: Ints


class TokensBy(NamedTuple):
    """The tokens of each matrix, or of each context.

    inner_ptr, inner_tokens: CSR, tokens that continue a sequence; start_ptr, start_tokens: CSR,
    tokens that begin one.
    """

    inner_ptr: Ints
    inner_tokens: Ints
    start_ptr: Ints
    start_tokens: Ints


class ContextsOf(NamedTuple):
    """The contexts of each feature, or of each matrix: ptr [.. + 1] int64, contexts int32, CSR."""

    ptr: Ints
    contexts: Ints


class MatrixSums(NamedTuple):
    """The tokens of each matrix, and the precomputed sums of matrices with many tokens.

    tokens: of each matrix; mat_spans: [M + 1] int64, spans of a matrix, none if its tokens were not
    split; sums: [P, Y + 1, Yp] float64, sum of outer products of each span, see `pair_sums`.
    """

    tokens: TokensBy
    mat_spans: Ints
    sums: Floats


class ContextBlocks(NamedTuple):
    """Bigram feature blocks of tokens.

    context: [N] int32, contexts of the corpus; `Sequences` merges contexts that have the same
    features with weights; ptr [.. + 1] int64, blocks int32: CSR, feature blocks of a context.
    """

    context: Ints
    ptr: Ints
    blocks: Ints


class Tables(NamedTuple):
    """A working loss as arguments of kernels: sequences, and the index of their weights."""

    sequences: Sequences
    unigrams: Unigrams
    contexts: Contexts
    bigrams: Bigrams
    context_blocks: ContextBlocks


class SequenceWorkspace(NamedTuple):
    """Workspaces of kernels that process one sequence at a time; not part of any state.

    pairs: potentials of the contexts evaluated last; vectors, clamped: of the sequence
    and of its clamped lattice; tokens: [T] int32, 0, 1, 2, ...; correction_sums: [largest number of
    corrections of a context] float64; pair_sums: [Y + 1, Yp] float64.
    """

    pairs: Pairs
    vectors: Vectors
    clamped: Vectors
    tokens: Ints
    correction_sums: Floats
    pair_sums: Floats


class Tokens(NamedTuple):
    """Attribute values of tokens that templates read; see `corpus.readings`.

    offsets: [S + 1] int64, tokens of each sequence; words: [N] int32, row of a token in `lexical`;
    lexical: [words, L] uint64, values of word attributes, 0 = missing; annotations: [N, A] uint64,
    values of token annotations, 0 = missing.
    """

    offsets: Ints
    words: Ints
    lexical: Ints
    annotations: Ints


class HashPlan(NamedTuple):
    """P templates of K attributes, which hash the features of tokens; see `hashing.hash_feature`.

    seeds: [P] uint64; part_ptr: [P + 1] int64, attributes of a template; part_columns: [K] int64,
    column of `lexical` if < L, else L + column of `annotations`, ~column for all columns of an
    attribute but its first; part_offsets: [K] int64, in tokens; part_anchors: [K] int64, origin of
    the offset: 0 the token, 1 the first token of its sequence, 2 the position after the last;
    part_edges: [K, 2, E] uint64, values before and after a sequence, by distance from it; E >= 1,
    and tokens farther away have the value of distance E.
    """

    seeds: Ints
    part_ptr: Ints
    part_columns: Ints
    part_offsets: Ints
    part_anchors: Ints
    part_edges: Ints


class Values(NamedTuple):
    """Real-valued features of N tokens: token t has values[rows[t], columns].

    values: [M, V] float32; rows: [N] int64; columns: [R] int64.
    """

    values: Floats
    rows: Ints
    columns: Ints


class SpanLabels(NamedTuple):
    """The types of spans that labels belong to, and how spans go on.

    types: [Y] int64, type of a label, -1 outside of spans; is_open, continues: [Y] bool, whether a
    span may go on behind a label, and with it.
    """

    types: Ints
    is_open: Flags
    continues: Flags


class Scored(NamedTuple):
    """Sequences whose path y has the score sum_t scores[t, y_t] + pairs[c_t, y_{t-1}, y_t].

    n_labels: Y; offsets: [S + 1] int64; scores: [N, Yp] float64; context: [N] int32; pairs:
    [C, Y + 1, Yp] float64, the start row last, padding -inf.
    """

    n_labels: int
    offsets: Ints
    scores: Floats
    context: Ints
    pairs: Floats


class Search(NamedTuple):
    """Candidates of Viterbi for the previous label; see `decoding.transitions.Transitions`.

    group_ptr [G + 1], group_rows: int64, CSR, rows of groups; rare: [R] int64, rare columns;
    rare_ptr [R + 1], rare_rows: int64, CSR, their rows; favourite: label that wins ties, before the
    lowest.
    """

    group_ptr: Ints
    group_rows: Ints
    rare: Ints
    rare_ptr: Ints
    rare_rows: Ints
    favourite: int = 0


def search_all(n: int, favourite: int = 0) -> Search:
    """Return the search of a matrix of n rows that has one group and no rare columns."""
    none = np.zeros(0, dtype=np.int64)
    return Search(
        np.array([0, n]), np.arange(n), none, np.zeros(1, dtype=np.int64), none, favourite
    )


class SharedPairs(NamedTuple):
    """Scores of label pairs that are the same at each token, ready for Viterbi.

    n_labels: Y; pairs: [1, Y + 1, Yp] float64, see `Scored`; slack: [1, Yp], of
    `decoding.transitions.Transitions.finish`; closing: [Yp] float64, cost of ending with a label, 0
    or inf.
    """

    n_labels: int
    pairs: Floats
    slack: Floats
    closing: Floats
    search: Search


class Factors(NamedTuple):
    """A number for each label of each token, and for each label pair of each group.

    A *group* is the tokens of a sequence, except its first, that have the same context of the
    corpus. Pairs are summed over a group: the sum determines the gradient at any weights. The nodes
    of a first token are also its pairs with the start label. nodes: [tokens, Yp]; pairs: [groups,
    Y, Yp]; of one sequence or of all.
    """

    nodes: Floats
    pairs: Floats


class Groups(NamedTuple):
    """The G groups of sequences; see `Factors`.

    seq_ptr: [S + 1] int64, groups of each sequence; token_ptr [G + 1] int64, tokens int32: CSR,
    tokens of a group, counted from the first of the sequence; context: [G] int32, of the corpus.
    """

    seq_ptr: Ints
    token_ptr: Ints
    tokens: Ints
    context: Ints


class SequenceBlocks(NamedTuple):
    """The feature blocks of each sequence.

    ptr [S + 1] int64, rows int32: CSR; bigram blocks are counted after all unigram blocks;
    weight_ptr: [blocks + 1] int64, weights of a block, of all K.
    """

    ptr: Ints
    rows: Ints
    weight_ptr: Ints


class Grouped(NamedTuple):
    """A working loss as arguments of kernels that store factors of each sequence."""

    tables: Tables
    groups: Groups
    sequence_blocks: SequenceBlocks
