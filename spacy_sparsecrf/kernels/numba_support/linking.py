"""Optimise each kernel once, as a whole.

numba optimises a function and generates its machine code, and optimises it again in each of its
callers, at every level of calls. Here, the functions that only kernels call stay as numba emits
them. A kernel links all of them, and LLVM optimises the result once, in 60 % of the time.
"""

# mypy: allow-untyped-calls
import gc
from typing import Any

from llvmlite import binding
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.options import DefaultOptions
from numba.core.registry import cpu_target

# What is used below: where numba lacks one of these, the import fails, which the guard expects.
_library: Any = JITCodeLibrary(cpu_target.target_context.codegen(), "unused")
_library.enable_object_caching()
_NEEDED = _library._finalized, _library._final_module, _library._codegen._tm
_OPTIONS = DefaultOptions._nrt, DefaultOptions.no_cfunc_wrapper, DefaultOptions.no_cpython_wrapper
# Options that save code: no reference counts, and no function for callers in C.
LEAN: dict[str, Any] = {"_nrt": False, "no_cfunc_wrapper": True}
# The passes of numba before 0.62 are others: it compiles in its own way.
LINKS = hasattr(binding, "create_pass_builder")


class KernelLibrary(JITCodeLibrary):
    """The code of a kernel and of all functions that it calls, at any depth."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Skip the passes over single functions: those over the whole begin with them."""

    def _optimize_final_module(self) -> None:
        """Optimise the whole once; numba does so twice, and unrolls loops, which gains nothing."""
        for function in self._final_module.functions:
            if function.name.startswith("_ZN7cpython"):  # unpacks arguments: long, run once a call
                for attribute in "noinline", "optnone":
                    function.add_function_attribute(attribute)
        options = binding.create_pipeline_tuning_options(speed_level=2)
        options.loop_vectorization, options.loop_unrolling = True, False
        builder = binding.create_pass_builder(self._codegen._tm, options)
        builder.getModulePassManager().run(self._final_module, builder)


class InlinedLibrary(KernelLibrary):
    """The code of a function that only kernels call: as numba emits it, and not run."""

    def _optimize_final_module(self) -> None:
        """Leave it to kernels."""

    def _finalize_final_module(self) -> None:
        """Generate no machine code."""
        self._finalized = True

    @property
    def codegen(self) -> "InlinedLibrary":
        """The object whose `set_env` numba calls once there is machine code."""
        return self

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing."""


class KernelCompiler(Compiler):
    """numba's compiler, with these libraries where llvmlite has the passes."""

    def compile_extra(self, func: Any) -> Any:
        """Compile a Python function."""
        if LINKS:
            is_inlined = self.state.flags.no_cpython_wrapper
            library = InlinedLibrary if is_inlined else KernelLibrary
            self.state.library = library(self.state.targetctx.codegen(), func.__qualname__)
            self.state.library.enable_object_caching()
        # numba creates millions of objects: each full collection would visit all of spaCy's.
        is_collecting = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(func)
        finally:
            if is_collecting:
                gc.enable()
