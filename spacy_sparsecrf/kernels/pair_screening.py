"""Screening of bigram weights: only those pairs of labels that can have a large gradient."""

import numpy as np

from .compiled import inner, kernel
from .memory import lent


@inner
def _add_mass(
    t: int,
    residual: np.ndarray,
    labels: np.ndarray,
    weight: float,
    up: np.ndarray,
    down: np.ndarray,
) -> None:
    """Add a token's expected and observed counts of labels to bounds of either sign.

    A residual is the weighted marginal less the gold label's weight; that of a constrained copy
    is negative, and it has no gold label.
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


@inner
def _choose(
    up: np.ndarray, down: np.ndarray, n: int, slack: float, threshold: float, chosen: np.ndarray
) -> int:
    """List the labels of which either bound, with room for rounding, exceeds a threshold."""
    found = 0
    for y in range(n):
        if max(up[y], down[y]) + slack * (up[y] + down[y]) > threshold:
            chosen[found] = y
            found += 1
    return found


@kernel
def add_counts(
    first: int,
    last: int,
    n_labels: int,
    test_ptr: np.ndarray,
    test_contexts: np.ndarray,
    inner_ptr: np.ndarray,
    inner_tokens: np.ndarray,
    start_ptr: np.ndarray,
    start_tokens: np.ndarray,
    labels: np.ndarray,
    token_weight: np.ndarray,
    residual: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Add a block's expected and observed counts of labels before and at the tokens of tests.

    first, last: the tests; test_ptr, test_contexts: CSC, contexts of a test; inner_*, start_*: CSR
    of a context's tokens in the block; labels, token_weight: [n]; residual: [n, Yp]; counts:
    [last - first, 4, Yp + 1] float64, added to: expected and observed before (start last), expected
    and observed at tokens. With copies of sequences, what these expect is observed.
    """
    residual, inner_tokens = lent(residual), lent(inner_tokens)
    for test in range(first, last):
        sums = counts[test - first]
        for j in range(test_ptr[test], test_ptr[test + 1]):
            c = test_contexts[j]
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
                    # Of a sequence without a gold label too, whose copy says the same.
                    sums[1, n_labels] += weight


@kernel
def choose_labels(
    n_labels: int,
    counts: np.ndarray,
    slack: float,
    threshold: float,
    n_rows: np.ndarray,
    rows: np.ndarray,
    n_columns: np.ndarray,
    columns: np.ndarray,
) -> None:
    """Choose the labels, of some tests, whose pairs can have |gradient| > a threshold.

    The gradient of (o, y', y) is E - O, expected less observed counts, none of which is negative
    or more than those of y' before tokens with o, or than those of y at them: |gradient| <=
    max(min(E[y'], E[y]), min(O[y'], O[y])).

    counts: [n, 4, Yp + 1], see `add_counts`; slack: relative room for rounding; n_rows, n_columns:
    [n] int64, out, how many labels before and at tokens; rows, columns: [n * (Y + 1)] uint16, out,
    these labels, ascending, without gaps.
    """
    row_end, column_end = 0, 0
    for i in range(len(counts)):
        sums = counts[i]
        n = _choose(sums[0], sums[1], n_labels + 1, slack, threshold, rows[row_end:])
        n_rows[i] = n
        row_end += n
        n = _choose(sums[2], sums[3], n_labels, slack, threshold, columns[column_end:])
        n_columns[i] = n
        column_end += n


@inner(fastmath={"contract"})
def _add_products(
    tokens: np.ndarray,
    first: int,
    last: int,
    rows: np.ndarray,
    columns: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    packed: np.ndarray,
    total: np.ndarray,
) -> None:
    """total[i, k] += sum over tokens[first:last] of alpha[t - 1, rows[i]] backward[t, columns[k]].

    packed: [4, >= len(columns)], workspace; total: [>= len(rows), len(columns)].
    """
    n = len(columns)
    unrolled = last - (last - first) % 4
    for j in range(first, unrolled, 4):
        t, u, v, w = tokens[j], tokens[j + 1], tokens[j + 2], tokens[j + 3]
        for k in range(n):
            y = columns[k]
            packed[0, k], packed[1, k] = backward[t, y], backward[u, y]
            packed[2, k], packed[3, k] = backward[v, y], backward[w, y]
        for i in range(len(rows)):
            y = rows[i]
            a, b, c, d = alpha[t - 1, y], alpha[u - 1, y], alpha[v - 1, y], alpha[w - 1, y]
            for k in range(n):
                total[i, k] += (a * packed[0, k] + b * packed[1, k]) + (
                    c * packed[2, k] + d * packed[3, k]
                )
    for j in range(unrolled, last):
        t = tokens[j]
        for k in range(n):
            packed[0, k] = backward[t, columns[k]]
        for i in range(len(rows)):
            a = alpha[t - 1, rows[i]]
            for k in range(n):
                total[i, k] += a * packed[0, k]


@inner
def _weigh(
    products: np.ndarray,
    psi: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    first: int,
    last: int,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    ent_value: np.ndarray,
    row_place: np.ndarray,
    column_place: np.ndarray,
    total: np.ndarray,
) -> None:
    """Add Psi * products to a total and clear them; Psi: psi with entries first:last in it."""
    for e in range(first, last):
        i, k = row_place[ent_previous[e]], column_place[ent_label[e]]
        if i >= 0 and k >= 0:
            change = ent_value[e] - psi[ent_previous[e], ent_label[e]]
            total[i, k] += change * products[i, k]
    for i in range(len(rows)):
        for k in range(len(columns)):
            total[i, k] += psi[rows[i], columns[k]] * products[i, k]
            products[i, k] = 0.0


@inner
def _subtract_gold(
    tokens: np.ndarray,
    first: int,
    last: int,
    begins: bool,
    n_labels: int,
    labels: np.ndarray,
    token_weight: np.ndarray,
    row_place: np.ndarray,
    column_place: np.ndarray,
    total: np.ndarray,
) -> None:
    """Subtract the weights of tokens[first:last] from a total at their gold pairs."""
    for j in range(first, last):
        t = tokens[j]
        if labels[t] >= 0:
            i = row_place[n_labels if begins else labels[t - 1]]
            k = column_place[labels[t]]
            if i >= 0 and k >= 0:
                total[i, k] -= token_weight[t]


@kernel
def add_chosen_pairs(
    first: int,
    last: int,
    n_labels: int,
    row_ptr: np.ndarray,
    rows: np.ndarray,
    column_ptr: np.ndarray,
    columns: np.ndarray,
    area_ptr: np.ndarray,
    test_ptr: np.ndarray,
    test_contexts: np.ndarray,
    active_context: np.ndarray,
    matrix_of: np.ndarray,
    ent_ptr: np.ndarray,
    ent_previous: np.ndarray,
    ent_label: np.ndarray,
    ent_value: np.ndarray,
    inner_ptr: np.ndarray,
    inner_tokens: np.ndarray,
    start_ptr: np.ndarray,
    start_tokens: np.ndarray,
    labels: np.ndarray,
    token_weight: np.ndarray,
    alpha: np.ndarray,
    backward: np.ndarray,
    psi: np.ndarray,
    totals: np.ndarray,
) -> None:
    """Add expected less observed counts of chosen pairs at a block's tokens, of tests first:last.

    row_ptr, rows, column_ptr, columns: CSR, labels chosen before and at the tokens of a test;
    area_ptr: [tests + 1] int64, where a test's pairs lie, counted from those of `totals`;
    test_ptr, test_contexts: CSC, contexts of a test, those with one active context together;
    active_context: of each context; matrix_of, ent_*: of active contexts, see `entries.correct`;
    inner_*, start_*: CSR of a context's tokens in the block; totals: float64, added to.
    """
    alpha, backward, psi, totals = lent(alpha), lent(backward), lent(psi), lent(totals)
    rows, columns, inner_tokens = lent(rows), lent(columns), lent(inner_tokens)
    row_place = np.full(n_labels + 1, -1, np.int32)
    column_place = np.full(n_labels, -1, np.int32)
    packed = np.zeros((4, n_labels), backward.dtype)
    space = np.zeros((n_labels + 1) * n_labels)
    for test in range(first, last):
        n = area_ptr[test + 1] - area_ptr[test]
        if n == 0:
            continue
        before = rows[row_ptr[test] : row_ptr[test + 1]]
        at = columns[column_ptr[test] : column_ptr[test + 1]]
        for i in range(len(before)):
            row_place[before[i]] = i
        for k in range(len(at)):
            column_place[at[k]] = k
        inner = before[:-1] if row_place[n_labels] >= 0 else before
        total = totals[area_ptr[test] : area_ptr[test + 1]].reshape((len(before), len(at)))
        products = space[:n].reshape((len(before), len(at)))
        for j in range(test_ptr[test], test_ptr[test + 1]):
            c = test_contexts[j]
            begin, end = inner_ptr[c], inner_ptr[c + 1]
            _add_products(inner_tokens, begin, end, inner, at, alpha, backward, packed, products)
            if row_place[n_labels] >= 0:
                for s in range(start_ptr[c], start_ptr[c + 1]):
                    for k in range(len(at)):
                        products[len(inner), k] += backward[start_tokens[s], at[k]]
            active = active_context[c]
            is_last = j + 1 == test_ptr[test + 1]
            if is_last or active_context[test_contexts[j + 1]] != active:
                _weigh(
                    products,
                    psi[matrix_of[active]],
                    before,
                    at,
                    ent_ptr[active],
                    ent_ptr[active + 1],
                    ent_previous,
                    ent_label,
                    ent_value,
                    row_place,
                    column_place,
                    total,
                )
        known = labels, token_weight, row_place, column_place, total
        for j in range(test_ptr[test], test_ptr[test + 1]):
            c = test_contexts[j]
            begin, end = inner_ptr[c], inner_ptr[c + 1]
            _subtract_gold(inner_tokens, begin, end, False, n_labels, *known)
            begin, end = start_ptr[c], start_ptr[c + 1]
            _subtract_gold(start_tokens, begin, end, True, n_labels, *known)
        for i in range(len(before)):
            row_place[before[i]] = -1
        for k in range(len(at)):
            column_place[at[k]] = -1


@kernel
def screen_pairs(
    first: int,
    last: int,
    n_labels: int,
    n_previous: int,
    row_ptr: np.ndarray,
    rows: np.ndarray,
    column_ptr: np.ndarray,
    columns: np.ndarray,
    area_ptr: np.ndarray,
    totals: np.ndarray,
    threshold: float,
    coordinates: np.ndarray,
    gradients: np.ndarray,
) -> int:
    """Collect the chosen bigram weights of tests first:last whose |gradient| exceeds a threshold.

    n_previous: Y, or Y + 1 with a start label; the others: see `add_chosen_pairs`; coordinates
    (int64, (test * n_previous + y') * Y + y) and gradients (float64): as long as the pairs, out.
    RETURNS: how many.
    """
    found = 0
    for test in range(first, last):
        k = area_ptr[test]
        for i in range(row_ptr[test], row_ptr[test + 1]):
            base = (test * n_previous + rows[i]) * n_labels
            for j in range(column_ptr[test], column_ptr[test + 1]):
                if abs(totals[k]) > threshold:
                    coordinates[found] = base + columns[j]
                    gradients[found] = totals[k]
                    found += 1
                k += 1
    return found
