"""Measures of a reader who walks down the list and stops where satisfied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._typing import Floats, Ints
from ..data import validation
from .base import BY_CONVENTION, Compiled
from .order import Ties
from .presets import Gain

if TYPE_CHECKING:
    from ._rank_kernels import RankedLists


@dataclass(frozen=True, kw_only=True)
class ERR(Compiled):
    """ERR@k = Σ_{r ≤ k} (1/r) R_r Π_{i<r} (1 − R_i), R = (2^l − 1) / 2^max_grade (linear gain: l / max_grade).

    `max_grade` is the top of the judgement scale (not of the data), so that values from different sets compare.

    >>> ERR(max_grade=2).per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).round(4).tolist()
    [0.3958]
    """

    gain: Gain = BY_CONVENTION
    max_grade: float = BY_CONVENTION
    ties: Ties = BY_CONVENTION

    short_name = "err"
    bounded = True

    def __post_init__(self) -> None:
        super().__post_init__()
        validation.check_positive(max_grade=self.max_grade)

    def check(self, y: Floats, ptr: Ints, lowest: float, highest: float) -> None:
        """Refuse grades outside the scale."""
        if lowest < 0:
            validation.check_grades(y)
        if highest > self.max_grade:
            remedy = f"{self.name} takes grades up to max_grade={self.max_grade:g}, set it higher"
            validation.check_largest_grade(y, self.max_grade, remedy)

    def values_of(self, lists: RankedLists) -> Any:
        """Return ERR@k of each list."""
        from ._query_kernels import err_of_queries

        return err_of_queries(lists, self.k or 0, int(self.gain), self.max_grade)
