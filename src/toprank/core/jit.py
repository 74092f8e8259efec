"""How toprank compiles: the only place that decides.

Kernels are plain module-level functions of arrays and scalars, without signatures, so that float32, float64 and
read-only memory-mapped arrays all fit. They release the GIL, so blocks of queries run on threads, and are cached on
disk, so only the first call on a machine pays for compilation.

Every flag is given to every kernel. One that is left out is taken over from whoever calls the kernel first while it is
not compiled yet, and goes into the cache with it: results would depend on what ran first on a machine.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from numba import config
from numba.core.registry import CPUDispatcher
from numba.core.types.misc import unliteral

from .caching import NotKept, cache_of
from .compiling import InnerCompiler, KernelCompiler, compiling


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """A function that is compiled when it is called."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return how a kernel calls it: with numbers of any value, where numba would compile a known one by itself."""
        return super().get_call_template([unliteral(each) for each in args], kws)

    def compile(self, sig: Any) -> Any:
        """Compile it for arguments of these types."""
        with compiling(self._cache):
            return super().compile(sig)


class InnerKernel(Kernel):
    """A function that other kernels call: only what goes into them is compiled, and nothing is kept on disk.

    A way in from Python, and machine code of its own, would take as long again. Called from Python, as tests do, it is
    compiled as a kernel.
    """

    def __call__(self, *args: Any) -> Any:
        """Call it from Python."""
        return self._outer(*args)

    @cached_property
    def _outer(self) -> Kernel:
        options = self.targetoptions | {"no_cpython_wrapper": False}
        made = Kernel(self.py_func, targetoptions=options, pipeline_class=KernelCompiler)
        made._cache = cache_of(self.py_func)
        return made


def _njit(*, inner: bool = False, counted: bool = True, inlined: bool = False, fastmath: Any = False) -> Any:
    def decorate(function: Any) -> Any:
        if config.DISABLE_JIT:
            return function
        options = {
            "nopython": True,
            "nogil": True,
            "error_model": "numpy",
            "_nrt": counted,
            "forceinline": inlined,
            "fastmath": fastmath,
            "no_cpython_wrapper": inner,
            "no_cfunc_wrapper": True,
        }
        kind, compiler = (InnerKernel, InnerCompiler) if inner else (Kernel, KernelCompiler)
        made = kind(function, targetoptions=options, pipeline_class=compiler)
        made._cache = NotKept() if inner else cache_of(function)
        return made

    return decorate


REORDERED = {"reassoc", "contract", "nsz"}
"""Lets the compiler reorder the additions of a sum (which SIMD needs). The order it picks is fixed at compile time:
results stay the same from run to run and for any number of threads. Infinities and NaN keep their meaning."""

kernel = _njit()
sum_kernel = _njit(fastmath=REORDERED)

# For kernels that run inside another kernel and allocate nothing. Counting references to the arrays they are handed
# takes longer than ranking ten documents, so here nothing is counted: the caller keeps the arrays alive.
inner_kernel = _njit(inner=True, counted=False)
inner_sum_kernel = _njit(inner=True, counted=False, fastmath=REORDERED)

# For a step of another kernel that has a name of its own only to be read: as if it stood there. To hand over thirty
# arrays takes as long as ranking ten documents.
inlined_kernel = _njit(inner=True, inlined=True, counted=False)

# For what stands behind the entry of a C function. It may allocate.
body_kernel = _njit(inner=True, inlined=True)
