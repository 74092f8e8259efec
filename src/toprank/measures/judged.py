"""Measures that tell documents which were not judged (a grade below 0) from irrelevant ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .base import BLANK_VALUE, BY_CONVENTION, Compiled
from .binary import Binary
from .order import Ties
from .presets import Blank, Short

if TYPE_CHECKING:
    from ._rank_kernels import RankedLists

JUST_BELOW_0 = -5e-324


@dataclass(frozen=True, kw_only=True)
class BPref(Binary):
    """bpref = (1/R) Σ_{relevant} 1 − min(#{judged irrelevant above it}, R) / min(R, N), R and N of them judged.

    Documents that were not judged count for nothing. `blank` where nothing is relevant. `unopposed` is what a relevant
    document counts where nothing was judged irrelevant: 1, or NaN as 0/0 in ranx.

    >>> BPref().per_query([4.0, 3.0, 2.0, 1.0], [0, 1, -1, 1], [0, 4]).tolist()
    [0.0]
    """

    blank: Blank = BY_CONVENTION
    unopposed: Blank = BY_CONVENTION

    short_name = "bpref"
    cuts = False
    reads_unjudged = True
    best_is_one = True

    def values_of(self, lists: RankedLists) -> Any:
        """Return bpref of each list."""
        from ._query_kernels import binary_preference_of_queries

        blank, unopposed = BLANK_VALUE[self.blank], BLANK_VALUE[self.unopposed]
        return binary_preference_of_queries(lists, self.above, blank, unopposed)


@dataclass(frozen=True, kw_only=True)
class Judged(Compiled):
    """Judged@k = share of the first k documents that were judged (of all, where the list is shorter than k).

    >>> Judged(k=2).per_query([4.0, 3.0, 2.0], [0, -1, 1], [0, 3]).tolist()
    [0.5]
    """

    ties: Ties = BY_CONVENTION

    short_name = "judged"
    reads_unjudged = True
    bounded = True

    def values_of(self, lists: RankedLists) -> Any:
        """Return the share of judged documents among the first k of each list."""
        from ._query_kernels import precision_of_queries

        return precision_of_queries(lists, self.k or 0, int(Short.SHORTEN), JUST_BELOW_0)
