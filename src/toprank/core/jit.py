# mypy: allow-untyped-calls
"""How toprank compiles: the only place that decides.

Kernels are module-level functions of arrays, numbers and named tuples, without signatures, so that float32, float64 and
read-only memory-mapped arrays all fit. They release the GIL, so blocks of queries run on threads, and numba keeps them
on disk, so only the first call on a machine pays for compilation.

Every flag is stated. One that is left out is taken over from whoever calls a kernel first: results would depend on
what ran first on a machine.
"""

from __future__ import annotations

import os
import warnings
from functools import partial
from pathlib import Path
from typing import Any

from numba import config, njit

from .cache_folder import check_private, prepare, source_stamp

REORDERED = {"reassoc", "contract", "nsz"}
"""Lets the compiler reorder the additions of a sum, which SIMD needs. The order is fixed when the kernel is compiled:
results stay the same from run to run and for any number of threads. Infinities and NaN keep their meaning."""
OPTIONS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
"""No kernel is called from C: without an entry for that, compiling takes a fifteenth less."""
NO_FOLDER = (
    "compiled code is not kept, and every process compiles it again: let NUMBA_CACHE_DIR name a folder that can be "
    "written to"
)
STAMP = source_stamp(Path(__file__).parents[1])

if os.environ.get("NUMBA_CACHE_DIR"):
    check_private(Path(os.environ["NUMBA_CACHE_DIR"]))


def _compiled(function: Any, fastmath: Any) -> Any:
    """Return the kernel. Its files have the stamp in their names: numba does not notice that a helper has changed."""
    if config.DISABLE_JIT:
        return function
    name, function.__qualname__ = function.__qualname__, f"{function.__qualname__}-{STAMP}"
    try:
        made = njit(cache=True, fastmath=fastmath, **OPTIONS)(function)
        prepare(Path(made.stats.cache_path), STAMP)
    except RuntimeError:  # numba found no folder that it can write to
        warnings.warn(NO_FOLDER, RuntimeWarning, stacklevel=2)
        made = njit(cache=False, fastmath=fastmath, **OPTIONS)(function)
    finally:
        function.__qualname__ = name
    return made


kernel = partial(_compiled, fastmath=False)
sum_kernel = partial(_compiled, fastmath=REORDERED)
