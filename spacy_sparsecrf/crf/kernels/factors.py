"""Factors of the gradient of a sequence: its residuals by token and by group of tokens.

Solvers that store gradients store these factors, which do not depend on the weights.
"""

from .example_gradients import add_blocks
from .layout import (
    Bigrams,
    Factors,
    Floats,
    Grouped,
    Ints,
    SequenceBlocks,
    SequenceWorkspace,
)
from .numba_support import inlined, kernel
from .pair_counts import add_products, subtract_gold
from .small import fill


@inlined
def _weigh_pairs(weight: float, matrix: Floats, products: Floats, residual: Floats) -> None:
    """Write weight * matrix * products to `residual` [Y, Yp]; matrix, products: [Y + 1, Yp]."""
    for i in range(residual.shape[0]):
        for y in range(residual.shape[1]):
            residual[i, y] = weight * matrix[i, y] * products[i, y]


@inlined
def leave_factors(
    s: int, context: Ints, grouped: Grouped, work: SequenceWorkspace, residuals: Factors
) -> None:
    """Write the weighted residuals of example s, which was inferred last, by token and by group.

    context: [T], contexts of `work.pairs`; work: after `infer_example`; residuals: of the
    sequence, out; its nodes may be the marginals of `work`.
    """
    sequences, groups = grouped.tables.sequences, grouped.groups
    vectors, clamped, products = work.vectors, work.clamped, work.pair_sums
    weight, has_clamped = sequences.weights[s], sequences.clamped[s] >= 0
    labels = sequences.labels[sequences.offsets[s] : sequences.offsets[s + 1]]
    n_labels, contexts, potentials = work.pairs
    nodes, first_group = residuals.nodes, groups.seq_ptr[s]
    for i in range(len(labels)):
        for y in range(nodes.shape[1]):
            nodes[i, y] = weight * vectors.marginals[i, y]
    # A separate function, called for each group, would receive dozens of arrays each time.
    for g in range(first_group, groups.seq_ptr[s + 1]):
        tokens = groups.tokens[groups.token_ptr[g] : groups.token_ptr[g + 1]]
        c, pairs = context[tokens[0]], residuals.pairs[g - first_group]
        fill(products.reshape(-1), 0, pairs.size, 0.0)
        add_products(tokens, tokens[:0], n_labels, vectors.alpha, vectors.backward, products)
        if has_clamped:
            add_products(tokens, tokens[:0], n_labels, clamped.alpha, clamped.backward, products)
        _weigh_pairs(weight, potentials.psi[contexts.matrix_of[c]], products, pairs)
        for e in range(contexts.corr_ptr[c], contexts.corr_start[c]):
            i, y = contexts.corr_previous[e], contexts.corr_label[e]
            pairs[i, y] = weight * potentials.value[e] * products[i, y]
        for t in tokens:
            subtract_gold(t, False, labels, weight, pairs)


@inlined
def _scatter_pairs(
    rows: Ints, n_labels: int, bigrams: Bigrams, residual: Floats, sums: Floats
) -> None:
    """Add residuals [Y, Yp] to the sums of the weights of bigram blocks, except start pairs."""
    flat, block_ptr, places = residual.reshape(-1), bigrams.block_ptr, bigrams.block_places
    for row in rows:
        begin, end = block_ptr[row], block_ptr[row + 1]
        if end - begin == bigrams.n_previous * n_labels:
            full = sums[begin : begin + n_labels * n_labels].reshape(-1, n_labels)
            for i in range(n_labels):
                for y in range(n_labels):
                    full[i, y] += residual[i, y]
        else:
            for k in range(begin, end):
                if places[k] < len(flat):
                    sums[k] += flat[places[k]]


@inlined
def scatter(s: int, grouped: Grouped, residuals: Factors, sums: Floats) -> None:
    """Add the gradient of sequence s, from its residuals, to sums [K] by weight."""
    tables, groups, context_blocks = grouped.tables, grouped.groups, grouped.tables.context_blocks
    sequences, bigrams, n_labels = tables.sequences, tables.bigrams, tables.sequences.n_labels
    begin, end, first_group = sequences.offsets[s], sequences.offsets[s + 1], groups.seq_ptr[s]
    nodes, pairs, bigram = residuals.nodes, residuals.pairs, sums[tables.unigrams.split :]
    for t in range(begin, end):
        add_blocks(t, n_labels, tables.unigrams, nodes[t - begin], 1.0, sums)
    for g in range(first_group, groups.seq_ptr[s + 1]):
        c = groups.context[g]
        rows = context_blocks.blocks[context_blocks.ptr[c] : context_blocks.ptr[c + 1]]
        _scatter_pairs(rows, n_labels, bigrams, pairs[g - first_group], bigram)
    c = context_blocks.context[begin]
    rows = context_blocks.blocks[context_blocks.ptr[c] : context_blocks.ptr[c + 1]]
    base = n_labels * nodes.shape[1]
    for row in rows:
        k = bigrams.block_ptr[row + 1] - 1
        # Pairs with the start label come last.
        while k >= bigrams.block_ptr[row] and bigrams.block_places[k] >= base:
            bigram[k] += nodes[0, bigrams.block_places[k] - base]
            k -= 1


@inlined
def square_norm(s: int, sequence_blocks: SequenceBlocks, vector: Floats) -> float:
    """Return the sum of squares of a vector [K] over the weights of sequence s."""
    norm, weight_ptr = 0.0, sequence_blocks.weight_ptr
    for row in sequence_blocks.rows[sequence_blocks.ptr[s] : sequence_blocks.ptr[s + 1]]:
        for k in range(weight_ptr[row], weight_ptr[row + 1]):
            norm += vector[k] * vector[k]
    return norm


@kernel
def scatter_all(grouped: Grouped, residuals: Factors, sums: Floats) -> None:
    """Add the gradient of all sequences, by their residuals, to `sums` [K]."""
    offsets, seq_ptr = grouped.tables.sequences.offsets, grouped.groups.seq_ptr
    for s in range(len(seq_ptr) - 1):
        nodes = residuals.nodes[offsets[s] : offsets[s + 1]]
        scatter(s, grouped, Factors(nodes, residuals.pairs[seq_ptr[s] : seq_ptr[s + 1]]), sums)
