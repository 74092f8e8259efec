"""Measures of a reader who walks down the list and stops where satisfied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..data import validation
from .base import BY_CONVENTION, Measure
from .order import Ties
from .plan import Row
from .presets import Gain, Kind


@dataclass(frozen=True, kw_only=True)
class ERR(Measure):
    """ERR@k = Σ_{r ≤ k} (1/r) R_r Π_{i<r} (1 − R_i), R = (2^l − 1) / 2^max_grade (linear gain: l / max_grade).

    `max_grade` is the top of the judgement scale (not of the data), so that values from different sets compare.

    >>> ERR(max_grade=2).per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).round(4).tolist()
    [0.3958]
    """

    gain: Gain = BY_CONVENTION
    max_grade: float = BY_CONVENTION
    ties: Ties = BY_CONVENTION

    short_name: ClassVar[str] = "err"

    def __post_init__(self) -> None:
        super().__post_init__()
        validation.check_positive(max_grade=self.max_grade)

    def row(self) -> Row:
        """Return the codes by which the compiled pass computes this measure."""
        return Row(Kind.ERR, self.k, self.gain, ties=self.ties, parameter=self.max_grade)
