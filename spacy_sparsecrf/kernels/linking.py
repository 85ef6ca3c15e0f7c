"""How the code of functions is put together: each kernel is optimised once, as a whole.

numba optimises a function and makes machine code of it wherever it is called from, and optimises it
again in each of its callers, at every level of calls. What only kernels call is left as it was
written down here, until a kernel takes it in, and a kernel is passed over once: much less is to
be done for code that is as fast.
"""

import gc
from collections.abc import Callable, Iterator
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

Function = Callable[..., Any]

# How numba names the code that takes the arguments of a kernel out of Python's objects.
_WRAPPER = "_ZN7cpython"


class _Library(JITCodeLibrary):
    """The code of a function, as numba has it before anything is optimised."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave functions alone: the passes over a whole kernel begin with the same."""
        ll_module.data_layout = str(self._codegen.target_data)

    def _optimize_final_module(self) -> None:
        """Pass over the whole once; numba first looks for references to drop, which few hold."""
        passes, builder = self._codegen._module_pass_manager(opt=2)  # type: ignore[no-untyped-call]
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
        super().finalize()  # type: ignore[no-untyped-call]


class KernelCompiler(Compiler):
    """numba's compiler for a function that Python calls."""

    library_class: type[JITCodeLibrary] = _Linked

    def compile_extra(self, func: Function) -> Any:
        """Compile a Python function into a library of this compiler's kind."""
        codegen = self.state.targetctx.codegen()
        self.state.library = self.library_class(codegen, func.__qualname__)
        self.state.library.enable_object_caching()
        # The compiler makes millions of objects, for whose sake all of spaCy's would be looked at.
        collects = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(func)  # type: ignore[no-untyped-call]
        finally:
            if collects:
                gc.enable()


class InnerCompiler(KernelCompiler):
    """numba's compiler for a function that only kernels call."""

    library_class = _Unlinked
