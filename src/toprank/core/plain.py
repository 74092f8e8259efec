# mypy: allow-untyped-calls
"""How toprank compiles: the only place that decides.

Kernels are module-level functions of arrays, numbers and named tuples, without signatures, so that float32, float64 and
read-only memory-mapped arrays all fit. They release the GIL, so blocks of queries run on threads, and numba keeps them
on disk, so only the first call on a machine pays for compilation.

Every flag is stated. One that is left out is taken over from whoever calls a kernel first: results would depend on
what ran first on a machine.
"""

from __future__ import annotations

from numba import njit

kernel = njit(nogil=True, cache=True, error_model="numpy", fastmath=False)

REORDERED = {"reassoc", "contract", "nsz"}
"""Lets the compiler reorder the additions of a sum, which SIMD needs. The order is fixed when the kernel is compiled:
results stay the same from run to run and for any number of threads. Infinities and NaN keep their meaning."""

sum_kernel = njit(nogil=True, cache=True, error_model="numpy", fastmath=REORDERED)
