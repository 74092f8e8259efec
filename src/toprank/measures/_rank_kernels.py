# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""One list in descending order of its scores: documents by rank, grades by rank, ends of tied groups.

Ranks count from 0. `ends[r]` is where the group of documents that score the same as the one at rank r ends; `ends` is
empty where no documents tie, which is how the measures know that there is nothing to average.
"""

from __future__ import annotations

import numpy as np

from ..core.plain import kernel
from ..core.sorting import kth_largest, sort_down
from .order import Ties

INPUT, BY_ID, WORST, AVERAGE = int(Ties.INPUT), int(Ties.ID), int(Ties.WORST), int(Ties.AVERAGE)

SMALL_GRADE = 31
"""Whole grades up to this are counted, not sorted."""


@kernel
def documents_by_rank(s, depth):
    """Return documents by falling score and their scores: at least the first `depth`, and never a part of a group."""
    n, count = len(s), 0
    if depth >= n:
        order, keys = np.arange(n), s.copy()
    else:
        lowest = kth_largest(s, depth)
        order, keys = np.empty(n, np.int64), np.empty(n)
        for i in range(n):
            order[count], keys[count] = i, s[i]
            count += s[i] >= lowest
        order, keys = order[:count], keys[:count]
    sort_down(keys, order)
    return order, keys


@kernel
def ends_of_groups(keys):
    """Return where the group of equal keys that each rank belongs to ends; nothing if all keys are different."""
    n, equal = len(keys), 0
    for r in range(1, n):
        equal += keys[r] == keys[r - 1]
    if equal == 0:
        return np.empty(0, np.int64)
    ends = np.empty(n, np.int64)
    for r in range(n - 1, -1, -1):
        ends[r] = ends[r + 1] if r + 1 < n and keys[r] == keys[r + 1] else r + 1
    return ends


@kernel
def settle_ties(order, ends, y, ties):
    """Order the documents of each tied group by the rule; those whose values are averaged stand by falling grade."""
    low = 0
    while low < len(order) and ties != INPUT:
        high = ends[low]
        group = order[low:high]
        if ties == BY_ID:
            group[:] = group[::-1].copy()  # without ids the rows stand for them, descending
        elif ties == WORST:
            sort_down(-y[group], group)
        else:
            sort_down(y[group], group)
        low = high


@kernel
def rank_list(s, y, ties, depth):
    """Order a list under a tie rule; return documents by rank, grades by rank and the ends of tied groups.

    At least the first `depth` ranks are returned, and tied groups whole.
    """
    if ties == BY_ID:  # trec_eval reads scores in single precision
        s = s.astype(np.float32).astype(np.float64)
    order, keys = documents_by_rank(s, depth)
    ends = ends_of_groups(keys)
    if len(ends) > 0:
        settle_ties(order, ends, y, ties)
    return order, y[order], ends


@kernel
def best_grades(y, depth):
    """Return the first `depth` grades of the best order: the highest grades, falling."""
    n, top, others = len(y), np.int32(0), 0
    for i in range(n):
        whole = np.int32(min(max(y[i], -1.0), SMALL_GRADE + 1.0))
        others += (y[i] != whole) | (whole > SMALL_GRADE) | (whole < 0)
        top = max(top, whole)
    if others > 0:
        grades = y.copy()
        sort_down(grades, np.arange(n))
        return grades[: min(depth, n)]
    grades, rank, grade = np.empty(min(depth, n)), 0, top
    while rank < len(grades):
        count = 0
        for i in range(n):
            count += y[i] == grade
        stop = min(rank + count, len(grades))
        grades[rank:stop] = grade
        rank, grade = stop, grade - 1
    return grades
