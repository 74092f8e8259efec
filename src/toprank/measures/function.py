"""A measure at an address: what compiled loops call without knowing which one it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .._typing import Floats, Ints

if TYPE_CHECKING:
    from .base import Measure

NO_SCRATCH: Floats = np.empty(0)


@cache
def _judge() -> Any:
    """Return the compiled call: numba loads on first use, and an import statement in each call takes a microsecond."""
    from ..core._call_kernels import judge

    return judge


@dataclass(frozen=True, eq=False)
class MeasureFunction:
    """A measure of lists as a C function (`core._call_kernels.MEASURE`); it belongs to this process, no pickle."""

    address: int
    codes: Ints
    numbers: Floats
    raised: list[BaseException] = field(default_factory=list)
    """What a measure in plain Python raised while compiled code called it."""
    owner: object = None
    """What must live as long as the address is used."""

    def fill(self, scores: Floats, y: Floats, ptr: Ints, values: Floats, scratch: Floats = NO_SCRATCH) -> None:
        """Fill one value per list; `scratch` to work in need not have a length."""
        _judge()(self.address, scores, y, ptr, self.codes, self.numbers, values, scratch)
        self.check()

    def check(self) -> None:
        """Raise what the measure raised: compiled loops that call it cannot."""
        if self.raised:
            raise self.raised.pop()


def called_back(measure: Measure) -> MeasureFunction:
    """Return a C function that calls a measure in plain Python."""
    import ctypes

    whole, real, count = ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_double), ctypes.c_int64
    kinds = (real, real, whole, count, whole, real, real, real, real, count)

    def values(s: Any, y: Any, ptr: Any, lists: int, codes: Any, numbers: Any, out: Any, *rest: Any) -> int:
        bounds = np.ctypeslib.as_array(ptr, (lists + 1,)).copy()
        n = int(bounds[-1])
        scores, grades = (np.ctypeslib.as_array(part, (n,)).copy() if n else np.empty(0) for part in (s, y))
        try:
            np.ctypeslib.as_array(out, (lists,))[:] = measure.per_query(scores, grades, bounds)
        except BaseException as error:  # C cannot raise it
            raised.append(error)
            return 0
        return -1

    raised: list[BaseException] = []
    function: Any = ctypes.CFUNCTYPE(count, *kinds)(values)
    address = ctypes.cast(function, ctypes.c_void_p).value
    return MeasureFunction(int(address or 0), np.zeros(1, dtype=np.int64), np.zeros(1), raised, owner=function)
