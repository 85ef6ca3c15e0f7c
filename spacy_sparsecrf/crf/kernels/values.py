"""Dense products of real-valued features: scores of tokens, and sums of residuals.

For N tokens with values x [M, V] (`rows` contains the row of each token), columns `columns` [R] and
weights W [R, Yp]: scores += x W, and the gradient of W is the sum over tokens of x times residuals.
Sums are float64 for any dtype of the arrays, and the scores of a token do not depend on other
tokens.
"""

import numpy as np

from .expectations import variance
from .layout import Csr, Floats, Ints, Values
from .numba_support import inlined, kernel
from .simd import multiply_add
from .small import fill

# Tokens that are scored together; elements of W, in whole rows, that stay in the nearest cache
# meanwhile; tokens whose residuals stay in this cache.
_SCORED = 16
_HELD = 3072
_SUMMED = 64


@inlined
def _add_multiples(x: Floats, n: int, first: int, table: Floats, out: Floats) -> None:
    """out[y] += sum over j < n of x[j] table[first + j, y], eight at a time. x: float64."""
    unrolled = n - n % 8
    for j in range(0, unrolled, 8):
        a, b, c, d = x[j], x[j + 1], x[j + 2], x[j + 3]
        e, f, g, h = x[j + 4], x[j + 5], x[j + 6], x[j + 7]
        r = first + j
        for y in range(len(out)):
            out[y] += (
                multiply_add(a, table[r, y], b * table[r + 1, y])
                + multiply_add(c, table[r + 2, y], d * table[r + 3, y])
            ) + (
                multiply_add(e, table[r + 4, y], f * table[r + 5, y])
                + multiply_add(g, table[r + 6, y], h * table[r + 7, y])
            )
    for j in range(unrolled, n):
        a = x[j]
        for y in range(len(out)):
            out[y] = multiply_add(a, table[first + j, y], out[y])


@kernel(allocates=True)
def value_scores(
    first: int, last: int, features: Values, table: Floats, add: bool, scores: Floats
) -> None:
    """Score tokens first:last: scores[t] = x_t W, or, with `add`, scores[t] += x_t W.

    table: [R, Yp] float64; scores: [N, Yp], out, or in and out.
    """
    values, rows, columns = features
    totals = np.empty((_SCORED, table.shape[1]))
    # A multiple of eight rows, which are added at a time: sums do not depend on the cut of W.
    n_rows = max(8, _HELD // table.shape[1] // 8 * 8)
    x = np.empty(n_rows)
    for begin in range(first, last, _SCORED):
        end = min(begin + _SCORED, last)
        for t in range(begin, end):
            fill(totals[t - begin], 0, totals.shape[1], 0.0)
        for r in range(0, len(columns), n_rows):
            until = min(r + n_rows, len(columns))
            for t in range(begin, end):
                row = values[rows[t]]
                for j in range(until - r):
                    x[j] = row[columns[r + j]]
                _add_multiples(x, until - r, r, table, totals[t - begin])
        for t in range(begin, end):
            for y in range(totals.shape[1]):
                scores[t, y] = totals[t - begin, y] + (scores[t, y] if add else 0.0)


@kernel(allocates=True)
def value_sums(first: int, last: int, features: Values, residual: Floats, sums: Floats) -> None:
    """Add the products of tokens first:last: sums[r, y] += sum_t x[t, columns[r]] residual[t, y].

    residual: [N, Yp]; sums: [R, Yp] float64, added to.
    """
    values, rows, columns = features
    x = np.empty(_SUMMED)
    for begin in range(first, last, _SUMMED):
        n = min(_SUMMED, last - begin)
        for r in range(len(columns)):
            column = columns[r]
            for j in range(n):
                x[j] = values[rows[begin + j], column]
            _add_multiples(x, n, begin, residual, sums[r])


@kernel
def value_counts(features: Values, labels: Ints, token_weight: Floats, sums: Floats) -> None:
    """Sum values by gold label: sums[r, y] += sum of w x[t, columns[r]] where y_t = y.

    labels: [N] int32, -1 = none; token_weight: [N]; sums: [R, Yp] float64, added to.
    """
    values, rows, columns = features
    for t in range(len(labels)):
        y = labels[t]
        if y >= 0:
            x = values[rows[t]]
            for r in range(len(columns)):
                sums[r, y] += token_weight[t] * x[columns[r]]


@kernel(allocates=True)
def value_curvatures(
    first: int, last: int, features: Values, token_weight: Floats, residual: Floats, sums: Floats
) -> None:
    """Add the variances of tokens first:last: sums[r, y] += sum_t w x² p(y_t) (1 - p(y_t)).

    See `expectations.unigram_curvature`. token_weight: [N]; residual: [N, Yp]; sums: [R, Yp]
    float64, added to.
    """
    values, rows, columns = features
    variances = np.empty(residual.shape[1])
    for t in range(first, last):
        weight = token_weight[t]
        if weight <= 0.0:
            continue
        for y in range(len(variances)):
            variances[y] = variance(residual[t, y], weight)
        x = values[rows[t]]
        for r in range(len(columns)):
            square = np.float64(x[columns[r]]) ** 2
            for y in range(len(variances)):
                sums[r, y] += square * variances[y]


@kernel
def score_numbered(
    sizes: Ints,
    numbers: Ints,
    places: Ints,
    values: Floats,
    blocks: Csr,
    weights: Floats,
    scores: Floats,
) -> None:
    """Score tokens from features by number: scores[t, y] = sum_k x_k mu[number_k, y].

    sizes: [N] int64, features of a token; numbers: [M] int64, in the order of tokens, a feature
    without weights is <= 0; places: [R] int64, ascending, features whose x is not 1; values: [R]
    float32, x; blocks: the labels of a number's weights, of which weights has the values [K]
    float64; scores: [N, Yp], out.
    """
    m, r = 0, 0
    for t in range(len(sizes)):
        fill(scores[t], 0, scores.shape[1], 0.0)
        for _ in range(sizes[t]):
            n = max(numbers[m], 0)
            x = 1.0
            if r < len(places) and places[r] == m:
                x = np.float64(values[r])
                r += 1
            for k in range(blocks.indptr[n], blocks.indptr[n + 1]):
                scores[t, blocks.indices[k]] += x * weights[k]
            m += 1
