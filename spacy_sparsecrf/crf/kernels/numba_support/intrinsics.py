"""The LLVM IR of the functions in `vectors`.

A `Vector` of 8 numbers stays in registers; in loops over arrays, LLVM keeps sums in memory.
"""

# mypy: allow-untyped-calls
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, models, register_model, type_callable

from .. import simd as vectors
from ..simd import WIDTH

_FLAG = ir.IntType(32)


class Vector(types.Type):
    """The type of 8 numbers. item: the type of each."""

    def __init__(self, item: Any) -> None:
        self.item = item
        super().__init__(name=f"Vector({item})")


@register_model(Vector)
def _model(manager: Any, kind: Any) -> Any:
    item = manager.lookup(kind.item).get_value_type()
    return models.PrimitiveModel(manager, kind, ir.VectorType(item, WIDTH))


def _emits(function: Any, typer: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return a decorator for the function that emits code. typer: returns a call's signature."""
    type_callable(function)(lambda context: typer)
    return lower_builtin(function, types.VarArg(types.Any))  # type: ignore[no-any-return]


def _address(context: Any, builder: Any, kind: Any, element: Any, target: Any) -> Any:
    array, index = element
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), target.as_pointer())


@_emits(vectors.prefetch, lambda array, place: types.void(array, types.intp))
def _prefetch(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    pointer = _address(context, builder, signature.args[0], args, ir.IntType(8))
    kind = ir.FunctionType(ir.VoidType(), [pointer.type, _FLAG, _FLAG, _FLAG])
    function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
    # For reading, to be kept in all caches, data and not instructions.
    builder.call(function, [pointer, _FLAG(0), _FLAG(3), _FLAG(1)])


@_emits(vectors.wide_zeros, lambda: Vector(types.float64)())
@_emits(vectors.zeros, lambda like: Vector(like.dtype)(like))
def _zeros(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return context.get_constant_null(signature.return_type)


@_emits(vectors.read, lambda array, place: Vector(array.dtype)(array, types.intp))
def _read(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kind = context.get_value_type(signature.return_type)
    pointer = _address(context, builder, signature.args[0], args, kind)
    return builder.load(pointer, align=signature.args[0].dtype.bitwidth // 8)


@_emits(vectors.write, lambda vector, array, place: types.void(vector, array, types.intp))
def _write(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    pointer = _address(context, builder, signature.args[1], args[1:], args[0].type)
    builder.store(args[0], pointer, align=signature.args[1].dtype.bitwidth // 8)


def _fused(builder: Any, x: Any, y: Any, z: Any, name: str) -> Any:
    """Emit x * y + z, as one instruction if the processor has it, otherwise as two."""
    function = builder.module.declare_intrinsic(
        f"llvm.fmuladd.{name}", (), ir.FunctionType(z.type, [z.type] * 3)
    )
    return builder.call(function, [x, y, z])


def _type_multiply_add(x: Any, y: Any, z: Any) -> Any:
    kind = max(x, y, z, key=lambda kind: kind.bitwidth)
    return kind(kind, kind, kind)


@_emits(vectors.multiply_add, _type_multiply_add)
def _multiply_add(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    x, y, z = args
    return _fused(builder, x, y, z, f"f{signature.return_type.bitwidth}")


@_emits(vectors.add_multiple, lambda total, x, vector: total(total, x, vector))
def _add_multiple(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    total, *factors = args
    for i, value in enumerate(factors):
        if not isinstance(value.type, ir.VectorType):
            empty = ir.VectorType(value.type, WIDTH)(ir.Undefined)
            lane = builder.insert_element(empty, value, _FLAG(0))
            value = builder.shuffle_vector(lane, empty, ir.VectorType(_FLAG, WIDTH)(None))
        factors[i] = value if value.type == total.type else builder.fpext(value, total.type)
    name = f"v{WIDTH}f{signature.return_type.item.bitwidth}"
    x, vector = factors
    return _fused(builder, x, vector, total, name)


def _add(builder: Any, a: Any, b: Any, left: list[int], right: list[int]) -> Any:
    """Emit the sum of elements of a and b at the positions `left` and `right`."""
    masks = (ir.VectorType(_FLAG, len(half))(half) for half in (left, right))
    return builder.fadd(*(builder.shuffle_vector(a, b, mask) for mask in masks))


@_emits(vectors.sum_of, lambda vector: vector.item(vector))
def _sum_of(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    (vector,) = args
    half = _add(builder, vector, vector, [0, 1, 2, 3], [4, 5, 6, 7])
    pairs = _add(builder, half, half, [0, 2], [1, 3])
    return builder.fadd(*(builder.extract_element(pairs, _FLAG(i)) for i in range(2)))


@_emits(vectors.write_sums, lambda four, array, place: types.void(four, array, types.intp))
def _write_sums(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    vectors = (builder.extract_value(args[0], i) for i in range(4))
    a, b, c, d = (_add(builder, v, v, [0, 1, 2, 3], [4, 5, 6, 7]) for v in vectors)
    low, high = (_add(builder, *pair, [0, 4, 2, 6], [1, 5, 3, 7]) for pair in ((a, b), (c, d)))
    sums = _add(builder, low, high, [0, 1, 4, 5], [2, 3, 6, 7])
    pointer = _address(context, builder, signature.args[1], args[1:], sums.type)
    builder.store(sums, pointer, align=signature.args[1].dtype.bitwidth // 8)
