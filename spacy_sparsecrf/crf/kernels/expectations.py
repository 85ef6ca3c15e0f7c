"""Expected minus observed counts of unigram weights, over a corpus (Lavergne 2010, equation 4).

The *residual* of a token is its marginals minus its gold label, times its weight. The gradient of a
feature is the sum of the residuals of its sites: of tokens, and of bundles, whose residual is the
sum of those of their tokens.
"""

from .chain import backward_batch, forward_batch, log_partition, vectors_of
from .layout import (
    BatchOrder,
    Columns,
    Csr,
    Floats,
    Ints,
    Pairs,
    Sequences,
    Tables,
    Unigrams,
    Vectors,
)
from .numba_support import inlined, kernel
from .scores import add_site, evidence_of, score_token
from .simd import prefetch
from .small import add_at, fill, prefetch_row

# Residuals are prefetched this number of sites ahead.
_AHEAD = 8


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
        start, stop = offsets[s] - begin, offsets[s + 1] - begin
        log_z[s] = log_partition(start, stop, context, pairs, run)
        fill(run.marginals[stop - 1], 0, pairs.n_labels, 1.0)
    backward_batch(order, context, pairs, run)


@inlined
def leave_residuals(
    first: int, last: int, sequences: Sequences, vectors: Vectors, residuals: bool
) -> None:
    """Weigh `marginals` and `backward` of sequences first:last, and leave residuals there.

    residuals: whether to subtract the gold labels from the weighted marginals; else they stay.
    """
    labels = sequences.labels
    for s in range(first, last):
        weight = sequences.weights[s]
        for t in range(sequences.offsets[s], sequences.offsets[s + 1]):
            marginals, backward = vectors.marginals[t], vectors.backward[t]
            if weight != 1.0:
                for y in range(len(marginals)):
                    marginals[y] *= weight
                    backward[y] *= weight
            if residuals and labels[t] >= 0:
                marginals[labels[t]] -= weight


@kernel
def infer_chunk(
    first: int,
    last: int,
    scratch: Floats,
    tables: Tables,
    pairs: Pairs,
    theta: Floats,
    vectors: Vectors,
    batch: BatchOrder,
    log_z: Floats,
    residuals: bool,
) -> None:
    """Process sequences first:last: evidence, forward-backward, residuals.

    scratch: [Y + 1, Yp], a workspace of this chunk; tables: with the scores of bundles; pairs:
    potentials of theta; theta: [K] float64; vectors: [N, Yp], out, weighted; batch: see
    `BatchOrder`; log_z: [S] float64, out, not weighted; residuals: whether to turn marginals into
    residuals.
    """
    sequences, vectors = tables.sequences, with_scratch(vectors, scratch)
    for head in range(first, last, batch.together):
        tail = min(head + batch.together, last)
        begin, end = sequences.offsets[head], sequences.offsets[tail]
        _observe(begin, end, tables, theta, vectors, batch.scored)
        _infer_run(head, tail, sequences, pairs, vectors, batch, log_z)
        leave_residuals(head, tail, sequences, vectors, residuals)


@kernel
def score_bundles(
    first: int, last: int, n_labels: int, unigrams: Unigrams, theta: Floats, table: Floats
) -> None:
    """Sum the weights of the features of bundles first:last.

    unigrams: of all sites; theta: [K] float64; table: [B, Yp], out.
    """
    n_tokens = len(unigrams.bundle_ptr) - 1
    for bundle in range(first, last):
        scores = table[bundle]
        fill(scores, 0, len(scores), 0.0)
        add_site(n_tokens + bundle, n_labels, unigrams, theta, scores)


@kernel
def sum_bundles(first: int, last: int, total: Floats, bundle_tokens: Csr, residual: Floats) -> None:
    """Sum the residuals of the tokens of bundles first:last.

    total: [Yp] float64, a workspace of this chunk; residual: [N + B, Yp], of sites, those of
    bundles out.
    """
    n_tokens = len(residual) - len(bundle_tokens.indptr) + 1
    for bundle in range(first, last):
        begin, end = bundle_tokens.indptr[bundle], bundle_tokens.indptr[bundle + 1]
        fill(total, 0, len(total), 0.0)
        add_rows(residual, bundle_tokens.indices, begin, end, total)
        bundle_residual = residual[n_tokens + bundle]
        for y in range(len(bundle_residual)):
            bundle_residual[y] = total[y]


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

    total: [Yp] float64, a workspace of this chunk, zeros; residual: [N + B, Yp], of sites;
    gradient: [K] float64, out.
    """
    block_ptr, block_labels = unigrams.block_ptr, unigrams.block_labels
    col_ptr, col_sites, padded = columns.col_ptr, columns.col_sites, residual.shape[1]
    flat = residual.reshape(-1)
    for row in range(first, last):
        column, begin, end = columns.block_columns[row], block_ptr[row], block_ptr[row + 1]
        fill(gradient, begin, end, 0.0)
        first_site, last_site = col_ptr[column], col_ptr[column + 1]
        if end - begin == n_labels:
            fill(total, 0, n_labels, 0.0)
            add_rows(residual, col_sites, first_site, last_site, total)
            for y in range(n_labels):
                gradient[begin + y] = total[y]
            continue
        label = block_labels[begin]
        for j in range(first_site, last_site):
            if j + _AHEAD < len(col_sites):
                prefetch(flat, col_sites[j + _AHEAD] * padded + label)
            site = col_sites[j]
            for k in range(begin, end):
                gradient[k] += residual[site, block_labels[k]]


@inlined
def add_rows(residual: Floats, sites: Ints, first: int, last: int, total: Floats) -> None:
    """total[y] += sum over sites[first:last] of residual[site, y], four sites at a time.

    The additions are in the order of the sites. residual: [.., Yp]; total: [Yp] float64, added to.
    """
    padded = len(total)
    unrolled = last - (last - first) % 4
    for j in range(first, unrolled, 4):
        for i in range(j + _AHEAD, min(j + _AHEAD + 4, len(sites))):
            prefetch_row(residual, sites[i])
        t, u, v, w = sites[j], sites[j + 1], sites[j + 2], sites[j + 3]
        for y in range(padded):
            begun = (total[y] + residual[t, y]) + residual[u, y]
            total[y] = (begun + residual[v, y]) + residual[w, y]
    for j in range(unrolled, last):
        # The prefetched site may be of the next sum.
        if j + _AHEAD < len(sites):
            prefetch_row(residual, sites[j + _AHEAD])
        row = residual[sites[j]]
        for y in range(padded):
            total[y] += row[y]


@inlined
def variance(residual: float, weight: float) -> float:
    """Return w p (1 - p) for a residual w p, or w p - w of the gold label; weight: w > 0."""
    mass = abs(residual)
    # Rounding may raise the mass of a label with p = 1 above its weight.
    return max(mass * (1.0 - mass / weight), 0.0)


@kernel
def bundle_curvature(
    first: int, last: int, bundles: Csr, token_weight: Floats, residual: Floats, sums: Floats
) -> None:
    """Add the variances of the labels of the tokens of bundles first:last; see `variance`.

    Clamped lattices, whose weight is negative, are left out. bundles: tokens of each; residual:
    [.., Yp]; sums: [B, Yp] float64, added to.
    """
    for bundle in range(first, last):
        variances = sums[bundle]
        for j in range(bundles.indptr[bundle], bundles.indptr[bundle + 1]):
            t = bundles.indices[j]
            weight = token_weight[t]
            if weight > 0.0:
                for y in range(len(variances)):
                    variances[y] += variance(residual[t, y], weight)


@kernel
def unigram_curvature(
    first: int,
    last: int,
    tables: Tables,
    columns: Columns,
    residual: Floats,
    of_bundles: Floats,
    curvature: Floats,
) -> None:
    """Add the variance of the unigram weights of blocks first:last: sum_t w p (1 - p).

    p is p(y_t = y). Left out are covariances between tokens of one sequence, and clamped lattices,
    whose weight is negative.

    residual: [N + B, Yp]; of_bundles: [B, Yp], see `bundle_curvature`; curvature: [K] float64,
    added to.
    """
    token_weight = tables.sequences.token_weight
    block_ptr, block_labels = tables.unigrams.block_ptr, tables.unigrams.block_labels
    sites, flat, padded = columns.col_sites, residual.reshape(-1), residual.shape[1]
    for row in range(first, last):
        column, label = columns.block_columns[row], block_labels[block_ptr[row]]
        for j in range(columns.col_ptr[column], columns.col_ptr[column + 1]):
            if j + _AHEAD < len(sites):
                prefetch(flat, sites[j + _AHEAD] * padded + label)
            site = sites[j]
            bundle = site - len(token_weight)
            for k in range(block_ptr[row], block_ptr[row + 1]):
                if bundle >= 0:
                    curvature[k] += of_bundles[bundle, block_labels[k]]
                elif token_weight[site] > 0.0:
                    curvature[k] += variance(residual[site, block_labels[k]], token_weight[site])


@kernel
def count_bundle_gold(
    first: int, last: int, bundle_tokens: Csr, sequences: Sequences, counts: Floats
) -> None:
    """Add the weights of tokens of bundles first:last to the counts [B, Yp] of gold labels."""
    for bundle in range(first, last):
        for j in range(bundle_tokens.indptr[bundle], bundle_tokens.indptr[bundle + 1]):
            t = bundle_tokens.indices[j]
            if sequences.labels[t] >= 0:
                counts[bundle, sequences.labels[t]] += sequences.token_weight[t]


@kernel
def count_gold(
    first: int, last: int, tables: Tables, columns: Columns, of_bundles: Floats, counts: Floats
) -> None:
    """Add the observed counts of the unigram weights of blocks first:last.

    of_bundles: [B, Yp], see `count_bundle_gold`; counts: [K] float64, added to.
    """
    sequences, unigrams = tables.sequences, tables.unigrams
    labels, block_ptr = sequences.labels, unigrams.block_ptr
    for row in range(first, last):
        column, begin, end = columns.block_columns[row], block_ptr[row], block_ptr[row + 1]
        weight_labels = unigrams.block_labels[begin:end]
        for j in range(columns.col_ptr[column], columns.col_ptr[column + 1]):
            site = columns.col_sites[j]
            if site >= len(labels):
                for k in range(begin, end):
                    counts[k] += of_bundles[site - len(labels), unigrams.block_labels[k]]
            elif labels[site] >= 0:
                add_at(weight_labels, labels[site], sequences.token_weight[site], counts[begin:])
