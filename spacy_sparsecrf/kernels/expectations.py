"""Expected minus observed counts of unigram weights, over a corpus (Lavergne 2010, equation 4).

The *residual* of a token is its marginals minus its gold label, times its weight. The gradient of a
feature is the sum of the residuals of its tokens. Residuals are scattered to the frequent features
while a chunk is processed, and gathered for all other features.
"""

from .chain import backward_batch, forward_batch, log_partition, vectors_of
from .layout import BatchOrder, Columns, Floats, Ints, Pairs, Sequences, Tables, Unigrams, Vectors
from .numba_support import inlined, kernel
from .scores import evidence_of, score_token
from .small import add_at, fill, prefetch_row
from .vectors import prefetch

# Residuals are prefetched this number of tokens ahead.
_AHEAD = 8
# Up to this number of tokens, as most features have, residuals are added to the gradient in place.
_FEW = 3


@inlined
def with_scratch(vectors: Vectors, scratch: Floats) -> Vectors:
    """Return vectors with another scratch, which no other thread uses."""
    return Vectors(
        vectors.alpha, vectors.backward, vectors.marginals, vectors.scales, vectors.norms, scratch
    )


@inlined
def _observe(
    begin: int, end: int, tables: Tables, theta: Floats, vectors: Vectors, scored: bool
) -> None:
    """Write the evidence of tokens begin:end to `backward`, and its logarithmic scales."""
    sequences, unigrams = tables.sequences, tables.unigrams
    for t in range(begin, end):
        evidence = vectors.backward[t]
        # Fetch these rows while scores are summed: the recursions write them later.
        prefetch_row(vectors.alpha, t)
        prefetch_row(vectors.marginals, t)
        if not scored:
            fill(evidence, 0, len(evidence), 0.0)
        score_token(t, sequences.n_labels, unigrams, theta, evidence)
        vectors.scales[t] = evidence_of(evidence, sequences.n_labels, sequences.allowed[t])


@inlined
def _infer_run(
    head: int,
    tail: int,
    sequences: Sequences,
    pairs: Pairs,
    vectors: Vectors,
    batch: BatchOrder,
    log_z: Floats,
) -> None:
    """Run forward-backward on the batch of sequences head:tail; the evidence is in `vectors`."""
    offsets = sequences.offsets
    begin, end = offsets[head], offsets[tail]
    order, context = batch.order[begin:end], sequences.context[begin:end]
    run = vectors_of(begin, end, vectors)
    forward_batch(order, context, pairs, run)
    for s in range(head, tail):
        first, last = offsets[s] - begin, offsets[s + 1] - begin
        log_z[s] = log_partition(first, last, context, pairs, run)
        fill(run.marginals[last - 1], 0, pairs.n_labels, 1.0)
    backward_batch(order, context, pairs, run)


@inlined
def _weigh(first: int, last: int, sequences: Sequences, vectors: Vectors) -> None:
    """Multiply `marginals` and `backward` of sequences first:last by their weights."""
    for s in range(first, last):
        weight = sequences.weights[s]
        if weight != 1.0:
            for t in range(sequences.offsets[s], sequences.offsets[s + 1]):
                marginals, backward = vectors.marginals[t], vectors.backward[t]
                for y in range(len(marginals)):
                    marginals[y] *= weight
                    backward[y] *= weight


@inlined
def add_to_frequent(t: int, row: Floats, unigrams: Unigrams, frequent_sums: Floats) -> None:
    """Add a row [Yp] of token t to the sums [H, Yp] of its frequent features."""
    frequent, frequent_ptr = unigrams.frequent, unigrams.frequent_ptr
    for j in range(frequent_ptr[t], frequent_ptr[t + 1]):
        total = frequent_sums[frequent[j]]
        for y in range(len(total)):
            total[y] += row[y]


@kernel
def leave_residuals(
    first: int,
    last: int,
    sequences: Sequences,
    unigrams: Unigrams,
    residual: Floats,
    frequent_sums: Floats,
) -> None:
    """Turn weighted marginals into residuals, and add them to the sums of frequent features.

    residual: [N, Yp], in and out: residual[t, y_t] -= weight for gold y_t; frequent_sums: [H, Yp]
    float64, added to; this is faster than a gather while the sums fit into a cache.
    """
    labels = sequences.labels
    for s in range(first, last):
        for t in range(sequences.offsets[s], sequences.offsets[s + 1]):
            row = residual[t]
            if labels[t] >= 0:
                row[labels[t]] -= sequences.weights[s]
            add_to_frequent(t, row, unigrams, frequent_sums)


@kernel
def infer_chunk(
    first: int,
    last: int,
    scratch: Floats,
    frequent_sums: Floats,
    tables: Tables,
    pairs: Pairs,
    theta: Floats,
    vectors: Vectors,
    batch: BatchOrder,
    log_z: Floats,
    residuals: bool,
) -> None:
    """Process sequences first:last: evidence, forward-backward, residuals, frequent features.

    scratch: [Y + 1, Yp], a workspace of this chunk; frequent_sums: [H, Yp] float64, added to;
    pairs: potentials of theta; theta: [K] float64; vectors: [N, Yp], out, weighted; batch: see
    `BatchOrder`; log_z: [S] float64, out, not weighted; residuals: whether to turn marginals into
    residuals and to add these to frequent_sums.
    """
    sequences, vectors = tables.sequences, with_scratch(vectors, scratch)
    for head in range(first, last, batch.together):
        tail = min(head + batch.together, last)
        begin, end = sequences.offsets[head], sequences.offsets[tail]
        _observe(begin, end, tables, theta, vectors, batch.scored)
        _infer_run(head, tail, sequences, pairs, vectors, batch, log_z)
        _weigh(head, tail, sequences, vectors)
        if residuals:
            leave_residuals(
                head, tail, sequences, tables.unigrams, vectors.marginals, frequent_sums
            )


@kernel
def gather_unigrams(
    first: int,
    last: int,
    total: Floats,
    n_labels: int,
    unigrams: Unigrams,
    columns: Columns,
    residual: Floats,
    gradient: Floats,
) -> None:
    """Gather the gradient of the unigram weights of blocks first:last: sum_t residual[t, y].

    total: [Yp] float64, a workspace of this chunk, zeros; residual: [N, Yp]; gradient: [K] float64,
    out.
    """
    block_ptr, block_labels = unigrams.block_ptr, unigrams.block_labels
    col_ptr, col_tokens, padded = columns.col_ptr, columns.col_tokens, residual.shape[1]
    flat = residual.reshape(-1)
    for row in range(first, last):
        column, begin, end = columns.block_columns[row], block_ptr[row], block_ptr[row + 1]
        fill(gradient, begin, end, 0.0)
        first_token, last_token = col_ptr[column], col_ptr[column + 1]
        if end - begin == n_labels:
            own = gradient[begin:end]
            if last_token - first_token <= _FEW:
                add_row_by_row(residual, col_tokens, first_token, last_token, own)
                continue
            fill(total, 0, n_labels, 0.0)
            add_rows(residual, col_tokens, first_token, last_token, total)
            for y in range(n_labels):
                own[y] = total[y]
            continue
        place = block_labels[begin]
        for j in range(first_token, last_token):
            if j + _AHEAD < len(col_tokens):
                prefetch(flat, col_tokens[j + _AHEAD] * padded + place)
            t = col_tokens[j]
            for k in range(begin, end):
                gradient[k] += residual[t, block_labels[k]]


@inlined
def add_row_by_row(residual: Floats, tokens: Ints, first: int, last: int, total: Floats) -> None:
    """total[y] += sum over tokens[first:last] of residual[t, y], token by token.

    residual: [N, Yp]; total: [Y] float64, added to.
    """
    for j in range(first, last):
        # The prefetched token may be of the next feature.
        if j + _AHEAD < len(tokens):
            prefetch_row(residual, tokens[j + _AHEAD])
        row = residual[tokens[j]]
        for y in range(len(total)):
            total[y] += row[y]


@inlined
def add_rows(residual: Floats, tokens: Ints, first: int, last: int, total: Floats) -> None:
    """total[y] += sum over tokens[first:last] of residual[t, y], four tokens at a time.

    The additions are in the order of the tokens, as in `add_row_by_row`.

    residual: [N, Yp]; total: [Yp] float64, added to.
    """
    padded = len(total)
    unrolled = last - (last - first) % 4
    for j in range(first, unrolled, 4):
        for i in range(j + _AHEAD, min(j + _AHEAD + 4, len(tokens))):
            prefetch_row(residual, tokens[i])
        t, u, v, w = tokens[j], tokens[j + 1], tokens[j + 2], tokens[j + 3]
        for y in range(padded):
            begun = (total[y] + residual[t, y]) + residual[u, y]
            total[y] = (begun + residual[v, y]) + residual[w, y]
    add_row_by_row(residual, tokens, unrolled, last, total)


@inlined
def variance(residual: float, weight: float) -> float:
    """Return w p (1 - p) for a residual w p, or w p - w of the gold label; weight: w > 0."""
    mass = abs(residual)
    # Rounding may raise the mass of a label with p = 1 above its weight.
    return max(mass * (1.0 - mass / weight), 0.0)


@kernel
def frequent_curvature(
    first: int,
    last: int,
    row: Floats,
    frequent_sums: Floats,
    sequences: Sequences,
    unigrams: Unigrams,
    residual: Floats,
) -> None:
    """Add the variances of the labels of sequences first:last to the sums of frequent features.

    Clamped lattices, whose weight is negative, are left out. row: [Yp] float64, a workspace of this
    chunk; frequent_sums: [H, Yp] float64, added to; residual: [N, Yp].
    """
    for s in range(first, last):
        weight = sequences.weights[s]
        if weight <= 0.0:
            continue
        for t in range(sequences.offsets[s], sequences.offsets[s + 1]):
            for y in range(len(row)):
                row[y] = variance(residual[t, y], weight)
            add_to_frequent(t, row, unigrams, frequent_sums)


@kernel
def unigram_curvature(
    first: int, last: int, tables: Tables, columns: Columns, residual: Floats, curvature: Floats
) -> None:
    """Add the variance of the unigram weights of blocks first:last: sum_t w p (1 - p).

    p is p(y_t = y). Left out are covariances between tokens of one sequence, and clamped lattices,
    whose weight is negative.

    residual: [N, Yp]; curvature: [K] float64, added to.
    """
    token_weight = tables.sequences.token_weight
    block_ptr, block_labels = tables.unigrams.block_ptr, tables.unigrams.block_labels
    col_ptr, flat, padded = columns.col_ptr, residual.reshape(-1), residual.shape[1]
    for row in range(first, last):
        column = columns.block_columns[row]
        place = block_labels[block_ptr[row]]
        for j in range(col_ptr[column], col_ptr[column + 1]):
            if j + _AHEAD < len(columns.col_tokens):
                prefetch(flat, columns.col_tokens[j + _AHEAD] * padded + place)
            t = columns.col_tokens[j]
            weight = token_weight[t]
            if weight > 0.0:
                for k in range(block_ptr[row], block_ptr[row + 1]):
                    curvature[k] += variance(residual[t, block_labels[k]], weight)


@kernel
def count_gold(first: int, last: int, tables: Tables, columns: Columns, counts: Floats) -> None:
    """Count the gold labels of blocks first:last: counts[k] += weights of tokens with its label."""
    sequences, unigrams = tables.sequences, tables.unigrams
    labels, block_ptr = sequences.labels, unigrams.block_ptr
    for row in range(first, last):
        column, begin = columns.block_columns[row], block_ptr[row]
        own = unigrams.block_labels[begin : block_ptr[row + 1]]
        for j in range(columns.col_ptr[column], columns.col_ptr[column + 1]):
            t = columns.col_tokens[j]
            if labels[t] >= 0:
                add_at(own, labels[t], sequences.token_weight[t], counts[begin:])
