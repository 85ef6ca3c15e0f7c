"""Inference in a sequence from the variables of the dual, the log-potentials of the sequence.

Every sequence has log-potentials *theta^i*: factors of its labels and of the label pairs of its
groups. Factors of the first label include the pairs with the start label. Marginals, entropy and
log Z follow from these factors alone, whatever the weights: each group has a separate matrix of
potentials, and tokens without a group have the mask.
"""

from typing import NamedTuple

import numpy as np

from ...kernels.chain import infer
from ...kernels.exp import exp_shifted
from ...kernels.factors import leave_factors
from ...kernels.layout import Factors, Floats, Grouped, Groups, Ints, SequenceWorkspace
from ...kernels.numba_support import inlined
from ...kernels.pairs import score_pairs
from ...kernels.scores import evidence_of, score_token
from ...kernels.small import dot as dot_rows
from ...kernels.small import fill

# Maximum difference of log-potentials of a token, or of a group, so that their exponentials, and
# products of two, are normal numbers.
WIDEST = 300.0


class ChainSpace(NamedTuple):
    """Workspaces of `infer_chain`.

    mask: [Y, Yp], 1 for valid transitions; context: [>= T] int32, the matrix of a token; work: its
    pairs have a matrix for the mask and for each group that a sequence may have, and a context
    without sparse corrections for each matrix.
    """

    mask: Floats
    context: Ints
    work: SequenceWorkspace


class Moves(NamedTuple):
    """Workspaces of a step of one sequence.

    change: [K] zeros; way, trial, fresh: the direction, log-potentials and residuals of a trial.
    """

    change: Floats
    way: Factors
    trial: Factors
    fresh: Factors


@inlined
def factors_of(s: int, grouped: Grouped, factors: Factors) -> Factors:
    """Return the factors of sequence s, from those of all sequences."""
    offsets, seq_ptr = grouped.tables.sequences.offsets, grouped.groups.seq_ptr
    nodes = factors.nodes[offsets[s] : offsets[s + 1]]
    return Factors(nodes, factors.pairs[seq_ptr[s] : seq_ptr[s + 1]])


@inlined
def first_factors(like: Factors, factors: Factors) -> Factors:
    """Return the first factors of a workspace, as many as `like` has."""
    return Factors(factors.nodes[: len(like.nodes)], factors.pairs[: len(like.pairs)])


@inlined
def _axpy(factor: float, way: Floats, base: Floats, out: Floats) -> None:
    for i in range(len(out)):
        out[i] = base[i] + factor * way[i]


@inlined
def axpy(factor: float, way: Factors, base: Factors, out: Factors) -> None:
    """Set out = base + factor way, all of the same sequence."""
    _axpy(factor, way.nodes.reshape(-1), base.nodes.reshape(-1), out.nodes.reshape(-1))
    _axpy(factor, way.pairs.reshape(-1), base.pairs.reshape(-1), out.pairs.reshape(-1))


@inlined
def dot(one: Factors, other: Factors) -> float:
    """Return the inner product of factors of the same sequence."""
    nodes = dot_rows(one.nodes.reshape(-1), other.nodes.reshape(-1))
    return nodes + dot_rows(one.pairs.reshape(-1), other.pairs.reshape(-1))


@inlined
def _is_wide(block: Floats, n_labels: int, raised: bool) -> bool:
    """Return whether a number is more than WIDEST below the largest of block[:, :n_labels].

    raised: whether to raise such numbers to the limit.
    """
    top, wide = -np.inf, False
    for row in block:
        for y in range(n_labels):
            top = max(top, row[y])
    low = np.float64(top) - WIDEST
    for row in block:
        for y in range(n_labels):
            wide |= row[y] < low
            if raised:
                row[y] = max(row[y], low)
    return wide


@inlined
def is_wide(n_labels: int, factors: Factors, raised: bool) -> bool:
    """Return whether log-potentials are out of range within their token, or their group.

    raised: whether to raise them to the range.
    """
    wide = False
    for t in range(len(factors.nodes)):
        wide |= _is_wide(factors.nodes[t : t + 1], n_labels, raised)
    for g in range(len(factors.pairs)):
        wide |= _is_wide(factors.pairs[g], n_labels, raised)
    return wide


@inlined
def score_chain(s: int, grouped: Grouped, theta: Floats, matrix: Floats, scores: Factors) -> None:
    """Compute the log-potentials of sequence s at weights theta [K].

    matrix: [Y + 1, Yp] workspace; scores: of the sequence, out, padding 0.
    """
    tables, groups, context_blocks = grouped.tables, grouped.groups, grouped.tables.context_blocks
    n_labels, pair_theta = tables.sequences.n_labels, theta[tables.unigrams.split :]
    begin, first_group, nodes = tables.sequences.offsets[s], groups.seq_ptr[s], scores.nodes
    for i in range(len(nodes)):
        fill(nodes[i], 0, nodes.shape[1], 0.0)
        score_token(begin + i, n_labels, tables.unigrams, theta=theta, scores=nodes[i])
    # The start row of the first token's context, then the groups.
    for g in range(-1, len(scores.pairs)):
        c = context_blocks.context[begin] if g < 0 else groups.context[first_group + g]
        fill(matrix.reshape(-1), 0, matrix.size, 0.0)
        rows = context_blocks.blocks[context_blocks.ptr[c] : context_blocks.ptr[c + 1]]
        score_pairs(matrix, rows, n_labels, bigrams=tables.bigrams, theta=pair_theta)
        if g < 0:
            for y in range(n_labels):
                nodes[0, y] += matrix[n_labels, y]
            continue
        for i in range(n_labels):
            for y in range(matrix.shape[1]):
                scores.pairs[g, i, y] = matrix[i, y]


@inlined
def _exponentiate(n_labels: int, pairs: Floats, space: ChainSpace) -> None:
    """psi[g + 1] = exp(pairs[g] - shift[g + 1]) where the mask is 1, else 0."""
    mask, potentials = space.mask, space.work.pairs.potentials
    psi, shift, padded = potentials.psi, potentials.shift, potentials.psi.shape[2]
    for g in range(len(pairs)):
        top = -np.inf
        for i in range(n_labels):
            for y in range(n_labels):
                if mask[i, y] > 0.0:
                    top = max(top, pairs[g, i, y])
        shift[g + 1] = top
        for i in range(n_labels):
            row = psi[g + 1, i]
            for y in range(padded):
                # Invalid pairs may lie above the shift.
                row[y] = pairs[g, i, y] if mask[i, y] > 0.0 else top
            exp_shifted(row, padded, top)
            for y in range(padded):
                row[y] *= mask[i, y]


@inlined
def _place(s: int, groups: Groups, context: Ints) -> None:
    """Find the matrix of each token [T] of a sequence: 1 + its group, 0 = no group."""
    first_group = groups.seq_ptr[s]
    for i in range(len(context)):
        context[i] = 0
    for g in range(first_group, groups.seq_ptr[s + 1]):
        for t in groups.tokens[groups.token_ptr[g] : groups.token_ptr[g + 1]]:
            context[t] = g - first_group + 1


@inlined
def infer_chain(
    s: int, grouped: Grouped, theta: Factors, space: ChainSpace, residuals: Factors
) -> float:
    """Return log Z of sequence s by its log-potentials theta; residuals: weighted, out."""
    sequences, groups, work = grouped.tables.sequences, grouped.groups, space.work
    begin, end, n_labels = sequences.offsets[s], sequences.offsets[s + 1], sequences.n_labels
    gold, vectors = sequences.labels[begin:end], work.vectors
    context = space.context[: end - begin]
    _exponentiate(n_labels, theta.pairs, space)
    _place(s, groups, context)
    for i in range(end - begin):
        evidence = vectors.backward[i]
        for y in range(len(evidence)):
            evidence[y] = theta.nodes[i, y]
        vectors.scales[i] = evidence_of(evidence, n_labels, sequences.allowed[begin + i])
    log_z = infer(context, work.pairs, vectors)
    for i in range(end - begin):
        vectors.marginals[i, gold[i]] -= 1.0
    leave_factors(s, context, grouped, work=work, residuals=residuals)
    return log_z


@inlined
def gold_sum(s: int, grouped: Grouped, factors: Factors) -> float:
    """Return the sum of the factors of sequence s along its gold labels."""
    sequences, groups = grouped.tables.sequences, grouped.groups
    gold = sequences.labels[sequences.offsets[s] : sequences.offsets[s + 1]]
    first_group, total = groups.seq_ptr[s], np.float64(0.0)
    for t in range(len(gold)):
        total += factors.nodes[t, gold[t]]
    for g in range(first_group, groups.seq_ptr[s + 1]):
        for t in groups.tokens[groups.token_ptr[g] : groups.token_ptr[g + 1]]:
            total += factors.pairs[g - first_group, gold[t - 1], gold[t]]
    return total
