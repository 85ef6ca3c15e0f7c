"""One sequence: inference, loss, residuals, and the gradient to which they are scattered.

An *example* is a sequence with gold labels, or one with missing labels and its clamped lattice. The
loss of the latter is log Z minus log Z of the clamped lattice.
"""

import numpy as np

from .chain import go_forward, infer, log_partition
from .compiled import add_at, fill, inner
from .layout import (
    Bigrams,
    Factors,
    Floats,
    Grouped,
    Ints,
    OwnRows,
    Pairs,
    SequenceWorkspace,
    Tables,
    Unigrams,
    Vectors,
)
from .pair_counts import (
    add_entry_products,
    add_products,
    entries_of,
    settle_context,
    subtract_gold,
)
from .pairs import build_visited, potential
from .scores import evidence_of, score_token

# Arguments of logarithms are at least this.
_LEAST = 1e-300
# Outside of these bounds a product is added as a logarithm.
_SMALL = 1e-8
_LARGE = 1e8


@inner
def _observe_part(s: int, part: int, tables: Tables, theta: Floats, vectors: Vectors) -> None:
    """Write the evidence of `infer_part` to `vectors`."""
    sequences = tables.sequences
    begin, at = sequences.offsets[s], sequences.offsets[part]
    length, n_labels = sequences.offsets[s + 1] - begin, sequences.n_labels
    for i in range(length):
        evidence = vectors.backward[i]
        fill(evidence, 0, len(evidence), 0.0)
        score_token(begin + i, n_labels, tables.unigrams, theta, evidence)
        vectors.scales[i] = evidence_of(evidence, n_labels, sequences.allowed[at + i])


@inner
def infer_part(
    s: int, part: int, tables: Tables, theta: Floats, visit: SequenceWorkspace, vectors: Vectors
) -> float:
    """Run forward-backward on sequence s with the labels that sequence `part` may have.

    part: s, or its clamped lattice, which has the same features; theta: unigram weights; visit:
    with the potentials of the bigram weights; vectors: out. RETURNS: log Z.
    """
    sequences = tables.sequences
    context = sequences.context[sequences.offsets[s] : sequences.offsets[s + 1]]
    _observe_part(s, part, tables, theta, vectors)
    return infer(context, visit.pairs, vectors)


@inner
def infer_example(
    s: int, number: int, tables: Tables, theta: Floats, pair_theta: Floats, visit: SequenceWorkspace
) -> float:
    """Run forward-backward on sequence s and, if it has one, on its clamped lattice.

    number: of the step, see `build_visited`; theta, pair_theta: unigram and bigram weights; visit:
    `marginals` become the residuals of the example, expected minus observed labels; `backward` of
    the clamped lattice is negated. RETURNS: the loss, not weighted.
    """
    sequences, vectors, copy = tables.sequences, visit.vectors, visit.copy
    begin, end = sequences.offsets[s], sequences.offsets[s + 1]
    context, twin = sequences.context[begin:end], sequences.copies[s]
    build_visited(number, context, visit.pairs, tables.bigrams, pair_theta)
    log_z = infer_part(s, s, tables, theta, visit, vectors)
    residual = vectors.marginals
    if twin >= 0:
        log_z -= infer_part(s, twin, tables, theta, visit, copy)
        for i in range(end - begin):
            for y in range(residual.shape[1]):
                residual[i, y] -= copy.marginals[i, y]
                copy.backward[i, y] = -copy.backward[i, y]
        return log_z
    gold = sequences.labels[begin:end]
    loss = path_loss(gold, context, visit.pairs, vectors)
    for i in range(end - begin):
        residual[i, gold[i]] -= 1.0
    return loss


@inner
def path_loss(labels: Ints, context: Ints, pairs: Pairs, vectors: Vectors) -> float:
    """Return -log p(y | x) of gold labels [T], as the product of p(y_t | y_{t-1})."""
    padded, start = vectors.backward.shape[1], pairs.n_labels
    loss, product = 0.0, 1.0
    for i in range(len(labels)):
        y = labels[i]
        previous = start if i == 0 else labels[i - 1]
        place = previous * padded + y
        pair = vectors.backward[i, y] * potential(context[i], place, pairs)
        before = 1.0
        if i > 0:
            pair *= vectors.alpha[i - 1, previous]
            before = float(vectors.marginals[i - 1, previous])
        product *= max(pair, _LEAST) / max(before, _LEAST)
        if product < _SMALL:
            loss -= np.log(product)
            product = 1.0
    return float(loss - np.log(product))


@inner
def forward_loss(
    s: int, part: int, tables: Tables, theta: Floats, visit: SequenceWorkspace
) -> float:
    """Return -log p(y | x) of the gold labels, or log Z without them, by the forward pass alone.

    Arguments: see `infer_part`. p(y | x) is the product of E_t(y_t) / n_t, which the forward pass
    writes, and of the pair potentials.
    RETURNS: not finite where no path has positive probability within the arrays' range.
    """
    sequences, vectors, pairs = tables.sequences, visit.vectors, visit.pairs
    context = sequences.context[sequences.offsets[s] : sequences.offsets[s + 1]]
    n, at = len(context), sequences.offsets[part]
    labels, padded = sequences.labels[at : at + n], vectors.backward.shape[1]
    _observe_part(s, part, tables, theta, vectors)
    go_forward(context, pairs, vectors)
    if labels[0] < 0:
        return log_partition(0, n, context, pairs, vectors)
    loss, product = 0.0, 1.0
    for i in range(n):
        previous = sequences.n_labels if i == 0 else labels[i - 1]
        pair = potential(context[i], previous * padded + labels[i], pairs)
        product *= max(vectors.backward[i, labels[i]] * pair, _LEAST)
        if product < _SMALL or product > _LARGE:
            loss -= np.log(product)
            product = 1.0
    return float(loss - np.log(product))


@inner
def example_loss(
    s: int, number: int, tables: Tables, theta: Floats, pair_theta: Floats, visit: SequenceWorkspace
) -> float:
    """Return the loss of `infer_example`, with the same arguments, without its residuals."""
    sequences = tables.sequences
    context = sequences.context[sequences.offsets[s] : sequences.offsets[s + 1]]
    build_visited(number, context, visit.pairs, tables.bigrams, pair_theta)
    loss, twin = forward_loss(s, s, tables, theta, visit), sequences.copies[s]
    if twin >= 0:
        loss -= forward_loss(s, twin, tables, theta, visit)
    return loss


@inner
def expect_example_pairs(
    first: int, last: int, m: int, has_copy: bool, visit: SequenceWorkspace
) -> None:
    """Write the expected pairs of tokens first:last, which share matrix m, to `visit.pair_sums`.

    Sparse corrections are not included. visit: after `infer_example`; has_copy: whether the example
    has a clamped lattice.
    """
    n_labels, total, psi = visit.pairs.n_labels, visit.pair_sums, visit.pairs.potentials.psi[m]
    vectors, copy, middle = visit.vectors, visit.copy, max(first, 1)
    tokens, starts = visit.tokens[middle:last], visit.tokens[first:middle]
    fill(total.reshape(-1), 0, total.size, 0.0)
    add_products(tokens, starts, n_labels, vectors.alpha, vectors.backward, total)
    if has_copy:
        add_products(tokens, starts, n_labels, copy.alpha, copy.backward, total)
    for i in range(total.shape[0]):
        for y in range(total.shape[1]):
            total[i, y] *= psi[i, y]


@inner
def settle_example_entries(
    first: int, last: int, c: int, has_copy: bool, labels: Ints, visit: SequenceWorkspace
) -> None:
    """Write expected minus observed counts of the corrections of context c to `visit.entry_sums`.

    Tokens first:last have context c; all of them begin the example, or none does. The counts of
    their matrix, in `visit.pair_sums`, are corrected. labels: [T].
    """
    contexts, potentials, sums = visit.pairs.contexts, visit.pairs.potentials, visit.entry_sums
    tokens, begins, m = visit.tokens[first:last], first == 0, contexts.matrix_of[c]
    e, end = entries_of(first, c, contexts)
    vectors, copy, padded = visit.vectors, visit.copy, visit.pair_sums.shape[1]
    fill(sums, 0, end - e, 0.0)
    add_entry_products(tokens, begins, e, end, contexts, vectors.alpha, vectors.backward, sums)
    if has_copy:
        add_entry_products(tokens, begins, e, end, contexts, copy.alpha, copy.backward, sums)
    psi, value = potentials.psi[m], potentials.value
    settle_context(e, end, m, contexts, psi, value, visit.pair_sums, sums)
    for t in tokens:
        if labels[t] >= 0:
            before = visit.pairs.n_labels if begins else labels[t - 1]
            add_at(contexts.ent_place[e:end], before * padded + labels[t], -1.0, sums)


@inner
def _weigh_pairs(weight: float, matrix: Floats, products: Floats, residual: Floats) -> None:
    """Write weight * matrix * products to `residual` [Y, Yp]; the others have one row more."""
    for i in range(residual.shape[0]):
        for y in range(residual.shape[1]):
            residual[i, y] = weight * matrix[i, y] * products[i, y]


@inner
def leave_factors(
    s: int, context: Ints, grouped: Grouped, visit: SequenceWorkspace, residuals: Factors
) -> None:
    """Write the weighted residuals of example s, which was inferred last, by token and by group.

    context: [T], contexts of `visit.pairs`; visit: after `infer_example`; residuals: of the
    sequence, out; its nodes may be those of `visit`.
    """
    sequences, groups = grouped.tables.sequences, grouped.groups
    vectors, copy, products = visit.vectors, visit.copy, visit.pair_sums
    weight, has_copy = sequences.weights[s], sequences.copies[s] >= 0
    labels = sequences.labels[sequences.offsets[s] : sequences.offsets[s + 1]]
    n_labels, contexts, potentials = visit.pairs
    nodes, first = residuals.nodes, groups.seq_ptr[s]
    for i in range(len(labels)):
        for y in range(nodes.shape[1]):
            nodes[i, y] = weight * vectors.marginals[i, y]
    # A separate function, called for each group, would receive dozens of arrays each time.
    for g in range(first, groups.seq_ptr[s + 1]):
        tokens = groups.tokens[groups.token_ptr[g] : groups.token_ptr[g + 1]]
        c, pairs = context[tokens[0]], residuals.pairs[g - first]
        fill(products.reshape(-1), 0, pairs.size, 0.0)
        add_products(tokens, tokens[:0], n_labels, vectors.alpha, vectors.backward, products)
        if has_copy:
            add_products(tokens, tokens[:0], n_labels, copy.alpha, copy.backward, products)
        _weigh_pairs(weight, potentials.psi[contexts.matrix_of[c]], products, pairs)
        for e in range(contexts.ent_ptr[c], contexts.ent_start[c]):
            i, y = contexts.ent_previous[e], contexts.ent_label[e]
            pairs[i, y] = weight * potentials.value[e] * products[i, y]
        for t in tokens:
            subtract_gold(t, False, labels, weight, pairs)


@inner
def _scatter_nodes(
    first: int, last: int, n_labels: int, unigrams: Unigrams, nodes: Floats, sums: Floats
) -> None:
    """Add residuals [T, Yp] of tokens first:last to sums [K] of their unigram weights."""
    row_ptr, row_labels = unigrams.row_ptr, unigrams.row_labels
    for t in range(first, last):
        residual = nodes[t - first]
        for row in unigrams.tok_rows[unigrams.tok_ptr[t] : unigrams.tok_ptr[t + 1]]:
            begin, end = row_ptr[row], row_ptr[row + 1]
            if end - begin == n_labels:
                full = sums[begin:end]
                for y in range(n_labels):
                    full[y] += residual[y]
            else:
                for k in range(begin, end):
                    sums[k] += residual[row_labels[k]]


@inner
def _scatter_pairs(
    rows: Ints, n_labels: int, bigrams: Bigrams, residual: Floats, sums: Floats
) -> None:
    """Add residuals [Y, Yp] to the sums of the weights of bigram blocks, except start pairs."""
    flat, row_ptr, places = residual.reshape(-1), bigrams.row_ptr, bigrams.row_places
    for row in rows:
        begin, end = row_ptr[row], row_ptr[row + 1]
        if end - begin == bigrams.n_previous * n_labels:
            full = sums[begin : begin + n_labels * n_labels].reshape(-1, n_labels)
            for i in range(n_labels):
                for y in range(n_labels):
                    full[i, y] += residual[i, y]
        else:
            for k in range(begin, end):
                if places[k] < len(flat):
                    sums[k] += flat[places[k]]


@inner
def _scatter_starts(
    rows: Ints, base: int, bigrams: Bigrams, residual: Floats, sums: Floats
) -> None:
    """Add residuals [Yp] of a first token to the sums of its weights of pairs with the start label.

    base: Y * Yp, position of the first of these pairs.
    """
    row_ptr, places = bigrams.row_ptr, bigrams.row_places
    for row in rows:
        k = row_ptr[row + 1] - 1
        # Pairs with the start label come last.
        while k >= row_ptr[row] and places[k] >= base:
            sums[k] += residual[places[k] - base]
            k -= 1


@inner
def scatter(s: int, grouped: Grouped, residuals: Factors, sums: Floats) -> None:
    """Add the gradient of sequence s, from its residuals, to sums [K] by weight."""
    tables, groups, context_rows = grouped.tables, grouped.groups, grouped.tables.context_rows
    sequences, bigrams, n_labels = tables.sequences, tables.bigrams, tables.sequences.n_labels
    begin, end, first = sequences.offsets[s], sequences.offsets[s + 1], groups.seq_ptr[s]
    nodes, pairs, bigram = residuals.nodes, residuals.pairs, sums[tables.unigrams.split :]
    _scatter_nodes(begin, end, n_labels, tables.unigrams, nodes, sums)
    for g in range(first, groups.seq_ptr[s + 1]):
        c = groups.context[g]
        rows = context_rows.rows[context_rows.ptr[c] : context_rows.ptr[c + 1]]
        _scatter_pairs(rows, n_labels, bigrams, pairs[g - first], bigram)
    c = context_rows.context[begin]
    rows = context_rows.rows[context_rows.ptr[c] : context_rows.ptr[c + 1]]
    _scatter_starts(rows, n_labels * nodes.shape[1], bigrams, nodes[0], bigram)


@inner
def square_norm(s: int, own_rows: OwnRows, vector: Floats) -> float:
    """Return the sum of squares of a vector [K] over the weights of sequence s."""
    norm, weight_ptr = 0.0, own_rows.weight_ptr
    for row in own_rows.rows[own_rows.ptr[s] : own_rows.ptr[s + 1]]:
        for k in range(weight_ptr[row], weight_ptr[row + 1]):
            norm += vector[k] * vector[k]
    return norm
