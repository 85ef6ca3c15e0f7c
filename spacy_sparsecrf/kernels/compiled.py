"""How kernels are compiled: those that Python calls, and those that only kernels call.

What Python calls is in numba's cache on disk, and has code that unpacks its arguments: with dozens
of arrays that takes longer to compile than many a kernel. What only kernels call needs neither.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, overload

from numba import njit
from numba.extending import register_jitable

Function = TypeVar("Function", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}


@overload
def kernel(function: Function) -> Function: ...


@overload
def kernel(*, fastmath: set[str]) -> Callable[[Function], Function]: ...


def kernel(function: Any = None, **options: Any) -> Any:
    """Compile a function that Python calls, and keep its code on disk; options: of `njit`."""
    if function is None:
        return partial(kernel, **options)
    return njit(cache=True, nogil=True, **_OPTIONS, **options)(function)


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
