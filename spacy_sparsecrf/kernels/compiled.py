"""How kernels are compiled: those that Python calls, and those that only kernels call.

What Python calls is in numba's cache on disk, and has code that unpacks its arguments: with dozens
of arrays that takes longer to compile than many a kernel. What only kernels call needs neither.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast, overload

from numba import njit
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys
from numba.extending import register_jitable

Function = TypeVar("Function", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}


class KernelCache(FunctionCache):
    """numba's cache on disk, which hands out code without first importing a compiler's needs.

    numba itself imports all that it knows of Python and numpy, for some tenths of a second, and
    does so again, at no cost, before it compiles. Of that, code needs what counts references.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load the code for arguments of some types; None where there is none."""
        rtsys.initialize(target_context)
        found, load = None, cast("Callable[..., Any]", self._load_overload)
        with self._guard_against_spurious_io_errors():
            found = load(sig, target_context)
        return found


@overload
def kernel(function: Function) -> Function: ...


@overload
def kernel(*, fastmath: set[str]) -> Callable[[Function], Function]: ...


def kernel(function: Any = None, **options: Any) -> Any:
    """Compile a function that Python calls, and keep its code on disk; options: of `njit`."""
    if function is None:
        return partial(kernel, **options)
    compiled: Any = njit(nogil=True, **_OPTIONS, **options)(function)
    if compiled is not function:  # as with NUMBA_DISABLE_JIT
        make_cache: Callable[[Any], Any] = KernelCache
        compiled._cache = make_cache(function)
    return compiled


@overload
def inner(function: Function) -> Function: ...


@overload
def inner(*, fastmath: set[str] = ..., inline: str = ...) -> Callable[[Function], Function]: ...


def inner(function: Any = None, **options: Any) -> Any:
    """Compile a function with each kernel that calls it, and only there; options: of `njit`.

    Called from Python it is Python.
    """
    if function is None:
        return partial(inner, **options)
    return register_jitable(**_OPTIONS, **options)(function)
