"""Products of the recursions, and sums of rows.

    forward   out[y]        = sum_y' alpha[y'] matrix[y', y]
    backward  out[y']       = sum_y matrix[y', y] v[y]
    outer     total[y', y] += sum_t alpha_{t-1}[y'] backward_t[y]
    weights   scores[y] += theta[begin + y]

Rows are padded to a multiple of 8, the length of a vector. The number of vectors that a loop sums
is a constant in each call, where the loop is inlined.
"""

from .layout import Floats, Ints
from .numba_support import inlined
from .simd import WIDTH, add_multiple, prefetch, read, write, write_sums, zeros

# Rows that a backward product, or a sum of outer products, processes at a time.
_ROWS = 4
# Tokens whose outer products are added at a time: their vectors stay in the nearest cache.
_TOKENS = 16


@inlined
def add_weights(theta: Floats, begin: int, n_labels: int, scores: Floats) -> None:
    """scores[y] += theta[begin + y]; scores: [Yp], whose padding may get any numbers."""
    block = theta[begin : begin + n_labels]
    for y in range(n_labels):
        scores[y] += block[y]


@inlined(forceinline=True)
def _advance(
    n: int, column: int, alpha: Floats, matrix: Floats, n_labels: int, out: Floats
) -> None:
    """Apply `advance` to n vectors of columns, n in 1, 2, 3."""
    a = b = c = zeros(matrix)
    offset = column
    for row in range(n_labels):
        x = alpha[row]
        a = add_multiple(a, x, read(matrix, offset))
        if n > 1:
            b = add_multiple(b, x, read(matrix, offset + WIDTH))
        if n > 2:
            c = add_multiple(c, x, read(matrix, offset + 2 * WIDTH))
        offset += len(out)
    write(a, out, column)
    if n > 1:
        write(b, out, column + WIDTH)
    if n > 2:
        write(c, out, column + 2 * WIDTH)


@inlined(forceinline=True)
def _advance_two(
    n: int,
    column: int,
    alpha: Floats,
    other: Floats,
    matrix: Floats,
    n_labels: int,
    out: Floats,
    other_out: Floats,
) -> None:
    """Apply `advance_two` to n vectors of columns, n in 1, 2, 3."""
    a = b = c = d = e = f = zeros(matrix)
    offset = column
    for row in range(n_labels):
        x, y = alpha[row], other[row]
        piece = read(matrix, offset)
        a, d = add_multiple(a, x, piece), add_multiple(d, y, piece)
        if n > 1:
            piece = read(matrix, offset + WIDTH)
            b, e = add_multiple(b, x, piece), add_multiple(e, y, piece)
        if n > 2:
            piece = read(matrix, offset + 2 * WIDTH)
            c, f = add_multiple(c, x, piece), add_multiple(f, y, piece)
        offset += len(out)
    write(a, out, column)
    write(d, other_out, column)
    if n > 1:
        write(b, out, column + WIDTH)
        write(e, other_out, column + WIDTH)
    if n > 2:
        write(c, out, column + 2 * WIDTH)
        write(f, other_out, column + 2 * WIDTH)


@inlined
def advance(alpha: Floats, matrix: Floats, n_labels: int, out: Floats) -> None:
    """Forward product: out[y] = sum_y' alpha[y'] matrix[y', y]. alpha, out: [Yp]."""
    column = 0
    while column < len(out):
        left = len(out) - column
        if left == WIDTH:
            _advance(1, column, alpha, matrix, n_labels, out)
            column += WIDTH
        elif left == 2 * WIDTH or left == 4 * WIDTH:
            _advance(2, column, alpha, matrix, n_labels, out)
            column += 2 * WIDTH
        else:
            _advance(3, column, alpha, matrix, n_labels, out)
            column += 3 * WIDTH


@inlined
def advance_two(
    alpha: Floats, other: Floats, matrix: Floats, n_labels: int, out: Floats, other_out: Floats
) -> None:
    """Forward products of two tokens with one matrix, which is read once."""
    column = 0
    while column < len(out):
        left = len(out) - column
        if left == WIDTH:
            _advance_two(1, column, alpha, other, matrix, n_labels, out, other_out)
            column += WIDTH
        elif left == 2 * WIDTH or left == 4 * WIDTH:
            _advance_two(2, column, alpha, other, matrix, n_labels, out, other_out)
            column += 2 * WIDTH
        else:
            _advance_two(3, column, alpha, other, matrix, n_labels, out, other_out)
            column += 3 * WIDTH


@inlined
def _retreat_few(matrix: Floats, v: Floats, n_labels: int, out: Floats) -> None:
    """Apply `retreat` to fewer than _ROWS labels."""
    for i in range(n_labels):
        total = matrix.dtype.type(0)
        for y in range(len(v)):
            total += matrix[i, y] * v[y]
        out[i] = total


@inlined
def retreat(matrix: Floats, v: Floats, n_labels: int, out: Floats) -> None:
    """Backward product: out[y'] = sum_y matrix[y', y] v[y]. The padding of `out` is not written."""
    if n_labels < _ROWS:
        _retreat_few(matrix, v, n_labels, out)
        return
    width = len(v)
    for start in range(0, n_labels, _ROWS):
        # The last step may repeat some rows, with the same results.
        row = min(start, n_labels - _ROWS)
        offset = row * width
        a = b = c = d = zeros(matrix)
        for column in range(0, width, WIDTH):
            x = read(v, column)
            a = add_multiple(a, x, read(matrix, offset + column))
            b = add_multiple(b, x, read(matrix, offset + width + column))
            c = add_multiple(c, x, read(matrix, offset + 2 * width + column))
            d = add_multiple(d, x, read(matrix, offset + 3 * width + column))
        write_sums((a, b, c, d), out, row)


@inlined
def retreat_two(
    matrix: Floats, v: Floats, w: Floats, n_labels: int, out: Floats, other_out: Floats
) -> None:
    """Backward products of two tokens with one matrix, which is read once."""
    if n_labels < _ROWS:
        _retreat_few(matrix, v, n_labels, out)
        _retreat_few(matrix, w, n_labels, other_out)
        return
    width = len(v)
    for start in range(0, n_labels, _ROWS):
        row = min(start, n_labels - _ROWS)
        offset = row * width
        a = b = c = d = e = f = g = h = zeros(matrix)
        for column in range(0, width, WIDTH):
            x, y = read(v, column), read(w, column)
            piece = read(matrix, offset + column)
            a, e = add_multiple(a, x, piece), add_multiple(e, y, piece)
            piece = read(matrix, offset + width + column)
            b, f = add_multiple(b, x, piece), add_multiple(f, y, piece)
            piece = read(matrix, offset + 2 * width + column)
            c, g = add_multiple(c, x, piece), add_multiple(g, y, piece)
            piece = read(matrix, offset + 3 * width + column)
            d, h = add_multiple(d, x, piece), add_multiple(h, y, piece)
        write_sums((a, b, c, d), out, row)
        write_sums((e, f, g, h), other_out, row)


@inlined(forceinline=True)
def _add_to_rows(
    n: int,
    tokens: Ints,
    first: int,
    last: int,
    alpha: Floats,
    backward: Floats,
    row: int,
    column: int,
    total: Floats,
) -> None:
    """Add the products of tokens[first:last] to a vector of columns of n rows, n in 1, 2, 4."""
    width = total.shape[1]
    offset = row * width + column
    a = b = c = d = read(total, offset)
    if n > 1:
        b = read(total, offset + width)
    if n > 2:
        c, d = read(total, offset + 2 * width), read(total, offset + 3 * width)
    for j in range(first, last):
        t = tokens[j]
        piece = read(backward, t * width + column)
        a = add_multiple(a, alpha[t - 1, row], piece)
        if n > 1:
            b = add_multiple(b, alpha[t - 1, row + 1], piece)
        if n > 2:
            c = add_multiple(c, alpha[t - 1, row + 2], piece)
            d = add_multiple(d, alpha[t - 1, row + 3], piece)
    write(a, total, offset)
    if n > 1:
        write(b, total, offset + width)
    if n > 2:
        write(c, total, offset + 2 * width)
        write(d, total, offset + 3 * width)


@inlined
def add_outer_products(
    tokens: Ints, n_labels: int, alpha: Floats, backward: Floats, total: Floats
) -> None:
    """total[y', y] += sum over tokens of alpha[t - 1, y'] backward[t, y].

    tokens: [n], none of which begins a sequence; total: [>= Y, Yp] float64.
    """
    in_fours, width = n_labels - n_labels % _ROWS, total.shape[1]
    for begin in range(0, len(tokens), _TOKENS):
        end = min(begin + _TOKENS, len(tokens))
        for column in range(0, width, WIDTH):
            for j in range(end, min(end + _TOKENS, len(tokens))):
                offset = tokens[j] * width + column
                prefetch(alpha, offset - width)
                prefetch(backward, offset)
            for row in range(0, in_fours, _ROWS):
                _add_to_rows(4, tokens, begin, end, alpha, backward, row, column, total)
            if n_labels - in_fours >= 2:
                _add_to_rows(2, tokens, begin, end, alpha, backward, in_fours, column, total)
            if n_labels % 2 == 1:
                row = n_labels - 1
                _add_to_rows(1, tokens, begin, end, alpha, backward, row, column, total)
