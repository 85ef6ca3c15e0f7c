"""Expected minus observed counts of pairs, and of the bigram weights that they are of.

    sum_t p(y', y) = Psi[y', y] sum_t alpha_{t-1}[y'] backward_t[y],    over the tokens of a matrix,

so that sums of outer products are multiplied by potentials once (Lavergne 2010, section 4.1).
"""

from .compiled import add_at, fill, inner, kernel
from .layout import (
    Bigrams,
    Contexts,
    ContextsOf,
    Floats,
    Ints,
    MatrixSums,
    Pairs,
    Sequences,
    Slopes,
    Tables,
    TokensBy,
    Vectors,
)
from .products import add_outer_products


@kernel
def pair_sums(
    first: int, last: int, n_labels: int, spans: Ints, tokens: Ints, vectors: Vectors, sums: Floats
) -> None:
    """Outer-product sums of token spans first:last, each into a matrix of its own.

    spans: [P, 2] int64: span p is tokens[spans[p, 0]:spans[p, 1]], none of
    which begins a sequence; sums: [P, Y + 1, Yp] float64, out (start row 0).
    """
    for p in range(first, last):
        fill(sums[p].reshape(-1), 0, sums[p].size, 0.0)
        own = tokens[spans[p, 0] : spans[p, 1]]
        add_outer_products(own, n_labels, vectors.alpha, vectors.backward, sums[p])


@inner
def add_starts(tokens: Ints, n_labels: int, backward: Floats, total: Floats) -> None:
    """total[start, y] += backward[t, y] for tokens [n] that begin sequences."""
    start = total[n_labels]
    for t in tokens:
        row = backward[t]
        for y in range(len(start)):
            start[y] += row[y]


@inner
def _subtract_gold(m: int, sequences: Sequences, tokens: TokensBy, total: Floats) -> None:
    """total[y_{t-1}, y_t] -= weight for the tokens of matrix m."""
    labels, token_weight = sequences.labels, sequences.token_weight
    for j in range(tokens.inner_ptr[m], tokens.inner_ptr[m + 1]):
        t = tokens.inner_tokens[j]
        if labels[t] >= 0:
            total[labels[t - 1], labels[t]] -= token_weight[t]
    for j in range(tokens.start_ptr[m], tokens.start_ptr[m + 1]):
        t = tokens.start_tokens[j]
        if labels[t] >= 0:
            total[sequences.n_labels, labels[t]] -= token_weight[t]


@inner
def _add_products(
    m: int, n_labels: int, of_matrix: MatrixSums, vectors: Vectors, total: Floats
) -> None:
    """Add alpha_{t-1} (x) backward_t of the tokens of matrix m to a total [Y + 1, Yp]."""
    tokens, mat_spans, sums = of_matrix
    if mat_spans[m] == mat_spans[m + 1]:
        own = tokens.inner_tokens[tokens.inner_ptr[m] : tokens.inner_ptr[m + 1]]
        add_outer_products(own, n_labels, vectors.alpha, vectors.backward, total)
    for p in range(mat_spans[m], mat_spans[m + 1]):
        for i in range(n_labels):
            for y in range(total.shape[1]):
                total[i, y] += sums[p, i, y]
    starts = tokens.start_tokens[tokens.start_ptr[m] : tokens.start_ptr[m + 1]]
    add_starts(starts, n_labels, vectors.backward, total)


@kernel
def matrix_products(
    first: int, last: int, pairs: Pairs, of_matrix: MatrixSums, vectors: Vectors, total: Floats
) -> None:
    """total[m] += sum_t alpha_{t-1} (x) backward_t over the tokens of matrices first:last.

    Constant matrices are left out; total: [M, Y + 1, Yp] float64, added to.
    """
    for m in range(first, last):
        if not pairs.contexts.constant[m]:
            _add_products(m, pairs.n_labels, of_matrix, vectors, total[m])


@kernel
def matrix_residuals(
    first: int,
    last: int,
    sequences: Sequences,
    pairs: Pairs,
    of_matrix: MatrixSums,
    vectors: Vectors,
    is_first: bool,
    total: Floats,
    residual: Floats,
) -> None:
    """Add expected minus observed pair counts of a shard's tokens, as if no context had entries.

    residual[m] += psi[m] * (sum_t alpha_{t-1} (x) backward_t) - gold pair counts, of matrices
    first:last, but constant ones. is_first: whether this is the first shard; total: [Y + 1, Yp]
    float64, a workspace; residual: [M, Y + 1, Yp] float64, overwritten by the first shard, added to
    by others.
    """
    n_labels, psi = pairs.n_labels, pairs.potentials.psi
    for m in range(first, last):
        if pairs.contexts.constant[m]:
            continue
        fill(total.reshape(-1), 0, total.size, 0.0)
        _add_products(m, n_labels, of_matrix, vectors, total)
        for i in range(n_labels + 1):
            for y in range(total.shape[1]):
                residual[m, i, y] = psi[m, i, y] * total[i, y] + (
                    0.0 if is_first else residual[m, i, y]
                )
        _subtract_gold(m, sequences, of_matrix.tokens, residual[m])


@kernel
def entry_sums(
    first: int,
    last: int,
    contexts: Contexts,
    ent_context: Ints,
    tokens: TokensBy,
    vectors: Vectors,
    sums: Floats,
) -> None:
    """Add to sums[e] alpha_{t-1}[y'] backward_t[y] of the tokens of the entry's context.

    Entries first:last, which may be a part of a context's; ent_context: [E] int32, of an entry;
    tokens: of each context; sums: [E] float64, added to.
    """
    alpha, backward = vectors.alpha, vectors.backward
    ent_previous, ent_label = contexts.ent_previous, contexts.ent_label
    e = first
    while e < last:
        c = ent_context[e]
        end = min(last, contexts.ent_ptr[c + 1])
        middle = max(e, min(last, contexts.ent_start[c]))
        for j in range(tokens.inner_ptr[c], tokens.inner_ptr[c + 1]):
            t = tokens.inner_tokens[j]
            for i in range(e, middle):
                sums[i] += alpha[t - 1, ent_previous[i]] * backward[t, ent_label[i]]
        for j in range(tokens.start_ptr[c], tokens.start_ptr[c + 1]):
            t = tokens.start_tokens[j]
            for i in range(middle, end):
                sums[i] += backward[t, ent_label[i]]
        e = end


@kernel
def settle_entries(
    first: int,
    last: int,
    pairs: Pairs,
    of_matrix: ContextsOf,
    gold: Floats,
    residual: Floats,
    sums: Floats,
) -> None:
    """Turn sums of entries into expected minus observed counts, and mend their matrices' counts.

    Of the contexts of matrices first:last: residual[m, y', y] += (value[e] - psi[m, y', y])
    sums[e], then sums[e] := value[e] sums[e] - gold[e]. gold: [E] float64, weighted gold counts of
    an entry's pair in its context.
    """
    contexts, psi, value = pairs.contexts, pairs.potentials.psi, pairs.potentials.value
    for m in range(first, last):
        for c in of_matrix.contexts[of_matrix.ptr[m] : of_matrix.ptr[m + 1]]:
            for e in range(contexts.ent_ptr[c], contexts.ent_ptr[c + 1]):
                i, y = contexts.ent_previous[e], contexts.ent_label[e]
                if not contexts.constant[m]:
                    residual[m, i, y] += (value[e] - psi[m, i, y]) * sums[e]
                sums[e] = value[e] * sums[e] - gold[e]


@kernel
def settle_changes(
    first: int,
    last: int,
    pairs: Pairs,
    of_matrix: ContextsOf,
    slopes: Slopes,
    counts: Floats,
    ent_counts: Floats,
    total: Floats,
    sums: Floats,
) -> None:
    """Turn sums of products into derivatives of expected pair counts along a direction, in place.

    total[m] := psi[m] (total[m] + slope[m] counts[m]), and likewise sums[e] of entries, by which
    their matrices are mended. Of matrices first:last, and their contexts; counts, total: [M, Y + 1,
    Yp] sums of products of the vectors, and of their changes (see `tangents`); ent_counts, sums:
    [E], the same of entries.
    """
    contexts, psi, value = pairs.contexts, pairs.potentials.psi, pairs.potentials.value
    slope = slopes.psi
    for m in range(first, last):
        if not contexts.constant[m]:
            for i in range(total.shape[1]):
                for y in range(total.shape[2]):
                    total[m, i, y] = psi[m, i, y] * (
                        total[m, i, y] + slope[m, i, y] * counts[m, i, y]
                    )
        for c in of_matrix.contexts[of_matrix.ptr[m] : of_matrix.ptr[m + 1]]:
            for e in range(contexts.ent_ptr[c], contexts.ent_ptr[c + 1]):
                i, y = contexts.ent_previous[e], contexts.ent_label[e]
                changed = value[e] * (sums[e] + slopes.score[e] * ent_counts[e])
                if not contexts.constant[m]:
                    total[m, i, y] += changed - psi[m, i, y] * (
                        sums[e] + slope[m, i, y] * ent_counts[e]
                    )
                sums[e] = changed


@kernel
def count_entries(
    sequences: Sequences, contexts: Contexts, tokens: TokensBy, padded: int, gold: Floats
) -> None:
    """Add to gold[e] the weights of the tokens of a context whose gold pair is the entry's.

    tokens: of each context; padded: Yp; gold: [E] float64.
    """
    labels, token_weight, ent_ptr = sequences.labels, sequences.token_weight, contexts.ent_ptr
    for c in range(len(ent_ptr) - 1):
        places = contexts.ent_place[ent_ptr[c] : ent_ptr[c + 1]]
        if len(places) == 0:
            continue
        counts = gold[ent_ptr[c] : ent_ptr[c + 1]]
        for j in range(tokens.inner_ptr[c], tokens.inner_ptr[c + 1]):
            t = tokens.inner_tokens[j]
            if labels[t] >= 0:
                add_at(places, labels[t - 1] * padded + labels[t], token_weight[t], counts)
        for j in range(tokens.start_ptr[c], tokens.start_ptr[c + 1]):
            t = tokens.start_tokens[j]
            if labels[t] >= 0:
                place = sequences.n_labels * padded + labels[t]
                add_at(places, place, token_weight[t], counts)


@kernel
def gather_bigrams(
    first: int,
    last: int,
    n_labels: int,
    bigrams: Bigrams,
    col_ptr: Ints,
    col_matrices: Ints,
    residual: Floats,
    weight_ptr: Ints,
    weight_entries: Ints,
    entry_residual: Floats,
    gradient: Floats,
) -> None:
    """Gradient of the bigram weights of rows first:last, over matrices and entries.

    col_ptr, col_matrices: CSC, matrices that contain a row; residual: [M, Y + 1, Yp] as
    `matrix_residuals` leaves it; weight_ptr, weight_entries: CSR, entries of a weight;
    entry_residual: [E]; gradient: [K] float64, out.
    """
    row_ptr = bigrams.row_ptr
    for row in range(first, last):
        begin, end = row_ptr[row], row_ptr[row + 1]
        fill(gradient, begin, end, 0.0)
        for j in range(col_ptr[row], col_ptr[row + 1]):
            matrix = residual[col_matrices[j]]
            if end - begin == bigrams.n_previous * n_labels:
                full = gradient[begin:end].reshape(-1, n_labels)
                for i in range(len(full)):
                    for y in range(n_labels):
                        full[i, y] += matrix[i, y]
            else:
                flat = matrix.reshape(-1)
                for k in range(begin, end):
                    gradient[k] += flat[bigrams.row_places[k]]
        if len(weight_entries) == 0:
            continue
        for k in range(begin, end):
            for j in range(weight_ptr[k], weight_ptr[k + 1]):
                gradient[k] += entry_residual[weight_entries[j]]


@kernel
def count_gold_pairs(tables: Tables, padded: int, counts: Floats) -> None:
    """Add to the counts [K] of bigram weights the weights of tokens with their pair of labels.

    padded: Yp.
    """
    sequences, bigrams, context_rows = tables.sequences, tables.bigrams, tables.context_rows
    labels, offsets = sequences.labels, sequences.offsets
    for s in range(len(offsets) - 1):
        for t in range(offsets[s], offsets[s + 1]):
            if labels[t] < 0:
                continue
            before = sequences.n_labels if t == offsets[s] else labels[t - 1]
            c = context_rows.context[t]
            for row in context_rows.rows[context_rows.ptr[c] : context_rows.ptr[c + 1]]:
                begin, end = bigrams.row_ptr[row], bigrams.row_ptr[row + 1]
                place = before * padded + labels[t]
                add_at(bigrams.row_places[begin:end], place, sequences.weights[s], counts[begin:])
