"""A measure at an address: what compiled loops call without knowing which one it is."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .._typing import Floats, Ints
from ..core.address import AtAddress

if TYPE_CHECKING:
    from .base import Measure

NO_SCRATCH: Floats = np.empty(0)


@cache
def _judge() -> Any:
    """Return the compiled call: numba loads on first use, and an import statement in each call takes a microsecond."""
    from ..core._call_kernels import judge

    return judge


class MeasureFunction(AtAddress):
    """A measure of lists as a C function (`core._call_kernels.MEASURE`)."""

    def fill(self, scores: Floats, y: Floats, ptr: Ints, values: Floats, scratch: Floats = NO_SCRATCH) -> None:
        """Fill one value per list; `scratch` to work in need not have a length."""
        _judge()(self.address, scores, y, ptr, self.codes, self.numbers, values, scratch)
        self.check()


def called_back(measure: Measure) -> MeasureFunction:
    """Return a C function that calls a measure in plain Python."""
    return MeasureFunction.called_back("ffiniffffn", 2, (6,), lambda *lists: (measure.per_query(*lists),))
