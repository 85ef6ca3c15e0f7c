"""Blocks, the weights of one feature each: their gradient, and the change of log Z.

The tokens of a block are those of its feature, ascending; a *run* is its tokens in one sequence.
Forward and backward vectors are stored from block to block (Lavergne 2010, section 4.1): alpha_t
depends on the potentials up to t, beta_t on those after t, so a change at the tokens first..last of
a sequence does not change alpha before `first`, nor beta from `last` on. Only the missing vectors
up to the block's last token, or down to its first, are computed.
"""

from typing import Any, NamedTuple

import numpy as np

from ...kernels.chain import backward_product, forward_product, log_partition, settle, start_vector
from ...kernels.exp import log
from ...kernels.layout import Floats, Ints, Pairs, Tables, Vectors
from ...kernels.numba_support import inlined, kernel
from ...kernels.pairs import build_corrections, build_matrices
from ...kernels.scores import evidence_of, score_token
from ...kernels.small import fill, normalise


class Blocks(NamedTuple):
    """The blocks, each of a feature block of unigram weights, of bigram weights, or both.

    unigram, bigram: [B] int32, feature blocks, -1 = none; ptr [B + 1], tokens: CSR, tokens of a
    block; sequence_of: [N] int32; mat_ptr, matrices: CSR, matrices of a bigram block; ctx_ptr,
    contexts: CSR, contexts whose sparse corrections depend on it.
    """

    unigram: Ints
    bigram: Ints
    ptr: Ints
    tokens: Ints
    sequence_of: Ints
    mat_ptr: Ints
    matrices: Ints
    ctx_ptr: Ints
    contexts: Ints


class StoredVectors(NamedTuple):
    """The vectors of all tokens, stored from block to block.

    evidence: [N, Yp], with logarithmic scales in `vectors`; vectors: of all tokens; `marginals`
    contains beta, with rows of sum 1. In sequence s, alpha, backward and norms are valid before
    token alpha_end[s], beta from token beta_begin[s] on. partial: [S] float64, see
    `_partial_log_z`.
    """

    evidence: Floats
    vectors: Vectors
    alpha_end: Ints
    beta_begin: Ints
    partial: Floats


class BlockSpace(NamedTuple):
    """Workspaces.

    old, gradient, curvature: [K], of the weights of the current block; product: [Yp]; parts: [2, 2]
    int64, first and end of its unigram and of its bigram weights; kappas: [2]; counts: [3] int64,
    added to: evaluations of a sequence, tokens of forward steps, tokens of backward steps.
    """

    old: Floats
    gradient: Floats
    curvature: Floats
    product: Floats
    parts: Ints
    kappas: Floats
    counts: Ints


class Sweep(NamedTuple):
    """The corpus, the blocks of its weights, stored vectors and workspaces of a sweep.

    pairs: with the potentials at the current weights.
    """

    blocks: Blocks
    tables: Tables
    pairs: Pairs
    stored: StoredVectors
    space: BlockSpace


class Block(NamedTuple):
    """One block: its tokens, ascending, and the indices of its weights.

    tokens: [n] int32; unigram: index of its first unigram weight; labels: of its unigram weights;
    bigram: index of its first bigram weight; places: of its bigram weights; starts: of its weights
    of pairs with the start label, which come last; labels, places and starts are uint32.
    """

    tokens: Ints
    unigram: int
    labels: Ints
    bigram: int
    places: Ints
    starts: Ints


@kernel
def weigh_tokens(
    tokens: Ints, tables: Tables, theta: Floats, evidence: Floats, scales: Floats
) -> None:
    """Exponentiate the unigram scores of some tokens: evidence[t] = exp(scores_t - scales[t]).

    tokens: int32; theta: [K]; evidence: [N, Yp], out, 0 where padded or not allowed; scales: [N]
    float64, out.
    """
    sequences, unigrams = tables.sequences, tables.unigrams
    for t in tokens:
        row = evidence[t]
        fill(row, 0, len(row), 0.0)
        score_token(t, sequences.n_labels, unigrams, theta=theta, scores=row)
        scales[t] = evidence_of(row, sequences.n_labels, sequences.allowed[t])


@inlined
def refresh_block(b: int, theta: Floats, sweep: Sweep) -> None:
    """Recompute the evidence and the potentials that depend on the weights of block b.

    theta: [K]; pairs, and stored evidence and scales: in and out.
    """
    blocks, tables, pairs, stored, _ = sweep
    bigram, split = blocks.bigram[b], tables.unigrams.split
    if blocks.unigram[b] >= 0:
        tokens = blocks.tokens[blocks.ptr[b] : blocks.ptr[b + 1]]
        scales = stored.vectors.scales
        weigh_tokens(tokens, tables, theta[:split], stored.evidence, scales)
    if bigram < 0:
        return
    pair_theta = theta[split:]
    for j in range(blocks.mat_ptr[bigram], blocks.mat_ptr[bigram + 1]):
        m: Any = np.int64(blocks.matrices[j])  # the type of other calls
        build_matrices(m, m + 1, pairs, bigrams=tables.bigrams, theta=pair_theta)
    for j in range(blocks.ctx_ptr[bigram], blocks.ctx_ptr[bigram + 1]):
        c: Any = np.int64(blocks.contexts[j])
        build_corrections(c, c + 1, pairs, bigrams=tables.bigrams, theta=pair_theta)


@inlined
def _extend_forward(s: int, first: int, last: int, sweep: Sweep) -> None:
    """Compute forward vectors of the tokens first:last of sequence s."""
    _, tables, pairs, stored, space = sweep
    sequences, vectors = tables.sequences, stored.vectors
    for t in range(first, last):
        alpha, evidence, copy = vectors.alpha[t], stored.evidence[t], vectors.backward[t]
        for y in range(len(copy)):
            copy[y] = evidence[y]
        c = sequences.context[t]
        if t == sequences.offsets[s]:
            start_vector(c, pairs, alpha)
        else:
            previous = vectors.alpha[t - 1]
            forward_product(c, previous, pairs, scratch=vectors.scratch, out=alpha)
        vectors.norms[t] = settle(alpha, copy)
    space.counts[1] += last - first
    stored.alpha_end[s] = last


@inlined
def _extend_backward(s: int, first: int, sweep: Sweep) -> None:
    """Compute beta_t ~ Psi_{t+1} (E_{t+1} * beta_{t+1}), of sum 1, down to t = `first`.

    `chain.go_back` would turn beta into marginals, which change with every block.
    """
    _, tables, pairs, stored, space = sweep
    sequences, beta, product = tables.sequences, stored.vectors.marginals, space.product
    space.counts[2] += stored.beta_begin[s] - first
    for t in range(stored.beta_begin[s] - 1, first - 1, -1):
        if t == sequences.offsets[s + 1] - 1:
            fill(beta[t], 0, sequences.n_labels, 1.0)
            continue
        for y in range(len(product)):
            product[y] = stored.evidence[t + 1, y] * beta[t + 1, y]
        c, scratch = sequences.context[t + 1], stored.vectors.scratch
        backward_product(c, product, pairs, scratch=scratch, out=beta[t])
        normalise(len(product), beta[t])
    stored.beta_begin[s] = first


@inlined
def _overlap(alpha: Floats, beta: Floats) -> float:
    """Sum alpha_t(y) beta_t(y), in order: Z, up to scaling factors, from any token t.

    Differences of log Z decide whether a step lowers the objective, so its rounding must not depend
    on how the sum is vectorised.
    """
    total = np.float64(0.0)
    for y in range(len(alpha)):
        total += alpha[y] * beta[y]
    return total


@inlined
def _partial_log_z(first: int, last: int, sweep: Sweep) -> float:
    """Return the part of log Z that depends on the potentials of the tokens first..last, inclusive.

    The rest of log Z is a summand that alpha before `first` and beta from `last` on determine.
    """
    context, vectors = sweep.tables.sequences.context, sweep.stored.vectors
    # The sum of alpha_t(y) beta_t(y) is Z, up to scaling factors, at any token t.
    log_norms = log_partition(first, last + 1, context=context, pairs=sweep.pairs, vectors=vectors)
    return log_norms + log(float(_overlap(vectors.alpha[last], vectors.marginals[last])))


@inlined
def _count_labels(
    first: int,
    labels: Ints,
    alpha: Floats,
    beta: Floats,
    inverse: float,
    weight: float,
    gradient: Floats,
    curvature: Floats,
) -> None:
    """Add probabilities to expected counts of weights at one token, and variances to curvature.

    p(y) = alpha(y) beta(y) * inverse. first: index of the first weight; labels: of the weights, or
    their positions, which are labels modulo Yp.
    """
    for j in range(len(labels)):
        y = np.int64(labels[j]) % len(alpha)
        mass = alpha[y] * beta[y] * inverse
        gradient[first + j] += weight * mass
        if weight > 0.0:
            curvature[first + j] += weight * max(mass * (1.0 - mass), 0.0)


# Arrays, not named tuples: a call for each token would pass all arrays of each.
@inlined
def _count_pairs(
    first: int,
    places: Ints,
    matrix: Floats,
    corr_place: Ints,
    value: Floats,
    alpha: Floats,
    product: Floats,
    inverse: float,
    weight: float,
    gradient: Floats,
    curvature: Floats,
) -> None:
    """Do `_count_labels` for the bigram weights from index `first` on, at positions `places`.

    p(y', y) = alpha_{t-1}(y') Psi(y', y) (E_t(y) / n_t) beta_t(y) * inverse, `alpha` being
    alpha_{t-1} and `product` that of the last two. Psi is the matrix with the sparse
    corrections of the context. The positions of corrections ascend, as do those of weights.
    """
    e = 0
    for j in range(len(places)):
        pair = np.int64(places[j])
        i, y = pair // len(alpha), pair % len(alpha)
        while e < len(corr_place) and corr_place[e] < pair:
            e += 1
        is_correction = e < len(corr_place) and corr_place[e] == pair
        psi = value[e] if is_correction else float(matrix[i, y])
        mass = float(alpha[i]) * psi * float(product[y]) * inverse
        gradient[first + j] += weight * mass
        if weight > 0.0:
            curvature[first + j] += weight * max(mass * (1.0 - mass), 0.0)


@inlined
def _count_run(run: Ints, s: int, block: Block, sweep: Sweep) -> None:
    """Count the weights of a block at a run of its tokens, in sequence s."""
    contexts, potentials, space = sweep.pairs.contexts, sweep.pairs.potentials, sweep.space
    sequences, vectors = sweep.tables.sequences, sweep.stored.vectors
    weight, product = sequences.weights[s], space.product
    gradient, curvature = space.gradient, space.curvature
    for t in run:
        alpha, beta = vectors.alpha[t], vectors.marginals[t]
        inverse = 1.0 / _overlap(alpha, beta)
        _count_labels(
            block.unigram, block.labels, alpha, beta, inverse, weight, gradient, curvature
        )
        if t == sequences.offsets[s]:
            k = block.bigram + len(block.places)
            _count_labels(k, block.starts, alpha, beta, inverse, weight, gradient, curvature)
        elif len(block.places):
            c = sequences.context[t]
            begin, end = contexts.corr_ptr[c], contexts.corr_ptr[c + 1]
            for y in range(len(product)):
                product[y] = vectors.backward[t, y] * beta[y]
            _count_pairs(
                block.bigram,
                block.places,
                matrix=potentials.psi[contexts.matrix_of[c]],
                corr_place=contexts.corr_place[begin:end],
                value=potentials.value[begin:end],
                alpha=vectors.alpha[t - 1],
                product=product,
                inverse=inverse,
                weight=weight,
                gradient=gradient,
                curvature=curvature,
            )


@inlined
def _run_at(tokens: Ints, j: int, sweep: Sweep) -> tuple[int, int, int, int]:
    """Return the run that begins at tokens[j]: its sequence, first and last token, and its end."""
    # The type that other kernels are called with elsewhere.
    begin: Any = np.int64(tokens[j])
    s = sweep.blocks.sequence_of[begin]
    end = sweep.tables.sequences.offsets[s + 1]
    while j < len(tokens) and tokens[j] < end:
        j += 1
    final: Any = np.int64(tokens[j - 1])
    return s, begin, final, j


@inlined
def evaluate_block(block: Block, sweep: Sweep) -> None:
    """Add the expected counts of a block's weights, and the diagonal of their Hessian.

    sweep.space: expected counts are added to `gradient`, and w p (1 - p), summed over tokens of
    positive weight w, to `curvature`.
    """
    tokens, stored, j = block.tokens, sweep.stored, 0
    while j < len(tokens):
        s, begin, final, stop = _run_at(tokens, j, sweep)
        sweep.space.counts[0] += 1
        if stored.alpha_end[s] <= final:
            _extend_forward(s, stored.alpha_end[s], final + 1, sweep)
        if stored.beta_begin[s] > begin:
            _extend_backward(s, begin, sweep)
        stored.partial[s] = _partial_log_z(begin, final, sweep)
        _count_run(tokens[j:stop], s, block, sweep)
        j = stop


@inlined
def measure_block(block: Block, sweep: Sweep) -> tuple[float, float]:
    """Return the change of the weighted log Z since `evaluate_block`, after `refresh_block`.

    Forward vectors are recomputed from a sequence's first token of the block to its last; the
    backward vector there gives the rest.
    RETURNS: the change; weighted number of these tokens, for its rounding error.
    """
    tokens, sequences, stored = block.tokens, sweep.tables.sequences, sweep.stored
    total, size, j = 0.0, 0.0, 0
    while j < len(tokens):
        s, begin, final, stop = _run_at(tokens, j, sweep)
        _extend_forward(s, begin, final + 1, sweep)
        stored.beta_begin[s] = max(stored.beta_begin[s], final)
        partial = _partial_log_z(begin, final, sweep)
        total += sequences.weights[s] * (partial - stored.partial[s])
        size += abs(sequences.weights[s]) * (final + 1 - begin)
        sweep.space.counts[0] += 1
        j = stop
    return total, size
