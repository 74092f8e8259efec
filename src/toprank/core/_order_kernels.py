# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Orders of one list: the one sort, ranks, grades numbered upwards. Of equal keys the earlier comes first.

Scratch arrays come from the caller. numpy's sorts take seconds to compile, and a slice costs as much as ten documents.
"""

from __future__ import annotations

import math

import numpy as np

from .jit import inner_kernel

RUN = 12
"""Runs of this length are sorted by insertion, then merged."""
COUNTED = 256
"""Lists up to this length are ranked by counting (SIMD), longer ones by the sort."""
WHOLE = 32
"""Whole grades below this are their own levels."""


@inner_kernel
def longest_list(ptr):
    """Documents of the longest list."""
    longest = 0
    for q in range(len(ptr) - 1):
        longest = max(longest, ptr[q + 1] - ptr[q])
    return longest


@inner_kernel
def scratch_length(ptr, spare):
    """The length of scratch arrays: a place for each document of a list, for each of its levels, and some to spare."""
    return max(longest_list(ptr), WHOLE) + spare


@inner_kernel
def sort_down(keys, order, n, keys2, order2):
    """Sort keys[:n] from high to low, stably, and `order` with them; return how many pairs stood the wrong way round.

    The other two are scratch.
    """
    wrong = 0
    for start in range(0, n, RUN):
        stop = min(start + RUN, n)
        for i in range(start + 1, stop):
            key, item = keys[i], order[i]
            j = i - 1
            while j >= start and keys[j] < key:
                keys[j + 1], order[j + 1] = keys[j], order[j]
                j -= 1
            keys[j + 1], order[j + 1] = key, item
            wrong += i - 1 - j
    width = RUN
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            i, j = start, middle
            for k in range(start, stop):
                if i < middle and (j >= stop or keys[i] >= keys[j]):
                    keys2[k], order2[k] = keys[i], order[i]
                    i += 1
                else:
                    keys2[k], order2[k] = keys[j], order[j]
                    j += 1
                    wrong += middle - i
        for k in range(n):
            keys[k], order[k] = keys2[k], order2[k]
        width *= 2
    return wrong


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
def order_down(keys, order, n, rank, keys2, order2):
    """Put `order` into the order of falling keys, which may be used up: by counting where they are few."""
    if n > COUNTED:
        sort_down(keys, order, n, keys2, order2)
        return
    count_ranks(keys, n, rank)
    for i in range(n):
        order2[rank[i]] = order[i]
    for i in range(n):
        order[i] = order2[i]


@inner_kernel
def largest(x):
    """max x, in four strands: one comparison waits for the one before it."""
    a = b = c = d = -math.inf
    whole = len(x) - len(x) % 4
    for i in range(0, whole, 4):
        a = x[i] if x[i] > a else a
        b = x[i + 1] if x[i + 1] > b else b
        c = x[i + 2] if x[i + 2] > c else c
        d = x[i + 3] if x[i + 3] > d else d
    for i in range(whole, len(x)):
        a = max(a, x[i])
    return max(max(a, b), max(c, d))


@inner_kernel
def whole_levels(y):
    """One more than the largest grade where all are whole numbers from 0 to 31, else 0."""
    odd, top = 0, np.int32(0)
    for i in range(len(y)):
        odd += (math.floor(y[i]) != y[i]) | (y[i] < 0) | (y[i] >= WHOLE)
    if odd > 0:  # to convert what does not fit has no meaning at all
        return 0
    for i in range(len(y)):
        top = max(top, np.int32(y[i]))
    return int(top) + 1


@inner_kernel
def number_grades(y, level, keys, order, keys2, order2):
    """level[i] = the place of y_i among the grades of its list, from 0 upwards; return one more than the highest level.

    Small whole grades are their own levels, so that some levels may stand empty.
    """
    n, levels = len(y), whole_levels(y)
    if levels > 0:
        for i in range(n):
            level[i] = np.int64(y[i])
        return levels
    for i in range(n):
        keys[i], order[i] = y[i], i
    sort_down(keys, order, n, keys2, order2)
    for p in range(n - 1, -1, -1):
        levels += p == n - 1 or keys[p] != keys[p + 1]
        level[order[p]] = levels - 1
    return levels


@inner_kernel
def by_level(level, n, levels, place, order):
    """order[:n] = documents by falling level, those of one level as they stand; `place` is scratch for each level."""
    for g in range(levels):
        place[g] = 0
    for i in range(n):
        place[level[i]] += 1
    total = 0
    for g in range(levels - 1, -1, -1):
        count = place[g]
        place[g] = total
        total += count
    for i in range(n):
        order[place[level[i]]] = i
        place[level[i]] += 1
