"""Measures that discount gains by rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .._typing import Floats
from .base import BLANK, BY_CONVENTION, Measure
from .order import Ties
from .plan import Row, discount_table
from .presets import Blank, Discount, Gain, Kind, Short


@dataclass(frozen=True, kw_only=True)
class DCG(Measure):
    """DCG@k = Σ_{r ≤ k} G(l_r) D(r), l_r the grade at rank r.

    >>> DCG(k=2).per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).round(4).tolist()
    [1.8928]
    """

    gain: Gain = BY_CONVENTION
    discount: Discount = BY_CONVENTION
    ties: Ties = BY_CONVENTION
    short: Short = BY_CONVENTION

    short_name: ClassVar[str] = "dcg"

    def row(self) -> Row:
        """Return the codes by which the compiled pass computes this measure."""
        return Row(Kind.DCG, self.k, self.gain, self.discount, self.ties, self.short)


@dataclass(frozen=True, kw_only=True)
class NDCG(Measure):
    """NDCG@k = DCG@k / max over orders of DCG@k; `blank` where every gain is 0.

    >>> NDCG(k=2).per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).round(4).tolist()
    [0.5213]
    """

    gain: Gain = BY_CONVENTION
    discount: Discount = BY_CONVENTION
    ties: Ties = BY_CONVENTION
    short: Short = BY_CONVENTION
    blank: Blank = BY_CONVENTION

    short_name: ClassVar[str] = "ndcg"

    def row(self) -> Row:
        """Return the codes by which the compiled pass computes this measure."""
        return Row(Kind.NDCG, self.k, self.gain, self.discount, self.ties, self.short, blank=BLANK[self.blank])


@dataclass(frozen=True, kw_only=True)
class MeanNDCG(Measure):
    """MeanNDCG = (1/n) Σ_{j ≤ n} NDCG@j, the figure LETOR prints; with a cut-off the mean runs over j ≤ k.

    >>> MeanNDCG(convention="letor4").per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).round(4).tolist()
    [0.5526]
    """

    gain: Gain = BY_CONVENTION
    discount: Discount = BY_CONVENTION
    ties: Ties = BY_CONVENTION
    short: Short = BY_CONVENTION
    blank: Blank = BY_CONVENTION

    short_name: ClassVar[str] = "meanndcg"

    def row(self) -> Row:
        """Return the codes by which the compiled pass computes this measure."""
        return Row(Kind.MEAN_NDCG, self.k, self.gain, self.discount, self.ties, self.short, blank=BLANK[self.blank])


def gains(y: Floats, gain: Gain) -> Floats:
    """Return G(l) of each grade.

    >>> import numpy as np
    >>> gains(np.array([0.0, 1.0, 2.0]), Gain.EXP2).tolist()
    [0.0, 1.0, 3.0]
    """
    return y.copy() if gain == Gain.LINEAR else 2.0**y - 1.0


def discounts(n: int, discount: Discount) -> Floats:
    """Return D(r) of the ranks 1, …, n.

    >>> discounts(4, Discount.LETOR).round(4).tolist()
    [1.0, 1.0, 0.6309, 0.5]
    """
    return discount_table(n)[discount, :n].copy()
