"""Measures that discount gains by rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._typing import Floats, Ints
from ..data import validation
from .base import BLANK_VALUE, BY_CONVENTION, Compiled
from .order import Ties
from .plan import discount_table
from .presets import Blank, Discount, Gain, Short

if TYPE_CHECKING:
    from ._rank_kernels import RankedLists


@dataclass(frozen=True, kw_only=True)
class DiscountedGain(Compiled):
    """A measure that adds up gains of grades, discounted by rank."""

    gain: Gain = BY_CONVENTION
    discount: Discount = BY_CONVENTION
    ties: Ties = BY_CONVENTION
    short: Short = BY_CONVENTION

    def check(self, y: Floats, ptr: Ints, lowest: float, highest: float) -> None:
        """Refuse grades below 0, and those whose gains do not add up to a number."""
        if lowest < 0:
            validation.check_grades(y)
        if highest > validation.LARGEST_GRADE and self.gain == Gain.EXP2:
            why = f"2^l − 1 is too large to add up beyond {validation.LARGEST_GRADE:g}"
            remedy = f"{why}, use {self.name}:gain=linear or smaller grades"
            validation.check_largest_grade(y, validation.LARGEST_GRADE, remedy)

    def discounts_of(self, lists: RankedLists) -> Floats:
        """Return D of as many ranks as the measure reads of the longest list."""
        longest = int(np.diff(lists.ptr).max(initial=0))
        table: Floats = discount_table(longest)[self.discount]
        return table[: min(longest, self.k or longest)]


@dataclass(frozen=True, kw_only=True)
class DCG(DiscountedGain):
    """DCG@k = Σ_{r ≤ k} G(l_r) D(r), l_r the grade at rank r.

    >>> DCG(k=2).per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).round(4).tolist()
    [1.8928]
    """

    short_name = "dcg"

    def values_of(self, lists: RankedLists) -> Any:
        """Return DCG@k of each list."""
        from ._query_kernels import dcg_of_queries

        return dcg_of_queries(lists, self.k or 0, int(self.short), int(self.gain), self.discounts_of(lists))


@dataclass(frozen=True, kw_only=True)
class NormalisedGain(DiscountedGain):
    """A measure of what is gained against what the best order gains."""

    blank: Blank = BY_CONVENTION

    bounded = True

    @property
    def best_is_one(self) -> bool:
        """Whether a short list can reach 1 too."""
        return self.short != Short.ZERO


@dataclass(frozen=True, kw_only=True)
class NDCG(NormalisedGain):
    """NDCG@k = DCG@k / max over orders of DCG@k; `blank` where every gain is 0.

    >>> NDCG(k=2).per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).round(4).tolist()
    [0.5213]
    """

    short_name = "ndcg"
    aliases = ("ndcg_cut",)

    def values_of(self, lists: RankedLists) -> Any:
        """Return NDCG@k of each list."""
        from ._query_kernels import ndcg_of_queries

        discount, blank = self.discounts_of(lists), BLANK_VALUE[self.blank]
        return ndcg_of_queries(lists, self.k or 0, int(self.short), int(self.gain), discount, blank)


@dataclass(frozen=True, kw_only=True)
class MeanNDCG(NormalisedGain):
    """MeanNDCG = (1/n) Σ_{j ≤ n} NDCG@j, the figure LETOR prints; with a cut-off the mean runs over j ≤ k.

    >>> MeanNDCG(convention="letor4").per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).round(4).tolist()
    [0.5526]
    """

    short_name = "meanndcg"
    for_runs = False

    def values_of(self, lists: RankedLists) -> Any:
        """Return the mean of NDCG@1, …, NDCG@k of each list."""
        from ._query_kernels import mean_ndcg_of_queries

        discount, blank = self.discounts_of(lists), BLANK_VALUE[self.blank]
        return mean_ndcg_of_queries(lists, self.k or 0, int(self.short), int(self.gain), discount, blank)


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
