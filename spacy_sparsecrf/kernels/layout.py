"""The notation of the kernels: every letter, and every group of arrays that travels together.

Letters: S sequences; N tokens; Y labels; Yp = Y padded to a multiple of 8; O tests; R rows, a *row*
being a test that has working weights; K weights; C contexts, a *context* being the set of a token's
bigram tests; M matrices; E entries; H heads; W = ceil(Y / 64) words of a set of labels; T tokens of
one sequence, or of the run of sequences that a recursion goes through together.

A token t has scores s_t(y), sums of unigram weights mu[o, y], and potentials of pairs, exp of sums
of bigram weights lam[o, y', y], which depend on its context c only. The start label y' = Y comes
before the first token of a sequence. numba takes a named tuple apart into its arrays, as if each
were an argument, and keeps the code of a kernel that takes one in its cache on disk.
"""

from typing import NamedTuple

import numpy as np

# Arrays of float64 or float32, of integers of any width, and of bools.
Floats = np.ndarray
Ints = np.ndarray
Flags = np.ndarray


class Sequences(NamedTuple):
    """The sequences that a kernel goes through, and their labels.

    n_labels: Y; offsets: [S + 1] int64, tokens of each; copies: [>= n] int32, constrained copy of
    each of the n sequences that are examples, -1 = none; labels: [N] int32, -1 = missing; allowed:
    [N, W] uint64, labels that a token may have (see `scores`); weights: [S] float64, that of a copy
    being negative; token_weight: [N] float64, of its sequence; context: [N] int32.
    """

    n_labels: int
    offsets: Ints
    copies: Ints
    labels: Ints
    allowed: Ints
    weights: Floats
    token_weight: Floats
    context: Ints


class Unigrams(NamedTuple):
    """Where the unigram weights are, the first `split` of all.

    head_ptr [N + 1] int64, heads int32: CSR, a token's rows that are heads; table: [H, Yp], weights
    of heads for all labels, mostly zeros; tok_ptr [N + 1] int64, tok_rows int32: CSR, a token's
    other rows; row_ptr: [R + 1] int64, weights of a row; row_labels: [split] uint32, their labels
    (numba tests the sign of other indices). A row with all of its Y weights is *full*: it adds as a
    vector.
    """

    split: int
    head_ptr: Ints
    heads: Ints
    table: Floats
    tok_ptr: Ints
    tok_rows: Ints
    row_ptr: Ints
    row_labels: Ints


class Bigrams(NamedTuple):
    """Where the bigram weights are: in the matrices and entries of contexts.

    n_previous: Y, or Y + 1 with a start label; mat_ptr [M + 1] int64, mat_rows int32: CSR, rows of
    a matrix; row_ptr: [R + 1] int64, weights of a row; row_places: [K] uint32, y' * Yp + y of each;
    ent_weight_ptr [E + 1] int64, ent_weights int32: CSR, weights of an entry; origin: [K] float64,
    what is added to each weight, or [0] for nothing.
    """

    n_previous: int
    mat_ptr: Ints
    mat_rows: Ints
    row_ptr: Ints
    row_places: Ints
    ent_weight_ptr: Ints
    ent_weights: Ints
    origin: Floats


class Contexts(NamedTuple):
    """How contexts share matrices, and in which pairs, the *entries*, they differ from them.

    matrix_of: [C] int32; constant: [M] bool, matrices of ones, which no weight is in; ent_ptr:
    [C + 1] int64, entries of a context by place, of which ent_start[c]:ent_ptr[c + 1] are in the
    start row; ent_previous, ent_label: [E] uint16; ent_place: [E] int32, y' * Yp + y.
    """

    matrix_of: Ints
    constant: Flags
    ent_ptr: Ints
    ent_start: Ints
    ent_previous: Ints
    ent_label: Ints
    ent_place: Ints


class Potentials(NamedTuple):
    """Exponentiated potentials of pairs, by matrix and entry; see `pairs`.

    psi: [M, Y + 1, Yp], the start row last, padding 0; one matrix more than shifts where there is a
    mask, the last; shift: [M] float64, log scale of a matrix; value: [E] float64, the potential in
    place of the matrix's; change: [E] float64, by which products with the matrix are mended;
    rewritten: [C] bool, contexts whose changes are values to write into a copy of the matrix;
    stamp: [M + C] int64, the visit at which a matrix, or the entries of a context, were evaluated
    last, for kernels that evaluate what an example needs.
    """

    psi: Floats
    shift: Floats
    value: Floats
    change: Floats
    rewritten: Flags
    stamp: Ints


class Pairs(NamedTuple):
    """How labels follow each other: the Psi of every context. n_labels: Y."""

    n_labels: int
    contexts: Contexts
    potentials: Potentials


class Vectors(NamedTuple):
    """What inference writes of the T tokens of a run of sequences; see `chain`.

    alpha: [T, Yp], forward vectors; backward: [T, Yp], evidence, then the factors of pair
    marginals; marginals: [T, Yp]; scales, norms: [T] float64, logarithmic and plain factors of Z;
    scratch: [Y + 1, Yp], a workspace. The matrices have one type, float64 or float32.
    """

    alpha: Floats
    backward: Floats
    marginals: Floats
    scales: Floats
    norms: Floats
    scratch: Floats


class Slopes(NamedTuple):
    """Derivatives of potentials of pairs along a direction; see `pairs.slope_entries`.

    psi: [M, Y + 1, Yp], of a matrix's log-potentials; score: [E] float64, of the log-potential of
    an entry's pair; change: [E] float64, of the entry's potential, less what products with the
    matrix have of it; stamp: [M + C] int64, as in `Potentials`.
    """

    psi: Floats
    score: Floats
    change: Floats
    stamp: Ints


class Tangents(NamedTuple):
    """Derivatives of what inference writes of T tokens, along a direction; see `tangents`.

    beta: [T, Yp], backward vectors, weighted as `backward` is; forward_change, backward_change:
    [T, Yp], out, which make up derivatives of pair marginals; marginal_change: [T, Yp], in: the
    direction's scores, out: derivatives of marginals. All are of the type of `Vectors`.
    """

    beta: Floats
    forward_change: Floats
    backward_change: Floats
    marginal_change: Floats


class BatchOrder(NamedTuple):
    """How inference goes through the sequences of a chunk; see `chain`.

    order: [N] int32, tokens in the order of runs of sequences, counted from the first of their run,
    ~t where t begins a sequence; together: sequences of a run; scored: whether `backward` has
    scores of the tokens before.
    """

    order: Ints
    together: int
    scored: bool


class Columns(NamedTuple):
    """The tokens of each unigram row, for gradients that are gathered.

    row_columns: [R] int32, column of a row's test, -1 for none; col_ptr [.. + 1] int64, col_tokens
    int32: CSC, tokens of a column.
    """

    row_columns: Ints
    col_ptr: Ints
    col_tokens: Ints


class TokensBy(NamedTuple):
    """The tokens of each matrix, or of each context.

    inner_ptr, inner_tokens: CSR, tokens that continue a sequence; start_ptr, start_tokens: CSR,
    those that begin one.
    """

    inner_ptr: Ints
    inner_tokens: Ints
    start_ptr: Ints
    start_tokens: Ints


class ContextsOf(NamedTuple):
    """The contexts of each test, or of each matrix: ptr [.. + 1] int64, contexts int32, CSR."""

    ptr: Ints
    contexts: Ints


class MatrixSums(NamedTuple):
    """The tokens of each matrix, of which spans were summed ahead where they are many.

    tokens: of each matrix; mat_spans: [M + 1] int64, spans of a matrix, none where its tokens were
    not split; sums: [P, Y + 1, Yp] float64, sums of outer products of each span, see `pair_sums`.
    """

    tokens: TokensBy
    mat_spans: Ints
    sums: Floats


class ContextRows(NamedTuple):
    """Bigram rows of tokens.

    context: [N] int32, of the corpus, where `Sequences` has those that agree in working tests as
    one; ptr [.. + 1] int64, rows int32: CSR, rows of a context.
    """

    context: Ints
    ptr: Ints
    rows: Ints


class Tables(NamedTuple):
    """What kernels take of a working loss: sequences, and where the weights of their tokens are."""

    sequences: Sequences
    unigrams: Unigrams
    contexts: Contexts
    bigrams: Bigrams
    context_rows: ContextRows


class SequenceWorkspace(NamedTuple):
    """Workspaces of visits to one sequence at a time; they mean nothing between passes.

    pairs: potentials of the contexts that were visited last; vectors, copy: of the sequence and of
    its constrained copy; tokens: [T] int32, 0, 1, 2, ...; entry_sums: [largest number of entries of
    a context] float64; pair_sums: [Y + 1, Yp] float64.
    """

    pairs: Pairs
    vectors: Vectors
    copy: Vectors
    tokens: Ints
    entry_sums: Floats
    pair_sums: Floats


class Tokens(NamedTuple):
    """What templates read of tokens; see `corpus.readings`.

    offsets: [S + 1] int64, tokens of a sequence; words: [N] int32, row of a token in `lexical`;
    lexical: [words, L] uint64, values of word attributes, 0 = missing; annotations: [N, A] uint64,
    values of a token's annotations, 0 = missing.
    """

    offsets: Ints
    words: Ints
    lexical: Ints
    annotations: Ints


class HashPlan(NamedTuple):
    """Tests of tokens, P templates of K parts; see `hashing.hash_test`.

    seeds: [P] uint64; part_ptr: [P + 1] int64, parts of a template; part_columns: [K] int64, column
    of `lexical` if < L, else L + column of `annotations`, ~column for all columns of an attribute
    but its first; part_offsets: [K] int64, in tokens; part_anchors: [K] int64, from where an offset
    counts: 0 the token, 1 the first of its sequence, 2 behind the last; part_edges: [K, 2, E]
    uint64, values before and behind a sequence, by distance from it; E >= 1, and tokens that are
    farther away are like those at distance E.
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
    """Where Viterbi looks for the label before another; see `decoding.legal.Transitions`.

    group_ptr [G + 1], group_rows: int64, CSR, rows of groups; rare: [R] int64, rare columns;
    rare_ptr [R + 1], rare_rows: int64, CSR, their rows.
    """

    group_ptr: Ints
    group_rows: Ints
    rare: Ints
    rare_ptr: Ints
    rare_rows: Ints


class SharedPairs(NamedTuple):
    """Scores of label pairs that are the same at each token, ready for Viterbi.

    n_labels: Y; pairs: [1, Y + 1, Yp] float64, see `Scored`; slack: [1, Yp], of
    `decoding.legal.Transitions.finish`; closing: [Yp] float64, what it costs to end with a label, 0
    or inf.
    """

    n_labels: int
    pairs: Floats
    slack: Floats
    closing: Floats
    search: Search


class Factors(NamedTuple):
    """A number for each label of each token, and for each pair of each group.

    A *group* has the tokens of a sequence, but its first, that have one context of the corpus: what
    is stored of their pairs is a sum, from which the gradient follows whatever the weights are. The
    pairs of a first token with the start label are its labels. nodes: [tokens, Yp]; pairs: [groups,
    Y, Yp]; of one sequence or of all.
    """

    nodes: Floats
    pairs: Floats


class Groups(NamedTuple):
    """The groups of sequences, of which there are G; see `Factors`.

    seq_ptr: [S + 1] int64, groups of each sequence; token_ptr [G + 1] int64, tokens int32: CSR, a
    group's tokens, counted from the sequence's first; context: [G] int32, of the corpus.
    """

    seq_ptr: Ints
    token_ptr: Ints
    tokens: Ints
    context: Ints


class OwnRows(NamedTuple):
    """The rows that each sequence has.

    ptr [S + 1] int64, rows int32: CSR, bigram rows being counted after all unigram rows;
    weight_ptr: [rows + 1] int64, weights of a row, of all K.
    """

    ptr: Ints
    rows: Ints
    weight_ptr: Ints


class Grouped(NamedTuple):
    """What kernels that store factors of each sequence take of a working loss."""

    tables: Tables
    groups: Groups
    own_rows: OwnRows
