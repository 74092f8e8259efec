# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""One list in descending order of scores: counted where it is short, sorted where it is long, its top alone where that
is enough. Knows nothing of measures. Ranks count from 0.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import types

from ..core._call_kernels import CFunction, array_at
from ..core._order_kernels import count_ranks, sort_down
from ..core.jit import inner_kernel
from .order import Ties

INPUT, BY_ID, WORST, BEST = int(Ties.INPUT), int(Ties.ID), int(Ties.WORST), int(Ties.BEST)

LANES = np.int64(32)
"""Running maxima kept side by side where only the top is wanted."""
COUNTED = 512
"""Lists up to this length are ranked by counting (SIMD), longer ones by the sort."""

_whole, _real = types.CPointer(types.int64), types.CPointer(types.float64)
ORDER = types.int64(
    _real, _real, types.int64, types.int64, types.int64,
    _real, _whole, _whole, _real, _real, _whole, _whole, types.CPointer(types.int32), types.CPointer(types.float32),
)  # fmt: skip
"""Scores, grades, how many, tie rule, ranks wanted; grades by rank, ends of tied groups, documents by rank; and
scratch, each LANES longer than the list. Returns how many neighbours are tied."""
SCRATCH = 9
"""Arrays that follow the first five arguments, of 8 bytes a place at the most."""


@inner_kernel
def candidates(s, n, top, listed, rank, single):
    """List in input order the documents that can be among the first `top`; return how many.

    The k-th largest of LANES running maxima is a lower bound of the k-th score, so only what reaches it can matter.
    """
    if top > LANES or n < 2 * LANES:
        for i in range(n):
            listed[i] = i
        return n
    for lane in range(LANES):
        single[lane] = s[lane]
    for start in range(LANES, n - LANES + 1, LANES):
        for lane in range(LANES):
            single[lane] = max(single[lane], np.float32(s[start + lane]))
    count_ranks(single, LANES, rank)
    bound = single[0]
    for lane in range(LANES):
        bound = single[lane] if rank[lane] == top - 1 else bound
    m = 0
    for i in range(n):
        listed[m] = i
        m += int(np.float32(s[i]) >= bound)
    return m


@inner_kernel
def sort_runs(keys, index, m, values, keys2, index2):
    """Sort each run of equal keys by the values of its documents, from high to low; these replace the keys."""
    low = 0
    while low < m:
        high = low + 1
        while high < m and keys[high] == keys[low]:
            high += 1
        for r in range(low, high):
            keys[r] = values[index[r]]
        if high > low + 1:
            sort_down(keys[low:high], index[low:high], high - low, keys2, index2)
        low = high


@partial(CFunction, ORDER)
def order_list(
    s_at, g_at, n, ties, top,
    ranked_at, ends_at, index_at, keys_at, keys2_at, listed_at, index2_at, rank_at, single_at,
):  # fmt: skip
    """Order one list under a tie rule: documents and grades by rank; where any are tied, the ends of tied groups too.

    The only place that sorts scores. At least min(top, n) ranks are filled, and never a part of a tied group.
    """
    s, g, ranked, keys, keys2 = (
        array_at(s_at, n), array_at(g_at, n), array_at(ranked_at, n), array_at(keys_at, n), array_at(keys2_at, n)
    )  # fmt: skip
    listed, index, index2, ends = (
        array_at(listed_at, n + 1),
        array_at(index_at, n),
        array_at(index2_at, n),
        array_at(ends_at, n),
    )
    rank, single = array_at(rank_at, n + LANES), array_at(single_at, n + LANES)
    m, tied = candidates(s, n, top, listed, rank, single), 0
    if m <= COUNTED:  # single precision counts at twice the speed
        for r in range(m):
            single[r] = s[listed[r]]
        count_ranks(single, m, rank)
        for r in range(m):
            index[rank[r]], keys[rank[r]] = listed[r], single[r]
        for r in range(1, m):
            tied += keys[r] == keys[r - 1]
    else:
        for r in range(m):
            index[r], keys[r] = listed[r], 0.0
        tied = m
    by_grade, by_row = (1.0 if ties == BEST else -1.0 if ties == WORST else 0.0), 1.0 if ties == BY_ID else 0.0
    for settle_ties in range(2 if tied > 0 else 0):  # what could not be told apart by its score, then by the rule
        for i in range(n):
            score = np.float64(np.float32(s[i])) if ties == BY_ID else s[i]
            ranked[i] = by_grade * g[i] + by_row * i if settle_ties else score
        sort_runs(keys, index, m, ranked, keys2, index2)
        if settle_ties == 0:
            tied = 0
            for r in range(m - 1, -1, -1):
                same = r + 1 < m and keys[r] == keys[r + 1]
                ends[r] = ends[r + 1] if same else r + 1
                tied += same
            if tied == 0 or ties == INPUT:
                break
    for r in range(m):
        ranked[r] = g[index[r]]
    return tied
