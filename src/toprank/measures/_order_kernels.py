# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""One list in descending order of scores: counted where it is short, merged where it is long, its top alone where that
is enough. Knows nothing of measures.

`s` and `g` are the scores and grades of one list; ranks count from 0. Scratch is two tables and two vectors, indexed
in place: a view per list would cost more than the list.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import carray, types

from ..core._call_kernels import CFunction
from ..core.jit import inner_kernel
from .order import Ties

INPUT, BY_ID, WORST, BEST = int(Ties.INPUT), int(Ties.ID), int(Ties.WORST), int(Ties.BEST)

INDEX, LISTED, OTHER, ENDS = 0, 1, 2, 3
"""Rows of whole numbers: documents by rank, candidates in input order, room to merge, where a tied group ends."""
RANKED, VALUES, TIE, KEYS, SPARE = 0, 1, 2, 3, 4
"""Rows of reals: grades by rank, scores, tie-breakers, scores by rank, room to merge."""
REALS, INTS = 5, 4
ROWS = REALS + INTS + 2
"""Rows of scratch in all: those, and two for single precision."""

EVERY = 1 << 40
"""More ranks than any list has."""
LANES = np.int64(32)
"""Running maxima kept side by side where only the top is wanted."""
COUNTED = 512
"""Lists up to this length are ranked by counting (SIMD), longer ones by merging."""


@inner_kernel
def count_ranks(values, n, rank):
    """rank[i] = #{j: v_j > v_i} + #{j < i: v_j = v_i}, each pair looked at once."""
    for i in range(n):
        x, ahead = values[i], np.int32(0)
        for j in range(i):
            before = np.int32(values[j] >= x)
            ahead += before
            rank[j] += np.int32(1) - before
        rank[i] = ahead


@inner_kernel
def settle(low, high, ints, reals):
    """Sort INDEX[low:high] stably by (VALUES descending, TIE ascending), in O(n log n) whatever the input."""
    for r in range(low, high):
        reals[KEYS, r] = reals[VALUES, ints[INDEX, r]]
    i_from, i_to, v_from, v_to, width = INDEX, OTHER, KEYS, SPARE, np.int64(1)
    while width < high - low:
        for start in range(low, high, 2 * width):
            # Unsigned: a signed index is checked for being negative, which costs a third of the merge.
            one, left, middle = np.uint64(1), np.uint64(start), np.uint64(min(start + width, high))
            right, stop = middle, np.uint64(min(start + 2 * width, high))
            for r in range(start, np.int64(stop)):
                later = left == middle
                if not later and right < stop:
                    x, y = reals[v_from, left], reals[v_from, right]
                    later = y > x or (x == y and reals[TIE, ints[i_from, right]] < reals[TIE, ints[i_from, left]])
                at = right if later else left
                reals[v_to, r], ints[i_to, r] = reals[v_from, at], ints[i_from, at]
                left, right = (left, right + one) if later else (left + one, right)
        i_from, i_to, v_from, v_to = i_to, i_from, v_to, v_from
        width *= 2
    for r in range(low, high):
        ints[INDEX, r] = ints[i_from, r]


@inner_kernel
def candidates(n, top, ints, reals, rank, single):
    """List in input order the documents that can be among the first `top`; return how many.

    The k-th largest of LANES running maxima is a lower bound of the k-th score, so only what reaches it can matter.
    """
    if top > LANES or n < 2 * LANES:
        for i in range(n):
            ints[LISTED, i] = i
        return n
    for lane in range(LANES):
        single[lane] = np.float32(reals[VALUES, lane])
    for start in range(LANES, n - LANES + 1, LANES):
        for lane in range(LANES):
            single[lane] = max(single[lane], np.float32(reals[VALUES, start + lane]))
    count_ranks(single, LANES, rank)
    bound = np.float32(-np.inf)
    for lane in range(LANES):
        if rank[lane] == top - 1:
            bound = single[lane]
    m = 0
    for i in range(n):
        ints[LISTED, m] = i
        m += int(np.float32(reals[VALUES, i]) >= bound)
    return m


_whole, _real = types.CPointer(types.int64), types.CPointer(types.float64)
ORDER = types.int64(_real, _real, types.int64, types.int64, types.int64, _real, types.int64)
"""Scores, grades, how many, tie rule, ranks wanted, scratch, its `size`; returns how many ranks are filled."""


@partial(CFunction, ORDER)
def order_list(s_at, g_at, n, ties, top, scratch_at, size):
    """Order one list under a tie rule: write documents, grades and ends of tied groups by rank; return how many ranks.

    The only place that sorts scores. At least min(top, n) ranks are filled, and never a part of a tied group. Scratch
    is ROWS · size reals: tables of reals and of whole numbers, ranks, and scores in single precision.
    """
    s, g, room = carray(s_at, n), carray(g_at, n), carray(scratch_at, ROWS * size)
    reals = room[: REALS * size].reshape((REALS, size))
    ints = room[REALS * size : (REALS + INTS) * size].view(np.int64).reshape((INTS, size))
    rank = room[(ROWS - 2) * size : (ROWS - 1) * size].view(np.int32)
    single = room[(ROWS - 1) * size :].view(np.float32)
    by_grade = 1.0 if ties == WORST else -1.0 if ties == BEST else 0.0
    by_row = 1.0 if ties == BY_ID else 0.0
    for i in range(n):
        reals[VALUES, i], reals[TIE, i] = s[i], by_grade * g[i] - by_row * i
    for i in range(n if ties == BY_ID else 0):
        reals[VALUES, i] = np.float64(np.float32(s[i]))
    m = candidates(n, top, ints, reals, rank, single)
    counted = m <= COUNTED
    for r in range(m):
        ints[INDEX, r], single[r] = ints[LISTED, r], reals[VALUES, ints[LISTED, r]]
    if counted:
        count_ranks(single, m, rank)
        for r in range(m):
            ints[INDEX, rank[r]], reals[KEYS, rank[r]] = ints[LISTED, r], single[r]
    # Single precision counts at twice the speed; what it cannot tell apart, and ties with a rule, are settled here.
    unsettled = 0 if counted else 1
    for r in range(1, m if counted else 0):
        unsettled += reals[KEYS, r] == reals[KEYS, r - 1]
    low = np.int64(0)
    while unsettled > 0 and low < m - 1:
        high = low + 1
        while high < m and (reals[KEYS, high] == reals[KEYS, low] or not counted):
            high += 1
        if high > low + 1:
            settle(low, high, ints, reals)
        low = high
    for r in range(m):
        reals[RANKED, r], ints[ENDS, r] = g[ints[INDEX, r]], r + 1
    for r in range(m - 2 if unsettled > 0 else -1, -1, -1):
        if reals[VALUES, ints[INDEX, r]] == reals[VALUES, ints[INDEX, r + 1]]:
            ints[ENDS, r] = ints[ENDS, r + 1]
    return m
