# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The one sort, the one selection of the largest, and grades numbered upwards.

numba's own `np.sort` and `np.argsort` are not used: in kernels that are kept on disk their helpers share names, and one
kernel was served the helper of another.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel

RUN_LENGTH = 128
"""Runs of this length are sorted by counting, then merged."""
WHOLE_GRADES = 32
"""Whole grades below this are their own levels."""


@kernel
def sort_run(keys, items, start, stop):
    """Sort keys[start:stop] as `sort_down` does: the place of a key is the number of keys that go before it.

    That takes (stop − start)² / 2 comparisons, but none decides a branch, and SIMD does several at once.
    """
    n, wrong = stop - start, 0
    run_keys, run_items, place = keys[start:stop].copy(), items[start:stop].copy(), np.empty(n, np.int64)
    for i in range(n):
        key, before_i = run_keys[i], 0
        for j in range(i):
            stays_before = int(run_keys[j] >= key)
            before_i += stays_before
            place[j] += 1 - stays_before
        place[i] = before_i
        wrong += i - before_i
    for i in range(n):
        keys[start + place[i]], items[start + place[i]] = run_keys[i], run_items[i]
    return wrong


@kernel
def sort_down(keys, items):
    """Sort keys from high to low, stably, and `items` with them; return how many pairs stood the wrong way round."""
    n, wrong = len(keys), 0
    for start in range(0, n, RUN_LENGTH):
        wrong += sort_run(keys, items, start, min(start + RUN_LENGTH, n))
    if n <= RUN_LENGTH:
        return wrong
    merged_keys, merged_items, width = np.empty_like(keys), np.empty_like(items), RUN_LENGTH
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            i, j = start, middle
            for k in range(start, stop):
                if i < middle and (j >= stop or keys[i] >= keys[j]):
                    merged_keys[k], merged_items[k] = keys[i], items[i]
                    i += 1
                else:
                    merged_keys[k], merged_items[k] = keys[j], items[j]
                    j += 1
                    wrong += middle - i
        for k in range(n):
            keys[k], items[k] = merged_keys[k], merged_items[k]
        width *= 2
    return wrong


@kernel
def order_down(keys):
    """Return the places of the keys from the highest to the lowest, equal ones as they stand; `keys` is not changed."""
    order = np.arange(len(keys))
    sort_down(keys.copy(), order)
    return order


@kernel
def kth_largest(values, k):
    """Return the k-th largest value, 1 ≤ k ≤ len(values): quickselect around medians of three."""
    kept, smaller, n = values.copy(), np.empty_like(values), len(values)
    while True:
        x, y, z = kept[0], kept[n >> 1], kept[n - 1]
        pivot = max(min(x, y), min(max(x, y), z))
        larger = less = 0
        for i in range(n):  # no branch depends on a comparison of two values: there is nothing to mispredict
            value = kept[i]
            kept[larger] = value
            smaller[less] = value
            larger += value > pivot
            less += value < pivot
        if k <= larger:
            n = larger
        elif k <= n - less:
            return pivot
        else:
            k -= n - less
            n = less
            kept, smaller = smaller, kept


@kernel
def best_first(scores, k, top):
    """top[:k] = the documents with the k largest scores, best first; of equal scores the earlier one comes first."""
    n, k = len(scores), min(k, len(scores))
    if k == 0:
        return 0
    lowest = kth_largest(scores, k) if k < n else -np.inf
    above = 0
    for i in range(n):
        above += scores[i] > lowest
    keys, found, ties_left = np.empty(k), 0, k - above
    for i in range(n):
        tied = scores[i] == lowest
        if scores[i] > lowest or (tied and ties_left > 0):
            keys[found], top[found] = scores[i], i
            found += 1
            ties_left -= tied
    sort_down(keys, top[:k])
    return k


@kernel
def number_grades(y, level):
    """level[i] = the place of y_i among the different grades of its list, from 0 upwards; return how many there are."""
    n = len(y)
    keys, order, levels = y.copy(), np.arange(n), 0
    sort_down(keys, order)
    for p in range(n - 1, -1, -1):
        levels += p == n - 1 or keys[p] != keys[p + 1]
        level[order[p]] = levels - 1
    return levels


@kernel
def longest_list(ptr):
    """Documents of the longest list."""
    longest = 0
    for q in range(len(ptr) - 1):
        longest = max(longest, ptr[q + 1] - ptr[q])
    return longest


@kernel
def grade_levels(y, level):
    """level[i] = a whole number from 0 that rises with the grade y_i; return one more than the highest.

    Small whole grades are their own levels, so that a level may have no document. Other grades are numbered.
    """
    others, highest = 0, 0.0
    for i in range(len(y)):
        others += (np.floor(y[i]) != y[i]) | (y[i] < 0.0) | (y[i] >= WHOLE_GRADES)
        highest = max(highest, y[i])
    if others > 0:
        return number_grades(y, level)
    for i in range(len(y)):
        level[i] = np.int64(y[i])
    return np.int64(highest) + 1


@kernel
def order_by_level(level, levels):
    """Return the documents from the highest level to the lowest, those of one level as they stand."""
    place, before = np.zeros(levels, np.int64), 0
    for i in range(len(level)):
        place[level[i]] += 1
    for g in range(levels - 1, -1, -1):
        place[g], before = before, before + place[g]
    order = np.empty(len(level), np.int64)
    for i in range(len(level)):
        order[place[level[i]]] = i
        place[level[i]] += 1
    return order
