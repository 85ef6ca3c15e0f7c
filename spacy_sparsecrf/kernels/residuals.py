"""Residuals of single sequences: expected minus observed labels and pairs, and sums of them.

Pairs of a sequence are kept summed over its tokens of one context, a *group*, whose tests and
potentials are the same. The pairs of its first token with the start label are its labels.
"""

from typing import Any

import numpy as np

from .compiled import inner, kernel
from .expectations import add_outer_products
from .memory import fill


@inner
def add_labels(
    weight: float, labels: np.ndarray, marginals: np.ndarray, residual: np.ndarray
) -> None:
    """residual[t, y] += weight (p(y_t = y) - [y_t = y]) for the tokens of a sequence.

    labels: [T], -1 = none observed; marginals: [T, Yp]; residual: [>= T, Yp], added to.
    """
    for t in range(len(labels)):
        for y in range(marginals.shape[1]):
            residual[t, y] += weight * marginals[t, y]
        if labels[t] >= 0:
            residual[t, labels[t]] -= weight


@inner
def add_pairs(
    weight: float,
    first: int,
    last: int,
    grp_ptr: np.ndarray,
    grp_tokens: np.ndarray,
    n_labels: int,
    labels: np.ndarray,
    context: np.ndarray,
    matrix_of: np.ndarray,
    psi: np.ndarray,
    ent_ptr: np.ndarray,
    ent_start: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    value: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    products: np.ndarray,
    residual: np.ndarray,
) -> None:
    """Add weight times expected minus observed pairs of a sequence's groups first:last.

    grp_ptr, grp_tokens: CSR of a group's tokens, which count from the sequence's first, 0, and
    none of which is 0; products: [Y, Yp] workspace; residual: [last - first, Y, Yp], added to. The
    others: see `forward_backward`, of one sequence with weight 1.
    """
    for g in range(first, last):
        begin, end = grp_ptr[g], grp_ptr[g + 1]
        fill(products.reshape(-1), 0, products.size, 0.0)
        add_outer_products(grp_tokens, begin, end, n_labels, alpha, backward, products)
        c = context[grp_tokens[begin]]
        matrix, total = psi[matrix_of[c]], residual[g - first]
        for i in range(n_labels):
            for y in range(total.shape[1]):
                total[i, y] += weight * matrix[i, y] * products[i, y]
        for e in range(ent_ptr[c], ent_start[c]):
            i, y = ent_previous[e], ent_label[e]
            total[i, y] += weight * (value[e] - matrix[i, y]) * products[i, y]
        for j in range(begin, end):
            t = grp_tokens[j]
            if labels[t] >= 0:
                total[labels[t - 1], labels[t]] -= weight


@inner
def exchange(fresh: np.ndarray, stored: np.ndarray) -> None:
    """Store what is fresh and leave the differences to what was stored; both: [n], flat."""
    for i in range(len(fresh)):
        old = float(stored[i])
        stored[i] = fresh[i]
        # What was stored may have been rounded.
        fresh[i] = stored[i] - old


@inner
def _scatter_pairs(
    row: int,
    n_labels: int,
    n_previous: int,
    row_ptr: np.ndarray,
    row_places: np.ndarray,
    residual: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Add residuals [Y, Yp] to the weights of a bigram row, pairs with the start label left out."""
    begin, end = row_ptr[row], row_ptr[row + 1]
    if end - begin == n_previous * n_labels:
        full = sums[begin : begin + n_labels * n_labels].reshape(-1, n_labels)
        for i in range(n_labels):
            for y in range(n_labels):
                full[i, y] += residual[i, y]
        return
    flat = residual.reshape(-1)
    for k in range(begin, end):
        if row_places[k] < len(flat):
            sums[k] += flat[row_places[k]]


@inner
def scatter_sequence(
    n_labels: int,
    n_previous: int,
    tok_ptr: np.ndarray,
    tok_rows: np.ndarray,
    row_ptr: np.ndarray,
    row_labels: np.ndarray,
    grp_context: np.ndarray,
    start_context: int,
    ctx_ptr: np.ndarray,
    ctx_rows: np.ndarray,
    pair_ptr: np.ndarray,
    pair_places: np.ndarray,
    labels: np.ndarray,
    pairs: np.ndarray,
    unigram: np.ndarray,
    bigram: np.ndarray,
) -> None:
    """Add the gradient of a sequence, from its residuals, to sums by weight.

    tok_ptr [T + 1], tok_rows: CSR of its tokens' unigram rows; grp_context: [G] of its groups;
    start_context: of its first token; ctx_ptr, ctx_rows: CSR, bigram rows of a context; row_ptr,
    row_labels, pair_ptr, pair_places: weights of a row; labels: [T, Yp], pairs: [G, Y, Yp],
    residuals; unigram, bigram: [weights], added to.
    """
    for t in range(len(tok_ptr) - 1):
        residual = labels[t]
        for j in range(tok_ptr[t], tok_ptr[t + 1]):
            begin, end = row_ptr[tok_rows[j]], row_ptr[tok_rows[j] + 1]
            if end - begin == n_labels:
                full = unigram[begin:end]
                for y in range(n_labels):
                    full[y] += residual[y]
            else:
                for k in range(begin, end):
                    unigram[k] += residual[row_labels[k]]
    for g in range(len(grp_context)):
        c = grp_context[g]
        for j in range(ctx_ptr[c], ctx_ptr[c + 1]):
            _scatter_pairs(
                ctx_rows[j], n_labels, n_previous, pair_ptr, pair_places, pairs[g], bigram
            )
    base = n_labels * labels.shape[1]
    for j in range(ctx_ptr[start_context], ctx_ptr[start_context + 1]):
        row = ctx_rows[j]
        k = pair_ptr[row + 1] - 1
        # Pairs with the start label come last.
        while k >= pair_ptr[row] and pair_places[k] >= base:
            bigram[k] += labels[0, pair_places[k] - base]
            k -= 1


@kernel
def rows_of_sequences(
    offsets: np.ndarray,
    tok_ptr: np.ndarray,
    tok_rows: np.ndarray,
    context: np.ndarray,
    ctx_ptr: np.ndarray,
    ctx_rows: np.ndarray,
    n_unigram: int,
    stamp: np.ndarray,
    seq_ptr: np.ndarray,
    seq_rows: np.ndarray,
) -> None:
    """List the rows that each sequence has, once each, bigram rows after the n_unigram others.

    stamp: [rows] int64 workspace; seq_ptr: [n + 1] int64, out; seq_rows: [all] int32, out, or
    empty only to count.
    """
    found = 0
    for row in range(len(stamp)):
        stamp[row] = -1
    for s in range(len(seq_ptr) - 1):
        for t in range(offsets[s], offsets[s + 1]):
            c = context[t]
            n_own = tok_ptr[t + 1] - tok_ptr[t]
            for j in range(n_own + ctx_ptr[c + 1] - ctx_ptr[c]):
                listed: Any = np.int64(n_unigram)
                if j < n_own:
                    listed = np.int64(tok_rows[tok_ptr[t] + j])
                else:
                    listed += ctx_rows[ctx_ptr[c] + j - n_own]
                if stamp[listed] != s:
                    stamp[listed] = s
                    if len(seq_rows) > 0:
                        seq_rows[found] = listed
                    found += 1
        seq_ptr[s + 1] = found
