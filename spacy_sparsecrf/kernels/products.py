"""Products of the recursions, and sums of rows, written for the vectors that processors have.

    forward   out[y]        = sum_y' alpha[y'] matrix[y', y]
    backward  out[y']       = sum_y matrix[y', y] v[y]
    outer     total[y', y] += sum_t alpha_{t-1}[y'] backward_t[y]
    weights   scores[y] += theta[begin + y]

As loops they are right, too, but LLVM does not know that rows are multiples of 8, nor that what is
written is not what is read: sums go to memory and back, which takes half of the time. Here they
stay in registers. What each piece computes is told in Python beside it, which also runs where numba
is told not to compile.
"""

# mypy: allow-untyped-calls
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types

from .compiled import inner, prefetch, written
from .layout import Floats, Ints
from .lowering import WORD

# Columns of a piece: rows are padded to a multiple of these.
_PIECE = 8
# Rows of a piece.
_ROWS = 4
# Tokens whose outer products are added at a time: their vectors stay in the nearest cache.
_TOKENS = 16
_CONTRACT = ("contract",)
Body = Callable[[Any, list[Any]], list[Any]]


class _Matrix:
    """An array in memory, which is read and written a vector at a time.

    item: type of its elements; size: their bytes; width: elements of a row.
    """

    def __init__(self, context: Any, builder: Any, kind: Any, array: Any) -> None:
        made = context.make_array(kind)(context, builder, array)
        self._builder, self._data, self.item = builder, made.data, made.data.type.pointee
        self.size = context.get_abi_sizeof(self.item)
        self.width = builder.extract_value(made.shape, kind.ndim - 1)

    def _at(self, place: tuple[Any, ...], n: int) -> Any:
        *row, column = place
        for each in row:
            begin = self._builder.mul(each, self.width, flags=["nsw"])
            column = self._builder.add(begin, column, flags=["nsw"])
        kind = ir.VectorType(self.item, n) if n > 1 else self.item
        return self._builder.bitcast(self._builder.gep(self._data, [column]), kind.as_pointer())

    def read(self, n: int, *place: Any) -> Any:
        """A vector of n elements from a place: its column, or its row and column."""
        return self._builder.load(self._at(place, n), align=self.size)

    def write(self, vector: Any, *place: Any) -> None:
        """Write a vector to a place."""
        pointer = self._at(place, vector.type.count)
        self._builder.store(vector, pointer, align=self.size)


class _Writer:
    """Writes the code of a piece: arithmetic on vectors."""

    def __init__(self, context: Any, builder: Any, kinds: Any, args: Any) -> None:
        self._context, self.builder, self._kinds, self._args = context, builder, kinds, args

    def matrix(self, i: int) -> _Matrix:
        """Argument i, an array."""
        return _Matrix(self._context, self.builder, self._kinds[i], self._args[i])

    def number(self, i: int) -> Any:
        """Argument i, an integer."""
        return self._context.cast(self.builder, self._args[i], self._kinds[i], types.int64)

    def as_word(self, number: Any) -> Any:
        """An integer that is not below 0, as a word."""
        is_word = number.type == WORD
        return number if is_word else self.builder.zext(number, WORD)

    def moved(self, place: Any, by: int) -> Any:
        """A place some elements on."""
        return self.builder.add(place, WORD(by), flags=["nsw"])

    def added(self, sums: list[Any], factors: list[Any], pieces: list[Any]) -> list[Any]:
        """Sums, each with the product of a factor and a piece, rounded once where that can be."""
        products = (
            self.builder.fmul(factor, piece, flags=_CONTRACT)
            for factor in factors
            for piece in pieces
        )
        pairs = zip(sums, products, strict=True)
        return [self.builder.fadd(total, product, flags=_CONTRACT) for total, product in pairs]

    def spread(self, number: Any, n: int) -> Any:
        """A vector of n times a number."""
        nothing = ir.VectorType(number.type, n)(ir.Undefined)
        first = self.builder.insert_element(nothing, number, ir.IntType(32)(0))
        return self.shuffled(first, nothing, [0] * n)

    def shuffled(self, a: Any, b: Any, places: list[int]) -> Any:
        """Elements of a, then of b, by their places."""
        mask = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places)
        return self.builder.shuffle_vector(a, b, mask)

    def widened(self, vector: Any, item: Any) -> Any:
        """A vector, or a number, of another type of numbers, which may be the same."""
        count = getattr(vector.type, "count", 0)
        kind = ir.VectorType(item, count) if count else item
        return vector if vector.type == kind else self.builder.fpext(vector, kind)

    def narrowed(self, vector: Any, item: Any) -> Any:
        """A vector of another type of numbers, not a wider one."""
        kind = ir.VectorType(item, vector.type.count)
        return vector if vector.type == kind else self.builder.fptrunc(vector, kind)

    def loop(self, first: Any, last: Any, step: int, sums: list[Any], body: Body) -> list[Any]:
        """A loop of one turn at least. body: of an index and sums, the sums after it."""
        builder, before = self.builder, self.builder.block
        turn, after = (builder.append_basic_block() for _ in range(2))
        builder.branch(turn)
        builder.position_at_end(turn)
        running = [builder.phi(each.type) for each in (first, *sums)]
        done = [self.moved(running[0], step), *body(running[0], running[1:])]
        for phi, begun, end in zip(running, (first, *sums), done, strict=True):
            phi.add_incoming(begun, before)
            phi.add_incoming(end, builder.block)
        builder.cbranch(builder.icmp_signed("<", done[0], last), turn, after)
        builder.position_at_end(after)
        return done[1:]

    def totals(self, vectors: list[Any]) -> Any:
        """The sums of the elements of each of four vectors, as a vector."""
        while vectors[0].type.count > _ROWS:
            half = vectors[0].type.count // 2
            low, high = [*range(half)], [*range(half, 2 * half)]
            vectors = [self._folded(v, v, low, high) for v in vectors]
        pairs = [0, 4, 2, 6], [1, 5, 3, 7]
        a, b, c, d = vectors
        low, high = self._folded(a, b, *pairs), self._folded(c, d, *pairs)
        return self._folded(low, high, [0, 1, 4, 5], [2, 3, 6, 7])

    def _folded(self, a: Any, b: Any, these: list[int], those: list[int]) -> Any:
        return self.builder.fadd(self.shuffled(a, b, these), self.shuffled(a, b, those))


def _codegen(write: Callable[[_Writer], None]) -> Any:
    """What numba calls to write a piece."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        write(_Writer(context, builder, signature.args, args))
        return context.get_dummy_value()

    return codegen


def _forward(n_tokens: int, n_pieces: int) -> Any:
    """Columns of forward products of one token, or of two by the same matrix.

    Of one, `other` and `other_out` are not looked at.
    """

    def write(code: _Writer) -> None:
        matrix, alphas = code.matrix(2), [code.matrix(i) for i in range(n_tokens)]
        columns = [code.moved(code.number(3), _PIECE * i) for i in range(n_pieces)]
        zero = code.spread(matrix.item(0.0), _PIECE)

        def add(row: Any, sums: list[Any]) -> list[Any]:
            pieces = [matrix.read(_PIECE, row, column) for column in columns]
            factors = [code.spread(alpha.read(1, row), _PIECE) for alpha in alphas]
            return code.added(sums, factors, pieces)

        zeros = [zero] * (n_tokens * n_pieces)
        sums = code.loop(WORD(0), code.number(4), 1, zeros, add)
        places = [(5 + i, column) for i in range(n_tokens) for column in columns]
        for total, (i, column) in zip(sums, places, strict=True):
            code.matrix(i).write(total, column)

    def typed(
        _: Any, alpha: Any, other: Any, matrix: Any, column: Any, n: Any, out: Any, other_out: Any
    ) -> Any:
        return types.void(alpha, other, matrix, column, n, out, other_out), _codegen(write)

    def python(
        alpha: Any, other: Any, matrix: Any, column: int, n: int, out: Any, other_out: Any
    ) -> None:
        own = slice(column, column + n_pieces * _PIECE)
        for factors, sums in ((alpha, out), (other, other_out))[:n_tokens]:
            sums[own] = factors[:n] @ matrix[:n, own]

    return written(typed, python)


def _backward(n_tokens: int) -> Any:
    """Rows of backward products of one token, or of two by the same matrix.

    Of one, `w` and `other_out` are not looked at.
    """

    def write(code: _Writer) -> None:
        matrix, vectors = code.matrix(0), [code.matrix(2 + i) for i in range(n_tokens)]
        rows, lanes = [code.moved(code.number(1), i) for i in range(_ROWS)], 32 // matrix.size
        zero = code.spread(matrix.item(0.0), lanes)

        def add(column: Any, sums: list[Any]) -> list[Any]:
            pieces = [matrix.read(lanes, row, column) for row in rows]
            return code.added(sums, [vector.read(lanes, column) for vector in vectors], pieces)

        zeros = [zero] * (n_tokens * _ROWS)
        sums = code.loop(WORD(0), matrix.width, lanes, zeros, add)
        for i in range(n_tokens):
            totals = code.totals(sums[i * _ROWS : (i + 1) * _ROWS])
            code.matrix(4 + i).write(totals, code.number(1))

    def typed(_: Any, matrix: Any, row: Any, v: Any, w: Any, out: Any, other_out: Any) -> Any:
        return types.void(matrix, row, v, w, out, other_out), _codegen(write)

    def python(matrix: Any, row: int, v: Any, w: Any, out: Any, other_out: Any) -> None:
        own = slice(row, row + _ROWS)
        for factors, sums in ((v, out), (w, other_out))[:n_tokens]:
            sums[own] = matrix[own] @ factors

    return written(typed, python)


def _outer(n_rows: int) -> Any:
    """Sums of outer products over tokens, one at least, in some rows and a piece of the columns."""

    def write(code: _Writer) -> None:
        tokens, alpha, backward, total = (code.matrix(i) for i in (0, 1, 2, 5))
        rows, column = [code.moved(code.number(3), i) for i in range(n_rows)], code.number(4)

        def add(place: Any, sums: list[Any]) -> list[Any]:
            t = code.as_word(tokens.read(1, place))
            piece = code.widened(backward.read(_PIECE, t, column), total.item)
            before = [alpha.read(1, code.moved(t, -1), row) for row in rows]
            factors = [code.spread(code.widened(each, total.item), _PIECE) for each in before]
            return code.added(sums, factors, [piece])

        begun = [total.read(_PIECE, row, column) for row in rows]
        sums = code.loop(WORD(0), tokens.width, 1, begun, add)
        for each, row in zip(sums, rows, strict=True):
            total.write(each, row, column)

    def typed(
        _: Any, tokens: Any, alpha: Any, backward: Any, row: Any, column: Any, total: Any
    ) -> Any:
        return types.void(tokens, alpha, backward, row, column, total), _codegen(write)

    def python(tokens: Any, alpha: Any, backward: Any, row: int, column: int, total: Any) -> None:
        rows, columns = slice(row, row + n_rows), slice(column, column + _PIECE)
        total[rows, columns] += alpha[tokens - 1, rows].T @ backward[tokens, columns]

    return written(typed, python)


def _sum_of_row() -> Any:
    """A piece of a row's weights, which begin somewhere among all, added to scores."""

    def write(code: _Writer) -> None:
        theta, column, scores = code.matrix(0), code.number(2), code.matrix(3)
        place = code.builder.add(code.number(1), column, flags=["nsw"])
        before = code.widened(scores.read(_PIECE, column), theta.item)
        total = code.builder.fadd(before, theta.read(_PIECE, place))
        scores.write(code.narrowed(total, scores.item), column)

    def typed(_: Any, theta: Any, begin: Any, column: Any, scores: Any) -> Any:
        return types.void(theta, begin, column, scores), _codegen(write)

    def python(theta: Any, begin: int, column: int, scores: Any) -> None:
        scores[column : column + _PIECE] += theta[begin + column : begin + column + _PIECE]

    return written(typed, python)


_add_piece = _sum_of_row()
_eight_of_one, _sixteen_of_one, _most_of_one = (_forward(1, n) for n in (1, 2, 3))
_eight_of_two, _sixteen_of_two, _most_of_two = (_forward(2, n) for n in (1, 2, 3))
_rows_of_one, _rows_of_two = _backward(1), _backward(2)
_one_row, _two_rows, _four_rows = _outer(1), _outer(2), _outer(_ROWS)


@inner
def add_weights(theta: Floats, begin: int, n_labels: int, scores: Floats) -> None:
    """scores[y] += theta[begin + y]; scores: [Yp], whose padding may get any numbers."""
    if begin + len(scores) <= len(theta):
        for column in range(0, len(scores), _PIECE):
            _add_piece(theta, begin, column, scores)
        return
    last = theta[begin : begin + n_labels]
    for y in range(n_labels):
        scores[y] += last[y]


@inner
def advance(alpha: Floats, matrix: Floats, n_labels: int, out: Floats) -> None:
    """Forward product: out[y] = sum_y' alpha[y'] matrix[y', y]. alpha, out: [Yp]."""
    column = 0
    while column < len(out):
        left = len(out) - column
        given = alpha, alpha, matrix, column, n_labels, out, out
        if left == 8:
            _eight_of_one(*given)
            column += 8
        elif left == 16 or left == 32:
            _sixteen_of_one(*given)
            column += 16
        else:
            _most_of_one(*given)
            column += 24


@inner
def advance_two(
    alpha: Floats, other: Floats, matrix: Floats, n_labels: int, out: Floats, other_out: Floats
) -> None:
    """Forward products of two tokens with one matrix, which is read once."""
    column = 0
    while column < len(out):
        left = len(out) - column
        given = alpha, other, matrix, column, n_labels, out, other_out
        if left == 8:
            _eight_of_two(*given)
            column += 8
        elif left == 16 or left == 32:
            _sixteen_of_two(*given)
            column += 16
        else:
            _most_of_two(*given)
            column += 24


@inner
def _retreat_few(matrix: Floats, v: Floats, n_labels: int, out: Floats) -> None:
    """Do `retreat` for fewer labels than a piece has rows."""
    for i in range(n_labels):
        total = matrix.dtype.type(0)
        for y in range(len(v)):
            total += matrix[i, y] * v[y]
        out[i] = total


@inner
def retreat(matrix: Floats, v: Floats, n_labels: int, out: Floats) -> None:
    """Backward product: out[y'] = sum_y matrix[y', y] v[y]. The padding of `out` is left alone."""
    if n_labels < _ROWS:
        _retreat_few(matrix, v, n_labels, out)
        return
    for row in range(0, n_labels - _ROWS, _ROWS):
        _rows_of_one(matrix, row, v, v, out, out)
    # Some of the last rows for the second time, with the same result.
    _rows_of_one(matrix, n_labels - _ROWS, v, v, out, out)


@inner
def retreat_two(
    matrix: Floats, v: Floats, w: Floats, n_labels: int, out: Floats, other_out: Floats
) -> None:
    """Backward products of two tokens with one matrix, which is read once."""
    if n_labels < _ROWS:
        _retreat_few(matrix, v, n_labels, out)
        _retreat_few(matrix, w, n_labels, other_out)
        return
    for row in range(0, n_labels - _ROWS, _ROWS):
        _rows_of_two(matrix, row, v, w, out, other_out)
    _rows_of_two(matrix, n_labels - _ROWS, v, w, out, other_out)


@inner
def add_outer_products(
    tokens: Ints, n_labels: int, alpha: Floats, backward: Floats, total: Floats
) -> None:
    """total[y', y] += sum over tokens of alpha[t - 1, y'] backward[t, y].

    tokens: [n], none of which begins a sequence; total: [>= Y, Yp] float64.
    """
    whole = n_labels - n_labels % _ROWS
    for first in range(0, len(tokens), _TOKENS):
        own, following = tokens[first : first + _TOKENS], tokens[first + _TOKENS :][:_TOKENS]
        for column in range(0, total.shape[1], _PIECE):
            for t in following:
                prefetch(alpha[t - 1], column)
                prefetch(backward[t], column)
            for row in range(0, whole, _ROWS):
                _four_rows(own, alpha, backward, row, column, total)
            if n_labels - whole >= 2:
                _two_rows(own, alpha, backward, whole, column, total)
            if n_labels % 2 == 1:
                _one_row(own, alpha, backward, n_labels - 1, column, total)
