"""Stochastic descent, an example at a time, and sums of the gradients of some examples.

Weights have the cumulative l1 penalty (Tsuruoka et al. 2009) and lazy l2.
"""

from typing import Any, NamedTuple

import numpy as np

from .exp import exp
from .layout import Floats, Ints, SequenceWorkspace, Tables, Unigrams
from .lazy import advance
from .numba_support import inlined, kernel
from .pair_counts import corrections_of, subtract_gold
from .sequence import expect_example_pairs, infer_example, settle_example_corrections
from .vectors import prefetch

# Below this, three terms of the series of exp are exact up to rounding.
_LITTLE = 1e-5
# Number of feature blocks ahead at which the state of weights is prefetched.
_AHEAD = 12


class Paid(NamedTuple):
    """Weights, and the penalties that they have received.

    theta: [K] float64, in and out; received: [K] float64, in and out, the l1 penalty that a weight
    has received; shrunk: [blocks or weights] float64, in and out, the l2 rate that each has been
    shrunk by; due: [2] float64, cumulated l1 and l2 rates.
    """

    theta: Floats
    received: Floats
    shrunk: Floats
    due: Floats


@inlined
def _decay(x: float) -> float:
    """Return exp(-x); for tiny x, the usual case, without calling exp."""
    return _decay_little(x) if x < _LITTLE else exp(-x)


@inlined
def _decay_little(x: float) -> float:
    """Return exp(-x) for x below _LITTLE."""
    return 1.0 - x + 0.5 * x * x


@inlined
def _penalise(k: int, weight: float, theta: Floats, received: Floats, due: float) -> None:
    """Set theta[k] to a weight after the l1 penalty due, and add the penalty to received[k].

    Both signs without a branch, so that loops over weights vectorise: the penalty is the weight
    itself, clamped to the rest of `due` for either sign.
    """
    positive = max(due + received[k], 0.0)
    negative = min(received[k] - due, 0.0)
    kept = weight - min(max(weight, negative), positive)
    received[k] += kept - weight
    theta[k] = kept


@inlined
def apply_due(begin: int, end: int, past: float, now: float, paid: Paid) -> None:
    """Shrink the weights begin:end by the l2 rate past:now, then apply the l1 penalty due."""
    factor = _decay(now - past)
    for k in range(begin, end):
        _penalise(k, factor * paid.theta[k], paid.theta, paid.received, paid.due[0])


@kernel
def penalise(block_ptr: Ints, paid: Paid) -> None:
    """Apply all penalties due to all weights.

    With u = due[0] and q = received: w := max(0, w - (u + q)) for w > 0, min(0, w + (u - q)) for
    w < 0, and q += the change (Tsuruoka 2009, section 3.2; Lavergne 2010, equation 8, prints one
    sign wrong). l2 shrinks: w *= exp(-(due[1] - shrunk)). Applying it twice changes nothing.

    block_ptr: [blocks + 1], weights of a feature block.
    """
    advance(range(len(paid.shrunk)), paid.due[1], paid.shrunk, block_ptr, apply_due, paid)


@inlined
def update_blocks(
    t: int, n_labels: int, unigrams: Unigrams, residual: Floats, step: float, paid: Paid
) -> None:
    """Descend on the unigram weights of token t, then apply the penalties due.

    residual: [Yp], gradient by label; paid: `shrunk` is of feature blocks.
    """
    rows, block_ptr, block_labels = unigrams.tok_blocks, unigrams.block_ptr, unigrams.block_labels
    theta, received, shrunk, due = paid.theta, paid.received, paid.shrunk, paid.due
    for j in range(unigrams.tok_ptr[t], unigrams.tok_ptr[t + 1]):
        if j + _AHEAD < len(rows):
            prefetch(received, block_ptr[rows[j + _AHEAD]])
            prefetch(shrunk, rows[j + _AHEAD])
        row = rows[j]
        begin, end = block_ptr[row], block_ptr[row + 1]
        factor = _decay(due[1] - shrunk[row])
        shrunk[row] = due[1]
        if end - begin == n_labels:
            weights, own = theta[begin:end], received[begin:end]
            for y in range(n_labels):
                _penalise(y, factor * (weights[y] - step * residual[y]), weights, own, due[0])
        else:
            for k in range(begin, end):
                weight = factor * (theta[k] - step * residual[block_labels[k]])
                _penalise(k, weight, theta, received, due[0])


@inlined
def _update_pair(k: int, weight: float, paid: Paid) -> None:
    """Set a bigram weight, then apply the penalties due.

    A bigram feature may be in the matrix of one context and in corrections of another: its weights
    shrink separately.
    """
    factor = _decay(paid.due[1] - paid.shrunk[k])
    paid.shrunk[k] = paid.due[1]
    _penalise(k, factor * weight, paid.theta, paid.received, paid.due[0])


@inlined
def _update_full(
    begin: int, n_previous: int, n_labels: int, residual: Floats, step: float, paid: Paid
) -> None:
    """Apply `_update_pair` to all label pairs from weight `begin` on, which are nearly current."""
    for i in range(n_previous):
        first, last = begin + i * n_labels, begin + (i + 1) * n_labels
        weights, received = paid.theta[first:last], paid.received[first:last]
        shrunk, own = paid.shrunk[first:last], residual[i]
        for y in range(n_labels):
            factor = _decay_little(paid.due[1] - shrunk[y])
            shrunk[y] = paid.due[1]
            _penalise(y, factor * (weights[y] - step * own[y]), weights, received, paid.due[0])


@inlined
def _update_matrix(m: int, tables: Tables, residual: Floats, step: float, paid: Paid) -> None:
    """Descend on the weights of the feature blocks of matrix m; residual: [Y + 1, Yp] gradient."""
    bigrams, n_labels, flat = tables.bigrams, tables.sequences.n_labels, residual.reshape(-1)
    for row in bigrams.mat_blocks[bigrams.mat_ptr[m] : bigrams.mat_ptr[m + 1]]:
        begin, end = bigrams.block_ptr[row], bigrams.block_ptr[row + 1]
        if end - begin == bigrams.n_previous * n_labels:
            earliest = paid.due[1]
            for k in range(begin, end):
                earliest = min(earliest, paid.shrunk[k])
            if paid.due[1] - earliest < _LITTLE:
                _update_full(begin, bigrams.n_previous, n_labels, residual, step, paid)
                continue
        for k in range(begin, end):
            _update_pair(k, paid.theta[k] - step * flat[bigrams.block_places[k]], paid)


@inlined
def _update_corrections(
    begin: int, end: int, tables: Tables, residual: Floats, step: float, paid: Paid
) -> None:
    """Descend on the weights of corrections begin:end; residual: [end - begin] gradient."""
    ptr, weights = tables.bigrams.corr_weight_ptr, tables.bigrams.corr_weights
    for e in range(begin, end):
        for j in range(ptr[e], ptr[e + 1]):
            k: Any = np.int64(weights[j])
            _update_pair(k, paid.theta[k] - step * residual[e - begin], paid)


@inlined
def _update_pairs(s: int, tables: Tables, work: SequenceWorkspace, step: float, paid: Paid) -> None:
    """Descend on the bigram weights of example s, by runs of tokens.

    The tokens of a run share a context, or a matrix. paid: of bigram weights only.
    """
    sequences = tables.sequences
    begin, end = sequences.offsets[s], sequences.offsets[s + 1]
    labels, context = sequences.labels[begin:end], sequences.context[begin:end]
    has_clamped, n = sequences.clamped[s] >= 0, end - begin
    contexts, residual = work.pairs.contexts, work.pair_sums
    same_context = same_matrix = end_of_matrix = 0
    for i in range(n):
        c = context[i]
        m = contexts.matrix_of[c]
        if i == end_of_matrix:
            same_matrix, end_of_matrix = i, i + 1
            while end_of_matrix < n and contexts.matrix_of[context[end_of_matrix]] == m:
                end_of_matrix += 1
            if not contexts.constant[m]:
                expect_example_pairs(i, end_of_matrix, m, has_clamped, work)
        # The corrections of the first token differ: they are in the start row.
        if i == 0 or i + 1 == n or context[i + 1] != c:
            first, last = corrections_of(same_context, c, contexts)
            if first < last:
                settle_example_corrections(same_context, i + 1, c, has_clamped, labels, work)
                _update_corrections(first, last, tables, work.correction_sums, step, paid)
            same_context = i + 1
        if i + 1 == end_of_matrix and not contexts.constant[m]:
            for t in range(same_matrix, end_of_matrix):
                subtract_gold(t, t == 0, labels, 1.0, residual)
            _update_matrix(m, tables, residual, step, paid)


@inlined
def update_example(
    s: int, tables: Tables, work: SequenceWorkspace, step: float, unigram: Paid, bigram: Paid
) -> None:
    """Descend along the gradient of example s, which was inferred last, then apply penalties.

    unigram, bigram: the weights of each type; `shrunk` is of feature blocks of unigram weights,
    and of single bigram weights.
    """
    sequences = tables.sequences
    begin, n_labels = sequences.offsets[s], sequences.n_labels
    for t in range(begin, sequences.offsets[s + 1]):
        residual = work.vectors.marginals[t - begin]
        update_blocks(t, n_labels, tables.unigrams, residual, step, unigram)
    _update_pairs(s, tables, work, step, bigram)


@inlined
def forget(work: SequenceWorkspace) -> None:
    """Mark all potentials as out of date, since weights have changed."""
    stamp = work.pairs.potentials.stamp
    for i in range(len(stamp)):
        stamp[i] = -1


@kernel
def sgd_pass(
    order: Ints,
    tables: Tables,
    unigram: Paid,
    bigram: Paid,
    l1_rate: float,
    l2_rate: float,
    eta: float,
    decay: float,
    work: SequenceWorkspace,
) -> float:
    """Run one pass of stochastic gradient descent over examples, in the given order.

    order: [n] int64 examples; unigram, bigram: see `update_example`, in and out, with one `due`;
    l1_rate, l2_rate: penalties per example (rho / N); eta: first step size, multiplied by `decay`
    after each example; 0 only measures.
    RETURNS: the weighted sum of the losses of the examples, each before its update.
    """
    due, loss = unigram.due, 0.0
    forget(work)
    for number in range(len(order)):
        s = order[number]
        weight = tables.sequences.weights[s]
        loss += weight * infer_example(s, number, tables, unigram.theta, bigram.theta, work)
        if eta == 0.0:
            continue
        # An example's share of the penalty does not depend on its weight.
        due[0] += eta * l1_rate
        due[1] += eta * l2_rate
        update_example(s, tables, work, eta * weight, unigram, bigram)
        eta *= decay
    return loss


class Summed(NamedTuple):
    """A sum of gradients [K], and its unigram and bigram parts as weights without penalties due."""

    gradient: Floats
    unigram: Paid
    bigram: Paid


@inlined
def add_gradient(
    s: int, number: int, tables: Tables, theta: Floats, summed: Summed, work: SequenceWorkspace
) -> float:
    """Add the weighted gradient of example s at theta [K] to a sum.

    This is a descent with a step of minus the example's weight and no penalty. number: see
    `infer_example`. RETURNS: the weighted loss.
    """
    weight, split = tables.sequences.weights[s], tables.unigrams.split
    loss = infer_example(s, number, tables, theta[:split], theta[split:], work)
    update_example(s, tables, work, -weight, summed.unigram, summed.bigram)
    return float(weight * loss)


@kernel
def add_gradients(
    members: Ints,
    number: int,
    tables: Tables,
    theta: Floats,
    summed: Summed,
    work: SequenceWorkspace,
) -> float:
    """Add the weighted gradients of examples `members`, at the same weights, to a sum.

    number: distinct for each theta; other arguments: see `add_gradient`.
    RETURNS: the weighted sum of the losses.
    """
    loss = 0.0
    for s in members:
        loss += add_gradient(s, number, tables, theta, summed, work)
    return loss


@inlined
def _collect(rows: Ints, first: int, number: int, marks: Ints, touched: Ints, n: int) -> int:
    """Append first + row to touched[:n] for feature blocks not marked with this number.

    RETURNS: the new n.
    """
    for row in rows:
        if marks[first + row] != number:
            marks[first + row] = number
            touched[n] = first + row
            n += 1
    return n


@inlined
def collect_blocks(members: Ints, number: int, tables: Tables, marks: Ints, touched: Ints) -> int:
    """List the feature blocks of sequences, bigram blocks numbered after unigram blocks.

    members: [n] sequences; marks: [blocks] int64, in and out, the number at which a block was
    listed last; touched: [blocks] int64, out. RETURNS: their number.
    """
    sequences, unigrams, context_blocks = tables.sequences, tables.unigrams, tables.context_blocks
    n, n_unigram = 0, len(unigrams.block_ptr) - 1
    for s in members:
        for t in range(sequences.offsets[s], sequences.offsets[s + 1]):
            rows = unigrams.tok_blocks[unigrams.tok_ptr[t] : unigrams.tok_ptr[t + 1]]
            n = _collect(rows, 0, number, marks, touched, n)
            c = context_blocks.context[t]
            rows = context_blocks.blocks[context_blocks.ptr[c] : context_blocks.ptr[c + 1]]
            n = _collect(rows, n_unigram, number, marks, touched, n)
    return n
