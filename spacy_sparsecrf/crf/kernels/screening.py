"""Screening: compute gradients of inactive weights, and return gradients beyond a threshold.

For bigram weights, only label pairs that can have a large gradient are computed.
"""

from typing import NamedTuple

import numpy as np

from .expectations import add_rows
from .layout import ContextsOf, Floats, Ints, Pairs, Sequences, TokensBy, Vectors
from .numba_support import inlined, kernel
from .simd import multiply_add
from .small import fill


class Chosen(NamedTuple):
    """The label pairs computed for each feature: each label of `rows` with each of `columns`.

    row_ptr [features + 1] int64, rows uint16, column_ptr, columns: CSR, previous labels and labels
    of a feature, ascending; area_ptr: [features + 1] int64, position of the pairs of a feature.
    """

    row_ptr: Ints
    rows: Ints
    column_ptr: Ints
    columns: Ints
    area_ptr: Ints


@kernel
def screen_labels(
    first: int,
    last: int,
    n_labels: int,
    col_ptr: Ints,
    col_sites: Ints,
    residual: Floats,
    threshold: float,
    row: Floats,
    coordinates: Ints,
    gradients: Floats,
) -> int:
    """Collect the unigram weights of features first:last with |gradient| > threshold.

    col_ptr, col_sites: CSC, sites of a feature; residual: [N + B, Yp]; row: [Yp] float64, a
    workspace; coordinates (int64, feature * Y + y) and gradients (float64): [(last - first) * Y],
    out. RETURNS: their number.
    """
    n_screened = 0
    for feature in range(first, last):
        fill(row, 0, len(row), 0.0)
        add_rows(residual, col_sites, col_ptr[feature], col_ptr[feature + 1], row)
        for y in range(n_labels):
            if abs(row[y]) > threshold:
                coordinates[n_screened] = feature * n_labels + y
                gradients[n_screened] = row[y]
                n_screened += 1
    return n_screened


@inlined
def _add_mass(
    t: int, residual: Floats, labels: Ints, weight: float, up: Floats, down: Floats
) -> None:
    """Add the expected and observed label counts of a token to bounds of either sign.

    A residual is the weighted marginal minus the weight of the gold label. In a clamped lattice, it
    is the negative marginal, without a gold label.
    """
    if weight > 0.0:
        for y in range(residual.shape[1]):
            up[y] += residual[t, y]
        if labels[t] >= 0:
            up[labels[t]] += weight
            down[labels[t]] += weight
    else:
        for y in range(residual.shape[1]):
            down[y] -= residual[t, y]


@kernel
def add_counts(
    first: int,
    last: int,
    counts: Floats,
    features: ContextsOf,
    tokens: TokensBy,
    sequences: Sequences,
    residual: Floats,
) -> None:
    """Add expected and observed counts of labels before and at the tokens of features first:last.

    counts: [last - first, 4, Yp + 1] float64, added to: expected and observed before tokens (start
    label last), expected and observed at tokens. Expectations of clamped lattices count as
    observed. tokens: of contexts, in one shard; sequences: of the shard; residual: [n, Yp].
    """
    inner_ptr, inner_tokens, start_ptr, start_tokens = tokens
    labels, token_weight, n_labels = sequences.labels, sequences.token_weight, sequences.n_labels
    for feature in range(first, last):
        sums = counts[feature - first]
        for j in range(features.ptr[feature], features.ptr[feature + 1]):
            c = features.contexts[j]
            for k in range(inner_ptr[c], inner_ptr[c + 1]):
                t = inner_tokens[k]
                weight = token_weight[t]
                _add_mass(t, residual, labels, weight, sums[2], sums[3])
                _add_mass(t - 1, residual, labels, weight, sums[0], sums[1])
            for k in range(start_ptr[c], start_ptr[c + 1]):
                t = start_tokens[k]
                weight = token_weight[t]
                _add_mass(t, residual, labels, weight, sums[2], sums[3])
                if weight > 0.0:
                    sums[0, n_labels] += weight
                    sums[1, n_labels] += weight


class Area(NamedTuple):
    """The chosen pairs of one feature, and the position of each label among them.

    previous, at: labels before and at its tokens; row_place: [Y + 1], column_place: [Y] int32,
    position of a label there, -1 = none; products, total: [previous, at] float64; packed: [4, Y],
    workspace.
    """

    previous: Ints
    at: Ints
    row_place: Ints
    column_place: Ints
    products: Floats
    total: Floats
    packed: Floats


@inlined
def _add_products(tokens: Ints, rows: Ints, vectors: Vectors, area: Area) -> None:
    """products[i, k] += sum over tokens of alpha[t - 1, rows[i]] backward[t, at[k]].

    rows: the labels before the tokens of an area, without the start label.
    """
    alpha, backward, columns = vectors.alpha, vectors.backward, area.at
    packed, total, n = area.packed, area.products, len(area.at)
    unrolled = len(tokens) - len(tokens) % 4
    for j in range(0, unrolled, 4):
        t, u, v, w = tokens[j], tokens[j + 1], tokens[j + 2], tokens[j + 3]
        for k in range(n):
            y = columns[k]
            packed[0, k], packed[1, k] = backward[t, y], backward[u, y]
            packed[2, k], packed[3, k] = backward[v, y], backward[w, y]
        for i in range(len(rows)):
            y = rows[i]
            a, b, c, d = alpha[t - 1, y], alpha[u - 1, y], alpha[v - 1, y], alpha[w - 1, y]
            for k in range(n):
                total[i, k] += multiply_add(a, packed[0, k], b * packed[1, k]) + multiply_add(
                    c, packed[2, k], d * packed[3, k]
                )
    for j in range(unrolled, len(tokens)):
        t = tokens[j]
        for k in range(n):
            packed[0, k] = backward[t, columns[k]]
        for i in range(len(rows)):
            a = alpha[t - 1, rows[i]]
            for k in range(n):
                total[i, k] = multiply_add(a, packed[0, k], total[i, k])


@inlined
def _weigh(c: int, pairs: Pairs, area: Area) -> None:
    """Add Psi of context c times the products to the total of an area, and clear the products."""
    contexts, potentials = pairs.contexts, pairs.potentials
    psi, products, total = potentials.psi[contexts.matrix_of[c]], area.products, area.total
    for e in range(contexts.corr_ptr[c], contexts.corr_ptr[c + 1]):
        previous, label = contexts.corr_previous[e], contexts.corr_label[e]
        i, k = area.row_place[previous], area.column_place[label]
        if i >= 0 and k >= 0:
            change = potentials.value[e] - psi[previous, label]
            total[i, k] += change * products[i, k]
    for i in range(len(area.previous)):
        for k in range(len(area.at)):
            total[i, k] += psi[area.previous[i], area.at[k]] * products[i, k]
            products[i, k] = 0.0


@inlined
def _subtract_gold(tokens: Ints, begins: bool, sequences: Sequences, area: Area) -> None:
    """Subtract the weights of tokens from the total of an area at their gold pairs."""
    labels = sequences.labels
    for t in tokens:
        if labels[t] >= 0:
            i = area.row_place[sequences.n_labels if begins else labels[t - 1]]
            k = area.column_place[labels[t]]
            if i >= 0 and k >= 0:
                area.total[i, k] -= sequences.token_weight[t]


@inlined
def _add_context(
    c: int, tokens: TokensBy, sequences: Sequences, vectors: Vectors, area: Area
) -> None:
    """Add the tokens of context c to the products of an area, and subtract their gold pairs."""
    previous, at, has_start = area.previous, area.at, area.row_place[sequences.n_labels] >= 0
    inner_labels = previous[:-1] if has_start else previous
    inner = tokens.inner_tokens[tokens.inner_ptr[c] : tokens.inner_ptr[c + 1]]
    _add_products(inner, inner_labels, vectors, area)
    _subtract_gold(inner, False, sequences, area)
    starts = tokens.start_tokens[tokens.start_ptr[c] : tokens.start_ptr[c + 1]]
    if has_start:
        for t in starts:
            for k in range(len(at)):
                area.products[len(inner_labels), k] += vectors.backward[t, at[k]]
    _subtract_gold(starts, True, sequences, area)


@kernel(allocates=True)
def add_chosen_pairs(
    first: int,
    last: int,
    chosen: Chosen,
    features: ContextsOf,
    active: Ints,
    pairs: Pairs,
    tokens: TokensBy,
    sequences: Sequences,
    vectors: Vectors,
    totals: Floats,
) -> None:
    """Add expected minus observed counts of the chosen pairs of features first:last, of one shard.

    features: contexts of a feature, sorted by active context; active: [C] int32, context in `pairs`
    of each context; tokens: of a context, in the shard; sequences, vectors: of the shard; totals:
    float64, all areas, added to.
    """
    n_labels = pairs.n_labels
    row_place = np.full(n_labels + 1, -1, np.int32)
    column_place = np.full(n_labels, -1, np.int32)
    packed = np.zeros((4, n_labels), vectors.backward.dtype)
    space = np.zeros((n_labels + 1) * n_labels)
    for feature in range(first, last):
        begin, end = chosen.area_ptr[feature], chosen.area_ptr[feature + 1]
        if begin == end:
            continue
        previous = chosen.rows[chosen.row_ptr[feature] : chosen.row_ptr[feature + 1]]
        at = chosen.columns[chosen.column_ptr[feature] : chosen.column_ptr[feature + 1]]
        for i in range(len(previous)):
            row_place[previous[i]] = i
        for k in range(len(at)):
            column_place[at[k]] = k
        total = totals[begin:end].reshape((len(previous), len(at)))
        products = space[: end - begin].reshape((len(previous), len(at)))
        area = Area(previous, at, row_place, column_place, products, total, packed)
        for j in range(features.ptr[feature], features.ptr[feature + 1]):
            c = features.contexts[j]
            _add_context(c, tokens, sequences, vectors, area)
            is_last = j + 1 == features.ptr[feature + 1]
            if is_last or active[features.contexts[j + 1]] != active[c]:
                _weigh(active[c], pairs, area)
        for i in range(len(previous)):
            row_place[previous[i]] = -1
        for k in range(len(at)):
            column_place[at[k]] = -1
