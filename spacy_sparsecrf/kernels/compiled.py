"""How kernels are compiled, and what all of them are made of.

What Python calls is in numba's cache on disk, and has code that unpacks its arguments: with dozens
of arrays that takes longer to compile than many a kernel. What only kernels call needs neither.
Rows of weights are read in an order that the processor cannot foresee: kernels ask for them ahead.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, overload

import numpy as np
from llvmlite import ir
from numba import njit, typeof, types
from numba.core import cgutils, config
from numba.extending import intrinsic, register_jitable

from .caching import KernelCache
from .layout import Floats, Ints
from .linking import of_inner, of_kernels
from .lowering import MEMINFO, PARENT

Function = TypeVar("Function", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}


@overload
def kernel(function: Function) -> Function: ...


@overload
def kernel(
    *, fastmath: set[str] = ..., allocates: bool = ...
) -> Callable[[Function], Function]: ...


def kernel(function: Any = None, *, allocates: bool = False, **options: Any) -> Any:
    """Compile a function that Python calls, and keep its code on disk.

    allocates: whether it makes arrays; if not, its code counts no references, which its caller
    holds: it is smaller, sooner compiled and quicker. options: of `njit`.
    """
    if function is None:
        return partial(kernel, allocates=allocates, **options)
    settings: dict[str, Any] = {"nogil": True, "_nrt": allocates, **_OPTIONS, **options}
    compiled: Any = njit(**settings, **of_kernels(function))(function)
    if compiled is not function:  # as with NUMBA_DISABLE_JIT
        compiled._cache = compiled.cache = KernelCache(function)
    return compiled


@overload
def inner(function: Function) -> Function: ...


@overload
def inner(
    *, fastmath: set[str] = ..., forceinline: bool = ...
) -> Callable[[Function], Function]: ...


def inner(function: Any = None, **options: Any) -> Any:
    """Compile a function with each kernel that calls it, and only there; options: of `njit`.

    Called from Python it is Python.
    """
    if function is None:
        return partial(inner, **options)
    return register_jitable(**_OPTIONS, **of_inner(), **options)(function)


def written(typed: Any, python: Function) -> Any:
    """A function for kernels whose code is written by hand. typed: see numba's `intrinsic`.

    python: what it does, for where numba is told not to compile (NUMBA_DISABLE_JIT).
    """
    is_off: bool = config.DISABLE_JIT  # type: ignore[attr-defined]
    return python if is_off else intrinsic(typed)


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


def _type_lent(typingctx: Any, owned: Any) -> Any:
    """The same array without counts of references, which views then leave alone.

    For the time of a kernel its caller owns the arrays; to count costs an atomic operation each
    time that a row is passed on.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = args[0]
        for place in MEMINFO, PARENT:
            array = builder.insert_value(array, array.type.elements[place](None), place)
        return array

    return owned(owned), codegen


prefetch: Any = written(_type_prefetch, lambda array, index: None)
lent: Any = written(_type_lent, lambda owned: owned)


@inner
def prefetch_row(matrix: Floats, row: int) -> None:
    """Ask for a row of a contiguous matrix [n, Yp], Yp a multiple of 8."""
    # A slice, as each call of `reshape` takes as long as a row.
    own = matrix[row]
    for place in range(0, len(own), 8):
        prefetch(own, place)


@inner
def fill(row: np.ndarray, first: int, last: int, value: float) -> None:
    """Set row[first:last] to a value; an assignment to a slice takes much longer to compile."""
    # A slice of its own: where a loop begins at an unknown place, numba tests the sign of indices.
    part = row[first:last]
    for i in range(len(part)):
        part[i] = value


@inner
def position(places: Ints, place: int) -> int:
    """The first index at which ascending places are not below a place.

    `np.searchsorted` does the same, but takes half a second to compile.
    """
    low, high = 0, len(places)
    while low < high:
        middle = (low + high) >> 1
        if places[middle] < place:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def add_at(places: Ints, place: int, amount: float, totals: Floats) -> None:
    """Add an amount to the total of a place, if that is among ascending places."""
    found = position(places, place)
    if found < len(places) and places[found] == place:
        totals[found] += amount


def bind(kernel: Function, *arguments: Any) -> Function:
    """Take a kernel's code for arguments of the types of those given.

    It does not look at types again, which with many arrays takes longer than a sentence does to be
    labelled: who calls it vouches for dtypes, dimensions and contiguity.
    """
    if _is_python(kernel):
        return kernel
    bound: Any = kernel
    code: Function = bound.compile(tuple(map(typeof, arguments)))
    return code


def is_compiled(kernel: Any) -> bool:
    """Tell whether a kernel was compiled in this process or is in numba's cache on disk.

    kernel: a function under `compiled.kernel`. Code for other types of arguments counts too.
    """
    return _is_python(kernel) or bool(kernel.signatures) or kernel.cache.has_code


def is_kept(kernel: Any) -> bool:
    """Tell whether the code of a kernel that is compiled now will be there in the next process."""
    return _is_python(kernel) or kernel.cache.is_kept


def _is_python(kernel: Any) -> bool:
    return not hasattr(kernel, "signatures")  # as with NUMBA_DISABLE_JIT
