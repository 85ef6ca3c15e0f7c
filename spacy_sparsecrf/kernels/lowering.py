"""Short code for what kernels do most: to index contiguous arrays, and to count in loops.

numba writes an access to an array as some sixty instructions, and a loop as fifty, of which LLVM
leaves a few; and it looks up what an operation is among dozens, each time. Both took most of the
time of compilation. The types, and what the code does, are numba's.
"""

# mypy: allow-untyped-calls
import operator
from collections.abc import Callable
from copy import copy
from functools import cache
from typing import Any, cast

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.cpu import CPUContext
from numba.core.datamodel.models import OpaqueModel
from numba.core.datamodel.registry import register_default
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.context import Context as TypingContext
from numba.np.arrayobj import fix_integer_index, load_item, store_item

WORD = ir.IntType(64)
# The places of what numba's arrays consist of.
MEMINFO, PARENT, _NITEMS, _ITEMSIZE, DATA, _SHAPE, _STRIDES = range(7)


class _Operator(types.Function):
    """An operation that remembers its signatures."""

    def __init__(self, like: Any) -> None:
        super().__init__(like.templates)
        self.like = like
        self._found: dict[Any, Any] = {}

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """The signature for arguments of some types."""
        if args not in self._found:
            self._found[args] = super().get_call_type(context, args, kws)
        return self._found[args]


register_default(_Operator)(OpaqueModel)


class _Typing(TypingContext):
    """What numba knows of types, with operations that remember."""

    known: dict[Any, _Operator]

    def _lookup_global(self, gv: Any) -> Any:
        found = super()._lookup_global(gv)
        if type(found) is not types.Function or not _is_operator(found.typing_key):
            return found
        known = self.known.get(found.typing_key)
        if known is None or known.like is not found:
            known = self.known[found.typing_key] = _Operator(found)
        return known

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """The signature of a call."""
        if isinstance(func, _Operator):
            return func.get_call_type(self, args, kws)
        return super().resolve_function_type(func, args, kws)


def _is_operator(key: Any) -> bool:
    return key in (len, range) or getattr(key, "__module__", "") == "_operator"


@cache
def typing_like(context: TypingContext) -> TypingContext:
    """The same knowledge of types, with operations that remember."""
    same = copy(context)
    same.__class__ = _Typing
    cast("_Typing", same).known = {}
    return same


class Context(CPUContext):
    """numba's ways to write code for a processor, and shorter ones."""

    def get_function(self, fn: Any, sig: Any, _firstcall: bool = True) -> Any:
        """What writes the code of an operation."""
        write = _writer(fn, sig)
        if write is None:
            return super().get_function(fn, sig, _firstcall)
        return lambda builder, args, loc=None: write(self, builder, sig, args)

    def get_getattr(self, typ: Any, attr: str) -> Any:
        """What writes the code that reads an attribute."""
        if attr == "shape" and isinstance(typ, types.Array):
            return lambda context, builder, kind, value, name: builder.extract_value(value, _SHAPE)
        return super().get_getattr(typ, attr)

    def pair_first(self, builder: Any, val: Any, ty: Any) -> Any:
        """The first of two values."""
        return builder.extract_value(val, 0)

    def pair_second(self, builder: Any, val: Any, ty: Any) -> Any:
        """The second of two values."""
        return builder.extract_value(val, 1)


def _writer(fn: Any, sig: Any) -> Callable[..., Any] | None:
    """What writes an operation in a short way, if anything does."""
    key = fn.get_impl_key(sig) if isinstance(fn, types.Callable) else fn
    kind = sig.args[0] if sig.args else None
    if isinstance(kind, types.Array):
        if key is len:
            return _length
        if key is operator.getitem and _is_simple(kind, sig.args[1], sig.return_type):
            return _get_item
        if key is operator.setitem and _is_simple(kind, sig.args[1], kind.dtype):
            return _set_item
    if key == "getiter" and isinstance(kind, types.RangeType):
        return _begin_range
    if key == "iternext" and isinstance(kind, types.RangeIteratorType):
        return _next_of_range
    return None


def _parts(index: Any) -> tuple[Any, ...]:
    """The types of the parts of an index."""
    return getattr(index, "types", (index,))  # of a tuple


def _is_simple(kind: Any, index: Any, found: Any) -> bool:
    """Whether an index of a contiguous array has integers, then at most one slice without a step.

    found: the type of what is there.
    """
    *first, last = _parts(index)
    is_slice = isinstance(last, types.SliceType) and not last.has_step
    is_array = isinstance(found, types.Array)
    return (
        kind.layout == "C"
        and kind.aligned
        and all(isinstance(part, types.Integer) for part in first)
        and (isinstance(last, types.Integer) or is_slice)
        and is_array == (is_slice or len(first) + 1 < kind.ndim)
        and (not is_array or found.layout == "C")
    )


def array_value(
    context: Any, builder: Any, kind: Any, data: Any, shape: list[Any], owner: Any = None
) -> Any:
    """A contiguous array, as numba has it; owner: one that it is a part of, if it has one."""
    size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    strides, n_items = [WORD(size)], shape[0]
    for length in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length, flags=["nsw"]))
        n_items = builder.mul(n_items, length, flags=["nsw"])
    array = context.get_value_type(kind)(ir.Undefined)
    members: list[tuple[Any, Any]] = [(_NITEMS, n_items), (_ITEMSIZE, WORD(size)), (DATA, data)]
    for i in MEMINFO, PARENT:
        nobody = array.type.elements[i](None)
        members.append((i, nobody if owner is None else builder.extract_value(owner, i)))
    members += [([_SHAPE, i], length) for i, length in enumerate(shape)]
    members += [([_STRIDES, i], stride) for i, stride in enumerate(strides)]
    for place, member in members:
        array = builder.insert_value(array, member, place)
    return array


def _bound(builder: Any, place: Any, length: Any) -> Any:
    """A bound of a slice: negative ones count from the end, and none is outside."""
    zero = WORD(0)
    from_end = builder.add(place, length)
    place = builder.select(builder.icmp_signed("<", place, zero), from_end, place)
    place = builder.select(builder.icmp_signed("<", place, zero), zero, place)
    return builder.select(builder.icmp_signed(">", place, length), length, place)


def _locate(context: Any, builder: Any, sig: Any, args: Any) -> tuple[Any, list[Any]]:
    """Where the part of an array at an index begins, and its shape."""
    kind, array, index = sig.args[0], args[0], args[1]
    parts, place, left = _parts(sig.args[1]), WORD(0), []
    is_tuple = isinstance(sig.args[1], types.BaseTuple)
    for axis in range(kind.ndim):
        length = builder.extract_value(array, [_SHAPE, axis])
        place = builder.mul(place, length) if axis else place
        if axis >= len(parts):
            left.append(length)
            continue
        at = builder.extract_value(index, axis) if is_tuple else index
        if isinstance(parts[axis], types.Integer):
            at = fix_integer_index(context, builder, parts[axis], at, length)
            if context.enable_boundscheck:
                cgutils.do_boundscheck(context, builder, at, length, axis)
        else:
            at, end = (_bound(builder, builder.extract_value(at, i), length) for i in range(2))
            size = builder.sub(end, at)
            is_empty = builder.icmp_signed("<", size, WORD(0))
            left.append(builder.select(is_empty, WORD(0), size))
        place = builder.add(place, at) if axis else at
    return builder.gep(builder.extract_value(array, DATA), [place]), left


def _get_item(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    data, shape = _locate(context, builder, sig, args)
    if not shape:
        return load_item(context, builder, sig.args[0], data)
    part = array_value(context, builder, sig.return_type, data, shape, args[0])
    return impl_ret_borrowed(context, builder, sig.return_type, part)


def _set_item(context: Any, builder: Any, sig: Any, args: Any) -> None:
    kind, data = sig.args[0], _locate(context, builder, sig, args)[0]
    value = context.cast(builder, args[2], sig.args[2], kind.dtype)
    store_item(context, builder, kind, value, data)


def _length(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.extract_value(args[0], [_SHAPE, 0])


def _begin_range(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """An iterator of numba's: where the next number is, end, step, where the rest's length is."""
    start, stop, step = (builder.extract_value(args[0], i) for i in range(3))
    zero = start.type(0)
    falls = builder.icmp_signed("<", step, zero)
    low, high = builder.select(falls, stop, start), builder.select(falls, start, stop)
    span, stride = builder.sub(high, low), builder.select(falls, builder.neg(step), step)
    is_uneven = builder.icmp_signed(">", builder.srem(span, stride), zero)
    count = builder.add(builder.sdiv(span, stride), builder.zext(is_uneven, start.type))
    count = builder.select(builder.icmp_signed(">", span, zero), count, zero)
    following, rest = (cgutils.alloca_once(builder, start.type) for _ in range(2))
    builder.store(start, following)
    builder.store(count, rest)
    iterator = context.get_value_type(sig.return_type)(ir.Undefined)
    for i, member in enumerate((following, stop, step, rest)):
        iterator = builder.insert_value(iterator, member, i)
    return iterator


def _next_of_range(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    following, _, step, rest = cgutils.unpack_tuple(builder, args[0], 4)
    number, count = builder.load(following), builder.load(rest)
    builder.store(builder.add(number, step), following)
    builder.store(builder.sub(count, count.type(1), flags=["nsw"]), rest)
    pair = builder.insert_value(context.get_value_type(sig.return_type)(ir.Undefined), number, 0)
    return builder.insert_value(pair, builder.icmp_signed(">", count, count.type(0)), 1)
