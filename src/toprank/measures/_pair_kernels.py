# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The value of one list by pairs of documents that stand the wrong way round: pair accuracy and bpref."""

from __future__ import annotations

import numpy as np

from ..core.jit import kernel
from ..core.sorting import sort_down
from ._list_kernels import count_above


@kernel
def unequal_pairs(falling):
    """Number of pairs with different values among values that fall."""
    count, same = 0, 0
    for r in range(len(falling)):
        same = same + 1 if r > 0 and falling[r] == falling[r - 1] else 0
        count += r - same
    return count


@kernel
def pairs_of_grades(ranked, ends):
    """Return how many pairs of different grade there are, and how many of them stand the wrong way round.

    Of a tied pair, half does.
    """
    tied, low = 0, 0
    while low < len(ends):
        tied += unequal_pairs(ranked[low : ends[low]])
        low = ends[low]
    grades = ranked.copy()
    wrong = sort_down(grades, np.arange(len(grades)))
    return unequal_pairs(grades), wrong + 0.5 * tied


@kernel
def count_judged_irrelevant(grades, above):
    """Number of documents that were judged (a grade of at least 0) and are not relevant."""
    count = 0
    for i in range(len(grades)):
        count += 0 <= grades[i] <= above
    return count


@kernel
def binary_preference(ranked, ends, relevant, irrelevant, above, unopposed):
    """(1/R) Σ_{relevant} 1 − min(#{irrelevant above it}, R) / min(R, N), of R and N judged documents.

    How many of the x irrelevant documents of its own tied group stand above a relevant one is 0, …, x alike. A relevant
    document counts `unopposed` where nothing was judged irrelevant.
    """
    value, passed, low = 0.0, 0, 0
    while low < len(ranked):
        high = ends[low] if len(ends) > 0 else low + 1
        found = count_above(ranked[low:high], above)
        other = count_judged_irrelevant(ranked[low:high], above)
        if found > 0:
            lost = 0.0
            for x in range(passed, passed + other + 1):
                lost += min(x, relevant) / min(relevant, irrelevant) if x > 0 else 0.0
            value += found * (1.0 - lost / (other + 1) if irrelevant > 0 else unopposed)
        passed += other
        low = high
    return value / relevant
