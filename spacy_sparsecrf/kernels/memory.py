"""Prefetching, lending and filling of arrays.

Rows of weights are read in an order that the processor cannot foresee.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .compiled import inner


def _type_prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of an element of a contiguous array; reads nothing."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        pointer = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        flag = ir.IntType(32)
        signature_of = ir.FunctionType(ir.VoidType(), [pointer.type, flag, flag, flag])
        insert: Any = cgutils.get_or_insert_function
        function = insert(builder.module, signature_of, "llvm.prefetch.p0i8")
        # For reading, to be kept in all caches, data and not instructions.
        builder.call(function, [pointer, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


def _lend(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Code that forgets whose an array is, or the arrays of a group; other values stay."""
    if isinstance(kind, types.Array):
        lent = context.make_array(kind)(context, builder, value)
        lent.meminfo = lent.meminfo.type(None)
        lent.parent = lent.parent.type(None)
        return lent._getvalue()
    if isinstance(kind, types.NamedTuple | types.NamedUniTuple):
        for i, part in enumerate(kind.types):
            lent = _lend(context, builder, part, builder.extract_value(value, i))
            value = builder.insert_value(value, lent, i)
    return value


def _type_lent(typingctx: Any, owned: Any) -> Any:
    """The same array, or group, without counts of references, which views then leave alone.

    For the time of a kernel its caller owns the arrays; to count costs an atomic operation each
    time that a row is passed on.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _lend(context, builder, signature.args[0], args[0])

    return owned(owned), codegen


prefetch: Any = intrinsic(_type_prefetch)
lent: Any = intrinsic(_type_lent)


@inner
def fill(row: np.ndarray, first: int, last: int, value: float) -> None:
    """Set row[first:last] to a value; an assignment to a slice takes much longer to compile."""
    # A slice of its own: where a loop begins at an unknown place, numba tests the sign of indices.
    part = row[first:last]
    for i in range(len(part)):
        part[i] = value
