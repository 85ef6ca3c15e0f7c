"""Decorators that compile kernels, with a fallback if internals of numba are missing.

A *kernel* is a function that Python calls. Its machine code is cached on disk, and numba generates
code that unpacks its arguments. An *inlined* function is compiled into each kernel that calls it.
"""

import gc
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, overload

from numba import njit, typeof
from numba.extending import register_jitable

from ..cache_dir import refused as refused
from ..cache_files import has_lock, unlock
from . import intrinsics as intrinsics

Function = TypeVar("Function", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {"error_model": "numpy"}
with suppress(AttributeError, ImportError):
    from numba.core.options import DefaultOptions

    _NEEDED = DefaultOptions._nrt, DefaultOptions.no_cfunc_wrapper
    _OPTIONS |= {"_nrt": False, "no_cfunc_wrapper": True}  # no reference counts, no callers in C
try:
    from .caching import KernelCache
    from .linking import KernelCompiler
except (AttributeError, ImportError):
    # This numba lacks a name: its standard pipeline gives equal results in twice the time, and its
    # cache does not notice changes of inlined functions in other files.
    IS_STANDARD = True
else:
    IS_STANDARD = False
    _OPTIONS["pipeline_class"] = KernelCompiler


@overload
def kernel(function: Function) -> Function: ...


@overload
def kernel(**options: Any) -> Callable[[Function], Function]: ...


def kernel(function: Any = None, *, allocates: bool = False, **options: Any) -> Any:
    """Compile a function that Python calls, and cache its machine code on disk.

    allocates: whether it creates arrays; if not, its code counts no references: the caller holds
    them. options: of `numba.njit`.
    """
    if function is None:
        return partial(kernel, allocates=allocates, **options)
    counting = {"_nrt": True} if allocates and "_nrt" in _OPTIONS else {}
    compiled: Any = njit(**{"nogil": True, **_OPTIONS, **counting, **options})(function)
    if _is_python(compiled):
        return compiled
    compiled.compile = partial(_compile, compiled.compile)
    compiled.cache = None
    if not IS_STANDARD:
        compiled._cache = compiled.cache = KernelCache(function)
    return compiled


@overload
def inlined(function: Function) -> Function: ...


@overload
def inlined(**options: Any) -> Callable[[Function], Function]: ...


def inlined(function: Any = None, **options: Any) -> Any:
    """Compile a function, which must not create arrays, into each kernel that calls it.

    Called from Python, it runs as plain Python. options: of `numba.njit`.
    """
    if function is None:
        return partial(inlined, **options)
    return register_jitable(**{**_OPTIONS, **options})(function)


def bind(kernel: Function, *arguments: Any) -> Function:
    """Return a kernel's compiled code for the types of the given arguments.

    The code does not check types: the caller must ensure dtypes, dimensions and contiguity.
    """
    if _is_python(kernel):
        return kernel
    compiled: Any = kernel
    code: Function = compiled.compile(tuple(map(typeof, arguments)))
    return code


class Bound:
    """A kernel that is bound to the types of its first arguments; see `bind`.

    numba takes longer to find the code for named tuples of arrays than to label a short text.
    """

    def __init__(self, kernel: Callable[..., Any]) -> None:
        self.kernel = kernel
        self.code: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel."""
        if self.code is None:
            self.code = bind(self.kernel, *arguments)
        return self.code(*arguments)


def is_compiled(kernel: Any) -> bool:
    """Return whether a kernel was compiled in this process or is in the cache, for any types."""
    return _is_python(kernel) or bool(kernel.signatures or (kernel.cache and kernel.cache.has_code))


def is_kept(kernel: Any) -> bool:
    """Return whether code of a kernel compiled now is cached for later processes."""
    return _is_python(kernel) or kernel.stats.cache_path is not None


def _compile(compile: Callable[..., Any], signature: Any) -> Any:
    """Compile without garbage collection: numba creates millions of objects, and spaCy has many."""
    is_collecting, is_outermost = gc.isenabled(), not has_lock()
    gc.disable()
    try:
        return compile(signature)
    finally:
        if is_outermost:  # not if it is called by a kernel that is still compiled
            unlock()
        if is_collecting:
            gc.enable()


def _is_python(kernel: Any) -> bool:
    return not hasattr(kernel, "signatures")  # as with NUMBA_DISABLE_JIT
