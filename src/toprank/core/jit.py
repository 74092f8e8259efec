"""How toprank compiles: the only place that decides.

Kernels are plain module-level functions of arrays and scalars, without signatures, so that float32, float64 and
read-only memory-mapped arrays all fit. They release the GIL, so blocks of queries run on threads, and are cached on
disk, so only the first call on a machine pays for compilation.

Every flag is given to every kernel. One that is left out is taken over from whoever calls the kernel first while it is
not compiled yet, and goes into the cache with it: results would depend on what ran first on a machine.
"""

from __future__ import annotations

from typing import Any

import numba
from numba.core.dispatcher import Dispatcher

from .caching import cache_of


def _njit(*, counted: bool = True, inlined: bool = False, fastmath: set[str] | bool = False) -> Any:
    compiled = numba.njit(nogil=True, error_model="numpy", _nrt=counted, forceinline=inlined, fastmath=fastmath)

    def decorate(function: Any) -> Any:
        made = compiled(function)
        if isinstance(made, Dispatcher):  # and not the function itself, where NUMBA_DISABLE_JIT is set
            made._cache = cache_of(function)  # type: ignore[attr-defined]
        return made

    return decorate


REORDERED = {"reassoc", "contract", "nsz"}
"""Lets the compiler reorder the additions of a sum (which SIMD needs). The order it picks is fixed at compile time:
results stay the same from run to run and for any number of threads. Infinities and NaN keep their meaning."""

kernel = _njit()
sum_kernel = _njit(fastmath=REORDERED)

# For kernels that run once per query inside another kernel and allocate nothing. Counting references to the arrays they
# are handed takes longer than ranking ten documents, so here nothing is counted: the caller keeps the arrays alive.
inner_kernel = _njit(counted=False)
inner_sum_kernel = _njit(counted=False, fastmath=REORDERED)

# For a step of another kernel that has a name of its own only to be read: as if it stood there. To hand over thirty
# arrays takes as long as ranking ten documents.
inlined_kernel = _njit(counted=False, inlined=True)
