"""How toprank compiles: the only place that decides.

Kernels are plain module-level functions of arrays and scalars, without signatures, so that float32, float64 and
read-only memory-mapped arrays all fit. They release the GIL, so blocks of queries run on threads, and are cached on
disk, so only the first call on a machine pays for compilation.
"""

from __future__ import annotations

import numba

kernel = numba.njit(cache=True, nogil=True, error_model="numpy")

# Lets the compiler reorder the additions of a sum (which SIMD needs). The order it picks is fixed at compile time:
# results stay the same from run to run and for any number of threads. Infinities and NaN keep their meaning.
sum_kernel = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})

# For kernels that run once per query inside another kernel and allocate nothing. Counting references to the arrays they
# are handed takes longer than ranking ten documents, so here nothing is counted: the caller keeps the arrays alive.
inner_kernel = numba.njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
inner_sum_kernel = numba.njit(
    cache=True, nogil=True, error_model="numpy", _nrt=False, fastmath={"reassoc", "contract", "nsz"}
)

# Only lets a·b + c be rounded once: for sums whose order is what makes them exact.
inner_fused_kernel = numba.njit(cache=True, nogil=True, error_model="numpy", _nrt=False, fastmath={"contract"})
