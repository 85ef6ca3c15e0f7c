"""How the code of functions is put together: each kernel is optimised once, as a whole.

numba optimises a function and makes machine code of it wherever it is called from, and optimises it
again in each of its callers, at every level of calls. What only kernels call is left as it was
written down here, until a kernel takes it in, and a kernel is passed over once: much less is to
be done for code that is as fast. What is written down is short, see `lowering` and `groups`.

It leans on what numba keeps to itself: numba's own way serves where its version is another one than
those that this was tried with.
"""

# mypy: allow-untyped-calls
import gc
from collections.abc import Callable, Iterator
from typing import Any

import numba
from numba.core import typed_passes, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import PassManager

from .groups import register
from .lowering import Context, typing_like

Function = Callable[..., Any]

# The versions of numba that this was tried with, the last one left out.
_TRIED = (0, 68), (0, 69)
# numba's passes over a function, but for those that look for what kernels do not have: closures,
# generators, blocks of `with`, expressions of whole arrays, functions that are inlined as Python.
_PASSES = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    untyped_passes.IRProcessing,
    untyped_passes.GenericRewrites,
    untyped_passes.ReconstructSSA,
    typed_passes.NopythonTypeInference,
    typed_passes.PreLowerStripPhis,
    typed_passes.IRLegalization,
    typed_passes.AnnotateTypes,
    typed_passes.NativeLowering,
    typed_passes.NoPythonBackend,
)
# How numba names the code that takes the arguments of a kernel out of Python's objects.
_WRAPPER = "_ZN7cpython"


class _Library(JITCodeLibrary):
    """The code of a function, as numba has it before anything is optimised."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave functions alone: the passes over a whole kernel begin with the same."""

    def _optimize_final_module(self) -> None:
        """Pass over the whole once; numba first looks for references to drop, which few hold."""
        passes, builder = self._codegen._module_pass_manager(opt=2)
        passes.run(self._final_module, builder)

    def callees(self, seen: set[int]) -> Iterator[JITCodeLibrary]:
        """The libraries that this one needs, each after those that it needs itself.

        seen: ids of those that were found before. What numba itself put in is complete.
        """
        for callee in self._linking_libraries:
            if id(callee) not in seen:
                seen.add(id(callee))
                if isinstance(callee, _Library):
                    yield from callee.callees(seen)
                yield callee


class _Unlinked(_Library):
    """The code of a function that only kernels call, neither optimised nor run."""

    def finalize(self) -> None:
        """End it: nothing can be added any more."""
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """There is no machine code: RETURNS: 0, as numba has it for what a library lacks."""
        return 0

    @property
    def codegen(self) -> "_Unlinked":
        """What numba asks to `set_env` once there is machine code."""
        return self

    def set_env(self, env_name: str, env: Any) -> None:
        """Nothing: without machine code there is no environment."""


class _Linked(_Library):
    """The code of a kernel and of all functions that it calls, at any depth."""

    def finalize(self) -> None:
        """Take in the code of all functions, callers before what they call; optimise the whole.

        LLVM drops a function that nothing calls yet.
        """
        self._linking_libraries = [*self.callees(set())][::-1]
        for function in self._final_module.functions:
            if function.name.startswith(_WRAPPER):  # as long as many a kernel, run once a call
                for attribute in "noinline", "optnone":
                    function.add_function_attribute(attribute)
        super().finalize()


class KernelCompiler(Compiler):
    """numba's compiler for a function that Python calls."""

    library_class: type[JITCodeLibrary] = _Linked

    def define_pipelines(self) -> list[PassManager]:
        """The passes over a function."""
        manager = PassManager("kernel")
        for step in _PASSES:
            manager.add_pass(step)
        manager.finalize()
        return [manager]

    def compile_extra(self, func: Function) -> Any:
        """Compile a Python function into a library of this compiler's kind."""
        self.state.targetctx.__class__ = Context
        self.state.typingctx = typing_like(self.state.typingctx)
        self.state.targetctx.typing_context = self.state.typingctx
        codegen = self.state.targetctx.codegen()
        self.state.library = self.library_class(codegen, func.__qualname__)
        self.state.library.enable_object_caching()
        # The compiler makes millions of objects, for whose sake all of spaCy's would be looked at.
        collects = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(func)
        finally:
            if collects:
                gc.enable()


class InnerCompiler(KernelCompiler):
    """numba's compiler for a function that only kernels call."""

    library_class = _Unlinked


def of_kernels(function: Function) -> dict[str, Any]:
    """Options of `njit` for what Python calls, whose named tuples become groups."""
    if not _was_tried():
        return {}
    for annotation in function.__annotations__.values():
        register(annotation)
    return {"pipeline_class": KernelCompiler}


def of_inner() -> dict[str, Any]:
    """Options of `njit` for what only kernels call."""
    return {"pipeline_class": InnerCompiler} if _was_tried() else {}


def _was_tried() -> bool:
    major, minor = numba.__version__.split(".")[:2]
    return _TRIED[0] <= (int(major), int(minor)) < _TRIED[1]
