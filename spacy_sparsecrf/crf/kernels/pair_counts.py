"""Expected minus observed counts of label pairs, and of their bigram weights.

    sum_t p(y', y) = Psi[y', y] sum_t alpha_{t-1}[y'] backward_t[y],    over tokens that share Psi

(Lavergne 2010, section 4.1). All counts are computed in the same steps, over the tokens of a shard
or over a run of tokens of one example:

1. `add_products`, `add_correction_products`: sum outer products, for a matrix and for corrections;
2. multiply the sums by the potentials of the matrix;
3. `settle_context`: replace the counts of the matrix where a context has sparse corrections;
4. subtract the observed pairs: from the gathered counts, or for one example by `subtract_gold`.

Derivatives of counts along a direction (see `tangents`) use the same sums, of products of the
vectors and of products with their changes. `settle_matrix_change` and `settle_context_changes`
combine them.
"""

from .layout import (
    Bigrams,
    Contexts,
    ContextsOf,
    Floats,
    Ints,
    MatrixSums,
    Pairs,
    Slopes,
    Tables,
    TokensBy,
    Vectors,
)
from .numba_support import inlined, kernel
from .products import add_outer_products
from .small import add_at, fill


@inlined
def add_products(
    tokens: Ints, starts: Ints, n_labels: int, alpha: Floats, backward: Floats, total: Floats
) -> None:
    """total[y', y] += alpha[t - 1, y'] backward[t, y], and total[start, y] += backward[t, y].

    tokens: [n], each continues a sequence; starts: [m], each begins a sequence; total: [Y + 1, Yp]
    float64, or [Y, Yp] without starts.
    """
    add_outer_products(tokens, n_labels, alpha, backward, total)
    for t in starts:
        row, start = backward[t], total[n_labels]
        for y in range(len(start)):
            start[y] += row[y]


@inlined
def add_correction_products(
    tokens: Ints,
    begins: bool,
    first: int,
    last: int,
    contexts: Contexts,
    alpha: Floats,
    backward: Floats,
    sums: Floats,
) -> None:
    """sums[e - first] += alpha[t - 1, y'] backward[t, y] for the pairs of corrections first:last.

    tokens: [n]; begins: whether all (then only backward[t, y] is summed) or none begin a sequence.
    """
    previous, label = contexts.corr_previous, contexts.corr_label
    for t in tokens:
        for e in range(first, last):
            y = label[e]
            sums[e - first] += (
                backward[t, y] if begins else alpha[t - 1, previous[e]] * backward[t, y]
            )


@inlined
def corrections_of(t: int, c: int, contexts: Contexts) -> tuple[int, int]:
    """Return the corrections of context c at token t of a sequence: at t = 0, of the start row."""
    if t == 0:
        return contexts.corr_start[c], contexts.corr_ptr[c + 1]
    return contexts.corr_ptr[c], contexts.corr_start[c]


@inlined
def settle_context(
    first: int,
    last: int,
    m: int,
    contexts: Contexts,
    psi: Floats,
    value: Floats,
    residual: Floats,
    sums: Floats,
) -> None:
    """Multiply sums of corrections first:last by potentials, and correct the counts of a matrix.

    residual[y', y] += (value[e] - psi[y', y]) sums, unless the matrix m is constant; then
    sums[e - first] *= value[e]. psi, residual: [Y + 1, Yp], of matrix m.
    """
    for e in range(first, last):
        i, y = contexts.corr_previous[e], contexts.corr_label[e]
        if not contexts.constant[m]:
            residual[i, y] += (value[e] - psi[i, y]) * sums[e - first]
        sums[e - first] *= value[e]


@inlined
def subtract_gold(t: int, begins: bool, labels: Ints, weight: float, total: Floats) -> None:
    """Subtract a weight from a total at the gold pair of token t, if its label is known.

    begins: whether t begins a sequence; its pair is then in the last row; total: [Y + 1, Yp], or
    [Y, Yp] if t does not begin a sequence.
    """
    if labels[t] >= 0:
        previous = len(total) - 1 if begins else labels[t - 1]
        total[previous, labels[t]] -= weight


@kernel
def pair_sums(
    first: int, last: int, n_labels: int, spans: Ints, tokens: Ints, vectors: Vectors, sums: Floats
) -> None:
    """Sum outer products over token spans first:last, each into its own matrix.

    spans: [P, 2] int64: span p is tokens[spans[p, 0]:spans[p, 1]], without tokens that begin a
    sequence; sums: [P, Y + 1, Yp] float64, out (start row 0).
    """
    for p in range(first, last):
        fill(sums[p].reshape(-1), 0, sums[p].size, 0.0)
        span = tokens[spans[p, 0] : spans[p, 1]]
        add_outer_products(span, n_labels, vectors.alpha, vectors.backward, sums[p])


@inlined
def _add_matrix_products(
    m: int, n_labels: int, of_matrix: MatrixSums, vectors: Vectors, total: Floats
) -> None:
    """Add alpha_{t-1} (x) backward_t of the tokens of matrix m to a total [Y + 1, Yp]."""
    tokens, mat_spans, sums = of_matrix
    inner = tokens.inner_tokens[tokens.inner_ptr[m] : tokens.inner_ptr[m + 1]]
    starts = tokens.start_tokens[tokens.start_ptr[m] : tokens.start_ptr[m + 1]]
    for p in range(mat_spans[m], mat_spans[m + 1]):
        for i in range(n_labels):
            for y in range(total.shape[1]):
                total[i, y] += sums[p, i, y]
    if mat_spans[m] < mat_spans[m + 1]:
        inner = inner[:0]
    add_products(inner, starts, n_labels, vectors.alpha, vectors.backward, total)


@kernel
def matrix_products(
    first: int, last: int, pairs: Pairs, of_matrix: MatrixSums, vectors: Vectors, total: Floats
) -> None:
    """total[m] += sum_t alpha_{t-1} (x) backward_t over the tokens of matrices first:last.

    Constant matrices are left out; total: [M, Y + 1, Yp] float64, added to.
    """
    for m in range(first, last):
        if not pairs.contexts.constant[m]:
            _add_matrix_products(m, pairs.n_labels, of_matrix, vectors, total[m])


@kernel
def correction_sums(
    first: int,
    last: int,
    contexts: Contexts,
    corr_context: Ints,
    tokens: TokensBy,
    vectors: Vectors,
    sums: Floats,
) -> None:
    """Add alpha_{t-1}[y'] backward_t[y] to sums[e], over the tokens of the context of e.

    e is in first:last, which may cut the corrections of a context; corr_context: [E] int32; tokens:
    of each context; sums: [E] float64, added to.
    """
    e, alpha, backward = first, vectors.alpha, vectors.backward
    while e < last:
        c = corr_context[e]
        end = min(last, contexts.corr_ptr[c + 1])
        middle = max(e, min(last, contexts.corr_start[c]))
        inner = tokens.inner_tokens[tokens.inner_ptr[c] : tokens.inner_ptr[c + 1]]
        add_correction_products(inner, False, e, middle, contexts, alpha, backward, sums[e:middle])
        starts = tokens.start_tokens[tokens.start_ptr[c] : tokens.start_ptr[c + 1]]
        add_correction_products(
            starts, True, middle, end, contexts, alpha, backward, sums[middle:end]
        )
        e = end


@kernel
def settle_counts(
    first: int, last: int, pairs: Pairs, of_matrix: ContextsOf, total: Floats, sums: Floats
) -> None:
    """Turn sums of products into expected pair counts, in place.

    total[m, y', y] *= psi[m, y', y] for matrices first:last, except constant ones. For the
    corrections of their contexts, sums[e] *= value[e], and the totals are corrected. total: [M,
    Y + 1, Yp]; sums: [E].
    """
    contexts, psi, value = pairs.contexts, pairs.potentials.psi, pairs.potentials.value
    for m in range(first, last):
        if not contexts.constant[m]:
            for i in range(total.shape[1]):
                for y in range(total.shape[2]):
                    total[m, i, y] *= psi[m, i, y]
        for c in of_matrix.contexts[of_matrix.ptr[m] : of_matrix.ptr[m + 1]]:
            e, end = contexts.corr_ptr[c], contexts.corr_ptr[c + 1]
            settle_context(e, end, m, contexts, psi[m], value, total[m], sums[e:end])


@inlined
def settle_matrix_change(psi: Floats, slope: Floats, counts: Floats, total: Floats) -> None:
    """total[y', y] := psi (total + slope counts), all [Y + 1, Yp]; see `settle_changes`."""
    for i in range(total.shape[0]):
        for y in range(total.shape[1]):
            total[i, y] = psi[i, y] * (total[i, y] + slope[i, y] * counts[i, y])


@inlined
def settle_context_changes(
    first: int,
    last: int,
    m: int,
    pairs: Pairs,
    slopes: Slopes,
    counts: Floats,
    total: Floats,
    sums: Floats,
) -> None:
    """Apply `settle_matrix_change` to corrections first:last, and correct the total.

    counts, sums: [last - first]; total: [Y + 1, Yp], of matrix m.
    """
    contexts, value, score = pairs.contexts, pairs.potentials.value, slopes.score
    psi, slope = pairs.potentials.psi[m], slopes.psi[m]
    for e in range(first, last):
        i, y = contexts.corr_previous[e], contexts.corr_label[e]
        count, product_sum = counts[e - first], sums[e - first]
        changed = value[e] * (product_sum + score[e] * count)
        if not contexts.constant[m]:
            total[i, y] += changed - psi[i, y] * (product_sum + slope[i, y] * count)
        sums[e - first] = changed


@kernel
def settle_changes(
    first: int,
    last: int,
    pairs: Pairs,
    of_matrix: ContextsOf,
    slopes: Slopes,
    counts: Floats,
    corr_counts: Floats,
    total: Floats,
    sums: Floats,
) -> None:
    """Turn sums of products into derivatives of expected pair counts along a direction, in place.

    total[m] := psi[m] (total[m] + slope[m] counts[m]) for matrices first:last. The same holds for
    sums[e] of the corrections of their contexts, which also correct the totals. counts, total:
    [M, Y + 1, Yp], sums of products of the vectors, and of their changes (see `tangents`);
    corr_counts, sums: [E], the same for corrections.
    """
    contexts, psi, slope = pairs.contexts, pairs.potentials.psi, slopes.psi
    for m in range(first, last):
        if not contexts.constant[m]:
            settle_matrix_change(psi[m], slope[m], counts[m], total[m])
        for c in of_matrix.contexts[of_matrix.ptr[m] : of_matrix.ptr[m + 1]]:
            e, end = contexts.corr_ptr[c], contexts.corr_ptr[c + 1]
            settle_context_changes(
                e, end, m, pairs, slopes, corr_counts[e:end], total[m], sums[e:end]
            )


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
    weight_corrections: Ints,
    correction_residual: Floats,
    gradient: Floats,
) -> None:
    """Gather numbers of the bigram weights of blocks first:last from matrices and corrections.

    col_ptr, col_matrices: CSC, matrices that contain a block; residual: [M, Y + 1, Yp]; weight_ptr,
    weight_corrections: CSR, corrections of a weight; correction_residual: [E]; gradient: [K]
    float64, out.
    """
    block_ptr = bigrams.block_ptr
    for row in range(first, last):
        begin, end = block_ptr[row], block_ptr[row + 1]
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
                    gradient[k] += flat[bigrams.block_places[k]]
        if len(weight_corrections) == 0:
            continue
        for k in range(begin, end):
            for j in range(weight_ptr[k], weight_ptr[k + 1]):
                gradient[k] += correction_residual[weight_corrections[j]]


@kernel
def count_gold_pairs(tables: Tables, padded: int, counts: Floats) -> None:
    """Add the weights of tokens to the counts [K] of the bigram weights of their gold pairs.

    padded: Yp.
    """
    sequences, bigrams, context_blocks = tables.sequences, tables.bigrams, tables.context_blocks
    labels, offsets = sequences.labels, sequences.offsets
    for s in range(len(offsets) - 1):
        for t in range(offsets[s], offsets[s + 1]):
            if labels[t] < 0:
                continue
            previous = sequences.n_labels if t == offsets[s] else labels[t - 1]
            c = context_blocks.context[t]
            for row in context_blocks.blocks[context_blocks.ptr[c] : context_blocks.ptr[c + 1]]:
                begin, end = bigrams.block_ptr[row], bigrams.block_ptr[row + 1]
                pair = previous * padded + labels[t]
                add_at(bigrams.block_places[begin:end], pair, sequences.weights[s], counts[begin:])
