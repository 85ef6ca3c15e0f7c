"""Optimise each kernel once, as a whole.

numba optimises a function, generates its machine code, and optimises it again in each caller. Here,
functions that only kernels call are not optimised separately: LLVM optimises each kernel once.
"""

# mypy: allow-untyped-calls
from typing import Any

from llvmlite import binding
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.options import DefaultOptions
from numba.core.registry import cpu_target

# Internals of numba used below: if one is missing, the import fails, which the fallback expects.
_library: Any = JITCodeLibrary(cpu_target.target_context.codegen(), "unused")
_library.enable_object_caching()
_NEEDED = _library._finalized, _library._final_module, _library._codegen._tm
_OPTION = DefaultOptions.no_cpython_wrapper


class KernelLibrary(JITCodeLibrary):
    """The code of a kernel and of all functions that it calls, at any depth."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Skip the passes over single functions: the passes over the module begin with them."""

    def _optimize_final_module(self) -> None:
        """Optimise the module once; numba does so twice, and unrolls loops, which gains nothing."""
        module, machine = self._final_module, self._codegen._tm
        if not hasattr(binding, "create_pass_builder"):  # llvmlite before 0.44
            builder, passes = binding.PassManagerBuilder(), binding.create_module_pass_manager()
            builder.opt_level, builder.inlining_threshold = 2, 225
            builder.loop_vectorize, builder.disable_unroll_loops = True, True
            machine.add_analysis_passes(passes)
            builder.populate(passes)
            passes.run(module)
            return
        options = binding.create_pipeline_tuning_options(speed_level=2)
        options.loop_vectorization, options.loop_unrolling = True, False
        builder = binding.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)


class InlinedLibrary(KernelLibrary):
    """The code of a function that only kernels call: as numba emits it, without machine code."""

    def _optimize_final_module(self) -> None:
        """Do nothing: the kernel's library optimises the code."""

    def _finalize_final_module(self) -> None:
        """Generate no machine code."""
        self._finalized = True

    @property
    def codegen(self) -> "InlinedLibrary":
        """Object whose `set_env` numba calls after code generation."""
        return self

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing."""


class KernelCompiler(Compiler):
    """numba's compiler, with the libraries of this module."""

    def compile_extra(self, func: Any) -> Any:
        """Compile a Python function."""
        kind = InlinedLibrary if self.state.flags.no_cpython_wrapper else KernelLibrary
        self.state.library = kind(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)
